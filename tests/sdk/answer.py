"""Checks requests for a scripted model server while they arrive.

Each line of the input is a request: `{"wire": "codex_responses", "body": {…}}`. For each, a line of the output is a JSON text
with the reason why the provider would refuse it, or `null`. The first line, `null`, says that the types are loaded.
"""

import json
import sys

from sdk_types import Checker, Invalid


def reason(checker, line):
    asked = json.loads(line)
    try:
        checker.check(asked["wire"], asked["body"])
    except Invalid as invalid:
        return str(invalid)
    return None


def main():
    checker = Checker()
    print("null", flush=True)
    for line in sys.stdin:
        print(json.dumps(reason(checker, line)), flush=True)


if __name__ == "__main__":
    main()
