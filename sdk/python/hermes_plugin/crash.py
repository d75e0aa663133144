"""The text of a crash: what failed, where in the author's files, and what to write instead.

Python in a component has no sockets, files, threads, programs or event loop. An audit hook, which Python calls below every module of
its library, says so in the exception itself.
"""

import errno
import inspect
import os
import re
import sys
import traceback
from typing import Any

from . import border
from .border import Misfit, likely

__all__ = ["begin", "install", "located", "place"]

# The folders of a project, in the order in which `build.py` gives them to componentize-py, which calls them `/0`, `/1` and so on.
FOLDERS = ("src", "vendor", "build/packages")

_WEB = "a plugin has no sockets: send requests with `hermes_plugin.web.request`"
_FILES = (
    "a plugin has no files: keep data with `hermes_plugin.documents` or `hermes_plugin.sql`, ask for the user's files with "
    "`wit_world.imports.files`, and read files below `src/` at the top of a module, while the component is built"
)
_PROGRAMS = "a plugin starts no programs itself: ask for them with `wit_world.imports.process`"
_THREADS = "a plugin has no threads: do one thing after the other; the host runs several calls at once by itself"
_LOOP = "a plugin has no event loop: write plain functions; `hermes_plugin.web.request` and `time.sleep` wait by themselves"
_ENVIRONMENT = (
    "a plugin has no environment variables: read the configuration in `Lifecycle.configured`, and give secrets to "
    "`hermes_plugin.web.request` as `web.Secret`"
)
_COMPILED = "a package that needs compiled code, or sockets, does not work in a plugin"
_ZONES = "list `tzdata` in `dependencies` of pyproject.toml, which has the time zones"

# Modules that cannot be imported in a plugin, or do nothing there, by the first part of their names.
_LACKING = {
    _WEB: "ssl socket select selectors socketserver ftplib smtplib imaplib poplib requests httpx aiohttp urllib3 websockets",
    _THREADS: "concurrent threading multiprocessing thread",
    _PROGRAMS: "subprocess pty posixsubprocess",
    _COMPILED: "ctypes cffi",
    _FILES: "mmap dbm shelve",
    _LOOP: "asyncio trio",
}

# Modules of Python that need what a plugin does not have.
_MODULES = (
    (("/subprocess.py", "/pty.py"), _PROGRAMS),
    (("/asyncio/",), _LOOP),
    (("/threading.py", "/concurrent/", "/multiprocessing/"), _THREADS),
    (("/socket.py", "/socketserver.py", "/http/", "/urllib/request.py", "/ftplib.py", "/smtplib.py", "/imaplib.py"), _WEB),
)

# The host shows what follows this sign on standard error as the cause of the crash.
_CAUSE = "\x1e"

_runs = False


def place(file: str) -> str:
    """A file as the author names it."""
    found = re.fullmatch(r"/(\d+)/(.*)", file)
    if found is None or int(found[1]) >= len(FOLDERS):
        return file
    return f"{FOLDERS[int(found[1])]}/{found[2]}"


