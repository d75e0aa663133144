"""Decides which messages to fold, and writes their digest. Plain functions, which `python3 build.py test` runs in your own Python."""

import json
from collections.abc import Callable

from hermes_plugin import record
from hermes_plugin.history import Message, role_of
from wit_world.exports.context_engine import Excerpt

# Counts the tokens of a text.
Count = Callable[[str], int]

# The most characters of each message, and the most lines of a digest. Older messages are only counted.
LINE = 80
LINES = 200


def tokens_of(messages: list) -> int:
    """The tokens of messages or of their headers."""
    return sum(message.tokens for message in messages)


def folded(headers: list, keep_turns: int, most: float) -> int:
    """The number of messages to fold, so that the newest turns stay: as many as configured, if they take at most so many tokens, and at
    least one. It folds whole turns, which keeps calls with their results."""
    start, left, kept = len(headers), most, 0
    while kept < keep_turns and start > 0:
        begin = start
        while begin > 0 and headers[begin - 1].turn == headers[start - 1].turn:
            begin -= 1
        left -= tokens_of(headers[begin:start])
        if kept > 0 and left < 0:
            break
        start, kept = begin, kept + 1
    return start


def text(messages: list[Message], most: float, count: Count) -> tuple[str, int]:
    """A digest with one line per message, of at most so many tokens: the newest lines, and their number."""
    lines: list[str] = []
    for message in reversed(messages[-LINES:]):
        line = _line(message)
        most -= count(line) + 1
        if most < 0:
            break
        lines.insert(0, line)
    left_out = len(messages) - len(lines)
    begin = [f"({left_out} earlier messages)"] if left_out else []
    return "\n".join(begin + lines), len(lines)


def excerpts(messages: list[Message], most: float, count: Count) -> list[Excerpt] | None:
    """Excerpts of the longest messages, so that all of them take at most so many tokens; None if that is impossible. The user's newest
    message stays in full, as the host requires."""
    user = next((message.id for message in reversed(messages) if role_of(message) == "user"), None)
    others = [message for message in messages if message.id != user]
    cap = max((message.tokens for message in others), default=0)
    while cap >= 20:
        found = [_excerpt(message, cap, count) for message in others if message.tokens > cap]
        found = [(excerpt, saved) for excerpt, saved in found if saved > 0]
        if tokens_of(messages) - sum(saved for _, saved in found) <= most:
            return [excerpt for excerpt, _ in found]
        cap = int(cap * 0.7)
    return None


def _excerpt(message: Message, cap: int, count: Count) -> tuple[Excerpt, int]:
    """The beginning of a message, in about so many tokens, and the tokens that it saves."""
    calls = [call for call in message.tool_calls if count(call.arguments) > 20]
    left = json.dumps({"left_out": "by the context engine"})
    fixed = message.tokens - count(message.content) - sum(count(call.arguments) - count(left) for call in calls)
    content, length = message.content, len(message.content)
    while length > 0 and fixed + count(content) > cap:
        length = int(length * 0.7)
        content = f"{message.content[:length]} […]"
    excerpt = record(Excerpt, id=message.id, content=content, arguments=[(call.id, left) for call in calls], keep_images=True)
    return excerpt, message.tokens - fixed - count(content)


def _line(message: Message) -> str:
    who = message.tool_name or role_of(message)
    words = " ".join(message.content.split())[:LINE]
    calls = ", ".join(call.name for call in message.tool_calls)
    return f"#{message.id} {who}: {words}" + (f" [calls {calls}]" if calls else "")
