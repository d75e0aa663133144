"""JSON that is checked against Python types, and JSON Schema of those types.

Supported are `str`, `int`, `float`, `bool`, `Literal`, `list`, `dict` with `str` as keys, dataclasses, `Any`, and `| None` for what may be
left out. `Annotated[T, "text"]` describes a field.
"""

import dataclasses
import json
import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import invalid

T = TypeVar("T")

_NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_WORDS = {"string": "a text", "boolean": "true or false", "integer": "a whole number", "number": "a number"}


def json_object(text: str, what: str) -> dict[str, Any]:
    """Reads a JSON object; an empty text is an empty object."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise invalid(f"{what} cannot be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise invalid(f"{what} must be a JSON object")
    return value


def parse(of: type[T], value: Any, where: str = "") -> T:
    """Converts JSON to a type, and raises `invalid` with the place of the first mistake."""
    return _parse(of, value, where)


def _parse(of: Any, value: Any, where: str) -> Any:
    of, _ = _bare(of)
    inner = _optional(of)
    if inner is not None:
        return None if value is None else _parse(inner, value, where)
    origin = get_origin(of)
    if of is Any:
        return value
    if origin is Literal:
        for allowed in get_args(of):
            if value == allowed and type(value) is type(allowed):
                return value
        raise _wrong(where, f"one of {', '.join(map(repr, get_args(of)))}", value)
    if origin is list or of is list:
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        (item,) = get_args(of) or (Any,)
        return [_parse(item, each, f"{where}[{at}]") for at, each in enumerate(value)]
    if origin is dict or of is dict:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        _, item = get_args(of) or (str, Any)
        return {key: _parse(item, each, _below(where, key)) for key, each in value.items()}
    if dataclasses.is_dataclass(of):
        return _object(of, value, where)
    if of is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if of in _NAMES:
        if isinstance(value, of) and (of is bool or not isinstance(value, bool)):
            return value
        raise _wrong(where, _WORDS[_NAMES[of]], value)
    raise TypeError(f"{of} is not supported in JSON")


def _object(of: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    hints, known = get_type_hints(of, include_extras=True), {field.name: field for field in dataclasses.fields(of)}
    given = {}
    for name, field in known.items():
        if name in value:
            given[name] = _parse(hints[name], value[name], _below(where, name))
        elif _required(field):
            raise invalid(f"{_below(where, name)} is missing")
    unknown = [key for key in value if key not in known]
    if unknown:
        raise invalid(f"{_below(where, unknown[0][:80])} is unknown; known are {', '.join(known)}")
    return of(**given)


def schema(of: Any) -> dict[str, Any]:
    """The JSON Schema of a type."""
    of, description = _bare(of)
    found = _schema(of)
    return {**found, "description": description} if description else found


def _schema(of: Any) -> dict[str, Any]:
    inner = _optional(of)
    if inner is not None:
        return schema(inner)
    origin = get_origin(of)
    if of is Any:
        return {}
    if origin is Literal:
        return {"type": _NAMES[type(get_args(of)[0])], "enum": list(get_args(of))}
    if origin is list or of is list:
        (item,) = get_args(of) or (Any,)
        return {"type": "array", "items": schema(item)}
    if origin is dict or of is dict:
        _, item = get_args(of) or (str, Any)
        return {"type": "object", "additionalProperties": schema(item)}
    if dataclasses.is_dataclass(of):
        hints = get_type_hints(of, include_extras=True)
        known = dataclasses.fields(of)
        required = [field.name for field in known if _required(field)]
        properties = {field.name: schema(hints[field.name]) for field in known}
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if of in _NAMES:
        return {"type": _NAMES[of]}
    raise TypeError(f"{of} is not supported in JSON")


def _required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _bare(of: Any) -> tuple[Any, str]:
    """A type without `Annotated`, and its description."""
    if get_origin(of) is not Annotated:
        return of, ""
    inner, *notes = get_args(of)
    return inner, next((note for note in notes if isinstance(note, str)), "")


def _optional(of: Any) -> Any:
    """The type `T` of `T | None`."""
    if get_origin(of) not in (Union, types.UnionType):
        return None
    inner = [each for each in get_args(of) if each is not type(None)]
    if len(inner) != 1 or len(get_args(of)) != 2:
        raise TypeError(f"{of}: of unions, only `T | None` is supported")
    return inner[0]


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _wrong(where: str, expected: str, value: Any) -> Exception:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return invalid(f"{where or 'the value'} must be {expected}, not {shown}")
