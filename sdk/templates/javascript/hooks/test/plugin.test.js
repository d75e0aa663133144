import assert from "node:assert/strict";
import test from "node:test";

import { hooks, lifecycle } from "../src/plugin.js";
import { fake } from "hermes-plugin/testing.js";

const before = (text) => hooks.onEvent({ tag: "before-tool", val: { name: "terminal", arguments: text } });

test("words that delete need approval", () => {
  assert.deepEqual(before('{"command":"ls"}'), { tag: "proceed" });
  assert.match(before('{"command":"rm -rf /tmp/x"}').val, /rm -rf/);
});

test("an empty text is refused", () => {
  fake("hermes:host/random", { bytes: (count) => new Uint8Array(count).fill(7) });
  assert.throws(() => lifecycle.configure('{"ask_for":[""]}'), { message: /ask_for\[0\]/ });
});
