// The border of a component: what the author's module exports, checked against the contract, and crashes that say what, where and what to
// write instead. The build writes `build/component.js`, which calls `bordered` for each interface.

import { Misfit, likely, settled } from "./border.js";
import { begin } from "./globals.js";
import { log } from "./imports.js";
import { placeIn, remedy } from "./remedies.js";

const FILE = "src/plugin.js";

/** The interface of the contract made from what `src/plugin.js` exports. Throws during the build if a function is missing. */
export function bordered(contract, id, plugin) {
  const { name, functions } = contract.interfaces[id];
  const own = plugin[name];
  if (own === undefined) {
    throw new Misfit(`${FILE} does not export \`${name}\`, which the worlds in package.json need${likely(name, Object.keys(plugin))}`);
  }
  if (typeof own === "function") throw new Misfit(`${FILE}: \`${name}\` must be an object with functions, not ${shown(own)}: write \`new ${name}()\``);
  if (own === null || typeof own !== "object") throw new Misfit(`${FILE}: \`${name}\` must be an object with functions, not ${shown(own)}`);
  const entries = Object.entries(functions).map(([key, { result }]) => {
    if (typeof own[key] !== "function") {
      const others = namesOf(own).filter((other) => !Object.hasOwn(functions, other));
      throw new Misfit(`${FILE}: \`${name}\` has no function \`${key}\`${likely(key, others)}`);
    }
    return [key, exported(contract, `${FILE}: \`${name}.${key}\``, result, (...given) => own[key](...given))];
  });
  return Object.fromEntries(entries);
}

/** The names of an object and of its class. */
function namesOf(own) {
  const above = Object.getPrototypeOf(own);
  return [...Object.getOwnPropertyNames(own), ...(above === null || above === Object.prototype ? [] : Object.getOwnPropertyNames(above))];
}

function exported(contract, what, result, run) {
  return (...given) => {
    begin();
    try {
      const value = settled(what, run(...given));
      return result === null ? undefined : checked(contract, result, value, { what, path: "", record: "" });
    } catch (error) {
      const payload = error?.payload?.kind ? error.payload : error?.kind?.tag && "message" in error ? error : null;
      throw payload ? asError(contract, what, payload) : crash(what, error);
    }
  };
}

function asError(contract, what, payload) {
  try {
    return checked(contract, { ref: "hermes:types/types#error" }, payload, { what: `${what}, the error that it threw`, path: "", record: "" });
  } catch (error) {
    return crash(what, error);
  }
}

/** The error that ends the instance. Its text is what the user reads; the stack goes to the log. */
function crash(what, error) {
  const stack = typeof error?.stack === "string" ? error.stack : "";
  if (stack) note(`${error.name}: ${error.message}\n${stack}`);
  const place = placeIn(stack);
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${shown(error)}: throw \`invalid(…)\`, or another error of hermes-plugin`;
  const misfit = error instanceof Misfit && (error.message.startsWith(FILE) ? error.message : `${place ?? FILE}: ${error.message}`);
  const ended = new Error(misfit || `${place ?? what}: ${text}${remedy(error?.message ?? "")}`);
  // The engine would print the frames of the SDK behind the text.
  ended.stack = "";
  return ended;
}

function note(text) {
  try {
    log.info(text);
  } catch {
    // The log is full, or the component is being built.
  }
}

