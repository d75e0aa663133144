"""Records of the contract with defaults.

The generated classes require every field. A later version of the contract can add a record with more fields, so plugins name
the fields that they set and leave the others to `record`.
"""

import types
from dataclasses import fields
from typing import Any, TypeVar, Union, get_args, get_origin

from .border import Misfit, likely

T = TypeVar("T")

_EMPTY: dict[Any, Any] = {str: "", bool: False, int: 0, float: 0.0, bytes: b""}


def record(of: type[T], /, **given: Any) -> T:
    """Creates a record. Fields that are not given are empty: `None`, `[]`, `""`, `False` or 0."""
    known = {field.name: field.type for field in fields(of)}  # type: ignore[arg-type]
    unknown = given.keys() - known.keys()
    if unknown:
        name = sorted(unknown)[0]
        raise Misfit(f"the record {of.__name__} has no field `{name}`{likely(name, known)}; it has {', '.join(known)}")
    left = {name: _empty(of, name, kind) for name, kind in known.items() if name not in given}
    return of(**given, **left)


def _empty(of: type, name: str, kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind):
        return None
    if get_origin(kind) is list:
        return []
    if kind in _EMPTY:
        return _EMPTY[kind]
    raise Misfit(f"the record {of.__name__} needs a value for `{name}`")
