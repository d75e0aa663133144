// What the build puts around the author's module.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import { explained, project } from "../../../sdk/javascript/build.js";
import { bordered, checked } from "../../../sdk/javascript/component.js";
import { exportsOf, partOf, readContract } from "../../../sdk/javascript/contract.js";
import { refusal, room } from "../../../sdk/javascript/engine.js";
import { invalid } from "../../../sdk/javascript/errors.js";
import { fake } from "../../../sdk/javascript/testing.js";

const at = new URL("../../../wit/1.1.0/", import.meta.url);
const files = readdirSync(new URL("deps/", at)).map((file) => readFileSync(new URL(`deps/${file}`, at), "utf8"));
const worlds = readFileSync(new URL("worlds.wit", at), "utf8");
const contract = readContract(files, worlds);
const lines = [];
fake("hermes:host/log", { write: (level, text) => lines.push([level, text]) });

/** A valid value of a shape. */
function made(shape) {
  if (shape === null) return undefined;
  if (typeof shape === "string") return { string: "x", char: "x", bool: true, bytes: new Uint8Array(1) }[shape] ?? 1;
  if (shape.option || shape.result) return null;
  if (shape.list) return [made(shape.list)];
  if (shape.tuple) return shape.tuple.map(made);
  const type = contract.types[shape.ref];
  if (type.alias) return made(type.alias);
  if (type.enum) return type.enum[0];
  if (type.variant) {
    const [tag, inner] = Object.entries(type.variant).at(-1);
    return inner ? { tag, val: made(inner) } : { tag };
  }
  return Object.fromEntries(Object.entries(type.record).map(([key, inner]) => [key, made(inner)]));
}

const everything = exportsOf(contract, "everything");
const results = everything.flatMap((id) => Object.entries(contract.interfaces[id].functions).map(([key, { result }]) => [id, key, result]));

