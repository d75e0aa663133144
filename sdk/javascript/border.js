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

/** The functions of the host, which take only well-formed texts. */
export const sending = (host) =>
  new Proxy({}, { get: (_, name) => (...given) => host[name](...given.map(wellFormed)) });

/** What a function returned, unless it is a promise: nobody can wait for one here. */
export function settled(what, value) {
  if (typeof value?.then !== "function") return value;
  value.then(undefined, () => {});
  throw new TypeError(
    `${what} returned a promise, and a plugin cannot wait for one: write it without \`async\` and \`await\`. \`request\`, \`sql\` and the other functions of hermes-plugin return their results at once`,
  );
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
