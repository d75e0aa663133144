// What a plugin can ask the host for.

import documentsInterface from "hermes:storage/documents@1.0.0";
import historyInterface from "hermes:history/history@1.0.0";
import httpInterface from "hermes:http/http@1.0.0";
import llmInterface from "hermes:llm/llm@1.0.0";
import logInterface from "hermes:host/log@1.0.0";
import sqlInterface from "hermes:storage/sql@1.0.0";

import { Misfit, fromJson, sending, settled, text as asText, toJson } from "./border.js";
import { decode, encode } from "./bytes.js";
import { conflict, failed, unavailable } from "./errors.js";

const documentsOfHost = sending(documentsInterface);
const historyOfHost = sending(historyInterface);
const httpOfHost = sending(httpInterface);
const llmOfHost = sending(llmInterface);
const logOfHost = sending(logInterface);
const sqlOfHost = sending(sqlInterface);

const shown = (value) => (typeof value === "string" ? value : (toJson(value) ?? String(value)));
const line = (text, fields) => (fields ? toJson({ text: shown(text), ...fields }) : shown(text));

/** The plugin's log. The user sees each warning and error once. */
export const log = {
  debug: (text, fields) => logOfHost.write("debug", line(text, fields)),
  info: (text, fields) => logOfHost.write("info", line(text, fields)),
  warn: (text, fields) => logOfHost.write("warn", line(text, fields)),
  error: (text, fields) => logOfHost.write("error", line(text, fields)),
};

/** Named texts of the plugin, shared by all its instances. They need no permission. */
export const documents = {
  /** The text of a document; empty if it does not exist. */
  read: (name) => documentsOfHost.read(asText("the name of a document", name))?.content ?? "",
  /**
   * Replaces a text by what `change` makes of it; null leaves it as it is. `change` runs again if another session wrote in between.
   * Returns whether the text was written.
   */
  update(name, change) {
    let found = documentsOfHost.read(asText("the name of a document", name));
    for (let tries = 16; tries > 0; tries--) {
      const text = settled("the function of `documents.update`", change(found?.content ?? ""));
      if (text === null) return false;
      asText("what the function of `documents.update` returns", text);
      const outcome = documentsOfHost.write(name, text, found?.version ?? null);
      if (outcome.tag !== "conflict") return true;
      found = outcome.val;
    }
    throw conflict(`${name} was changed by others many times in a row`);
  },
};

/** The conversation. It needs the permission `history`. */
export const history = {
  /** All messages of a range, whose pages have at most 4 MiB each. */
  readAll({ first, last }) {
    const messages = [];
    for (let next = first; next !== null; ) {
      const page = historyOfHost.read({ first: next, last });
      messages.push(...page.messages);
      next = page.next;
    }
    return messages;
  },
};

/** The user's models. They need the permission `llm`, except `countTokens`. */
export const models = {
  countTokens: (text) => llmOfHost.countTokens(asText("what `countTokens` counts", text)),
  /** Asks the model of a task (`compression`, `memory`, …) and returns its text. */
  complete(task, prompt, { system = "", maxTokens = null, temperature = null, schema = null } = {}) {
    const message = (tag, text) => ({ role: { tag }, content: [{ tag: "text", val: text }], extra: [] });
    asText("the task of `models.complete`", task);
    asText("the prompt of `models.complete`", prompt);
    const messages = [...(system ? [message("system", system)] : []), message("user", prompt)];
    return llmOfHost.complete({ task, messages, maxTokens, temperature, schema: schema && toJson(schema, "the schema of `models.complete`"), extra: [] }).text;
  },
};

/** The plugin's SQLite database. It needs the permission `sql`. */
export const sql = {
  /** The rows of a read-only statement: `sql.query("SELECT text FROM notes WHERE id = ?", 7)`. */
  query: (statement, ...params) =>
    sqlOfHost.query({ sql: asText("the statement of `sql.query`", statement), params: params.map(toSql) }).rows.map((row) => row.map(fromSql)),
  /** Runs statements in one transaction: `sql.execute("CREATE …", ["INSERT … VALUES (?)", text])`. */
  execute: (...statements) =>
    sqlOfHost.execute(
      statements.map((each) => (typeof each === "string" ? [each] : each)).map(([text, ...params]) => ({ sql: asText("a statement of `sql.execute`", text), params: params.map(toSql) })),
    ),
};

