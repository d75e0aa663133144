"""Lines for the plugin's log. The user sees each warning and error once."""

import json
from typing import Any

from wit_world.imports import log as _log
from wit_world.imports.log import Level

__all__ = ["debug", "error", "info", "warn"]


def _write(level: Level, text: str, fields: dict[str, Any]) -> None:
    # A text that is a JSON object becomes the fields of its line.
    line = json.dumps({"text": text, **fields}, ensure_ascii=False, default=str) if fields else text
    _log.write(level, line)


def debug(text: str, **fields: Any) -> None:
    _write(Level.DEBUG, text, fields)


def info(text: str, **fields: Any) -> None:
    _write(Level.INFO, text, fields)


def warn(text: str, **fields: Any) -> None:
    _write(Level.WARN, text, fields)


def error(text: str, **fields: Any) -> None:
    _write(Level.ERROR, text, fields)
