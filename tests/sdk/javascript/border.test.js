// Run by `it/install/languages.rs`: `node --import sdk/javascript/testing.js --test tests/sdk/javascript`.

import assert from "node:assert/strict";
import test from "node:test";

import { Toolbox, documents, guarded, invalid, kindOf, log, request, sql, text } from "../../../sdk/javascript/index.js";
import { fake } from "../../../sdk/javascript/testing.js";

const HALF = "🦀".slice(0, 1);

const returning = (run, parameters = {}) => new Toolbox("t").tool({ name: "tool", description: "A tool.", parameters, run }).exports();
const call = (tools, given = "{}") => tools.call({ id: "1", name: "tool", arguments: given, extra: [] });

test("a promise is refused with a sentence, wherever it is returned", () => {
  for (const run of [async () => "later", async () => Promise.reject(new Error("boom")), () => ({ then() {} })]) {
    assert.throws(() => call(returning(run)), /the tool `tool` returned a promise.*without `async`/);
  }
  const memory = guarded({ async syncTurn() {} });
  assert.throws(() => memory.syncTurn(), /`syncTurn` returned a promise/);
});

test("a tool that returns nothing is refused, and null is a value", () => {
  assert.throws(() => call(returning(() => {})), /the tool `tool` returned undefined/);
  assert.deepEqual(call(returning(() => null)).content, [{ tag: "text", val: "null" }]);
});

test("texts are well-formed on every way to the host", () => {
  assert.equal(call(returning(() => HALF)).content[0].val, "\u{fffd}");
  const { content, structured } = call(returning(() => ({ [HALF]: [HALF] })));
  assert.equal(content[0].val, '{"\u{fffd}":["\u{fffd}"]}');
  assert.equal(structured, content[0].val);
  const given = [];
  fake("hermes:storage/sql", { query: (query) => (given.push(query), { rows: [] }) });
  sql.query("SELECT ?", HALF);
  assert.deepEqual(given[0].params, [{ tag: "text", val: "\u{fffd}" }]);
});

test("an integer keeps its value or is refused", () => {
  fake("hermes:storage/sql", {
    query: ({ params }) => ({ rows: [params.length ? params : [{ tag: "integer", val: 2 ** 53 }]] }),
  });
  assert.deepEqual(sql.query("SELECT ?, ?, ?", 7n, 1.5, 2 ** 80), [[7, 1.5, 2 ** 80]]);
  assert.throws(() => sql.query("SELECT ?", 2n ** 53n), /CAST\(\? AS INTEGER\)/);
  assert.throws(() => sql.query("SELECT ?", 2 ** 60), /CAST\(\? AS INTEGER\)/);
  assert.throws(() => sql.query("SELECT 9007199254740992"), /CAST\(… AS TEXT\)/);
  const next = returning(({ n }) => ({ next: n + (typeof n === "bigint" ? 1n : 1) }), { n: { type: "integer" } });
  assert.equal(call(next, '{"n": 41}').structured, '{"next":42}');
  // Older versions of Node do not show the text of a number, and then it is refused.
  if (JSON.rawJSON) assert.equal(call(next, '{"n": 9007199254740993}').structured, '{"next":9007199254740994}');
  else assert.throws(() => call(next, '{"n": 9007199254740993}'), (error) => kindOf(error) === "invalid-input");
});

test("an error that a plugin throws is the one that a unit test catches", () => {
  const refused = invalid("no tea", { code: "tea" });
  const throwing = () => {
    throw refused;
  };
  for (const run of [() => call(returning(throwing)), () => guarded({ recall: throwing }).recall()]) {
    assert.throws(run, (error) => error === refused && kindOf(error) === "invalid-input" && error.payload.code === "tea");
  }
});

test("what JSON does not have is refused with its place and what to write", () => {
  class Pair {
    constructor(value) {
      Object.assign(this, { value });
    }
  }
  for (const [value, said] of [
    [new Set([1]), /the result of the tool `tool` is a Set: write `Array\.from\(set\)`/],
    [{ a: [{ b: new Map() }] }, /the result of the tool `tool`: `a\[0\]\.b` is a Map: write `Object\.fromEntries\(map\)`/],
    [{ mean: 0 / 0 }, /`mean` is NaN: write `null` or a text/],
    [[1, -1 / 0], /`\[1\]` is -Infinity/],
    [{ run() {} }, /`run` is a function/],
    [() => {}, /the result of the tool `tool` is a function/],
    [{ kind: Symbol("s") }, /`kind` is a symbol/],
    [new RangeError("r"), /the result of the tool `tool` is an Error: throw it/],
    [new Pair(new Set()), /`value` is a Set/],
    [{ day: new Date(NaN) }, /`day` is an invalid date/],
    [{ later: Promise.resolve() }, /`later` is a Promise/],
    [{ keys: new Map([[1, 2]]).keys() }, /`keys` is a Map Iterator: write `Array\.from\(…\)`/],
    [{ bytes: new Uint8Array(2) }, /`bytes` is a Uint8Array/],
  ]) {
    assert.throws(() => call(returning(() => value)), said);
    assert.throws(() => text("", { value }), /the structured result: `value/);
    assert.throws(() => request("POST", "https://example.org/", { json: { value } }), /the `json` of `request`: `value/);
  }
  const shared = { n: 1 };
  const value = { shared, list: [shared, undefined], day: new Date(5), pair: new Pair(2n), none: undefined, box: Object("x") };
  const json = JSON.stringify({ ...value, pair: { value: 2 } });
  assert.equal(call(returning(() => (JSON.rawJSON ? value : { ...value, pair: { value: 2 } }))).structured, json);
});

