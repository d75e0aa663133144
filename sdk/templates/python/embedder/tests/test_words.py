import unittest

import plugin
from hermes_plugin import Err, record
from words import vector
from wit_world.exports.embedder import Purpose_Document, Request


def nearness(one: str, other: str) -> float:
    return sum(first * second for first, second in zip(vector(one, 256), vector(other, 256)))


class Words(unittest.TestCase):
    def test_texts_that_share_words_are_near(self):
        question = "When does the ferry leave?"
        self.assertGreater(nearness(question, question), 0.999)
        self.assertGreater(nearness(question, "The ferry leaves at noon."), nearness(question, "Tea is at four."))
        self.assertGreater(nearness("ferry", "ferries"), 0)
        self.assertEqual(nearness("?!", ""), 1)

    def test_every_text_gets_a_vector_of_the_described_length(self):
        plugin.Lifecycle().configured({"dimensions": 64})
        described = plugin.Embedder().describe()
        self.assertEqual((described.model, described.dimensions), ("{{name}}-1-64", 64))
        vectors = plugin.Embedder().embed(record(Request, texts=["When does the ferry leave?", ""], purpose=Purpose_Document()))
        self.assertEqual([len(vector) for vector in vectors], [64, 64])

    def test_a_length_outside_of_the_contract_is_refused(self):
        with self.assertRaises(Err) as raised:
            plugin.Lifecycle().configured({"dimensions": 0})
        self.assertIn("dimensions", raised.exception.value.message)
