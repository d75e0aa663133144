import assert from "node:assert/strict";
import test from "node:test";

import { skills } from "../src/plugin.js";

test("every skill and its files can be read", () => {
  for (const skill of skills.index()) {
    const document = skills.view(skill.name, null);
    assert.ok(document.content && !skill.description.includes("\n"));
    for (const path of document.files) assert.ok(skills.view(skill.name, path).content);
  }
});

test("an error lists what exists", () => {
  assert.throws(() => skills.view("coffee", null), { message: /tea/ });
  assert.throws(() => skills.view("tea", "../package.json"), { message: /temperatures/ });
});
