"""Decides which messages to fold, and writes their digest. Plain functions, which `python3 build.py test` runs in your own Python."""

from hermes_plugin.history import Message, role_of

# The most characters of each message, and the most lines of a digest. Older messages are only counted.
LINE = 80
LINES = 200


def folded(headers: list, keep_turns: int) -> int:
    """The number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results."""
    if not headers:
        return 0
    newest = headers[-1].turn
    return next((at for at, header in enumerate(headers) if header.turn + keep_turns > newest), len(headers))


def text(messages: list[Message]) -> str:
    """A digest with one line per message."""
    listed = messages[-LINES:]
    left_out = len(messages) - len(listed)
    begin = [f"({left_out} earlier messages)"] if left_out else []
    return "\n".join(begin + [_line(message) for message in listed])


def _line(message: Message) -> str:
    who = message.tool_name or role_of(message)
    words = " ".join(message.content.split())[:LINE]
    calls = ", ".join(call.name for call in message.tool_calls)
    return f"#{message.id} {who}: {words}" + (f" [calls {calls}]" if calls else "")
