"""What a context engine has to count: the room for the next view, and why a plan was refused."""

from dataclasses import dataclass

from wit_world.exports.context_engine import Outcome, Outcome_Refused, Pressure

from .models import count_tokens

__all__ = ["Refusal", "refusal", "room", "summary_tokens"]

# The host's words around a summary.
_FRAME = 120


@dataclass
class Refusal:
    """Why the host refused a plan. `needed` and `room` are tokens, if the plan was too large."""

    code: str
    message: str
    needed: int | None
    room: int | None


def _field(extra: list[tuple[str, str]], key: str) -> int | None:
    text = dict(extra).get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def room(pressure: Pressure) -> int:
    """The most tokens that the next view may have: the `tokens` of the headers of the messages in it, and `summary_tokens` of each
    summary. A plan that needs more is refused."""
    given = _field(pressure.extra, "room")
    return max(pressure.context_length - pressure.reserve - pressure.fixed_tokens, 0) if given is None else given


def refusal(outcome: Outcome) -> Refusal | None:
    """Why the host refused the last plan, for `settled`; None for every other outcome."""
    if not isinstance(outcome, Outcome_Refused):
        return None
    error = outcome.value
    return Refusal(error.code, error.message, _field(error.extra, "needed"), _field(error.extra, "room"))


def summary_tokens(text: str) -> int:
    """The tokens of a summary in a view, with the host's frame."""
    return count_tokens(text) + _FRAME
