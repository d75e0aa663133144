import json
import unittest

import digest
from hermes_plugin import record
from wit_world.imports.types import Header, Message, Role_Assistant, Role_Tool, Role_User, ToolCall


def count(text: str) -> int:
    return -(-len(text) // 4)


def header(id: int, turn: int, tokens: int = 10) -> Header:
    return record(Header, id=id, role=Role_User(), turn=turn, tokens=tokens)


def message(id: int, content: str, role=Role_User(), calls=()) -> Message:
    tokens = 10 + count(content) + sum(count(call.arguments) for call in calls)
    return record(Message, id=id, role=role, content=content, tokens=tokens, tool_calls=list(calls))


class Digest(unittest.TestCase):
    def test_whole_turns_are_folded_and_the_newest_stay(self):
        headers = [header(1, 1), header(2, 1), header(5, 2), header(6, 3), header(7, 3)]
        self.assertEqual([digest.folded(headers, keep, 100) for keep in (1, 2, 3)], [3, 2, 0])
        self.assertEqual(digest.folded([], 1, 100), 0)

    def test_fewer_turns_stay_in_a_window_that_is_too_small_for_all_and_one_always_stays(self):
        headers = [header(id, id // 2, 700) for id in range(6)]
        self.assertEqual([digest.folded(headers, 4, most) for most in (4200, 2800, 2799, 1400, 100)], [0, 2, 4, 4, 4])

    def test_a_turn_that_is_too_long_is_shortened_until_it_fits_and_the_users_words_stay(self):
        call = record(ToolCall, id="c", name="read", arguments=json.dumps({"text": "b " * 900}))
        turn = [message(1, "a " * 100), message(2, "", Role_Assistant(), [call]), message(3, "c " * 4000, Role_Tool())]
        for most in (2000, 500, 200):
            short = {excerpt.id: excerpt for excerpt in digest.excerpts(turn, most, count)}
            self.assertNotIn(1, short)
            sizes = [10 + count(each.content) + sum(count(text) for _, text in each.arguments) for each in short.values()]
            total = sum(sizes) + sum(each.tokens for each in turn if each.id not in short)
            self.assertLessEqual(total, most)
        self.assertIsNone(digest.excerpts(turn, 50, count))
        self.assertEqual(digest.excerpts(turn, digest.tokens_of(turn), count), [])

    def test_a_message_becomes_a_line_with_its_calls(self):
        call = record(ToolCall, id="a", name="read_file", arguments="{}")
        caller = record(Message, id=7, role=Role_Assistant(), content="I read\n\nit.", tool_calls=[call])
        first, second = digest.text([caller, message(8, "ü" * 500)], 1000, count)[0].split("\n")
        self.assertEqual(first, "#7 assistant: I read it. [calls read_file]")
        self.assertEqual(len(second), len("#8 user: ") + digest.LINE)

    def test_a_long_digest_lists_only_the_newest_messages(self):
        messages = [message(id, "x") for id in range(300)]
        text, _ = digest.text(messages, 10_000, count)
        self.assertTrue(text.startswith("(100 earlier messages)\n#100 user: x\n") and text.endswith("#299 user: x"))
        self.assertEqual(digest.text(messages, 8, count), ("(298 earlier messages)\n#298 user: x\n#299 user: x", 2))
