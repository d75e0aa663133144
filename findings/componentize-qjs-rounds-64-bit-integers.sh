#!/usr/bin/env bash
# componentize-qjs 0.4.5 (npm), run through @bytecodealliance/jco 1.35.0 in Node 22.23.3.
#
# A component of this toolchain gets a 64-bit integer of its interface (`s64`) as a JavaScript number, and gives one back as such.
# jco hands over a BigInt, as its documentation says, but the code inside sees a number: 9007199254740993 (2^53 + 1) arrives as
# 9007199254740992 and returns so, without an error on either side. Ids and hashes change their value on the way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir wit
cat > wit/world.wit <<'WIT'
package a:b;
world w {
  export show: func(x: s64) -> string;
  export back: func(x: s64) -> s64;
}
WIT
cat > plugin.js <<'JS'
export function show(x) { return `${typeof x} ${x}`; }
export function back(x) { return x; }
JS
cat > build.mjs <<'JS'
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "componentize-qjs";
const jsSource = await readFile("plugin.js", "utf8");
const { component } = await componentize({ witPath: "wit", world: "w", jsPath: "plugin.js", jsSource, moduleRoot: ".", sync: true });
await writeFile("component.wasm", component);
JS
cat > run.mjs <<'JS'
import { show, back } from "./out/component.js";
console.log(`${show(9007199254740993n)}, ${typeof back(9007199254740993n)} ${back(9007199254740993n)}`);
JS
npm init --yes > npm.log
npm install --silent --no-audit --no-fund componentize-qjs@0.4.5 @bytecodealliance/jco@1.35.0 node@22.23.3
node=node_modules/.bin/node
"$node" build.mjs
npx jco transpile component.wasm -o out > jco.log
echo '{"type": "module"}' > out/package.json
seen=$("$node" run.mjs)
echo "$seen"
[ "$seen" = 'number 9007199254740992, bigint 9007199254740992' ]
