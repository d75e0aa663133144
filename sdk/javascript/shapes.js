// JSON that is checked against a schema. Supported are `type`, `enum`, `properties`, `required`, `items`, `minLength`, `minItems`, `minimum`,
// `exclusiveMinimum` and `maximum`.

import { fromJson, toJson } from "./border.js";
import { invalid } from "./errors.js";

const WORDS = {
  string: "a text",
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  array: "a list",
  object: "an object",
};

/** Reads a JSON object; an empty text is an empty object. */
export function jsonObject(text, what) {
  let value;
  try {
    value = fromJson(text || "{}");
  } catch (error) {
    throw invalid(`${what} cannot be read as JSON: ${error.message}`);
  }
  if (!isA("object", value)) throw invalid(`${what} must be a JSON object`);
  return value;
}

/** Throws `invalid` with the place of the first mistake. Objects may have only the properties of their schema. */
export function check(schema, value, where = "") {
  const name = where || "the value";
  const expect = (fits, expected) => {
    if (!fits) throw invalid(`${name} must be ${expected}, not ${shown(value)}`);
  };
  if (schema.type) expect(isA(schema.type, value), WORDS[schema.type] ?? schema.type);
  if (schema.enum) expect(schema.enum.includes(value), `one of ${schema.enum.join(", ")}`);
  if (schema.minimum !== undefined) expect(value >= schema.minimum, `at least ${schema.minimum}`);
  if (schema.exclusiveMinimum !== undefined) expect(value > schema.exclusiveMinimum, `more than ${schema.exclusiveMinimum}`);
  if (schema.maximum !== undefined) expect(value <= schema.maximum, `at most ${schema.maximum}`);
  if (schema.minLength !== undefined) expect(value.length >= schema.minLength, `at least ${schema.minLength} long`);
  if (schema.minItems !== undefined) expect(value.length >= schema.minItems, `a list of at least ${schema.minItems}`);
  if (schema.items) value.forEach((item, at) => check(schema.items, item, `${where}[${at}]`));
  if (schema.properties) {
    const below = (key) => (where ? `${where}.${key}` : key);
    const missing = (schema.required ?? []).find((key) => !Object.hasOwn(value, key));
    if (missing !== undefined) throw invalid(`${below(missing)} is missing`);
    for (const [key, inner] of Object.entries(value)) {
      if (!Object.hasOwn(schema.properties, key)) {
        const known = Object.keys(schema.properties).join(", ");
        throw invalid(`${below(key.slice(0, 80))} is unknown; known are ${known || "none"}`);
      }
      check(schema.properties[key], inner, below(key));
    }
  }
  return value;
}

/** Whether a value has a type of JSON Schema. */
export function isA(type, value) {
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isSafeInteger(value) || typeof value === "bigint";
    default:
      return typeof value === type;
  }
}

function shown(value) {
  const text = toJson(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
