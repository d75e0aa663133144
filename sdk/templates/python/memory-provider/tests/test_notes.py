import unittest

import notes


class Notes(unittest.TestCase):
    def test_a_line_that_begins_with_the_keyword_is_stored(self):
        text = "Hello.\nRemember: the ferry  leaves at 07:45\nI remember nothing\nremember\n"
        self.assertEqual(notes.in_text(text, "remember"), ["the ferry leaves at 07:45"])

    def test_a_note_is_stored_once(self):
        once = notes.added("", ["the ferry is late"])
        self.assertEqual(once, "the ferry is late\n")
        self.assertIsNone(notes.added(once, ["the ferry is late"]))

    def test_notes_that_share_most_words_come_first(self):
        known = "tea at four\nthe ferry leaves at noon\nthe ferry is red\n"
        found = notes.about(known, "When does the Ferry leave? It leaves soon.")
        self.assertEqual(found, ["the ferry leaves at noon", "the ferry is red"])
        self.assertEqual(notes.about(known, ""), [])
