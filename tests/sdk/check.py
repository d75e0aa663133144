"""Checks recorded request bodies against the types of the official Python SDKs.

usage: check.py FOLDER…

A folder has one file per request, whose name contains the wire format: `7.anthropic_messages.json`, or packed
`chat_completions-branch.json.gz`. Other files are ignored. Every body is checked by `sdk_types.py`. At last the script
damages valid bodies and requires that each damaged one is rejected. It prints what it checked, and fails on any other outcome.
"""

import copy
import gzip
import json
import pathlib
import sys

from sdk_types import Checker, Invalid, blocks, messages_of


def damaged(wire, body):
    """Variants of a valid body that are invalid, each with what was done to it."""

    def changed(what, change):
        other = copy.deepcopy(body)
        if change(other) is not False:
            yield what, other

    def set_in(within, fits, key, value):
        def change(other):
            found = next((one for message in messages_of(other) for one in within(message) if fits(one)), None)
            if found is None:
                return False
            found[key] = value

        return change

    def set_in_message(fits, key, value):
        return set_in(lambda message: [message], fits, key, value)

    def set_in_block(fits, key, value):
        return set_in(blocks, fits, key, value)

    def kind(name):
        return lambda one: one.get("type") == name

    def leave_out_last(other):
        messages = messages_of(other)
        left_out = messages.pop()
        # The pictures of results may be missing: the results before them are complete.
        if left_out.get("role") == "user" and messages and messages[-1].get("role") == "tool":
            return False

    def drop_results(other):
        messages = messages_of(other)
        for message in list(messages):
            if message.get("role") == "tool" or message.get("type") == "function_call_output":
                messages.remove(message)
                return None
            for block in blocks(message):
                if block["type"] == "tool_result":
                    block["type"], block["text"] = "text", "lost"
                    del block["tool_use_id"], block["content"]
                    return None
        return False

    yield from changed("an unknown key of the request", lambda other: other.update(session="x"))
    yield from changed("an unknown key of a message", lambda other: messages_of(other)[-1].update(id_of_log="x"))
    yield from changed("a number as content", lambda other: messages_of(other)[0].update(content=1))
    yield from changed("an unknown role", lambda other: messages_of(other)[0].update(role="human"))
    yield from changed("no model", lambda other: other.pop("model"))
    yield from changed("no messages", lambda other: messages_of(other).clear())
    yield from changed("the last message left out", leave_out_last)
    yield from changed("a lost result", drop_results)
    if wire == "anthropic_messages":
        nested = {"type": "base64", "data": ""}
        yield from changed("no max_tokens", lambda other: other.pop("max_tokens"))
        yield from changed("an unknown type of block", set_in_block(lambda block: True, "type", "picture"))
        yield from changed("an unknown key of a block", set_in_block(lambda block: True, "id_of_log", 1))
        yield from changed("a picture without its type", set_in_block(kind("image"), "source", nested))
        yield from changed("reasoning without its signature", set_in_block(kind("thinking"), "signature", None))
        yield from changed("redacted reasoning as an object", set_in_block(kind("redacted_thinking"), "data", {}))
        yield from changed("a result for another call", set_in_block(kind("tool_result"), "tool_use_id", "other"))
        yield from changed("a call with a text as input", set_in_block(kind("tool_use"), "input", "{}"))
    elif wire == "chat_completions":
        nested = {"detail": "auto"}
        yield from changed("a picture without an address", set_in_block(kind("image_url"), "image_url", nested))
    else:
        call, result = kind("function_call"), kind("function_call_output")
        yield from changed("an item of an unknown type", set_in_message(lambda item: True, "type", "thought"))
        yield from changed("a call with an object as arguments", set_in_message(call, "arguments", {}))
        yield from changed("a result for another call", set_in_message(result, "call_id", "other"))
        yield from changed("reasoning without its seal", set_in_message(kind("reasoning"), "encrypted_content", None))
        yield from changed("reasoning without its summary", set_in_message(kind("reasoning"), "summary", "hm"))
        yield from changed("a picture as an object", set_in_block(kind("input_image"), "image_url", {}))
        yield from changed("an unknown type of block", set_in_block(lambda block: True, "type", "text"))
        yield from changed("a stored conversation", lambda other: other.update(store=True))


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
