"""Lets unit tests run outside of Hermes. `build.py test` imports it first; for other runners, write `import hermes_plugin.testing`.

The functions of the host exist only inside Hermes. Here each of them raises an error that says what a test can replace.
"""

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

import wit_world.imports


def _missing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*_given: Any, **_named: Any) -> Any:
        # What the plugin called, by the name under which a test can replace it: a function of the SDK, or one that its module has imported.
        called, frame = name, sys._getframe(1)
        while frame and (module := frame.f_globals.get("__name__", "")).startswith("hermes_plugin."):
            called, frame = f"{module}.{frame.f_code.co_name}", frame.f_back
        own = called.rpartition(".")[2]
        if frame and own in frame.f_globals:
            called = f"{frame.f_globals['__name__']}.{own}"
        raise NotImplementedError(
            f"`{name}` exists only inside Hermes: let the test answer in its place, such as `with mock.patch(\"{called}\", return_value=…)` of unittest"
        )

    return run


for _module in pkgutil.iter_modules(wit_world.imports.__path__):
    _functions = importlib.import_module(f"wit_world.imports.{_module.name}")
    for _name, _function in list(vars(_functions).items()):
        if inspect.isfunction(_function) and _function.__module__ == _functions.__name__:
            setattr(_functions, _name, _missing(f"{_functions.__name__}.{_name}", _function))
