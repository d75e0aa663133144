// Errors of the contract.
//
// Imports throw errors whose `payload` is the error of the contract, and so do these functions.

import { settled, wellFormed } from "./border.js";

/** An error of the contract. `payload.kind.tag` tells the host what to do next. */
export class PluginError extends Error {
  constructor(kind, message, { code = "", retryAfterMs = null } = {}) {
    super(message);
    this.payload = { kind: { tag: kind }, code, message, retryAfterMs, extra: [] };
  }
}

export const invalid = (message, more) => new PluginError("invalid-input", message, more);
export const unavailable = (message, more) => new PluginError("unavailable", message, more);
export const denied = (message, more) => new PluginError("denied", message, more);
export const timeout = (message, more) => new PluginError("timeout", message, more);
export const cancelled = (message, more) => new PluginError("cancelled", message, more);
export const conflict = (message, more) => new PluginError("conflict", message, more);
export const exhausted = (message, more) => new PluginError("exhausted", message, more);
export const unsupported = (message, more) => new PluginError("unsupported", message, more);
export const failed = (message, more) => new PluginError("failed", message, more);

/** The kind of a caught error, such as `unavailable`; none if it is not an error of the contract. */
export function kindOf(error) {
  const kind = error?.payload?.kind;
  return kind ? (kind.tag === "other" ? kind.val : kind.tag) : null;
}

/** The functions of an interface, as the contract wants them: texts are well-formed, nothing is `null`, and a promise is an error. */
export function guarded(functions) {
  const entries = Object.entries(functions).map(([name, run]) => {
    const what = `\`${name}\``;
    return [name, (...given) => wellFormed(settled(what, run(...given)), what) ?? null];
  });
  return Object.fromEntries(entries);
}
