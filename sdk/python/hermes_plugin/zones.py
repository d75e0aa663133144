"""The time zones of `zoneinfo`.

Python reads them from files when they are first asked for. A component has no files, so it keeps those of the package `tzdata` in memory.
"""

import importlib
import io
from pathlib import Path
from zoneinfo import ZoneInfoNotFoundError, _common

__all__ = ["keep"]


def keep() -> None:
    """Reads every zone of `tzdata`, if the project has the package. It is called during the build."""
    zones: dict[str, bytes] = {}
    try:
        folder = Path(importlib.import_module("tzdata").__file__).parent / "zoneinfo"
    except ModuleNotFoundError:
        pass
    else:
        for path in folder.rglob("*"):
            if path.is_file() and (content := path.read_bytes()).startswith(b"TZif"):
                zones[path.relative_to(folder).as_posix()] = content

    def load_tzdata(key: str) -> io.BytesIO:
        if key not in zones:
            raise ZoneInfoNotFoundError(f"no time zone {key}")
        return io.BytesIO(zones[key])

    _common.load_tzdata = load_tzdata
