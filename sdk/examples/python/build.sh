#!/bin/sh
# Builds build/engine.wasm and copies plugin.yaml beside it. Needs componentize-py 0.25 on the PATH, or its path in COMPONENTIZE_PY.
set -eu
cd "$(dirname "$0")"
tool=${COMPONENTIZE_PY:-componentize-py}
out=${1:-build}
mkdir -p "$out"
"$tool" --wit-path ../../../wit/1.0.0-rc.1 --world context-engine-plugin componentize engine -o "$out/engine.wasm"
cp plugin.yaml "$out/"
