#!/usr/bin/env python3
"""Runs the context compressor of hermes-agent as an external engine of `hermes lab replay`.

Install the measured version into an environment of its own, then name that environment's Python:

    python3 -m venv peer && peer/bin/pip install hermes-agent==0.19.0
    hermes lab replay FILE --engine lossless --external peer='peer/bin/python host/lab/peer/hermes_agent.py'

It speaks JSON lines with the lab over stdin and stdout. The compressor is the real one in its default
configuration; its model call goes to the lab's summariser, and its clock is the lab's.
"""

import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
import types
from datetime import datetime, timezone

PACKAGE = "hermes-agent==0.19.0"
FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
ROUGH_BYTES_PER_TOKEN = 4  # the estimate its host makes before a request
PREFLIGHT_PASSES = 3

# What the package prints must not get between the lines of the protocol.
LAB_OUT, sys.stdout = sys.stdout, sys.stderr


def send(value):
    LAB_OUT.write(json.dumps(value, ensure_ascii=False) + "\n")
    LAB_OUT.flush()


def fail(message):
    """Tells the lab, and whoever runs the script by hand."""
    print(f"error: {message}", file=sys.stderr)
    with contextlib.suppress(OSError):
        send({"type": "error", "message": message})
    sys.exit(1)


def receive():
    line = sys.stdin.readline()
    if not line:
        fail("the lab closed the connection without an `end` line")
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        fail(f"the lab sent a line that is not JSON ({error})")


class Clock:
    """Stands in for the `time` module, so that cooldowns follow the recording."""

    now_ms = 0

    def time(self):
        return self.now_ms / 1000

    monotonic = time

    def today(self):
        return datetime.fromtimestamp(self.now_ms / 1000, timezone.utc)


def load_package(clock):
    """Imports the compressor and ties its model call and its clocks to the lab."""
    try:
        import hermes_time
        from agent import context_compressor
        from agent.model_metadata import estimate_messages_tokens_rough
    except ImportError as error:
        fail(
            f"hermes-agent cannot be imported ({error}); run `{sys.executable} -m pip install "
            f"{PACKAGE}` or start this script with the Python it is installed in"
        )

    def summarise(**call):
        send({"type": "summarise", "task": "compression", "prompt": call["messages"][0]["content"]})
        reply = receive()
        if reply.get("type") != "summary":
            fail(f"expected a `summary` line, got `{reply.get('type')}`")
        message = types.SimpleNamespace(content=reply.get("text") or "")
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

    context_compressor.call_llm = summarise
    context_compressor.time = clock
    hermes_time.now = clock.today
    return context_compressor.ContextCompressor, estimate_messages_tokens_rough


class Session:
    """One conversation as the compressor's host keeps it: a message list that compress() replaces."""

    def __init__(self, start, clock):
        compressor_class, self.estimate_messages = load_package(clock)
        self.compressor = compressor_class(
            model="recorded", config_context_length=start["window"], quiet_mode=True
        )
        self.fixed = start["fixed_tokens"] * start["bytes_per_token"] / ROUGH_BYTES_PER_TOKEN
        self.logged = {}
        self.messages = []

    def request(self, new, last_prompt_tokens):
        for message in new:
            self.logged[message["id"]] = message
            copy = {key: message[key] for key in FIELDS if message.get(key) is not None}
            self.messages.append({"content": "", **copy, "_id": message["id"]})
        if last_prompt_tokens is not None:
            self.compressor.update_from_response({"prompt_tokens": last_prompt_tokens})
        note = self.compress_if_due(after_tools=bool(new) and new[-1]["role"] == "tool")
        send({"type": "context", "messages": [self.outgoing(m) for m in self.messages], "note": note})

    def compress_if_due(self, after_tools):
        """The two gates of its host: the last real reading after tool results, then the estimate."""
        engine = self.compressor
        if after_tools:
            real = engine.last_prompt_tokens
            # -1 means that it has just compressed and no reading has come in yet.
            due = self.estimate() if real == 0 else max(real, 0)
            if engine.should_compress(due):
                return self.compress(due)
        rough, note = self.estimate(), None
        if engine.should_defer_preflight_to_real_usage(rough):
            return None
        for _ in range(PREFLIGHT_PASSES):
            if not engine.should_compress(rough):
                break
            note = self.compress(rough)
            before, rough = rough, self.estimate()
            if rough >= 0.95 * before:
                break
        return note

    def compress(self, tokens):
        engine, before = self.compressor, len(self.messages)
        self.messages = engine.compress(self.messages, current_tokens=tokens)
        # What its host records once a compaction has been stored.
        engine.last_compression_rough_tokens = self.estimate()
        engine.last_prompt_tokens = -1
        engine.awaiting_real_usage_after_compression = True
        if engine._last_compression_made_progress:
            engine.record_completed_compaction(used_fallback=engine._last_summary_fallback_used)
        return f"compressed {before} messages to {len(self.messages)} at {tokens} tokens"

    def estimate(self):
        return int(self.estimate_messages(self.messages) + self.fixed)

    def outgoing(self, message):
        """A logged message that is unchanged is named by its id alone."""
        visible = {key: message[key] for key in FIELDS if message.get(key) is not None}
        number = message.get("_id")
        if number is None:
            return visible
        logged = self.logged[number]
        unchanged = all((visible.get(key) or None) == (logged.get(key) or None) for key in FIELDS)
        return {"id": number} if unchanged else {"id": number, **visible}


def main():
    # A home of its own: the user's configuration is not read, and nothing of the replay is kept.
    home = tempfile.mkdtemp(prefix="lab-peer-")
    os.environ["HERMES_HOME"] = home
    logging.disable(logging.CRITICAL)
    try:
        start = receive()
        if start.get("type") != "start":
            fail(f"expected a `start` line first, got `{start.get('type')}`")
        clock = Clock()
        session = Session(start, clock)
        while (line := receive()).get("type") != "end":
            if line.get("type") != "request":
                fail(f"expected a `request` or `end` line, got `{line.get('type')}`")
            clock.now_ms = line["now_ms"]
            session.request(line["new"], line.get("last_prompt_tokens"))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
