"""Hooks that ask for approval before a tool call with words that delete, and log failed calls.

Hooks observe the agent loop and can stop a tool call, but never change the prompt. The host waits only for `before-tool`.
"""

from dataclasses import dataclass, field

import hermes_plugin
from hermes_plugin import hooks, invalid, log
from wit_world import exports


@dataclass
class Config:
    """The plugin's configuration section. Keys and defaults must match plugin.yaml."""

    ask_for: list[str] = field(default_factory=lambda: ["rm -rf", "DROP TABLE", "git push --force"])


config = Config()
failed = 0


class Lifecycle(hermes_plugin.Lifecycle):
    def configured(self, given):
        global config
        read = hermes_plugin.parse(Config, given)
        if "" in read.ask_for:
            raise invalid("ask_for contains an empty text, which would match every call")
        config = read


def found(arguments: str) -> str | None:
    """The first configured text that occurs in the arguments."""
    return next((words for words in config.ask_for if words in arguments), None)


class Hooks(exports.Hooks):
    def interests(self):
        return [hooks.BEFORE_TOOL, hooks.AFTER_TOOL]

    def on_event(self, event):
        global failed
        match event:
            case hooks.Event_BeforeTool(call):
                words = found(call.arguments)
                if words is not None:
                    return hooks.ask(f"`{call.name}` is called with `{words}`")
            case hooks.Event_AfterTool(done) if done.failed:
                failed += 1
                log.info("a tool failed", tool=done.event.name, failed_so_far=failed)
        return hooks.proceed()
