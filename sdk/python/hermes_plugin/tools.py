"""Tools from functions: the schema that the model sees comes from the types of the parameters.

```python
toolbox = Toolbox("games")

@toolbox.tool(effect=Effect.READS, parallel=True)
def roll(count: Annotated[int, "Number of dice, from 1 to 100."] = 1) -> str:
    \"\"\"Rolls dice.\"\"\"

Tools = toolbox.exports()
```
"""

import dataclasses
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_type_hints

from wit_world import exports
from wit_world.exports import tools
from wit_world.exports.tools import Effect, Invocation, Output, Tool
from wit_world.imports.types import ToolSchema

from .border import Misfit, settled
from .crash import located
from .errors import invalid
from .records import record
from .shapes import json_object, parse, schema

__all__ = ["Effect", "Invocation", "Output", "Tool", "Toolbox", "text"]

Function = TypeVar("Function", bound=Callable[..., Any])


def text(content: str, structured: Any = None) -> Output:
    """A result with one text. `structured` is the same result as JSON, for programs."""
    as_json = None if structured is None else json.dumps(structured, ensure_ascii=False, allow_nan=False)
    return record(Output, content=[tools.Content_Text(content)], structured=as_json)


class Toolbox:
    """A set of tools that belong together."""

    def __init__(self, toolset: str) -> None:
        self.toolset = toolset
        self._tools: dict[str, tuple[Tool, Callable[..., Any], type]] = {}

    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        effect: Effect = Effect.WRITES,
        parallel: bool = False,
        idempotent: bool | None = None,
        open_world: bool = False,
    ) -> Callable[[Function], Function]:
        """Adds a function. Its docstring is the description for the model. `effect` says whether a call can be repeated
        (`READS`), and whether the user is asked first (`DANGEROUS`)."""

        def add(function: Function) -> Function:
            own = name or function.__name__
            arguments = _arguments(function)
            description = inspect.cleandoc(function.__doc__ or "")
            if not description:
                raise TypeError(f"{own} needs a docstring: the model reads it")
            self._tools[own] = (
                record(
                    Tool,
                    schema=record(ToolSchema, name=own, description=description, parameters=json.dumps(schema(arguments))),
                    title=title,
                    toolset=self.toolset,
                    parallel=parallel,
                    effect=effect,
                    idempotent=effect is Effect.READS if idempotent is None else idempotent,
                    open_world=open_world,
                ),
                function,
                arguments,
            )
            return function

        return add

    def catalog(self) -> list[Tool]:
        return [tool for tool, _, _ in self._tools.values()]

    def call(self, invocation: Invocation) -> Output:
        """Runs a tool. The model reads the message of an error."""
        found = self._tools.get(invocation.name)
        if found is None:
            raise invalid(f"there is no tool {invocation.name[:80]!r}; there are {', '.join(self._tools)}")
        _, function, of = found
        arguments = parse(of, json_object(invocation.arguments, "the arguments"))
        given = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(of)}
        what = f"the tool `{invocation.name}`{located(function)}"
        result = settled(what, function(**given))
        if isinstance(result, Output):
            return result
        if isinstance(result, str):
            return text(result)
        if result is None and not _may_return_nothing(function):
            raise Misfit(f"{what} returned None: is a `return` missing? A tool that returns nothing says so: `-> None`")
        try:
            return text(json.dumps(result, ensure_ascii=False, allow_nan=False), result)
        except (TypeError, ValueError, RecursionError) as error:
            raise Misfit(f"{what} returned {type(result).__name__}: return a text, an Output, or a value that becomes JSON ({error})") from error

    def exports(self) -> type:
        """The class to export: `Tools = toolbox.exports()`."""
        toolbox = self

        class Tools(exports.Tools):
            def catalog(self) -> list[Tool]:
                return toolbox.catalog()

            def call(self, invocation: Invocation) -> Output:
                return toolbox.call(invocation)

        return Tools


def _may_return_nothing(function: Callable[..., Any]) -> bool:
    returned = get_type_hints(function).get("return", str)
    return returned in (None, type(None), Any) or type(None) in get_args(returned)


def _arguments(function: Callable[..., Any]) -> type:
    """A dataclass with the parameters of a function."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise TypeError(f"{function.__name__}: the parameter {name} needs a type")
        if parameter.default is inspect.Parameter.empty:
            fields.append((name, hints[name]))
        else:
            default = parameter.default
            fields.append((name, hints[name], dataclasses.field(default_factory=lambda default=default: default)))
    return dataclasses.make_dataclass(function.__name__, fields, kw_only=True)
