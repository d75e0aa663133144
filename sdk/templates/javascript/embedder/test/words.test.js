import assert from "node:assert/strict";
import test from "node:test";

import { embedder, lifecycle } from "../src/plugin.js";
import { vector } from "../src/words.js";
import { fake } from "hermes-plugin/testing.js";

function nearness(one, other) {
  const second = vector(other, 256);
  return vector(one, 256).reduce((sum, number, at) => sum + number * second[at], 0);
}

test("texts that share words are near", () => {
  const question = "When does the ferry leave?";
  assert.ok(nearness(question, question) > 0.999);
  assert.ok(nearness(question, "The ferry leaves at noon.") > nearness(question, "Tea is at four."));
  assert.ok(nearness("ferry", "ferries") > 0);
  assert.equal(nearness("?!", ""), 1);
});

test("every text gets a vector of the described length", () => {
  fake("hermes:host/random", { bytes: (count) => new Uint8Array(count).fill(7) });
  lifecycle.configure('{"dimensions":64}');
  const { model, dimensions } = embedder.describe();
  assert.deepEqual([model, dimensions], ["{{name}}-1-64", 64]);
  const vectors = embedder.embed({ texts: ["When does the ferry leave?", ""] });
  assert.deepEqual(vectors.map((vector) => vector.length), [64, 64]);
});
