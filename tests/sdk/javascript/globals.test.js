// The globals that the SDK adds where the engine lacks them, beside those of Node.js.

import assert from "node:assert/strict";
import test from "node:test";

import { decode, encode } from "../../../sdk/javascript/bytes.js";
import { TextDecoder as Decoder, TextEncoder as Encoder, begin, console as own, structuredClone as clone, withoutLocale } from "../../../sdk/javascript/globals.js";
import { fake } from "../../../sdk/javascript/testing.js";

test("UTF-8 is encoded and decoded as the standard says, also when it is broken", () => {
  const texts = ["", "x", "ünlit", "日本語", "🦀🦀", "a\u{0}b", "\u{feff}bom"];
  for (const text of texts) {
    assert.deepEqual([...encode(text)], [...new TextEncoder().encode(text)]);
    assert.equal(decode(encode(text)), text);
  }
  let seed = 7;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) >> 16;
  const starts = [0x41, 0x80, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff, 0x9f, 0xa0, 0x8f, 0x90];
  for (let round = 0; round < 3000; round++) {
    const bytes = Uint8Array.from({ length: (next() % 9) + 1 }, () => starts[next() % starts.length]);
    const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    assert.equal(decode(bytes), expected, String(bytes));
    if (expected.includes("\u{fffd}")) assert.throws(() => new Decoder("utf-8", { fatal: true }).decode(bytes), TypeError);
  }
});

test("TextEncoder and TextDecoder do what those of Node.js do, and refuse the rest", () => {
  assert.deepEqual(new Encoder().encode("ü"), new TextEncoder().encode("ü"));
  assert.deepEqual(new Encoder().encodeInto("a🦀b", new Uint8Array(4)), new TextEncoder().encodeInto("a🦀b", new Uint8Array(4)));
  const bytes = new Encoder().encode("\u{feff}x");
  assert.equal(new Decoder().decode(bytes), "x");
  assert.equal(new Decoder("UTF8", { ignoreBOM: true }).decode(bytes.buffer), "\u{feff}x");
  assert.equal(new Decoder().decode(new DataView(bytes.buffer, 3)), "x");
  assert.throws(() => new Decoder("latin1"), RangeError);
  assert.throws(() => new Decoder().decode(bytes, { stream: true }), RangeError);
});

test("structuredClone copies what can be copied", () => {
  const circle = { name: "a", list: [1, , 3] };
  circle.self = circle;
  const value = { circle, date: new Date(5), map: new Map([[{ k: 1 }, new Set([2n])]]), bytes: new Uint8Array([1, 2]).subarray(1), error: new RangeError("r"), none: undefined, pattern: /x/gi };
  const copy = clone(value);
  assert.deepEqual(copy, structuredClone(value));
  assert.ok(copy.circle.self === copy.circle && copy.circle !== circle && copy.error instanceof RangeError && !(1 in copy.circle.list));
  for (const wrong of [() => {}, { f() {} }, Symbol("s"), Promise.resolve(), [new WeakMap()]]) {
    assert.throws(() => clone(wrong), { name: "DataCloneError" });
  }
  assert.equal(Object.getPrototypeOf(clone(JSON.parse('{"__proto__": {"x": 1}}'))), Object.prototype);
});

test("console writes to the log, from the first call on", () => {
  const lines = [];
  fake("hermes:host/log", { write: (level, text) => lines.push(`${level}: ${text}`) });
  own.log("built", { a: 1 });
  assert.deepEqual(lines, []);
  begin();
  own.warn("half", "🦀".slice(0, 1), null, undefined, 5n);
  own.error(new TypeError("bad"));
  own.assert(true, "no");
  own.assert(false, "yes");
  own.group("x");
  const circle = {};
  circle.self = circle;
  own.debug(circle, Symbol("s"));
  assert.deepEqual(lines.slice(0, 2), ['info: built {"a":1}', "warn: half \u{fffd} null undefined 5"]);
  assert.match(lines[2], /^error: TypeError: bad/);
  assert.deepEqual(lines.slice(3), ["error: assertion failed yes", 'debug: {"self":"leads back to the whole value"} Symbol(s)']);
  fake("hermes:host/log", { write: () => { throw new Error("full"); } });
  own.log("still here");
});

test("a locale or its options, which the engine would ignore, are refused", () => {
  const own = { shown: (...given) => given.length, compared: (...given) => given.length };
  withoutLocale(own, "shown", 0);
  withoutLocale(own, "compared", 1);
  assert.equal(own.shown(), 0);
  assert.equal(own.compared("b", undefined), 2);
  for (const wrong of [() => own.shown("de-DE"), () => own.shown(undefined, { style: "percent" }), () => own.compared("b", "de")]) {
    assert.throws(wrong, /takes no locale: `Intl` is not in plugins: format by hand, or bundle a library/);
  }
});
