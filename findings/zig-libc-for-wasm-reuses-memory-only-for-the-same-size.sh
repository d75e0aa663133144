#!/usr/bin/env bash
# ziglang 0.17.1 (PyPI), its C compiler for wasm32-wasi, run by wasmtime 50.0.1 (PyPI).
#
# The malloc of this libc rounds every size up to a power of two, and memory that was freed serves only requests of the same rounded size.
# A program that frees 32 MiB in blocks of 1 MiB and then asks for one block of 32 MiB gets 32 MiB more from the system, and 8 MiB plus
# one byte take 16 MiB. The malloc of wasi-libc, for which most C for WebAssembly is built, joins free blocks and does neither. A text that
# grows by doubling thus takes about four times its size, which matters where memory is limited, and linear memory never shrinks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet ziglang==0.17.1 wasmtime==50.0.1
cat > sizes.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1u << 20)

static unsigned mib(void) { return __builtin_wasm_memory_size(0) / 16; }

int main(void) {
    char *blocks[32];
    for (int at = 0; at < 32; at++) memset(blocks[at] = malloc(MIB - 64), at, MIB - 64);
    for (int at = 0; at < 32; at++) free(blocks[at]);
    unsigned before = mib();
    char *one = malloc(32 * MIB - 64);
    memset(one, 1, 32 * MIB - 64);
    printf("a block as large as all that was freed: %s\n", mib() - before >= 31 ? "new memory" : "reused memory");
    before = mib();
    char *odd = malloc(8 * MIB + 1);
    memset(odd, 1, 8 * MIB + 1);
    printf("8 MiB and one byte: %s\n", mib() - before >= 15 ? "16 MiB" : "as much as needed");
    return one[5] + odd[5] == 2 ? 0 : 1;
}
C
venv/bin/python -m ziglang cc --target=wasm32-wasi -O0 sizes.c -o sizes.wasm
cat > run.py <<'PY'
import wasmtime

engine = wasmtime.Engine()
store = wasmtime.Store(engine)
wasi = wasmtime.WasiConfig()
wasi.stdout_file = "seen"
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, "sizes.wasm"))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    assert end.code == 0, end
PY
venv/bin/python run.py
cat seen
[ "$(cat seen)" = "a block as large as all that was freed: new memory
8 MiB and one byte: 16 MiB" ]
