import unittest

import plugin
from hermes_plugin import Err

SKILLS = plugin.Skills()


class Embedded(unittest.TestCase):
    def test_every_skill_and_its_files_can_be_read(self):
        for skill in SKILLS.index():
            document = SKILLS.view(skill.name, None)
            self.assertTrue(document.content and "\n" not in skill.description)
            for path in document.files:
                self.assertTrue(SKILLS.view(skill.name, path).content)

    def test_an_error_lists_what_exists(self):
        for name, path, part in [("coffee", None, "tea"), ("tea", "../plugin.py", "temperatures")]:
            with self.assertRaises(Err) as raised:
                SKILLS.view(name, path)
            self.assertIn(part, raised.exception.value.message)
