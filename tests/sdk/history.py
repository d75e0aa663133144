"""Checks requests that follow odd replies against the types of the official Python SDKs.

usage: history.py FILE

A line of the file is a request: `{"wire": "codex_responses", "provider": "openai", "body": {…}}`.
"""

import json
import sys

from sdk_types import Checker, Invalid

def official(body):
    """The body without what only its provider knows."""
    for message in body.get("messages", []):
        message.pop("reasoning", None)
        for call in message.get("tool_calls") or []:
            call.pop("extra_content", None)
    return body


def is_known(provider, wire):
    # This provider has thinking without a signature, which the types do not.
    return not (provider == "kimi" and wire == "anthropic_messages")


def main(path):
    checker = Checker()
    checked, failures = {}, 0
    with open(path) as lines:
        for line in lines:
            asked = json.loads(line)
            wire, provider = asked["wire"], asked["provider"]
            if not is_known(provider, wire):
                continue
            checked[wire] = checked.get(wire, 0) + 1
            try:
                checker.check(wire, official(asked["body"]))
            except Invalid as invalid:
                failures += 1
                if failures <= 20:
                    print(f"invalid for {provider}: {invalid}\n  {line[:2000]}", file=sys.stderr)
    for wire, count in sorted(checked.items()):
        print(f"{wire}: {count} requests checked")
    if failures or len(checked) < 3:
        print(f"{failures} requests are invalid, of {len(checked)} wire formats", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
