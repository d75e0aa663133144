"""A tool that counts lines, words or characters of a text.

The SDK derives the schema that the model sees from the types of the parameters.
"""

from typing import Annotated, Literal

import hermes_plugin
from hermes_plugin import invalid
from hermes_plugin.tools import Effect, Toolbox


class Lifecycle(hermes_plugin.Lifecycle):
    pass


toolbox = Toolbox("text")


# To add a tool, add a function. This one has no side effects, so it may run in parallel with others.
@toolbox.tool(effect=Effect.READS, parallel=True)
def count(
    text: Annotated[str, "The text."],
    unit: Annotated[Literal["lines", "words", "characters"], "What to count; words by default."] = "words",
) -> str:
    """Counts the lines, words or characters of a text. Use it instead of counting yourself."""
    if not text:
        # The model sees this message, so it suggests a fix.
        raise invalid("text is empty: give the text itself, not a file's name")
    match unit:
        case "lines":
            number = len(text.splitlines())
        case "words":
            number = len(text.split())
        case "characters":
            number = len(text)
    return f"{number} {unit}"


Tools = toolbox.exports()
