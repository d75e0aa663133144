"""The user's models. They need the permission `llm`, except `count_tokens`."""

import json
from typing import Any

from wit_world.imports import llm
from wit_world.imports.llm import count_tokens
from wit_world.imports.types import Role_System, Role_User

from .records import record

__all__ = ["complete", "count_tokens"]


def complete(
    task: str,
    prompt: str,
    *,
    system: str = "",
    max_tokens: int | None = None,
    schema: dict[str, Any] | None = None,
) -> str:
    """Asks the model of a task (`compression`, `memory`, …) and returns its text."""
    begin = [record(llm.PromptMessage, role=Role_System(), content=[llm.Content_Text(system)])] if system else []
    question = record(llm.PromptMessage, role=Role_User(), content=[llm.Content_Text(prompt)])
    as_json = None if schema is None else json.dumps(schema)
    asked = record(llm.Request, task=task, messages=[*begin, question], max_tokens=max_tokens, schema=as_json)
    return llm.complete(asked).text
