import unittest

import digest
from hermes_plugin import record
from wit_world.imports.types import Header, Message, Role_Assistant, Role_User, ToolCall


def header(id: int, turn: int) -> Header:
    return record(Header, id=id, role=Role_User(), turn=turn)


def message(id: int, content: str) -> Message:
    return record(Message, id=id, role=Role_User(), content=content)


class Digest(unittest.TestCase):
    def test_whole_turns_are_folded_and_the_newest_stay(self):
        headers = [header(1, 1), header(2, 1), header(5, 2), header(6, 3), header(7, 3)]
        self.assertEqual([digest.folded(headers, keep) for keep in (1, 2, 3)], [3, 2, 0])
        self.assertEqual(digest.folded([], 1), 0)

    def test_a_message_becomes_a_line_with_its_calls(self):
        call = record(ToolCall, id="a", name="read_file", arguments="{}")
        caller = record(Message, id=7, role=Role_Assistant(), content="I read\n\nit.", tool_calls=[call])
        first, second = digest.text([caller, message(8, "ü" * 500)]).split("\n")
        self.assertEqual(first, "#7 assistant: I read it. [calls read_file]")
        self.assertEqual(len(second), len("#8 user: ") + digest.LINE)

    def test_a_long_digest_lists_only_the_newest_messages(self):
        text = digest.text([message(id, "x") for id in range(300)])
        self.assertTrue(text.startswith("(100 earlier messages)\n#100 user: x\n") and text.endswith("#299 user: x"))
