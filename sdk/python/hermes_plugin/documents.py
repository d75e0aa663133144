"""Named texts of the plugin, shared by all its instances. They need no permission."""

from collections.abc import Callable

from wit_world.imports import documents
from wit_world.imports.documents import WriteOutcome_Conflict

from .errors import conflict

__all__ = ["read", "update"]

_TRIES = 16


def read(name: str) -> str:
    """The text of a document; empty if it does not exist."""
    found = documents.read(name)
    return "" if found is None else found.content


def update(name: str, change: Callable[[str], str | None]) -> bool:
    """Replaces a text by what `change` makes of it; None leaves it as it is. `change` runs again if another session wrote in
    between, so it must have no side effects. Returns whether the text was written."""
    found = documents.read(name)
    for _ in range(_TRIES):
        new = change("" if found is None else found.content)
        if new is None:
            return False
        outcome = documents.write(name, new, None if found is None else found.version)
        if not isinstance(outcome, WriteOutcome_Conflict):
            return True
        found = outcome.value
    raise conflict(f"{name} was changed by others {_TRIES} times in a row")