test("a value that contains itself is refused with the field where it begins again", () => {
  const circle = { name: "a", inner: { list: [1] } };
  circle.inner.list.push(circle.inner);
  assert.throws(() => call(returning(() => circle)), /the result of the tool `tool`: `inner\.list\[1\]` leads back to `inner`: leave it out/);
  circle.inner = circle;
  assert.throws(() => call(returning(() => circle)), /`inner` leads back to the whole value/);
  assert.throws(() => call(returning(() => ({ content: [circle] }))), /`call`: `content\[0\]\.inner` leads back to `content\[0\]`/);
  const deep = Array.from({ length: 600 }).reduce((inner) => ({ d: inner }), null);
  assert.throws(() => call(returning(() => deep)), /`d\.d\.d\.d\.d…` is nested too deeply/);
  const lines = [];
  fake("hermes:host/log", { write: (_, line) => lines.push(line) });
  log.info("circle", { circle, odd: [new Set(), NaN] });
  assert.deepEqual(lines, ['{"text":"circle","circle":{"name":"a","inner":"leads back to `circle`"},"odd":["a Set","NaN"]}']);
});

test("the status of an answer says whether it may pass", () => {
  const answer = (status) => {
    fake("hermes:http/http", { send: () => ({ status, headers: [["retry-after", "2"]], body: [] }) });
    try {
      return request("GET", "https://example.org/").checked().status;
    } catch ({ payload }) {
      return [payload.kind.tag, payload.code, payload.retryAfterMs];
    }
  };
  assert.equal(answer(204), 204);
  for (const status of [401, 403]) assert.deepEqual(answer(status), ["unavailable", "auth", 2000]);
  for (const status of [408, 425, 429, 500, 503]) assert.deepEqual(answer(status), ["unavailable", `status-${status}`, 2000]);
  for (const status of [304, 400, 404, 410]) assert.equal(answer(status)[0], "failed");
});

test("a tool that is declared wrongly is refused with what was meant", () => {
  const adding = (more) => () => new Toolbox("t").tool({ name: "tool", description: "A tool.", run: () => "", ...more });
  assert.throws(adding({ parameter: {} }), /the tool `tool` knows no `parameter`; did you mean `parameters`\?/);
  assert.throws(adding({ parameters: { type: "object", properties: {} } }), /`parameters` are schemas by name/);
  assert.throws(adding({ parameters: { text: "string" } }), /the parameter `text` needs a schema/);
  assert.throws(adding({ parameters: { text: {} }, required: ["texts"] }), /requires `texts`, which is no parameter; did you mean `text`\?/);
  assert.throws(adding({ run: undefined }), /needs a function `run`/);
});

test("what is no text is named before the host gets it", () => {
  const lines = [];
  fake("hermes:host/log", { write: (level, line) => lines.push(line) });
  log.info(5);
  log.warn({ a: [HALF] });
  log.error(undefined, { n: 1 });
  assert.deepEqual(lines, ["5", '{"a":["\u{fffd}"]}', '{"text":"undefined","n":1}']);
  fake("hermes:storage/documents", { read: () => null, write: () => ({ tag: "written" }) });
  assert.throws(() => documents.update("a", () => {}), /what the function of `documents\.update` returns must be a text, not undefined/);
  assert.throws(() => documents.update("a", async () => "b"), /the function of `documents\.update` returned a promise/);
  assert.equal(documents.update("a", () => "b"), true);
  assert.equal(documents.update("a", () => null), false);
  assert.throws(() => documents.read(5), /the name of a document must be a text, not 5/);
  assert.throws(() => request("GET", new URL("https://example.org/")), /the address of `request` must be a text, not an object/);
  assert.throws(() => sql.query(null), /must be a text, not null/);
  assert.throws(() => sql.query("SELECT ?", {}), /no type for object: give null/);
});