def located(function: Any) -> str:
    """The line of a function of the author in brackets, with a blank before it; empty for others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = place(code.co_filename) if code else ""
    return f" ({file}:{code.co_firstlineno})" if code and file.startswith(FOLDERS[0] + "/") else ""


def renamed(text: str) -> str:
    """A traceback with the names of files as the author knows them."""
    return re.sub(r'(?<=File ")[^"]+', lambda found: place(found[0]), text)


def _is_own(file: str) -> bool:
    return place(file).startswith((FOLDERS[0], FOLDERS[2]))


def _is_of_os(file: str) -> bool:
    return file.endswith(("os.py", "<frozen os>"))


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if not _runs:
        return
    family, _, action = event.partition(".")
    if family in ("socket", "urllib", "http", "ssl"):
        files = []
        frame = sys._getframe(1)
        while frame is not None and len(files) < 40:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        raise OSError(errno.ENOTSUP, _LOOP if any("/asyncio/" in file for file in files) else _WEB)
    if family in ("subprocess", "pty") or event.startswith(("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork")):
        raise OSError(errno.ENOTSUP, _PROGRAMS)
    if family == "_thread" and action.startswith("start"):
        raise RuntimeError(_THREADS)
    # A number is a stream that is open already.
    if event in ("open", "sqlite3.connect") and not isinstance(given[0], int) and given[0] not in ("", ":memory:"):
        raise FileNotFoundError(errno.ENOENT, _FILES, given[0])
    if family in ("os", "shutil", "tempfile", "glob") and action in ("listdir", "scandir", "mkdir", "rename", "remove", "rmdir", "mkstemp"):
        raise FileNotFoundError(errno.ENOENT, _FILES, given[0] if given else None)


def _remedy(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    """What to write instead, for exceptions that Python raises without asking the audit hook."""
    text = str(error)
    known = (_WEB, _FILES, _PROGRAMS, _THREADS, _LOOP, _ENVIRONMENT)
    if isinstance(error, Misfit) or any(each in text for each in known):
        return ""
    if isinstance(error, ImportError) and (error.name or "").startswith("wit_world"):
        return "nothing in `worlds` of pyproject.toml has it: list its world, or the interface by its name"
    if isinstance(error, ImportError) and any(place(frame.filename).startswith(f"{FOLDERS[2]}/") for frame in frames):
        return _COMPILED
    if isinstance(error, ImportError) and (_runs or isinstance(error, ModuleNotFoundError)):
        name = error.name or ""
        first = name.lstrip("_").partition(".")[0]
        for instead, modules in _LACKING.items():
            if first in modules.split():
                return instead
        if _runs:
            return "import it at the top of the file: modules are read only while the component is built"
        if name.partition(".")[0] in sys.stdlib_module_names:
            return "Python in a plugin has no such module"
        return f"is it a file in `src/`, or listed in `dependencies` of pyproject.toml{likely(name, sys.modules)}"
    if type(error).__name__ == "ZoneInfoNotFoundError":
        return _ZONES
    if isinstance(error, KeyError) and frames and frames[-1].name == "__getitem__" and _is_of_os(frames[-1].filename):
        return _ENVIRONMENT
    if isinstance(error, AttributeError) and re.search(r"'(os|subprocess)' has no attribute '_?(system|popen|fork|exec|spawn|posix_spawn|kill|wait)", text):
        return _PROGRAMS
    if isinstance(error, (OSError, RuntimeError)):
        for folders, instead in _MODULES:
            if any(folder in frame.filename for folder in folders for frame in frames):
                return instead
        if "no running event loop" in text:
            return _LOOP
        if "start new thread" in text:
            return _THREADS
    if isinstance(error, TypeError) and "type Secret is not JSON" in text:
        return "give the value itself to `hermes_plugin.web.request` as `send_json`: the host inserts the secret"
    if isinstance(error, TypeError) and (missing := re.match(r"(\w+)\.__init__\(\) missing ", text)):
        return f"write `record({missing[1]}, …)`, which fills the fields that you leave out"
    if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTSUP, errno.ENOSYS):
        return _FILES
    return ""


def summary(error: BaseException) -> str:
    """What failed, where, and what to write instead, in one line."""
    frames = list(traceback.extract_tb(error.__traceback__))
    at: traceback.FrameSummary | None = None
    cause: BaseException | None = error
    while at is None and cause is not None:
        at = next((frame for frame in reversed(traceback.extract_tb(cause.__traceback__)) if _is_own(frame.filename)), None)
        cause = cause.__cause__
    text = re.sub(r"(?<![\w/])/\d+/[\w./-]+", lambda found: place(found[0]), " ".join(str(error).split()))
    if isinstance(error, SyntaxError) and error.filename:
        return f"{place(error.filename)}:{error.lineno}: {type(error).__name__}: {error.msg}"
    if not isinstance(error, Misfit):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = f"{place(at.filename)}:{at.lineno}: " if at else ""
    if not at and not isinstance(error, Misfit) and not frames and border.last:
        # componentize-py converts the answer when Python has returned.
        where = f"{border.last}: the answer cannot become a value of the contract: "
    remedy = _remedy(error, frames)
    return f"{where}{text[:600]}{remedy and f'; {remedy}'}"


def _crashed(_kind: type[BaseException], error: BaseException, _trace: Any) -> None:
    # Standard output goes to the plugin's log, and the end of standard error explains the crash.
    if _runs:
        print(renamed("".join(traceback.format_exception(error))), flush=True)
    # What stands before the sign was written by the plugin.
    print(f"{_CAUSE if _runs else ''}{summary(error)}", file=sys.stderr, flush=True)
    if _runs:
        os.abort()


def _ignored(what: Any) -> None:
    print(renamed("".join(traceback.format_exception(what.exc_value))), flush=True)


def _asked(key: str, default: str | None = None) -> str | None:
    """`os.environ.get`. A package asks for optional variables and goes on without; the author's own code waits for a value in vain."""
    frame = sys._getframe(1)
    while frame.f_back and _is_of_os(frame.f_code.co_filename):
        frame = frame.f_back
    if default is None and place(frame.f_code.co_filename).startswith(f"{FOLDERS[0]}/"):
        return os.environ[key]
    return type(os.environ).get(os.environ, key, default)


def install() -> None:
    """Explains every exception that ends the instance, or the build."""
    sys.excepthook = _crashed
    sys.unraisablehook = _ignored
    os.environ.get = _asked


def begin() -> None:
    """From now on the plugin runs: what is not there is refused."""
    global _runs
    if not _runs:
        _runs = True
        sys.addaudithook(_audit)
