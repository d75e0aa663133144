import unittest

import plugin
from hermes_plugin import Err, hooks, record
from wit_world.exports.hooks import ToolEvent


def before(arguments: str):
    call = record(ToolEvent, name="terminal", arguments=arguments)
    return plugin.Hooks().on_event(hooks.Event_BeforeTool(call))


class Guard(unittest.TestCase):
    def test_words_that_delete_need_approval(self):
        self.assertEqual(before('{"command":"ls"}'), hooks.proceed())
        self.assertIn("rm -rf", before('{"command":"rm -rf /tmp/x"}').value)

    def test_an_empty_text_is_refused(self):
        with self.assertRaises(Err) as raised:
            plugin.Lifecycle().configured({"ask_for": [""]})
        self.assertIn("empty", raised.exception.value.message)
