// What crosses the border between a plugin and the host.

/**
 * The value with every text well-formed: half of a character, as `"🦀".slice(0, 1)` leaves it, becomes U+FFFD. The contract has no
 * such texts, and one that leaves the plugin would end it.
 */
export function wellFormed(value, what = "the value") {
  return copied(value, false, refusing(what));
}

/**
 * A copy of lists and plain objects, and for JSON of every object, with well-formed texts. `odd(path, why)` gives what takes the place of an
 * object that contains itself, and for JSON of what JSON does not have.
 */
function copied(value, isJson, odd) {
  const keys = [];
  const above = new Map();
  const copy = (given) => {
    const lacking = isJson && notJson(given);
    if (lacking) return odd(pathOf(keys), lacking);
    const value = isJson ? bare(given) : given;
    if (typeof value === "string") return value.toWellFormed();
    const isList = Array.isArray(value);
    const isEntered = isList || (typeof value === "object" && value !== null && (isJson || Object.getPrototypeOf(value) === Object.prototype));
    if (!isEntered) return value;
    if (above.has(value)) {
      const place = pathOf(keys.slice(0, above.get(value)));
      return odd(pathOf(keys), `leads back to ${place ? `\`${place}\`` : "the whole value"}: leave it out, or write a name in its place`);
    }
    // A little deeper, the engine's stack ends.
    if (keys.length > 500) return odd(`${pathOf(keys.slice(0, 5))}…`, "is nested too deeply: write a list in place of the nesting");
    above.set(value, keys.length);
    const found = [];
    for (const key of isList ? value.keys() : Object.keys(value)) {
      keys.push(key);
      const inner = copy(value[key]);
      keys.pop();
      found.push(isList ? inner : [key.toWellFormed(), inner]);
    }
    above.delete(value);
    return isList ? found : Object.fromEntries(found);
  };
  return copy(value);
}

const pathOf = (keys) => keys.map((key, at) => (typeof key === "number" ? `[${key}]` : at ? `.${key}` : key)).join("");

const refusing = (what) => (path, why) => {
  throw new Misfit(path ? `${what}: \`${path}\` ${why}` : `${what} ${why}`);
};

/** What JSON calls by `toJSON` or takes out of its box. */
function bare(value) {
  if (typeof value?.toJSON === "function") return value.toJSON();
  return [Number, String, Boolean].some((box) => value instanceof box) ? value.valueOf() : value;
}

const INSTEAD = {
  Set: "write `Array.from(set)`",
  Map: "write `Object.fromEntries(map)`",
  Error: "throw it, or write its `message`",
  Promise: "a plugin cannot wait for one",
  RegExp: "write its `source`",
  ArrayBuffer: "write `Array.from(new Uint8Array(buffer))`",
  WeakMap: "leave it out",
  WeakSet: "leave it out",
};

/** Why JSON would leave out a value or change it without a word, and what to write instead. */
function notJson(value) {
  if (typeof value === "number") return Number.isFinite(value) ? "" : `is ${value}: write \`null\` or a text`;
  if (typeof value === "function") return "is a function: call it, or leave it out";
  if (typeof value === "symbol") return "is a symbol: write its `description`";
  if (value instanceof Date && Number.isNaN(value.getTime())) return "is an invalid date: write `null` or a text";
  if (typeof value !== "object" || value === null || typeof value.toJSON === "function") return "";
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  const isSeries = ArrayBuffer.isView(value) || /(Iterator|Generator)$/.test(kind);
  const instead = isSeries ? "write `Array.from(…)` around it" : Object.hasOwn(INSTEAD, kind) && INSTEAD[kind];
  return instead ? `is ${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}: ${instead}` : "";
}

/** A text that the author gives to the host. */
export function text(what, value) {
  if (typeof value === "string") return value;
  throw new Misfit(`${what} must be a text, not ${value === null ? "null" : typeof value === "object" ? "an object" : String(value)}`);
}

/** The functions of the host, which take only well-formed texts. */
export const sending = (host) =>
  new Proxy({}, { get: (_, name) => (...given) => host[name](...given.map((each) => wellFormed(each, `what \`${String(name)}\` gets`))) });

/** A value that the contract does not have. Its text says which one, and what belongs there. */
export class Misfit extends TypeError {}

/** What a function returned, unless it is a promise or a generator: nobody can wait for one here, or run it. */
export function settled(what, value) {
  if (typeof value?.then === "function") {
    value.then(undefined, () => {});
    throw new Misfit(
      `${what} returned a promise, and a plugin cannot wait for one: write it without \`async\` and \`await\`. \`request\`, \`sql\` and the other functions of hermes-plugin return their results at once`,
    );
  }
  if (/^\[object (Async)?Generator\]$/.test(Object.prototype.toString.call(value))) {
    throw new Misfit(`${what} returned a generator, and nobody runs it: write a function without \`*\` that returns a list`);
  }
  return value;
}

/** The name that was probably meant, as a part of a sentence. */
export function likely(word, known) {
  const near = known.map((name) => [distance(word.toLowerCase(), name.toLowerCase()), name]).sort(([one], [other]) => one - other)[0];
  return near && near[0] <= Math.max(1, Math.floor(word.length / 3)) ? `; did you mean \`${near[1]}\`?` : "";
}

/** Throws if an object has a name that it cannot have: it was probably misspelled. */
export function known(what, given, names) {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other !== undefined) throw new Misfit(`${what} knows no \`${other}\`${likely(other, names) || `; it knows ${names.join(", ")}`}`);
}

/** How many letters have to change (Levenshtein). */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      next.push(Math.min(row[to] + 1, next[to - 1] + 1, row[to - 1] + (one[at - 1] === other[to - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1);
}

/**
 * The JSON of a value; a BigInt is written as the integer that it is. What JSON does not have is refused with the name `what`. Without a name,
 * as in lines of the log, a word takes its place.
 */
export function toJson(value, what) {
  const odd = what ? refusing(what) : (_, why) => why.replace(/^is /, "").split(":")[0];
  return JSON.stringify(copied(value, true, odd), (_, inner) => (typeof inner === "bigint" ? integer(inner) : inner));
}

// Node has `rawJSON` since version 21.
const integer = (value) => JSON.rawJSON?.(String(value)) ?? String(value);

/** The value of a JSON text. An integer that a number cannot hold becomes a BigInt. */
export function fromJson(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => {
    const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "");
    return isRounded ? BigInt(context.source) : value;
  });
}
