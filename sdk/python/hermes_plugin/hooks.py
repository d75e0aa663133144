"""Verdicts of hooks."""

from wit_world.exports.hooks import (
    Event,
    Event_AfterModel,
    Event_AfterTool,
    Event_BeforeModel,
    Event_BeforeTool,
    Verdict,
    Verdict_Ask,
    Verdict_Block,
    Verdict_Proceed,
)

__all__ = [
    "AFTER_MODEL",
    "AFTER_TOOL",
    "BEFORE_MODEL",
    "BEFORE_TOOL",
    "Event",
    "Event_AfterModel",
    "Event_AfterTool",
    "Event_BeforeModel",
    "Event_BeforeTool",
    "Verdict",
    "ask",
    "block",
    "proceed",
]

BEFORE_TOOL, AFTER_TOOL = "before-tool", "after-tool"
BEFORE_MODEL, AFTER_MODEL = "before-model", "after-model"


def proceed() -> Verdict:
    return Verdict_Proceed()


def block(text: str) -> Verdict:
    """The call does not run, and the model gets this text instead."""
    return Verdict_Block(text)


def ask(text: str) -> Verdict:
    """The user decides, and sees this text."""
    return Verdict_Ask(text)
