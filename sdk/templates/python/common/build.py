"""Builds the component: `python3 build.py`. Runs the unit tests: `python3 build.py test`.

Tool and packages are named in pyproject.toml, and installed into `.venv` and `build/packages` when it changes.
"""

import difflib
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(f"error: Python 3.11 or newer is needed, and this is {sys.version.split()[0]}")

import tomllib

ROOT = Path(__file__).resolve().parent
VENV, BUILD = ROOT / ".venv", ROOT / "build"
PROGRAMS = VENV / ("Scripts" if os.name == "nt" else "bin")
PACKAGES, BINDINGS = BUILD / "packages", BUILD / "bindings"


def main(arguments: list[str]) -> None:
    if arguments not in ([], ["test"]):
        sys.exit("usage: python3 build.py [test]")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    worlds = project.get("tool", {}).get("hermes", {}).get("worlds")
    if not isinstance(worlds, list) or not worlds:
        sys.exit('error: pyproject.toml: `worlds` in [tool.hermes] lists what the plugin exports, such as ["tools-plugin"]')
    install(project)
    generate_bindings(worlds)
    if arguments == ["test"]:
        test()
    else:
        component(project["project"]["name"], worlds)


def install(project: dict) -> None:
    """Installs the tool into `.venv`, and the packages of the plugin into `build/packages`."""
    tools = project["dependency-groups"]["build"]
    if not current(VENV, tools):
        say("installing " + ", ".join(tools))
        try:
            run(sys.executable, "-m", "venv", "--clear", VENV)
        except subprocess.CalledProcessError:
            sys.exit("error: Python cannot make a virtual environment; on Debian and Ubuntu, `apt install python3-venv`")
        pip("install", *tools)
        mark(VENV, tools)
    packages = project["project"]["dependencies"]
    if not current(PACKAGES, packages):
        shutil.rmtree(PACKAGES, ignore_errors=True)
        PACKAGES.mkdir(parents=True)
        if packages:
            say("installing " + ", ".join(packages))
            pip("install", "--target", PACKAGES, "--only-binary", ":all:", *packages)
        mark(PACKAGES, packages)


def generate_bindings(worlds: list[str]) -> None:
    """Writes the contract as Python types, for editors and for tests outside of the component."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("wit/**/*.wit"))]
    if not current(BINDINGS, [worlds, texts]):
        shutil.rmtree(BINDINGS, ignore_errors=True)
        BUILD.mkdir(exist_ok=True)
        run(*componentize_py(worlds), "bindings", BINDINGS)
        mark(BINDINGS, [worlds, texts])


def component(name: str, worlds: list[str]) -> None:
    unfinished = BUILD / f"{name}.unfinished"
    # `hermes_plugin.crash` knows these folders by their order.
    paths = [word for folder in ("src", "vendor", PACKAGES) for word in ("-p", ROOT / folder)]
    words = [*componentize_py(worlds), "componentize", *paths, "hermes_plugin.component", "-o", unfinished]
    # Without this variable, the tool adds the packages of the Python that it finds.
    environment = {**os.environ, "VIRTUAL_ENV": str(VENV)}
    done = subprocess.run([str(word) for word in words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    if done.returncode:
        # The tool wraps the text of `hermes_plugin.crash` in tracebacks of its own.
        sys.exit("error: " + done.stderr.rpartition("AssertionError: ")[2].partition("\n\nCaused by:")[0].strip())
    unfinished.replace(BUILD / f"{name}.wasm")
    say(f"built build/{name}.wasm")


def test() -> None:
    sys.path[:0] = [str(ROOT / folder) for folder in ("src", "vendor", BINDINGS, PACKAGES)]
    importlib.import_module("hermes_plugin.testing")
    found = unittest.defaultTestLoader.discover(str(ROOT / "tests"))
    if not unittest.TextTestRunner().run(found).wasSuccessful():
        sys.exit(1)


def componentize_py(worlds: list[str]) -> list:
    return [PROGRAMS / "componentize-py", "--quiet", "-d", world(worlds), "-w", "project"]


def world(names: list[str]) -> Path:
    """A copy of the contract with one world of everything that pyproject.toml names."""
    (contract,) = sorted(ROOT.glob("wit/*/worlds.wit"))[-1:]
    text = contract.read_text(encoding="utf-8")
    known = {name: f"include {name};" for name in re.findall(r"^world ([\w-]+)", text, re.MULTILINE)}
    for file in sorted(contract.parent.glob("deps/*.wit")):
        one = file.read_text(encoding="utf-8")
        package, version = re.search(r"^package ([^@;]+)@([^;]+);", one, re.MULTILINE).groups()
        for name in re.findall(r"^interface ([\w-]+)", one, re.MULTILINE):
            known.setdefault(name, f"export {package}/{name}@{version};")
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean `{close[0]}`?" if close else ""
            sys.exit(f"error: pyproject.toml: wit/ has no world and no interface `{name}`{meant}")
    copy = BUILD / "wit"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(contract.parent, copy)
    lines = "".join(f"    {known[name]}\n" for name in names)
    (copy / "worlds.wit").write_text(f"{text}\nworld project {{\n{lines}}}\n", encoding="utf-8")
    return copy


def pip(*arguments) -> None:
    run(PROGRAMS / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def run(*words) -> None:
    subprocess.run([str(word) for word in words], check=True, cwd=ROOT)


def current(folder: Path, content: object) -> bool:
    stamp = folder / ".stamp"
    return stamp.is_file() and stamp.read_text() == digest(content)


def mark(folder: Path, content: object) -> None:
    (folder / ".stamp").write_text(digest(content))


def digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {Path(str(error.cmd[0])).name} failed (exit code {error.returncode}); see its output above")
