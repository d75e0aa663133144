import assert from "node:assert/strict";
import test from "node:test";

import { LINE, digest, folded } from "../src/digest.js";

const message = (id, content, more) => ({ id, role: { tag: "user" }, toolName: null, content, toolCalls: [], ...more });

test("whole turns are folded and the newest stay", () => {
  const headers = [1, 1, 2, 3, 3].map((turn, id) => ({ id, turn }));
  assert.deepEqual([1, 2, 3].map((keep) => folded(headers, keep)), [3, 2, 0]);
  assert.equal(folded([], 1), 0);
});

test("a message becomes a line with its calls", () => {
  const caller = message(7, "I read\n\nit.", { role: { tag: "assistant" }, toolCalls: [{ name: "read_file" }] });
  const [first, second] = digest([caller, message(8, "ü".repeat(500))]).split("\n");
  assert.equal(first, "#7 assistant: I read it. [calls read_file]");
  assert.equal(second.length, "#8 user: ".length + LINE);
});

test("a long digest lists only the newest messages", () => {
  const text = digest(Array.from({ length: 300 }, (_, id) => message(id, "x")));
  assert.ok(text.startsWith("(100 earlier messages)\n#100 user: x\n") && text.endsWith("#299 user: x"));
});
