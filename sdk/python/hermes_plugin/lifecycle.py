"""The interface that every plugin exports."""

import random
from typing import Any

from .shapes import json_object


class Lifecycle:
    """Derive a class `Lifecycle` from this one, and override `configured` to read the configuration.

    The component contains an interpreter that was started during the build. Python drew the seed of `random` then, so every
    process would get the same numbers; `configure` draws a new one. `uuid`, `secrets` and `os.urandom` ask the host each time.
    """

    def configure(self, config: str) -> None:
        random.seed()
        self.configured(json_object(config, "the configuration"))

    def configured(self, config: dict[str, Any]) -> None:
        """Reads the plugin's section of config.yaml. Raise `invalid` if the plugin cannot serve with it; the user reads the message."""

    def session_start(self, session: Any, how: Any) -> None:
        """Called once for each instance, after `configured`. It may use the network."""

    def session_end(self, how: Any) -> None:
        """Called last, where there is time for it. An instance can also end without this call."""
