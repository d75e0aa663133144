import json
import unittest

import plugin
from hermes_plugin import Err, record
from hermes_plugin.tools import Invocation


def call(**arguments) -> str:
    invocation = record(Invocation, id="1", name="count", arguments=json.dumps(arguments))
    (content,) = plugin.toolbox.call(invocation).content
    return content.value


class Count(unittest.TestCase):
    def test_each_unit_is_counted(self):
        self.assertEqual(call(text="two lamps\nünlit"), "3 words")
        self.assertEqual(call(text="two lamps\nünlit", unit="lines"), "2 lines")
        self.assertEqual(call(text="ünlit", unit="characters"), "5 characters")

    def test_invalid_arguments_are_reported_to_the_model(self):
        for arguments, part in [({}, "text"), ({"text": ""}, "empty"), ({"text": "x", "unit": "feet"}, "feet")]:
            with self.assertRaises(Err) as raised:
                call(**arguments)
            self.assertIn(part, raised.exception.value.message)

    def test_the_schema_describes_the_parameters(self):
        (tool,) = plugin.toolbox.catalog()
        parameters = json.loads(tool.schema.parameters)
        self.assertEqual(parameters["required"], ["text"])
        self.assertEqual(parameters["properties"]["unit"]["enum"], ["lines", "words", "characters"])
