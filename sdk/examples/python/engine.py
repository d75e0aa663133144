"""A context engine that keeps the last turns in full and folds older messages into one line each.

It uses only the files of `wit/`: componentize-py generates the modules `wit_world` from them. The host checks each plan, so a
bug here costs a refused plan and never a message.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import context_engine as engine
from wit_world.imports import history
from wit_world.imports.types import Error, ErrorKind_InvalidInput, MessageRange, Progress

KEEP_TURNS = 4
FULL_AT = 0.75
LINE = 80
LINES = 200


def refuse(message):
    return Err(Error(ErrorKind_InvalidInput(), "", message, None, []))


class State:
    """State of the only instance. The host can create a new one at any time and sends it all headers again."""

    keep_turns = KEEP_TURNS
    full_at = FULL_AT
    headers = []
    proposed = None
    refused = None


class Lifecycle(exports.Lifecycle):
    def configure(self, config):
        try:
            given = json.loads(config or "{}") or {}
        except (ValueError, RecursionError) as error:
            raise refuse(f"the configuration is no JSON: {error}")
        if not isinstance(given, dict):
            raise refuse("the configuration is no JSON object")
        keep, full = given.get("keep_turns", KEEP_TURNS), given.get("full_at", FULL_AT)
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise refuse("keep_turns must be a whole number from 1")
        if isinstance(full, bool) or not isinstance(full, (int, float)) or not 0 < full <= 1:
            raise refuse("full_at must lie between 0 and 1")
        State.keep_turns, State.full_at = keep, full
        State.headers, State.proposed, State.refused = [], None, None

    def session_start(self, session, how):
        pass

    def session_end(self, how):
        pass


def folded(headers, keep_turns):
    """The number of messages to fold. Whole turns are folded, which keeps calls with their results."""
    if not headers:
        return 0
    newest = headers[-1].turn
    return next((at for at, header in enumerate(headers) if header.turn + keep_turns > newest), len(headers))


def line(message):
    who = message.tool_name or type(message.role).__name__.removeprefix("Role_").lower()
    calls = ", ".join(call.name for call in message.tool_calls)
    words = " ".join(message.content.split())[:LINE]
    return f"#{message.id} {who}: {words}" + (f" [calls {calls}]" if calls else "")


def digest(messages):
    told = messages[-LINES:]
    left_out = len(messages) - len(told)
    begin = [f"({left_out} earlier messages)"] if left_out else []
    return "\n".join(begin + [line(message) for message in told])


def read_all(covers):
    messages, first = [], covers.first
    while first is not None:
        page = history.read(MessageRange(first, covers.last))
        messages += page.messages
        first = page.next
    return messages


class ContextEngine(exports.ContextEngine):
    def model_changed(self, model):
        pass

    def observe(self, headers):
        State.headers += headers

    def rewound(self, first):
        State.headers = [header for header in State.headers if header.id < first]

    def assess(self, pressure):
        room = max(pressure.context_length - pressure.reserve, 1)
        full = pressure.prompt_tokens / room
        if isinstance(pressure.moment, (engine.Moment_Manual, engine.Moment_Overflow)) or full >= 0.95:
            timing = engine.Timing.NOW
        elif full >= State.full_at:
            timing = engine.Timing.BOUNDARY
        else:
            timing = engine.Timing.NOT_NOW
        return engine.Advice(False, timing, [])

    def prepare(self, request):
        return Progress.DONE

    def propose(self, request):
        headers = State.headers
        keep = 1 if isinstance(request.pressure.moment, engine.Moment_Overflow) else State.keep_turns
        count = folded(headers, keep)
        if count == 0:
            return None
        covers = MessageRange(headers[0].id, headers[count - 1].id)
        key = f"python:{covers.first}-{covers.last}"
        shown = [item.value.key for item in request.view if isinstance(item, engine.Item_Summary)]
        if key in shown or key == State.refused:
            return None
        State.proposed = key
        summary = engine.Summary(key, digest(read_all(covers)), [covers])
        rest = MessageRange(headers[count].id, headers[-1].id)
        segments = [engine.Segment_Summary(summary), engine.Segment_Restore(rest)]
        return engine.Plan(segments, f"folded {count} messages into a line each", [])

    def settled(self, outcome):
        if isinstance(outcome, engine.Outcome_Refused):
            State.refused, State.proposed = State.proposed, None

    def status(self):
        return json.dumps({"messages": len(State.headers), "keep_turns": State.keep_turns})
