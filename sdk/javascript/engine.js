// What a context engine has to count: the room for the next view, and why a plan was refused.

import { models } from "./imports.js";

const field = (extra, key) => {
  const text = extra.find(([name]) => name === key)?.[1] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
};

/**
 * The most tokens that the next view may have: the `tokens` of the headers of the messages in it, and `summaryTokens` of each summary. A plan
 * that needs more is refused.
 */
export function room({ contextLength, reserve, fixedTokens, extra }) {
  return field(extra, "room") ?? Math.max(contextLength - reserve - fixedTokens, 0);
}

/** Why the host refused the last plan, for `settled`; null for every other outcome. `needed` and `room` are tokens, if the plan was too large. */
export function refusal({ tag, val }) {
  if (tag !== "refused") return null;
  return { code: val.code, message: val.message, needed: field(val.extra, "needed"), room: field(val.extra, "room") };
}

// The host's words around a summary.
const FRAME = 120;

/** The tokens of a summary in a view, with the host's frame. */
export const summaryTokens = (text) => models.countTokens(text) + FRAME;
