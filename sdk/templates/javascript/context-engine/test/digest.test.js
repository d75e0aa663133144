import assert from "node:assert/strict";
import test from "node:test";

import { LINE, digest, excerpts, folded, tokensOf } from "../src/digest.js";

const count = (text) => Math.ceil(text.length / 4);
const message = (id, content, more) => ({ id, role: { tag: "user" }, toolName: null, content, toolCalls: [], ...more });

test("whole turns are folded and the newest stay", () => {
  const headers = [1, 1, 2, 3, 3].map((turn, id) => ({ id, turn, tokens: 10 }));
  assert.deepEqual([1, 2, 3].map((keep) => folded(headers, keep, 100)), [3, 2, 0]);
  assert.equal(folded([], 1, 100), 0);
});

test("fewer turns stay in a window that is too small for all, and one always stays", () => {
  const headers = [1, 1, 2, 2, 3, 3].map((turn, id) => ({ id, turn, tokens: 700 }));
  assert.deepEqual([4200, 2800, 2799, 1400, 100].map((most) => folded(headers, 4, most)), [0, 2, 4, 4, 4]);
});

test("a turn that is too long is shortened until it fits, and the user's words stay", () => {
  const turn = [
    message(1, "a ".repeat(100)),
    message(2, "", { role: { tag: "assistant" }, toolCalls: [{ id: "c", name: "read", arguments: JSON.stringify({ text: "b ".repeat(900) }) }] }),
    message(3, "c ".repeat(4000), { role: { tag: "tool" }, toolName: "read" }),
  ].map((each) => ({ ...each, tokens: 10 + count(each.content) + each.toolCalls.reduce((sum, call) => sum + count(call.arguments), 0) }));
  for (const most of [2000, 500, 200]) {
    const short = excerpts(turn, most, count);
    const size = (excerpt) => 10 + count(excerpt.content) + excerpt.arguments.reduce((sum, [, text]) => sum + count(text), 0);
    const total = turn.reduce((sum, { id, tokens }) => sum + (short.find((each) => each.id === id) ? size(short.find((each) => each.id === id)) : tokens), 0);
    assert.ok(total <= most && !short.some(({ id }) => id === 1), `${total} of ${most}`);
  }
  assert.equal(excerpts(turn, 50, count), null);
  assert.deepEqual(excerpts(turn, tokensOf(turn), count), []);
});

test("a message becomes a line with its calls", () => {
  const caller = message(7, "I read\n\nit.", { role: { tag: "assistant" }, toolCalls: [{ name: "read_file" }] });
  const [first, second] = digest([caller, message(8, "ü".repeat(500))], 1000, count).text.split("\n");
  assert.equal(first, "#7 assistant: I read it. [calls read_file]");
  assert.equal(second.length, "#8 user: ".length + LINE);
});

test("a long digest lists only the newest messages", () => {
  const messages = Array.from({ length: 300 }, (_, id) => message(id, "x"));
  const { text } = digest(messages, 10_000, count);
  assert.equal(digest(messages, 8, count).text, "(298 earlier messages)\n#298 user: x\n#299 user: x");
  assert.ok(text.startsWith("(100 earlier messages)\n#100 user: x\n") && text.endsWith("#299 user: x"));
});
