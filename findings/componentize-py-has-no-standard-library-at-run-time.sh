#!/usr/bin/env bash
# componentize-py 0.25.1 (PyPI; its components contain CPython 3.14.0), run by wasmtime 50.0.1 (PyPI).
#
# A component has no files of Python's standard library. It is a snapshot of an interpreter that has imported the program during
# the build, so it has just the modules that were imported then. An import within a function, which is common in Python, builds without
# a word and fails at the first call with ModuleNotFoundError. The same holds for what Python itself imports late: encodings. `"é".encode("iso-8859-15")`
# raises `LookupError: unknown encoding: iso-8859-15`, unless something used this encoding while the program was imported; UTF-8 works.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet componentize-py==0.25.1 wasmtime==50.0.1
mkdir wit
cat > wit/world.wit <<'WIT'
package example:late;
world late { export run: func() -> list<string>; }
WIT
cat > app.py <<'PY'
import json  # in the snapshot

import wit_world

"é".encode("cp1252")  # in the snapshot, too


def result(what):
    try:
        return str(what())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def late():
    import csv

    return csv.__name__


class WitWorld(wit_world.WitWorld):
    def run(self):
        return [
            json.dumps("json"),
            result(late),
            result(lambda: "é".encode("utf-8")),
            result(lambda: "é".encode("cp1252")),
            result(lambda: "é".encode("iso-8859-15")),
            result(lambda: "é.example".encode("idna")),
        ]
PY
cat > run.py <<'PY'
import wasmtime
from wasmtime import component

engine = wasmtime.Engine()
store = wasmtime.Store(engine)
store.set_wasi(wasmtime.WasiConfig())
linker = component.Linker(engine)
linker.add_wasip2()
instance = linker.instantiate(store, component.Component.from_file(engine, "app.wasm"))
print(*instance.get_func(store, "run")(store), sep="\n")
PY
venv/bin/componentize-py -d wit -w late componentize app -o app.wasm
seen=$(venv/bin/python run.py)
echo "$seen"
[ "$seen" = "\"json\"
ModuleNotFoundError: No module named 'csv'
b'\\xc3\\xa9'
b'\\xe9'
LookupError: unknown encoding: iso-8859-15
LookupError: unknown encoding: idna" ]
