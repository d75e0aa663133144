"""The types of the official Python SDKs, as a check of requests.

A body is validated with pydantic against the parameter types of `anthropic` and `openai`, with unknown keys forbidden. Then the
rules are checked that the types do not express: every call has its result, no result is without a call, and no reasoning is
without the words or calls behind it.
"""

import collections.abc
import copy
import sys
import typing

# The SDKs type lists as `Iterable`, which pydantic validates only when they are read. As lists they are validated at once.
ITERABLE = typing.Iterable
typing.Iterable = typing.List
import anthropic.types.message_create_params as messages_params  # noqa: E402
import openai.types.chat.completion_create_params as chat_params  # noqa: E402
import openai.types.responses.response_create_params as responses_params  # noqa: E402

typing.Iterable = ITERABLE

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError  # noqa: E402
from typing_extensions import is_typeddict  # noqa: E402

# Members outside the official types that a gateway takes back: only from the provider that sent them.
REASONING = ("reasoning_content", "reasoning_details")
# Cache marks, which gateways of chat completions take in content parts.
MARK = "cache_control"


def strict():
    """Forbids unknown keys in every parameter type of both SDKs."""
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    models = []
    for name, module in list(sys.modules.items()):
        if not name.startswith(("anthropic.types.", "openai.types.")):
            continue
        for kind, value in list(vars(module).items()):
            if value in (typing.Iterable, collections.abc.Iterable):
                setattr(module, kind, typing.List)
            # What an SDK reads from a file; a body has only text.
            if kind in ("Base64FileInput", "FileTypes"):
                setattr(module, kind, str)
            if is_typeddict(value):
                value.__pydantic_config__ = config
            # Blocks of replies are allowed in requests as well, and allow unknown keys by themselves.
            if isinstance(value, type) and issubclass(value, BaseModel) and value.model_config.get("extra") == "allow":
                value.model_config["extra"] = "forbid"
                models.append(value)
    for model in models:
        model.model_rebuild(force=True)


def adapters(module, name):
    return {
        False: TypeAdapter(getattr(module, name + "NonStreaming")),
        True: TypeAdapter(getattr(module, name + "Streaming")),
    }


class Invalid(Exception):
    pass


class Checker:
    def __init__(self):
        strict()
        self.types = {
            "anthropic_messages": adapters(messages_params, "MessageCreateParams"),
            "chat_completions": adapters(chat_params, "CompletionCreateParams"),
            "codex_responses": adapters(responses_params, "ResponseCreateParams"),
        }

    def check(self, wire, body):
        if wire == "chat_completions":
            body = without_extensions(body)
        try:
            self.types[wire][body.get("stream") is True].validate_python(body, strict=True)
        except ValidationError as error:
            fault = meant(error.errors(include_url=False))
            # Names of whole unions are left out.
            place = ".".join(part for part in map(str, fault["loc"]) if len(part) < 40)
            raise Invalid(f"{place}: {fault['msg']}") from None
        RULES[wire](body)


def meant(errors):
    """The error to report. A union reports each of its types: those for another role or type were not meant, and of the
    others the deepest place was."""

    def is_of_another(error):
        return error["type"] in ("literal_error", "missing") and error["loc"][-1] in ("role", "type")

    others = [error["loc"][:-1] for error in errors if is_of_another(error)]
    left = [error for error in errors if not any(error["loc"][: len(other)] == other for other in others)]
    return max(left or errors, key=lambda error: len(error["loc"]))


def without_extensions(body):
    body = copy.deepcopy(body)
    for message in body.get("messages", []):
        if message.get("role") == "assistant":
            for key in REASONING:
                message.pop(key, None)
        if isinstance(message.get("content"), list):
            for part in message["content"]:
                part.pop(MARK, None)
    return body


def messages_of(body):
    """The messages of a request, or the items of the Responses API."""
    return body["input"] if "input" in body else body["messages"]


def blocks(message):
    """The parts of a message, or of the result in an item."""
    content = message.get("content", message.get("output"))
    return content if isinstance(content, list) else []


def pairs_of_blocks(body):
    messages, calls = body["messages"], []
    for number, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[number % 2]:
            raise Invalid(f"message {number} is of the role {message['role']}")
        results = [block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"]
        if sorted(results) != sorted(calls):
            raise Invalid(f"message {number} has results for {results}, and {calls} were called")
        if any(block["type"] == "tool_result" for block in blocks(message)[len(results) :]):
            raise Invalid(f"message {number} has results behind other blocks")
        calls = [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
        if message["role"] == "assistant" and blocks(message) and "thinking" in blocks(message)[-1]["type"]:
            raise Invalid(f"message {number} ends with reasoning")
    if not messages or calls or messages[-1]["role"] != "user":
        raise Invalid("there is nothing to answer")


def pairs_of_messages(body):
    messages, calls = body["messages"], []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in calls:
                raise Invalid(f"message {number} answers {message['tool_call_id']}, which waits for no result")
            calls.remove(message["tool_call_id"])
            continue
        if calls:
            raise Invalid(f"message {number} comes before the results of {calls}")
        calls = [call["id"] for call in message.get("tool_calls") or []]
    if not messages or calls or messages[-1]["role"] not in ("user", "tool"):
        raise Invalid("there is nothing to answer")


def pairs_of_items(body):
    """The types allow a stored prompt in place of a model, and stored conversations: neither is used here."""
    if not isinstance(body.get("model"), str) or not isinstance(body.get("input"), list):
        raise Invalid("no model, or no list of items")
    if body.get("store") is not False:
        raise Invalid("the provider would store the conversation")
    calls, before = [], None
    for number, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        if before == "reasoning" and kind != "function_call" and item.get("role") != "assistant" and kind != before:
            raise Invalid(f"item {number} leaves the reasoning before it without words or calls")
        if kind == "reasoning" and not item.get("encrypted_content"):
            raise Invalid(f"item {number} is reasoning that the provider has not stored")
        if kind == "function_call":
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            if item.get("call_id") not in calls:
                raise Invalid(f"item {number} answers {item.get('call_id')}, which waits for no result")
            calls.remove(item["call_id"])
        elif item.get("role") == "user" and calls:
            raise Invalid(f"item {number} comes before the results of {calls}")
        before = kind
    last = body["input"][-1] if body["input"] else {}
    if calls or not (last.get("type") == "function_call_output" or last.get("role") == "user"):
        raise Invalid("there is nothing to answer")


RULES = {
    "anthropic_messages": pairs_of_blocks,
    "chat_completions": pairs_of_messages,
    "codex_responses": pairs_of_items,
}
