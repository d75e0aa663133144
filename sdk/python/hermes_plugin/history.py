"""The conversation. It needs the permission `history`."""

from wit_world.imports import history
from wit_world.imports.types import Message, MessageRange

__all__ = ["Message", "MessageRange", "read_all", "role_of"]


def read_all(messages: MessageRange) -> list[Message]:
    """All messages of a range, whose pages have at most 4 MiB each."""
    found: list[Message] = []
    first: int | None = messages.first
    while first is not None:
        page = history.read(MessageRange(first, messages.last))
        found += page.messages
        first = page.next
    return found


def role_of(message: Message) -> str:
    """`system`, `user`, `assistant`, `tool`, or the name of a later role."""
    return getattr(message.role, "value", None) or type(message.role).__name__.removeprefix("Role_").lower()