/** The integers of SQLite have 64 bits. */
const fitsSqlite = (value) => value >= -(2n ** 63n) && value < 2n ** 63n;

function toSql(value) {
  if (value === null || value === undefined) return { tag: "null" };
  if (typeof value === "string") return { tag: "text", val: value };
  if (typeof value === "boolean") return { tag: "integer", val: Number(value) };
  if (value instanceof Uint8Array) return { tag: "blob", val: value };
  if (typeof value !== "number" && typeof value !== "bigint") throw new Misfit(`SQLite has no type for ${typeof value}: give null, a number, a text or bytes`);
  if (typeof value === "number" && !Number.isInteger(value)) return { tag: "real", val: value };
  if (Number.isSafeInteger(Number(value))) return { tag: "integer", val: Number(value) };
  if (typeof value === "number" && !fitsSqlite(BigInt(value))) return { tag: "real", val: value };
  throw new RangeError(`the integer ${value} cannot be given exactly: give it as a text, and write CAST(? AS INTEGER) in the statement`);
}

function fromSql({ tag, val }) {
  if (tag === "integer" && !Number.isSafeInteger(val)) {
    throw new RangeError(`the result has an integer near ${val}, which a number cannot hold exactly: select it with CAST(… AS TEXT), and use BigInt`);
  }
  return val ?? null;
}

/**
 * A value that the host inserts, in a header, a query or a form. The plugin never sees it. The prefix comes before it; in a header it is
 * `Bearer ` unless another one is given.
 */
export const secret = (name, prefix = null) => ({ secret: { name, prefix } });

const inserted = ({ secret: { name, prefix } }, usual = "") => ({ name, prefix: prefix ?? usual });
const fields = (values, usual) =>
  Object.entries(values).map(([name, value]) => ({
    name,
    value: value.secret ? { tag: "secret", val: inserted(value, usual) } : { tag: "plain", val: String(value) },
  }));

/** Replaces the value of a secret that the manifest declares as writable, such as a renewed token. */
export const replaceSecret = (name, value) => httpOfHost.replaceSecret(name, value);

/**
 * Sends a request to an address that the user granted. A response of any status is returned; `checked()` turns a bad one into an error
 * of the contract. `form` and `json` are bodies; `jsonSecrets` names the places of secrets in the JSON, as `{ "/auth/token": secret("token") }`.
 */
export function request(method, url, { query = {}, headers = {}, body = "", form, json, jsonSecrets = {}, timeoutMs = null } = {}) {
  asText("the method of `request`", method);
  asText("the address of `request`", url);
  let sent = { tag: "bytes", val: typeof body === "string" ? encode(body) : (body ?? new Uint8Array()) };
  if (form !== undefined) sent = { tag: "form", val: fields(form) };
  if (json !== undefined) {
    const secrets = Object.entries(jsonSecrets).map(([place, value]) => [place, inserted(value)]);
    sent = { tag: "json", val: { text: toJson(json, "the `json` of `request`"), secrets } };
  }
  const all = fields(headers, "Bearer ");
  const found = httpOfHost.send({ method, url, query: fields(query), headers: all, body: sent, timeoutMs, extra: [] });
  const { status } = found;
  const response = {
    status,
    headers: Object.fromEntries(found.headers),
    body: Uint8Array.from(found.body),
    text: () => decode(response.body),
    json() {
      try {
        return fromJson(response.text());
      } catch {
        throw failed(`the answer (status ${status}) cannot be read as JSON`);
      }
    },
    checked() {
      if (status >= 200 && status < 300) return response;
      const seconds = response.headers["retry-after"] ?? "";
      const retryAfterMs = /^\d+$/.test(seconds) ? Math.min(Number(seconds), 3_600) * 1_000 : null;
      const code = `status-${status}`;
      if (status === 401 || status === 403) throw unavailable(`the service answered ${status}: it does not accept the key`, { code: "auth", retryAfterMs });
      if ([408, 425, 429].includes(status) || status >= 500) throw unavailable(`the service answered ${status}`, { code, retryAfterMs });
      throw failed(`the service answered ${status}`, { code });
    },
  };
  return response;
}
