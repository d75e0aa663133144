"""What crosses the border between a plugin and the host, checked against the types of the contract.

componentize-py converts values without a word about the place of a mistake. This module says which record and which field is
wrong, and what belongs there. The types are those of the bindings, so every record of the contract is checked.
"""

import collections.abc
import dataclasses
import difflib
import enum
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, Union, get_args, get_origin, get_type_hints

from componentize_py_types import Err

__all__ = ["Misfit", "checked", "guard", "guarded", "likely", "settled", "well_formed"]

_WORDS: dict[Any, str] = {str: "a text", int: "a whole number", float: "a number", bool: "True or False", bytes: "bytes"}


# The function that returned last.
last = ""


class Misfit(TypeError):
    """A value that the contract does not have. Its text says which one, and what belongs there."""


def likely(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, as a part of a sentence."""
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean `{found[0]}`?" if found else ""


def settled(what: str, value: Any) -> Any:
    """The result of an `async def` that waits for nothing; a coroutine that has to wait, and a generator, are refused."""
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise Misfit(f"{what} is a generator, and nobody runs it: write `return` in place of `yield`, such as `return list(…)`")
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        try:
            value.send(None)
        except StopIteration as done:
            return settled(what, done.value)
        value.close()
    raise Misfit(
        f"{what} waits for something, and a plugin has no event loop: write plain functions without `await`. "
        "`web.request`, `sql` and the other functions of hermes_plugin return their results at once"
    )


def checked(of: Any, value: Any, what: str, path: str = "", record: str = "") -> Any:
    """The value as the contract has it. `what` names the function; `path` and `record` the place in its answer."""

    def wrong(expected: str, more: str = "") -> Misfit:
        place = f"`{path}` of the record {record}" if record and path else f"`{path}`" if path else "the answer"
        if value is None:
            more = more or ("; is a `return` missing?" if not path else "")
        return Misfit(f"{what}: {place} must be {expected}, not {_shown(value)}{more}")

    members = get_args(of) if get_origin(of) in (Union, types.UnionType) else ()
    if type(None) in members:
        rest = [each for each in members if each is not type(None)]
        return None if value is None else checked(Union[tuple(rest)], value, what, path, record)
    if members:
        member = next((each for each in members if isinstance(value, get_origin(each) or each)), None)
        if member is None:
            cases = ", ".join(f"{each.__name__}({'…' if dataclasses.fields(each) else ''})" for each in members)
            raise wrong(f"one of {cases}", _instead(value, members))
        return checked(member, value, what, path, record)
    origin, inner = get_origin(of) or of, get_args(of)
    if origin is Any or origin is type(None):
        return value
    if origin is list:
        # A tuple has the same items. Bytes and texts are sequences of something else.
        if not isinstance(value, (list, tuple)):
            raise wrong("a list", "; write `list(…)` around it" if isinstance(value, collections.abc.Iterable) else "")
        # Vectors are long.
        if inner[0] is float and all(type(each) is float for each in value):
            return value
        return [checked(inner[0], each, what, f"{path}[{at}]", record) for at, each in enumerate(value)]
    if origin is tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(inner):
            raise wrong(f"a tuple of {len(inner)}")
        return tuple(checked(each, part, what, f"{path}[{at}]", record) for at, (each, part) in enumerate(zip(inner, value)))
    if dataclasses.is_dataclass(origin):
        if not isinstance(value, origin):
            raise wrong(_article(origin.__name__), _instead(value, (origin,)))
        return _record(origin, value, what, path)
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        if not isinstance(value, origin):
            cases = ", ".join(f"{origin.__name__}.{each.name}" for each in origin)
            raise wrong(f"one of {cases}", likely(str(value).upper().replace("-", "_"), origin.__members__))
        return value
    if origin is str:
        if not isinstance(value, str):
            raise wrong(_WORDS[str])
        return well_formed(value)
    if origin is bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise wrong(_WORDS[bytes], "; write `.encode()` behind it" if isinstance(value, str) else "")
        return bytes(value)
    if origin is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(_WORDS[float])
        return float(value)
    if origin is int:
        if not isinstance(value, int):
            raise wrong(_WORDS[int])
        if not -(2**63) <= value < 2**64:
            raise wrong("a number of at most 64 bits")
        return int(value)
    if origin is bool and not isinstance(value, bool):
        raise wrong(_WORDS[bool])
    return value


def well_formed(value: str) -> str:
    """The text with U+FFFD in place of each half of a character, which the contract does not have."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def _record(of: Any, value: Any, what: str, path: str) -> Any:
    hints = get_type_hints(of)
    # The cases of a variant have one field, which is the value itself.
    is_case = "_" in of.__name__ and list(hints) in ([], ["value"])
    found = {}
    for name, hint in hints.items():
        if not hasattr(value, name):
            raise Misfit(f"{what}: `{path or 'the answer'}` of the record {of.__name__} lacks the field `{name}`")
        below = path if is_case else f"{path}.{name}" if path else name
        found[name] = checked(hint, getattr(value, name), what, below, of.__name__)
    for name in vars(value):
        if name not in hints:
            raise Misfit(f"{what}: the record {of.__name__} has no field `{name}`{likely(name, hints)}")
    same = all(found[name] is getattr(value, name) for name in hints)
    return value if same else of(**found)


def _instead(value: Any, members: tuple[Any, ...]) -> str:
    if isinstance(value, type):
        return f"; write `{value.__name__}(…)`: the class itself is no value"
    if isinstance(value, dict) and len(members) == 1:
        return f"; write `record({members[0].__name__}, …)`"
    for member in members:
        if member.__name__.endswith("_Text") and isinstance(value, str):
            return f"; write `{member.__name__}(…)` around it"
    return ""


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        text = repr(value)
        return text if len(text) <= 60 else text[:60] + "…"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _article(type(value).__name__)


def guard(name: str, function: Callable[..., Any], hints: dict[str, Any], located: str = "") -> Callable[..., Any]:
    """A function of an export: what it returns has the shape of the contract, and what it raises is an error of the contract or
    ends the instance with a text that names the place."""
    expected = hints.get("return", Any)
    what = f"`{name}`{located}"

    def run(*given: Any) -> Any:
        try:
            value = settled(what, function(*given))
        except Err as error:
            if not dataclasses.is_dataclass(error.value) or type(error.value).__name__ != "Error":
                raise Misfit(f'{what} raised `Err` with {_shown(error.value)}: raise `invalid("…")`, `unavailable("…")` or `failed("…")`') from error
            raise Err(checked(type(error.value), error.value, f"{what}, the error that it raised")) from error
        except SystemExit as error:
            raise Misfit(f"{what} called `exit`, which ends the instance: return, or raise an error of the contract") from error
        global last
        last = what
        return None if expected in (None, type(None)) else checked(expected, value, what)

    return run


def guarded(module: Any, name: str) -> None:
    """Puts a guard around a function of an import: its arguments have the shape of the contract."""
    function = getattr(module, name)
    hints = get_type_hints(function)
    parameters = [each for each in inspect.signature(function).parameters]
    what = f"`{module.__name__.rpartition('.')[2]}.{name}`"

    def run(*given: Any, **named: Any) -> Any:
        listed = [checked(hints[key], value, what, key) for key, value in zip(parameters, given)]
        return function(*listed, *given[len(listed) :], **{key: checked(hints.get(key, Any), value, what, key) for key, value in named.items()})

    run.__name__, run.__doc__ = name, function.__doc__
    setattr(module, name, run)
