"""Checks recorded request bodies against the types of the official Python SDKs.

usage: check.py FOLDER…

A folder has one file per request, whose name contains the wire format: `7.anthropic_messages.json`, or packed
`chat_completions-branch.json.gz`. Other files are ignored. Every body is validated with
pydantic against the parameter types of `anthropic` and `openai`, with unknown keys forbidden. Then the rules are checked that
the types do not express: every call has its result in the next message, and no result is without a call. At last the script
damages valid bodies and requires that each damaged one is rejected. It prints what it checked, and fails on any other outcome.
"""

import collections.abc
import copy
import gzip
import json
import pathlib
import sys
import typing

# The SDKs type lists as `Iterable`, which pydantic validates only when they are read. As lists they are validated at once.
ITERABLE = typing.Iterable
typing.Iterable = typing.List
import anthropic.types.message_create_params as messages_params  # noqa: E402
import openai.types.chat.completion_create_params as chat_params  # noqa: E402

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
        }

    def check(self, wire, body):
        if wire == "chat_completions":
            body = without_extensions(body)
        try:
            self.types[wire][body.get("stream") is True].validate_python(body, strict=True)
        except ValidationError as error:
            # A union reports each of its types; the deepest place is the one that was meant.
            deepest = max(error.errors(include_url=False), key=lambda found: len(found["loc"]))
            # Names of whole unions are left out.
            place = ".".join(part for part in map(str, deepest["loc"]) if len(part) < 40)
            raise Invalid(f"{place}: {deepest['msg']}") from None
        {"anthropic_messages": pairs_of_blocks, "chat_completions": pairs_of_messages}[wire](body["messages"])


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


def blocks(message):
    return message["content"] if isinstance(message["content"], list) else []


def pairs_of_blocks(messages):
    calls = []
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


def pairs_of_messages(messages):
    calls = []
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


def damaged(wire, body):
    """Variants of a valid body that are invalid, each with what was done to it."""

    def changed(what, change):
        other = copy.deepcopy(body)
        if change(other) is not False:
            yield what, other

    def first(messages, fits):
        return next((block for message in messages for block in blocks(message) if fits(block)), None)

    def set_in(fits, key, value):
        def change(other):
            block = first(other["messages"], fits)
            if block is None:
                return False
            block[key] = value

        return change

    def leave_out_last(other):
        left_out = other["messages"].pop()
        # The pictures of results may be missing: the results before them are complete.
        if left_out["role"] == "user" and other["messages"] and other["messages"][-1]["role"] == "tool":
            return False

    def drop_results(other):
        for message in list(other["messages"]):
            if message["role"] == "tool":
                other["messages"].remove(message)
                return None
            for block in blocks(message):
                if block["type"] == "tool_result":
                    block["type"], block["text"] = "text", "lost"
                    del block["tool_use_id"], block["content"]
                    return None
        return False

    yield from changed("an unknown key of the request", lambda other: other.update(session="x"))
    yield from changed("an unknown key of a message", lambda other: other["messages"][-1].update(id="x"))
    yield from changed("a number as content", lambda other: other["messages"][0].update(content=1))
    yield from changed("an unknown role", lambda other: other["messages"][0].update(role="human"))
    yield from changed("no model", lambda other: other.pop("model"))
    yield from changed("no messages", lambda other: other["messages"].clear())
    yield from changed("the last message left out", leave_out_last)
    yield from changed("a lost result", drop_results)
    if wire == "anthropic_messages":
        kind = lambda name: lambda block: block["type"] == name  # noqa: E731
        nested = lambda block: block["type"] == "image"  # noqa: E731
        yield from changed("no max_tokens", lambda other: other.pop("max_tokens"))
        yield from changed("an unknown type of block", set_in(lambda block: True, "type", "picture"))
        yield from changed("an unknown key of a block", set_in(lambda block: True, "id_of_log", 1))
        yield from changed("a picture without its type", set_in(nested, "source", {"type": "base64", "data": ""}))
        yield from changed("reasoning without its signature", set_in(kind("thinking"), "signature", None))
        yield from changed("redacted reasoning as an object", set_in(kind("redacted_thinking"), "data", {}))
        yield from changed("a result for another call", set_in(kind("tool_result"), "tool_use_id", "other"))
        yield from changed("a call with a text as input", set_in(kind("tool_use"), "input", "{}"))
    else:
        nested = lambda block: block["type"] == "image_url"  # noqa: E731
        yield from changed("a picture without an address", set_in(nested, "image_url", {"detail": "auto"}))


def bodies(folders, wires):
    """Each recorded body with the name of its file and its wire format."""
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.json*")):
            wire = next((wire for wire in wires if wire in path.name), None)
            if wire and path.suffix in (".json", ".gz"):
                raw = path.read_bytes()
                yield path.name, wire, json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


def main(folders):
    checker = Checker()
    checked, rejected, failures = {}, {}, []
    for name, wire, body in bodies(folders, checker.types):
        checked[wire] = checked.get(wire, 0) + 1
        try:
            checker.check(wire, body)
        except Invalid as invalid:
            failures.append(f"{name}: {invalid}")
            continue
        for what, other in damaged(wire, body):
            try:
                checker.check(wire, other)
                failures.append(f"{name}: {what} was not noticed")
            except Invalid:
                rejected[what] = rejected.get(what, 0) + 1
    for wire in checker.types:
        print(f"{wire}: {checked.get(wire, 0)} bodies checked")
        if wire not in checked:
            failures.append(f"no body of {wire} was recorded")
    print(f"{sum(rejected.values())} damaged bodies rejected, in {len(rejected)} ways:")
    for what, count in sorted(rejected.items()):
        print(f"  {count:>5}  {what}")
    for failure in failures:
        print(f"invalid: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
