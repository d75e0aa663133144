#!/usr/bin/env bash
# @anthropic-ai/mcpb 2.1.2 (npm, Node 22.23.3), which packs servers of the Model Context Protocol, with a server that uses typescript 5.9.3 (npm).
#
# `mcpb pack` leaves out all files `*.d.ts`, also below `node_modules`. Its documentation lists what it leaves out, but not these. TypeScript reads
# its `lib.*.d.ts` when it runs. So a server that checks types starts from the bundle as before, and then finds 9 errors in a correct text,
# such as "Cannot find global type 'Array'." The only trace is a line that counts 104 files as ignored by `.mcpbignore`, where no such file
# exists; a `.mcpbignore` with `!*.d.ts` brings them back. Nor does `mcpb` look for the program that the manifest names: without
# `server/index.js`, `validate` and `pack` succeed too. So a bundle has to be unpacked and tried, not only packed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@22.23.3 @anthropic-ai/mcpb@2.1.2
mkdir -p bundle/server
cat > bundle/manifest.json <<'JSON'
{
  "manifest_version": "0.3",
  "name": "check",
  "version": "1.0.0",
  "description": "Checks the types of a text.",
  "author": {"name": "example"},
  "server": {
    "type": "node",
    "entry_point": "server/index.js",
    "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js"]}
  }
}
JSON
# In place of a tool's answer, this server prints what it finds in one text.
cat > bundle/server/index.js <<'JS'
const ts = require("typescript");
const options = { noEmit: true, types: [] };
const host = ts.createCompilerHost(options);
const fromDisk = host.getSourceFile;
host.getSourceFile = (name, ...rest) =>
  name === "given.ts" ? ts.createSourceFile(name, 'export const names: string[] = ["a"];', ...rest) : fromDisk(name, ...rest);
const found = ts.getPreEmitDiagnostics(ts.createProgram(["given.ts"], options, host));
console.log(`${found.length} errors${found.length ? `, first: ${found[0].messageText}` : ""}`);
JS
npm install --silent --no-audit --no-fund --prefix bundle typescript@5.9.3
node="$folder/node_modules/.bin/node"
mcpb() { "$node" node_modules/@anthropic-ai/mcpb/dist/cli/cli.js "$@"; }
try() {
  mcpb pack bundle "$1.mcpb" > pack.log
  mcpb unpack "$1.mcpb" "$1" > unpack.log
  echo "from the $1 bundle: $("$node" "$1/server/index.js"); $(grep '^ignored' pack.log)"
}
seen=$(
  echo "before: $("$node" bundle/server/index.js)"
  try first
  echo '!*.d.ts' > bundle/.mcpbignore
  try second
  rm bundle/server/index.js
  mcpb validate bundle/manifest.json
  mcpb pack bundle third.mcpb > pack.log && echo 'packed without its program'
)
echo "$seen"
[ "$seen" = "before: 0 errors
from the first bundle: 9 errors, first: Cannot find global type 'Array'.; ignored (.mcpbignore) files: 104
from the second bundle: 0 errors; ignored (.mcpbignore) files: 3
Manifest schema validation passes!
packed without its program" ]
