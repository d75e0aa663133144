import assert from "node:assert/strict";
import test from "node:test";

import { about, added, inText } from "../src/notes.js";

test("a line that begins with the keyword is stored", () => {
  const text = "Hello.\nRemember: the ferry  leaves at 07:45\nI remember nothing\nremember\n";
  assert.deepEqual(inText(text, "remember"), ["the ferry leaves at 07:45"]);
});

test("a note is stored once", () => {
  const once = added("", ["the ferry is late"]);
  assert.equal(once, "the ferry is late\n");
  assert.equal(added(once, ["the ferry is late"]), null);
});

test("notes that share most words come first", () => {
  const notes = "tea at four\nthe ferry leaves at noon\nthe ferry is red\n";
  const expected = ["the ferry leaves at noon", "the ferry is red"];
  assert.deepEqual(about(notes, "When does the Ferry leave? It leaves soon."), expected);
  assert.deepEqual(about(notes, ""), []);
});
