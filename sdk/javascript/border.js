// What crosses the border between a plugin and the host.

/**
 * The value with every text well-formed: half of a character, as `"🦀".slice(0, 1)` leaves it, becomes U+FFFD. The contract has no
 * such texts, and one that leaves the plugin would end it.
 */
export function wellFormed(value) {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]));
}

/** A text that the author gives to the host. */
export function text(what, value) {
  if (typeof value === "string") return value;
  throw new Misfit(`${what} must be a text, not ${value === null ? "null" : typeof value === "object" ? "an object" : String(value)}`);
}

/** The functions of the host, which take only well-formed texts. */
export const sending = (host) =>
  new Proxy({}, { get: (_, name) => (...given) => host[name](...given.map(wellFormed)) });

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

/** The JSON of a value; a BigInt is written as the integer that it is. */
export function toJson(value) {
  return JSON.stringify(wellFormed(value), (_, inner) => (typeof inner === "bigint" ? integer(inner) : inner));
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
