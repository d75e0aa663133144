"""Helpers for Hermes plugins in Python, over the bindings that componentize-py generates from `wit/`.

`wit_world` contains the contract itself: `wit_world.imports` what a plugin can call, `wit_world.exports` what it implements. This
package adds errors, records with defaults, JSON that is checked against types, and a module for each kind of plugin.
"""

from .errors import (
    Err,
    cancelled,
    conflict,
    denied,
    exhausted,
    failed,
    invalid,
    timeout,
    unavailable,
    unsupported,
)
from .lifecycle import Lifecycle
from .records import record
from .shapes import parse, schema

__all__ = [
    "Err",
    "Lifecycle",
    "cancelled",
    "conflict",
    "denied",
    "exhausted",
    "failed",
    "invalid",
    "parse",
    "record",
    "schema",
    "timeout",
    "unavailable",
    "unsupported",
]