const INTEGERS = {
  u8: [0, 2 ** 8 - 1],
  u16: [0, 2 ** 16 - 1],
  u32: [0, 2 ** 32 - 1],
  u64: [0, Number.MAX_SAFE_INTEGER],
  s8: [-(2 ** 7), 2 ** 7 - 1],
  s16: [-(2 ** 15), 2 ** 15 - 1],
  s32: [-(2 ** 31), 2 ** 31 - 1],
  s64: [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
};

/** The value as the contract has it. `at` says which function returned it, and the place in it. */
export function checked(contract, shape, value, at) {
  const wrong = (expected, more = "") => {
    const place = at.path ? `\`${at.path}\`${at.record && ` of the record ${at.record}`}` : "the answer";
    const hint = more || (value === undefined && !at.path ? "; is a `return` missing?" : "");
    return new Misfit(`${at.what}: ${place} must be ${expected}, not ${shown(value)}${hint}`);
  };
  const below = (name, record = at.record) => ({ what: at.what, path: /^\[/.test(name) ? at.path + name : at.path ? `${at.path}.${name}` : name, record });
  if (typeof shape === "string") return simple(shape, value, wrong);
  if (shape.option) {
    if (value === undefined) throw wrong("a value or `null`");
    return value === null ? null : checked(contract, shape.option, value, at);
  }
  if (shape.list) {
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) throw wrong("a list", isIterable(value) ? "; write `[...value]`" : "");
    // Vectors are long.
    if (/^f/.test(shape.list) && Array.prototype.every.call(value, (each) => typeof each === "number")) return Array.from(value);
    return Array.from(value, (each, place) => checked(contract, shape.list, each, below(`[${place}]`)));
  }
  if (shape.tuple) {
    if (!Array.isArray(value) || value.length !== shape.tuple.length) throw wrong(`a list of ${shape.tuple.length}`);
    return shape.tuple.map((each, place) => checked(contract, each, value[place], below(`[${place}]`)));
  }
  if (shape.result) return value;
  const type = contract.types[shape.ref];
  if (type.alias) return checked(contract, type.alias, value, at);
  if (type.enum) {
    if (!type.enum.includes(value)) throw wrong(`one of ${type.enum.map((each) => `'${each}'`).join(", ")}`, likely(String(value), type.enum));
    return value;
  }
  if (type.variant) return variant(contract, type, value, wrong, at);
  if (!type.record) return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(`a record ${type.name}`);
  const fields = Object.entries(type.record).map(([key, inner]) => {
    if (value[key] === undefined) {
      const others = Object.keys(value).filter((other) => !Object.hasOwn(type.record, other));
      const place = at.path ? `\`${at.path}\`` : "the answer";
      const meant = likely(key, others) || (resolved(contract, inner).list ? "; write `[]` for none" : inner.option ? "; write `null` for none" : "");
      throw new Misfit(`${at.what}: ${place}, a record ${type.name}, lacks the field \`${key}\`${meant}`);
    }
    return [key, checked(contract, inner, value[key], below(key, type.name))];
  });
  return Object.fromEntries(fields);
}

function resolved(contract, shape) {
  const alias = contract.types[shape.ref]?.alias;
  return alias ? resolved(contract, alias) : shape;
}

function variant(contract, type, value, wrong, at) {
  const tags = Object.keys(type.variant);
  const cases = `one of ${tags.map((tag) => `{ tag: '${tag}'${type.variant[tag] ? ", val: … }" : " }"}`).join(", ")}`;
  if (typeof value !== "object" || value === null) throw wrong(cases, likely(String(value), tags));
  if (!Object.hasOwn(type.variant, value.tag)) throw wrong(cases, typeof value.tag === "string" ? `; the tag is '${value.tag}'${likely(value.tag, tags)}` : `; its keys are ${Object.keys(value).join(", ") || "none"}`);
  const inner = type.variant[value.tag];
  if (inner === null) return { tag: value.tag };
  return { tag: value.tag, val: checked(contract, inner, value.val, { ...at, path: at.path ? `${at.path}.val` : "val" }) };
}

function simple(shape, value, wrong) {
  switch (shape) {
    case "string":
    case "char":
      if (typeof value !== "string") throw wrong("a text");
      return value.toWellFormed();
    case "bool":
      if (typeof value !== "boolean") throw wrong("true or false");
      return value;
    case "bytes":
      if (!(value instanceof Uint8Array) && !Array.isArray(value)) throw wrong("bytes", typeof value === "string" ? "; write `encode(value)`" : "");
      return value;
    case "f32":
    case "f64":
      if (typeof value !== "number") throw wrong("a number");
      return value;
    default: {
      const [least, most] = INTEGERS[shape];
      const fits = (typeof value === "bigint" || Number.isInteger(value)) && value >= least && value <= most;
      if (!fits) throw wrong(`a whole number from ${least} to ${most}`);
      return Number(value);
    }
  }
}

const isIterable = (value) => typeof value === "object" && value !== null && Symbol.iterator in value;

function shown(value) {
  if (value === null || ["undefined", "boolean", "number"].includes(typeof value)) return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return `'${value.length > 60 ? `${value.slice(0, 60)}…` : value}'`;
  if (typeof value === "function") return /^class\b/.test(Function.prototype.toString.call(value)) ? `the class ${value.name}` : "a function";
  if (Array.isArray(value)) return "a list";
  return value.constructor && value.constructor !== Object && value.constructor.name ? `a ${value.constructor.name}` : "an object";
}
