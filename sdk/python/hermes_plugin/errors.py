"""Errors of the contract. Raise them: `raise invalid("text is empty")`.

A function that returns an error tells the host what to do next by its kind. Any other exception ends the instance, and its
traceback becomes part of the error that the user sees.
"""

from typing import Any

from componentize_py_types import Err
from wit_world.imports import types

from .records import record

__all__ = [
    "Err",
    "cancelled",
    "conflict",
    "denied",
    "exhausted",
    "failed",
    "invalid",
    "kind_of",
    "timeout",
    "unavailable",
    "unsupported",
]


def _error(kind: Any, message: str, code: str, retry_after_ms: int | None = None) -> Err:
    return Err(record(types.Error, kind=kind, message=message, code=code, retry_after_ms=retry_after_ms))


def invalid(message: str, code: str = "") -> Err:
    """The caller made a mistake. It is never retried. Of a tool, the model reads the message."""
    return _error(types.ErrorKind_InvalidInput(), message, code)


def unavailable(message: str, retry_after_ms: int | None = None, code: str = "") -> Err:
    """A dependency is unreachable. The host may retry, after this time if you name one."""
    return _error(types.ErrorKind_Unavailable(), message, code, retry_after_ms)


def denied(message: str, code: str = "") -> Err:
    return _error(types.ErrorKind_Denied(), message, code)


def timeout(message: str, code: str = "") -> Err:
    return _error(types.ErrorKind_Timeout(), message, code)


def cancelled(message: str, code: str = "") -> Err:
    return _error(types.ErrorKind_Cancelled(), message, code)


def conflict(message: str, code: str = "") -> Err:
    """Another writer was faster."""
    return _error(types.ErrorKind_Conflict(), message, code)


def exhausted(message: str, retry_after_ms: int | None = None, code: str = "") -> Err:
    """A limit or a budget is exceeded."""
    return _error(types.ErrorKind_Exhausted(), message, code, retry_after_ms)


def unsupported(message: str, code: str = "") -> Err:
    return _error(types.ErrorKind_Unsupported(), message, code)


def failed(message: str, code: str = "") -> Err:
    return _error(types.ErrorKind_Failed(), message, code)


def kind_of(error: Err) -> str:
    """The kind of a caught error, such as `unavailable` or `invalid-input`; a kind of a later version by its name."""
    kind = error.value.kind
    if isinstance(kind, types.ErrorKind_Other):
        return kind.value
    words = type(kind).__name__.removeprefix("ErrorKind_")
    return "".join("-" + letter.lower() if letter.isupper() else letter for letter in words).lstrip("-")
