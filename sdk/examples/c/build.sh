#!/bin/sh
# Builds build/engine.wasm and copies plugin.yaml beside it. Needs cargo (for the generator), clang with lld, and wasi-libc: on Debian
# `apt install clang-16 lld-16 wasi-libc libclang-rt-16-dev-wasm32`.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-16}
out=${1:-build}
mkdir -p "$out/generated"
bindgen() { cargo run --quiet --manifest-path bindgen/Cargo.toml -- "$@"; }

bindgen header ../../../wit/1.0.0-rc.1 context-engine-plugin "$out/generated"
"$clang" --target=wasm32-wasi -mexec-model=reactor -O2 -Wall -Wextra -nostartfiles -Wl,--no-entry \
    -I "$out/generated" engine.c "$out/generated/context_engine_plugin.c" \
    "$out/generated/context_engine_plugin_component_type.o" -o "$out/engine.core.wasm"
bindgen component "$out/engine.core.wasm" "$out/engine.wasm"
rm "$out/engine.core.wasm"
cp plugin.yaml "$out/"
