"""The plugin's SQLite database. It needs the permission `sql`."""

from typing import Any

from wit_world.imports import sql
from wit_world.imports.sql import Statement

from .border import Misfit
from .records import record

__all__ = ["execute", "query"]


def query(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a read-only statement: `query("SELECT text FROM notes WHERE id = ?", 7)`."""
    found = sql.query(_statement(text, parameters))
    return [tuple(getattr(value, "value", None) for value in row) for row in found.rows]


def execute(*statements: str | tuple[Any, ...]) -> list[int]:
    """Runs statements in one transaction: `execute("CREATE …", ("INSERT … VALUES (?)", text))`. Returns the changed rows of each."""
    lists = [(each,) if isinstance(each, str) else each for each in statements]
    return sql.execute([_statement(text, parameters) for text, *parameters in lists])


def _statement(text: str, parameters: Any) -> Statement:
    return record(Statement, sql=text, params=[_value(value) for value in parameters])


def _value(value: Any) -> sql.Value:
    match value:
        case None:
            return sql.Value_Null()
        case bool() | int():
            if not -(2**63) <= value < 2**63:
                raise Misfit(f"SQLite has integers of 64 bits, and {value} is larger: give it as a text")
            return sql.Value_Integer(int(value))
        case float():
            return sql.Value_Real(value)
        case str():
            return sql.Value_Text(value)
        case bytes():
            return sql.Value_Blob(value)
    raise Misfit(f"SQLite has no type for {type(value).__name__}: give None, a number, a text or bytes")
