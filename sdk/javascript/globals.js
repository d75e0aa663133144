// Globals of browsers and Node.js that a plugin can have, where the engine lacks them.

import { toJson } from "./border.js";
import { decode, encode } from "./bytes.js";
import { log } from "./imports.js";
import { LOCALES } from "./remedies.js";

function asText(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}\n${value.stack ?? ""}`.trimEnd();
  if (typeof value !== "object" || value === null) return typeof value === "symbol" ? value.toString() : String(value);
  try {
    return toJson(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

// Code outside of functions runs during the build, without a host. Its lines go to the log of the first call.
let early = [];

/** From now on there is a host. */
export function begin() {
  if (!early) return;
  const lines = early;
  early = null;
  for (const [level, line] of lines) write(level, [line]);
}

function write(level, values) {
  const line = values.map(asText).join(" ");
  if (early) {
    if (early.length < 100) early.push([level, line]);
    return;
  }
  try {
    log[level](line);
  } catch {
    // A line that the log does not take never ends the plugin.
  }
}

const at = (level) => (...values) => write(level, values);

/** Writes to the plugin's log. The user sees each warning and error once. */
const console = {
  log: at("info"),
  info: at("info"),
  dir: at("info"),
  table: at("info"),
  debug: at("debug"),
  trace: at("debug"),
  warn: at("warn"),
  error: at("error"),
  assert: (holds, ...values) => holds || write("error", ["assertion failed", ...values]),
};
for (const name of ["group", "groupCollapsed", "groupEnd", "time", "timeEnd", "timeLog", "count", "countReset", "clear"]) console[name] = () => {};

class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    return encode(String(text));
  }

  encodeInto(text, bytes) {
    let [read, written] = [0, 0];
    for (const character of String(text)) {
      const next = encode(character);
      if (written + next.length > bytes.length) break;
      bytes.set(next, written);
      read += character.length;
      written += next.length;
    }
    return { read, written };
  }
}

class TextDecoder {
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(unicode-1-1-)?utf-?8\s*$/i.test(label)) throw new RangeError(`TextDecoder of a plugin knows only utf-8, not ${label}`);
    Object.assign(this, { encoding: "utf-8", fatal: Boolean(fatal), ignoreBOM: Boolean(ignoreBOM) });
  }

  decode(input = new Uint8Array(), { stream = false } = {}) {
    if (stream) throw new RangeError("TextDecoder of a plugin has no `stream`: decode all bytes together");
    const bytes = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    const text = decode(bytes, this.fatal);
    return text.startsWith("\u{feff}") && !this.ignoreBOM ? text.slice(1) : text;
  }
}

const refused = (value) => {
  const error = new Error(`structuredClone: ${typeof value === "function" ? "a function" : asText(value)} could not be cloned`);
  error.name = "DataCloneError";
  return error;
};

/** A deep copy of data: what JSON has, and dates, maps, sets, bytes, errors, regular expressions and circles. */
function structuredClone(value, _options, known = new Map()) {
  if (typeof value === "function" || typeof value === "symbol") throw refused(value);
  if (typeof value !== "object" || value === null) return value;
  if (known.has(value)) return known.get(value);
  const keep = (copy) => (known.set(value, copy), copy);
  const cloned = (inner) => structuredClone(inner, _options, known);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) throw refused(value);
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return keep(Object(value.valueOf()));
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = cloned(value.buffer);
    return keep(new value.constructor(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
  }
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [key, inner] of [...value]) copy.set(cloned(key), cloned(inner));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const inner of [...value]) copy.add(cloned(inner));
    return copy;
  }
  if (value instanceof Error) {
    const kinds = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
    const copy = keep(new (kinds[value.name] ?? Error)(value.message));
    if ("cause" in value) copy.cause = cloned(value.cause);
    return Object.assign(copy, { stack: value.stack });
  }
  const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
  for (const key of Object.keys(value)) Object.defineProperty(copy, key, { value: cloned(value[key]), writable: true, enumerable: true, configurable: true });
  return copy;
}

for (const [name, value] of Object.entries({ console, TextEncoder, TextDecoder, structuredClone })) {
  if (globalThis[name] === undefined) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}

/**
 * Refuses a locale and its options, which the engine would ignore, in a function of a prototype. `first` is the number of arguments before
 * the locale.
 */
export function withoutLocale(prototype, name, first) {
  const plain = prototype[name];
  const value = function (...given) {
    if (given.slice(first).some((each) => each !== undefined)) throw new TypeError(`\`${name}\` takes no locale: ${LOCALES}`);
    return plain.apply(this, given);
  };
  Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
}

if (globalThis.Intl === undefined) {
  for (const kind of [Number, BigInt, Date, Array]) withoutLocale(kind.prototype, "toLocaleString", 0);
  for (const name of ["toLocaleDateString", "toLocaleTimeString"]) withoutLocale(Date.prototype, name, 0);
  withoutLocale(String.prototype, "localeCompare", 1);
}

export { TextDecoder, TextEncoder, console, structuredClone };
