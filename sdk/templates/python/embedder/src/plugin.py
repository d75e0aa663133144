"""An embedder: computes vectors of texts, so that other plugins can compare and search them.

This one counts words and needs no model. To use a real one, replace `words.vector`.
"""

from dataclasses import dataclass

import hermes_plugin
from hermes_plugin import invalid, record
from wit_world import exports
from wit_world.exports.embedder import Description

import words


@dataclass
class Config:
    """The plugin's configuration section. Keys and defaults must match plugin.yaml."""

    dimensions: int = 256


config = Config()


class Lifecycle(hermes_plugin.Lifecycle):
    def configured(self, given):
        global config
        read = hermes_plugin.parse(Config, given)
        if not 16 <= read.dimensions <= 4096:
            raise invalid("dimensions must lie between 16 and 4096")
        config = read


class Embedder(exports.Embedder):
    def describe(self):
        # Plugins store this name beside each vector. Change it whenever the vectors change.
        return record(Description, model=f"{{name}}-1-{config.dimensions}", dimensions=config.dimensions)

    def embed(self, request):
        # `request.purpose` says whether the texts search or are searched. Word counts are the same for both.
        return [words.vector(text, config.dimensions) for text in request.texts]
