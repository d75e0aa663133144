// What a plugin can ask the host for.

import documentsOfHost from "hermes:storage/documents@1.0.0";
import historyOfHost from "hermes:history/history@1.0.0";
import httpOfHost from "hermes:http/http@1.0.0";
import llmOfHost from "hermes:llm/llm@1.0.0";
import logOfHost from "hermes:host/log@1.0.0";
import sqlOfHost from "hermes:storage/sql@1.0.0";

import { decode, encode } from "./bytes.js";
import { conflict, exhausted, failed, unavailable } from "./errors.js";

const line = (text, fields) => (fields ? JSON.stringify({ text, ...fields }) : text);

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
  read: (name) => documentsOfHost.read(name)?.content ?? "",
  /**
   * Replaces a text by what `change` makes of it; null leaves it as it is. `change` runs again if another session wrote in between.
   * Returns whether the text was written.
   */
  update(name, change) {
    let found = documentsOfHost.read(name);
    for (let tries = 16; tries > 0; tries--) {
      const text = change(found?.content ?? "");
      if (text === null) return false;
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
  countTokens: (text) => llmOfHost.countTokens(text),
  /** Asks the model of a task (`compression`, `memory`, …) and returns its text. */
  complete(task, prompt, { system = "", maxTokens = null, temperature = null, schema = null } = {}) {
    const message = (tag, text) => ({ role: { tag }, content: [{ tag: "text", val: text }], extra: [] });
    const messages = [...(system ? [message("system", system)] : []), message("user", prompt)];
    return llmOfHost.complete({ task, messages, maxTokens, temperature, schema: schema && JSON.stringify(schema), extra: [] }).text;
  },
};

/** The plugin's SQLite database. It needs the permission `sql`. */
export const sql = {
  /** The rows of a read-only statement: `sql.query("SELECT text FROM notes WHERE id = ?", 7)`. */
  query: (statement, ...params) =>
    sqlOfHost.query({ sql: statement, params: params.map(toSql) }).rows.map((row) => row.map(({ val }) => val ?? null)),
  /** Runs statements in one transaction: `sql.execute("CREATE …", ["INSERT … VALUES (?)", text])`. */
  execute: (...statements) =>
    sqlOfHost.execute(
      statements.map((each) => (typeof each === "string" ? [each] : each)).map(([text, ...params]) => ({ sql: text, params: params.map(toSql) })),
    ),
};

function toSql(value) {
  if (value === null || value === undefined) return { tag: "null" };
  if (typeof value === "string") return { tag: "text", val: value };
  if (typeof value === "boolean") return { tag: "integer", val: Number(value) };
  if (typeof value === "number") return { tag: Number.isSafeInteger(value) ? "integer" : "real", val: value };
  if (value instanceof Uint8Array) return { tag: "blob", val: value };
  throw new TypeError(`SQLite has no type for ${typeof value}`);
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
  let sent = { tag: "bytes", val: typeof body === "string" ? encode(body) : (body ?? new Uint8Array()) };
  if (form !== undefined) sent = { tag: "form", val: fields(form) };
  if (json !== undefined) {
    const secrets = Object.entries(jsonSecrets).map(([place, value]) => [place, inserted(value)]);
    sent = { tag: "json", val: { text: JSON.stringify(json), secrets } };
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
        return JSON.parse(response.text());
      } catch {
        throw failed(`the answer (status ${status}) cannot be read as JSON`);
      }
    },
    checked() {
      if (status >= 200 && status < 300) return response;
      const seconds = response.headers["retry-after"] ?? "";
      const retryAfterMs = /^\d+$/.test(seconds) ? Math.min(Number(seconds), 3_600) * 1_000 : null;
      if (status === 429) throw exhausted("the service answered 429: too many requests", { retryAfterMs });
      if (status === 408 || status === 425 || status >= 500) throw unavailable(`the service answered ${status}`, { retryAfterMs });
      throw failed(`the service answered ${status}`);
    },
  };
  return response;
}