test("every function of every interface that a plugin can export is known, with its answer", () => {
  const counted = files.join("\n").match(/: func\(/g).length;
  assert.equal(Object.values(contract.interfaces).flatMap(({ functions }) => Object.keys(functions)).length >= counted - 12, true);
  assert.equal(everything.length, 14);
  for (const [id, key, result] of results) {
    if (result === null) continue;
    assert.deepEqual(checked(contract, result, made(result), { what: key, path: "", record: "" }), made(result), `${id} ${key}`);
  }
});

test("of every record that a plugin returns, each field is required and has its type", () => {
  const part = partOf(contract, everything);
  let fields = 0;
  for (const [ref, type] of Object.entries(part.types).filter(([, { record }]) => record)) {
    for (const [key, inner] of Object.entries(type.record)) {
      const check = (value) => checked(contract, { ref }, value, { what: "`f`", path: "", record: "" });
      const { [key]: left, ...rest } = made({ ref });
      assert.throws(() => check(rest), new RegExp(`\`f\`: the answer, a record ${type.name}, lacks the field \`${key}\``));
      assert.throws(() => check({ ...rest, [`${key}s`]: left }), new RegExp(`did you mean \`${key}s\``));
      assert.throws(() => check({ ...rest, [key]: Symbol("s") }), new RegExp(`\`${key}\` of the record ${type.name} must be`), `${ref} ${key} ${JSON.stringify(inner)}`);
      fields += 1;
    }
  }
  assert.ok(fields > 40, fields);
});

test("a text, a list or nothing in place of a record is named with its place", () => {
  const recall = { list: { ref: "hermes:memory/memory-provider#recollection" } };
  const check = (value) => checked(contract, recall, value, { what: "`recall`", path: "", record: "" });
  assert.throws(() => check(undefined), /`recall`: the answer must be a list, not undefined; is a `return` missing\?/);
  assert.throws(() => check(new Set()), /must be a list, not a Set; write `\[\.\.\.value\]`/);
  assert.throws(() => check(["tea"]), /`\[0\]` must be a record Recollection, not 'tea'/);
  assert.throws(() => check([{ key: "a", text: 5, extra: [] }]), /`\[0\]\.text` of the record Recollection must be a text, not 5/);
  assert.throws(() => check([{ key: "a", text: "b" }]), /lacks the field `extra`; write `\[\]` for none/);
  assert.throws(() => check([{ key: "a", text: "b", extra: [["key"]] }]), /`\[0\]\.extra\[0\]` of the record Recollection must be a list of 2/);
  const verdict = (value) => checked(contract, { ref: "hermes:hooks/hooks#verdict" }, value, { what: "`f`", path: "", record: "" });
  assert.throws(() => verdict({ tag: "procede" }), /the tag is 'procede'; did you mean `proceed`\?/);
  assert.throws(() => verdict({ tag: "block" }), /`val` must be a text, not undefined/);
});

test("integers have the range of their type, and a BigInt is one", () => {
  const check = (shape, value) => checked(contract, shape, value, { what: "`f`", path: "", record: "" });
  assert.equal(check("u64", 7n), 7);
  assert.equal(check("s64", -7n), -7);
  for (const [shape, value] of [["u32", -1], ["u32", 2 ** 32], ["u8", 256], ["u64", 2n ** 60n], ["s32", 2 ** 31], ["u32", 1.5], ["u32", "1"]]) {
    assert.throws(() => check(shape, value), /must be a whole number from/, `${shape} ${value}`);
  }
});

const provider = { systemPrompt: () => "", recall: () => [], syncTurn() {} };
const memory = (functions) => bordered(contract, "hermes:memory/memory-provider", { memoryProvider: { ...provider, ...functions } });

test("an interface that is not exported, and a function that it lacks, end the build", () => {
  const id = "hermes:memory/memory-provider";
  assert.throws(() => bordered(contract, id, { memoryProviders: provider }), /src\/plugin\.js does not export `memoryProvider`.*did you mean `memoryProviders`\?/);
  assert.throws(() => memory({ syncTurn: undefined, syncTurns() {} }), /`memoryProvider` has no function `syncTurn`; did you mean `syncTurns`\?/);
  class Provider {}
  assert.throws(() => bordered(contract, id, { memoryProvider: Provider }), /must be an object with functions, not the class Provider/);
});

test("functions are called on the object that the author exports", () => {
  class Provider {
    prompt = "remember";
    systemPrompt() {
      return this.prompt;
    }
    recall = () => [];
    syncTurn() {}
  }
  assert.equal(bordered(contract, "hermes:memory/memory-provider", { memoryProvider: new Provider() }).systemPrompt(), "remember");
});

test("errors of the contract pass, and any other exception says what failed and where", () => {
  const thrown = (error) => {
    try {
      memory({ recall: () => { throw error; } }).recall();
    } catch (caught) {
      return caught;
    }
  };
  assert.equal(thrown(invalid(`no ${"🦀".slice(0, 1)}`)).message, "no \u{fffd}");
  assert.equal(thrown(invalid("no").payload).kind.tag, "invalid-input");
  assert.match(thrown({ kind: { tag: "invalid" }, message: "x" }).message, /the error that it threw: .*lacks the field|the tag is 'invalid'/);
  const error = new TypeError("cannot read property 'x' of null");
  error.stack = " at deep (/src/other.js:4:1)\n at run (/src/plugin.js:7:54)\n at call (/vendor/hermes-plugin/tools.js:67:51)\n";
  const ended = thrown(error);
  assert.equal(ended.message, "src/other.js:4: TypeError: cannot read property 'x' of null");
  assert.equal(ended.stack, "");
  assert.ok(lines.some(([, text]) => text.includes("/src/plugin.js:7:54")));
  assert.match(thrown("no").message, /it threw 'no': throw `invalid\(…\)`/);
});

test("what only browsers and Node.js have is named with what to write instead", () => {
  const said = (name) => {
    try {
      memory({ recall: () => { throw new ReferenceError(`${name} is not defined`); } }).recall();
    } catch ({ message }) {
      return message;
    }
  };
  assert.match(said("fetch"), /`request` of hermes-plugin/);
  assert.match(said("setTimeout"), /no timers/);
  assert.match(said("process"), /`secret\(name\)`/);
  assert.match(said("Intl"), /`Intl` is not in plugins: format by hand, or bundle a library$/);
  assert.match(said("constructor"), /globals of ECMAScript/);
});

test("a promise and a generator are refused by every function", () => {
  assert.throws(() => memory({ async syncTurn() {} }).syncTurn(), /`memoryProvider\.syncTurn` returned a promise/);
  assert.throws(() => memory({ *syncTurn() {} }).syncTurn(), /returned a generator/);
  assert.throws(() => memory({ *recall() {} }).recall(), /returned a generator/);
});

test("a project exports all worlds and interfaces that it names", () => {
  const { world, entry } = project(files, worlds, ["memory-provider-plugin", "tools-plugin", "memory-prefetch"]);
  assert.ok(world.endsWith("world project {\n    include memory-provider-plugin;\n    include tools-plugin;\n    export hermes:memory/memory-prefetch@1.0.0;\n}\n"));
  for (const name of ["lifecycle", "memoryProvider", "tools", "memoryPrefetch"]) assert.ok(entry.includes(`export const ${name} = `), name);
  assert.throws(() => project(files, worlds, ["tool-plugin"]), /package\.json: .*`tool-plugin`; did you mean `tools-plugin`\?/);
});

test("an error of the build says what and where, without stacks", () => {
  const at = ": Failed to evaluate user JavaScript module: Failed to declare JavaScript module: Error: ";
  const sources = { "src/plugin.js": 'import x from "hermes-plugin";\nimport fs from "node:fs";\nimport { toolbx } from "hermes-plugin";', "vendor/hermes-plugin/index.js": "export { Toolbox } from './tools.js';" };
  const said = (text) => explained(new Error(at + text), sources);
  assert.match(said("Error resolving module 'node:fs' from '/src/plugin.js': failed"), /^src\/plugin\.js:2: there is no module "node:fs"; a plugin has no files/);
  assert.equal(said("Could not find export 'toolbx' in module '/vendor/hermes-plugin/index.js'\n"), "src/plugin.js:3: hermes-plugin does not export `toolbx`; did you mean `Toolbox`?");
  assert.equal(said("unexpected token\n    at /src/plugin.js:5:11\n"), "src/plugin.js:5: unexpected token");
  assert.match(explained(new Error("error while executing at wasm backtrace:\n 0: x")), /during the build/);
});

test("the room is what the host says, or what the window leaves", () => {
  const pressure = { contextLength: 1000, reserve: 200, fixedTokens: 100, extra: [] };
  assert.equal(room(pressure), 700);
  assert.equal(room({ ...pressure, extra: [["room", "650"]] }), 650);
  assert.equal(room({ ...pressure, fixedTokens: 900 }), 0);
  const val = { code: "too-large", message: "m", extra: [["needed", "800"], ["room", "650"]] };
  assert.deepEqual(refusal({ tag: "refused", val }), { code: "too-large", message: "m", needed: 800, room: 650 });
  assert.equal(refusal({ tag: "refused", val: { ...val, extra: [] } }).needed, null);
  assert.equal(refusal({ tag: "adopted" }), null);
});
