"""A memory provider that stores lines of the user beginning with `remember`, and recalls those that share a word with a later
question.

The notes are stored in the plugin's own document `notes.md`, which needs no permission. An instance can be dropped at any time, so it
keeps no notes in memory.
"""

from dataclasses import dataclass

import hermes_plugin
import notes
from hermes_plugin import documents, invalid, record
from hermes_plugin.models import count_tokens
from wit_world import exports
from wit_world.exports.memory_provider import Recollection

NOTES = "notes.md"


@dataclass
class Config:
    """The plugin's configuration section. Keys and defaults must match plugin.yaml."""

    keyword: str = "remember"


config = Config()


class Lifecycle(hermes_plugin.Lifecycle):
    def configured(self, given):
        global config
        read = hermes_plugin.parse(Config, given)
        if not read.keyword.strip():
            raise invalid("keyword is empty: give a word such as `remember`")
        config = read


class MemoryProvider(exports.MemoryProvider):
    def system_prompt(self):
        return ""

    def recall(self, query):
        left, found = query.budget, []
        for note in notes.about(documents.read(NOTES), query.text):
            # The host's own estimate; needs no permission.
            tokens = count_tokens(note)
            if tokens <= left:
                left -= tokens
                found.append(record(Recollection, key=note, text=note))
        return found

    def sync_turn(self, turn):
        new = notes.in_text(turn.user, config.keyword)
        if new:
            # A turn can arrive twice, but each note is stored once.
            documents.update(NOTES, lambda text: notes.added(text, new))
