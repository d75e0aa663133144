#!/usr/bin/env bash
# @modelcontextprotocol/client 2.4.0 (npm, Node 22.23.3), the official client of the Model Context Protocol for TypeScript.
#
# After `connect` has failed, because nobody listens at the address, `listTools`, `listPrompts` and `listResources` do not fail: they resolve to
# empty lists. The client takes "no capabilities are known" for "the server announced none", and only a line on the console tells. `callTool`
# fails with "Not connected" in the same state. So a program that catches the error of `connect`, or connects in the background, sees a server
# without tools instead of one that is down, and a list that is kept from this moment is empty. Who lists has to remember itself whether
# `connect` succeeded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@22.23.3 @modelcontextprotocol/client@2.4.0
cat > try.mjs <<'JS'
import { createServer } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

// A port at which nobody listens.
const taken = createServer().listen(0, "127.0.0.1");
await new Promise((resolve) => taken.on("listening", resolve));
const { port } = taken.address();
await new Promise((resolve) => taken.close(resolve));

const client = new Client({ name: "try", version: "1" });
const tried = async (what, call) => {
  try {
    return [what, JSON.stringify(await call())];
  } catch (error) {
    return [what, `fails: ${error.message}`];
  }
};
const seen = [
  await tried("connect", () => client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))),
  await tried("listTools", () => client.listTools()),
  await tried("listPrompts", () => client.listPrompts()),
  await tried("listResources", () => client.listResources()),
  await tried("callTool", () => client.callTool({ name: "x", arguments: {} })),
];
for (const [what, result] of seen) console.log(`${what}: ${result}`);
const expected = ["fails: ", '{"tools":[]}', '{"prompts":[]}', '{"resources":[]}', "fails: Not connected"];
process.exit(seen.every(([, result], at) => result.startsWith(expected[at])) ? 0 : 1);
JS
node_modules/.bin/node try.mjs
