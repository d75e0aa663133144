// Run by `it/install/languages.rs`: `node --import sdk/javascript/testing.js --test tests/sdk/javascript`.

import assert from "node:assert/strict";
import test from "node:test";

import { Toolbox, documents, guarded, invalid, log, request, sql } from "../../../sdk/javascript/index.js";
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
  for (const run of [() => {}, () => () => {}, () => Symbol("s")]) {
    assert.throws(() => call(returning(run)), /the tool `tool` returned (undefined|function|symbol)/);
  }
  assert.deepEqual(call(returning(() => null)).content, [{ tag: "text", val: "null" }]);
});

test("texts are well-formed on every way to the host", () => {
  assert.equal(call(returning(() => HALF)).content[0].val, "\u{fffd}");
  const { content, structured } = call(returning(() => ({ [HALF]: [HALF] })));
  assert.equal(content[0].val, '{"\u{fffd}":["\u{fffd}"]}');
  assert.equal(structured, content[0].val);
  const refused = returning(() => {
    throw invalid(`no ${HALF}`);
  });
  assert.throws(() => call(refused), (payload) => payload.message === "no \u{fffd}");
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
  else assert.throws(() => call(next, '{"n": 9007199254740993}'), (payload) => payload.kind.tag === "invalid-input");
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
