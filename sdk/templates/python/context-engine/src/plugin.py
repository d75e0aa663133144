"""A context engine that keeps the last turns in full and folds older messages into one line each.

The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
message ids. The host checks the plan, so a bug here costs a refused plan and never a message.
"""

import json
from dataclasses import dataclass

import digest
import hermes_plugin
from hermes_plugin import history, invalid, record
from hermes_plugin.engine import refusal, room, summary_tokens
from hermes_plugin.models import count_tokens
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
        # The last proposal, the last ones that the host adopted and refused, and the tokens by which plans were too large.
        self.proposed = self.adopted = self.refused = ""
        self.spare = 0


state = State(Config())


class Lifecycle(hermes_plugin.Lifecycle):
    def configured(self, given):
        global state
        config = hermes_plugin.parse(Config, given)
        if config.keep_turns < 1 or not 0 < config.full_at <= 1:
            raise invalid("keep_turns must be at least 1, and full_at lie between 0 and 1")
        state = State(config)


def shown_in_full(headers, short):
    """Segments for messages in full, except those with an excerpt."""
    excerpts = {excerpt.id: excerpt for excerpt in short}
    segments = []
    for header in headers:
        last = segments[-1] if segments else None
        if header.id in excerpts:
            segments.append(engine.Segment_Excerpt(excerpts[header.id]))
        elif isinstance(last, engine.Segment_Restore):
            last.value.last = header.id
        else:
            segments.append(engine.Segment_Restore(MessageRange(header.id, header.id)))
    return segments


class ContextEngine(exports.ContextEngine):
    def model_changed(self, model):
        # Nothing to store: every call brings the window's size.
        pass

    def observe(self, headers):
        state.headers += headers

    def rewound(self, first):
        state.headers = [header for header in state.headers if header.id < first]
        state.adopted = ""

    def assess(self, pressure):
        full = pressure.prompt_tokens / max(pressure.context_length - pressure.reserve, 1)
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
        # A little less than fits: messages can arrive while the host checks the plan.
        most = room(request.pressure) * 0.95 - state.spare
        overflows = isinstance(request.pressure.moment, engine.Moment_Overflow)
        # The turns that stay leave room for the next ones.
        count = digest.folded(state.headers, 1 if overflows else state.config.keep_turns, most * 0.6)
        old, rest = state.headers[:count], state.headers[count:]
        if not rest:
            return None
        segments, left, plan = [], most, ""
        if old:
            covers = MessageRange(old[0].id, old[-1].id)
            content, lines = digest.text(history.read_all(covers), most * 0.25, count_tokens)
            # Text and covers under a key must never change. Both depend only on the messages and the number of lines.
            plan = f"{{name}}:{covers.first}-{covers.last}:{lines}"
            segments.append(engine.Segment_Summary(record(engine.Summary, key=plan, content=content, covers=[covers])))
            left -= summary_tokens(content)
        # One turn can be too long by itself.
        short = []
        if digest.tokens_of(rest) > left:
            short = digest.excerpts(history.read_all(MessageRange(rest[0].id, rest[-1].id)), left, count_tokens)
        shown = [item.value.key for item in request.view if isinstance(item, engine.Item_Summary)]
        if short is None or (not short and (not plan or plan in shown)):
            return None
        plan += "".join(f",{excerpt.id}:{len(excerpt.content)}" for excerpt in short)
        if plan in (state.refused, state.adopted):
            return None
        state.proposed = plan
        reason = f"folded {count} messages into one line each" + (f", shortened {len(short)}" if short else "")
        return record(engine.Plan, segments=segments + shown_in_full(rest, short), reason=reason)

    def settled(self, outcome):
        if isinstance(outcome, engine.Outcome_Adopted):
            state.adopted = state.proposed
        refused = refusal(outcome)
        if refused is None:
            return
        # The host would refuse the same plan again. It counts what the engine could not know.
        state.refused = state.proposed
        if refused.needed is not None and refused.room is not None:
            state.spare += max(refused.needed - refused.room, 0)

    def status(self):
        return json.dumps({"messages": len(state.headers), "keep_turns": state.config.keep_turns})
