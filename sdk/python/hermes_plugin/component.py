"""The module that becomes the component: `plugin` of the author, whose exports pass the border.

`build.py` gives it to componentize-py. It is imported during the build only.
"""

import ast
import contextlib
import encodings
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import Any, get_type_hints

import wit_world.imports
from wit_world import exports

from . import border, crash, zones

crash.install()

# Modules that Python imports when they are first needed, which is too late in a component.
importlib.import_module("_strptime")
for _module in pkgutil.iter_modules(encodings.__path__):
    # Some are for one system only.
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module(f"encodings.{_module.name}")

zones.keep()

for _module in pkgutil.iter_modules(wit_world.imports.__path__):
    _functions = importlib.import_module(f"wit_world.imports.{_module.name}")
    for _name, _function in list(vars(_functions).items()):
        if inspect.isfunction(_function) and _function.__module__ == _functions.__name__:
            border.guarded(_functions, _name)

import plugin  # noqa: E402


def _imported_later(module: Any) -> None:
    """Imports what the functions of a module import, while that is possible."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # A name can be a module, or come from a module that is read when the name is first asked for.
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            with contextlib.suppress(ImportError, AttributeError, ValueError):
                pkgutil.resolve_name(name)


for _module in list(sys.modules.values()):
    if crash.place(getattr(_module, "__file__", None) or "").startswith(f"{crash.FOLDERS[0]}/"):
        _imported_later(_module)


def _bordered(kind: str, interface: type) -> type:
    """The class of the author for an interface, with a guard around each function."""
    own = getattr(plugin, kind, None)
    if own is None:
        named = border.likely(kind, [name for name, value in vars(plugin).items() if isinstance(value, type)])
        raise border.Misfit(f"src/plugin.py has no class `{kind}`, which the world in pyproject.toml exports{named}")
    if not isinstance(own, type):
        raise border.Misfit(f"src/plugin.py: `{kind}` must be a class, not an instance: write `{kind} = {type(own).__name__}`")
    functions = {name: function for name, function in vars(interface).items() if inspect.isfunction(function) and not name.startswith("_")}
    found: dict[str, Any] = {}
    for name, function in functions.items():
        given = getattr(own, name, function)
        if given is function:
            meant = border.likely(name, [each for each in vars(own) if each not in functions])
            raise border.Misfit(f"src/plugin.py: the class `{kind}` has no function `{name}`{meant}")
        wanted, has = inspect.signature(function), inspect.signature(given)
        try:
            if inspect.isfunction(inspect.getattr_static(own, name)):
                has.bind(*wanted.parameters)
        except TypeError:
            raise border.Misfit(
                f"src/plugin.py: `{kind}.{name}`{crash.located(given)} must take {', '.join(wanted.parameters)}, not {', '.join(has.parameters) or 'nothing'}"
            ) from None
        found[name] = given
    instance = own()

    def method(name: str, function: Any) -> Any:
        run = border.guard(f"{kind}.{name}", getattr(instance, name), get_type_hints(functions[name]), crash.located(function))

        def called(_self: Any, *given: Any) -> Any:
            crash.begin()
            return run(*given)

        return called

    return type(kind, (), {name: method(name, function) for name, function in found.items()})


for _name, _interface in list(vars(exports).items()):
    if isinstance(_interface, type) and _interface.__module__ == exports.__name__:
        globals()[_name] = _bordered(_name, _interface)
