"""A context engine that keeps the last turns in full and folds older messages into one line each.

The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
message ids. The host checks the plan, so a bug here costs a refused plan and never a message.
"""

import json
from dataclasses import dataclass

import digest
import hermes_plugin
from hermes_plugin import history, invalid, record
from wit_world import exports
from wit_world.exports import context_engine as engine
from wit_world.imports.types import MessageRange, Progress


@dataclass
class Config:
    """The plugin's configuration section. Keys and defaults must match plugin.yaml."""

    keep_turns: int = 4
    full_at: float = 0.75


class State:
    """What the instance knows. The host can create a new instance at any time, and sends it all headers again."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.headers: list = []
        # The key of the last proposal, and the key that the host refused last.
        self.proposed: str | None = None
        self.refused: str | None = None


state = State(Config())


class Lifecycle(hermes_plugin.Lifecycle):
    def configured(self, given):
        global state
        config = hermes_plugin.parse(Config, given)
        if config.keep_turns < 1 or not 0 < config.full_at <= 1:
            raise invalid("keep_turns must be at least 1, and full_at lie between 0 and 1")
        state = State(config)


class ContextEngine(exports.ContextEngine):
    def model_changed(self, model):
        # Nothing to store: every call brings the window's size.
        pass

    def observe(self, headers):
        state.headers += headers

    def rewound(self, first):
        state.headers = [header for header in state.headers if header.id < first]

    def assess(self, pressure):
        room = max(pressure.context_length - pressure.reserve, 1)
        full = pressure.prompt_tokens / room
        if isinstance(pressure.moment, (engine.Moment_Manual, engine.Moment_Overflow)) or full >= 0.95:
            timing = engine.Timing.NOW
        elif full >= state.config.full_at:
            # The host weighs the gain against the cache, and adopts the plan when it pays.
            timing = engine.Timing.BOUNDARY
        else:
            timing = engine.Timing.NOT_NOW
        return record(engine.Advice, propose=timing)

    def prepare(self, request):
        return Progress.DONE

    def propose(self, request):
        headers = state.headers
        overflows = isinstance(request.pressure.moment, engine.Moment_Overflow)
        count = digest.folded(headers, 1 if overflows else state.config.keep_turns)
        if count == 0:
            return None
        covers = MessageRange(headers[0].id, headers[count - 1].id)
        # Text and covers under a key must never change. Both depend only on the messages.
        key = f"{{name}}:{covers.first}-{covers.last}"
        shown = [item.value.key for item in request.view if isinstance(item, engine.Item_Summary)]
        if key in shown or key == state.refused:
            return None
        content = digest.text(history.read_all(covers))
        summary = record(engine.Summary, key=key, content=content, covers=[covers])
        rest = MessageRange(headers[count].id, headers[-1].id)
        state.proposed = key
        return record(
            engine.Plan,
            segments=[engine.Segment_Summary(summary), engine.Segment_Restore(rest)],
            reason=f"folded {count} messages into one line each",
        )

    def settled(self, outcome):
        if isinstance(outcome, engine.Outcome_Refused):
            # The host would refuse the same plan again.
            state.refused, state.proposed = state.proposed, None

    def status(self):
        return json.dumps({"messages": len(state.headers), "keep_turns": state.config.keep_turns})
