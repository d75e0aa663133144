"""Skills embedded in the plugin: the files in `src/skills/` are part of the component.

The model sees the index in its prompt. It opens a skill when needed, and files that the skill mentions. To add a skill, add a folder
with a SKILL.md.
"""

from pathlib import Path

import hermes_plugin
from hermes_plugin import skills


class Lifecycle(hermes_plugin.Lifecycle):
    pass


# The folders are read during the build.
Skills = skills.from_folder(Path(__file__).parent / "skills", "household")
