import assert from "node:assert/strict";
import test from "node:test";

import { toolbox } from "../src/plugin.js";

const call = (given) =>
  toolbox.call({ id: "1", name: "count", arguments: JSON.stringify(given), extra: [] }).content[0].val;

test("each unit is counted", () => {
  assert.equal(call({ text: "two lamps\nünlit" }), "3 words");
  assert.equal(call({ text: "two lamps\nünlit", unit: "lines" }), "2 lines");
  assert.equal(call({ text: "ünlit", unit: "characters" }), "5 characters");
});

test("invalid arguments are reported to the model", () => {
  assert.throws(() => call({}), /text/);
  assert.throws(() => call({ text: "" }), /empty/);
  assert.throws(() => call({ text: "x", unit: "feet" }), /feet/);
});
