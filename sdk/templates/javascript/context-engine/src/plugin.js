// A context engine that keeps the last turns in full and folds older messages into one line each.
//
// The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
// message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

import { check, guarded, history, lifecycle as exported } from "hermes-plugin";
import { digest, folded } from "./digest.js";

// Keys and defaults must match plugin.yaml.
const CONFIG = {
  type: "object",
  properties: {
    keep_turns: { type: "integer", minimum: 1 },
    full_at: { type: "number", exclusiveMinimum: 0, maximum: 1 },
  },
};

// What the instance knows. The host can create a new instance at any time, and sends it all headers again.
let config = { keep_turns: 4, full_at: 0.75 };
let known = [];
// The key of the last proposal, and the key that the host refused last.
let proposed = null;
let refused = null;

export const lifecycle = exported({
  configured(given) {
    config = { keep_turns: 4, full_at: 0.75, ...check(CONFIG, given) };
    known = [];
    proposed = refused = null;
  },
});

export const contextEngine = guarded({
  // Nothing to store: every call brings the window's size.
  modelChanged() {},
  observe(headers) {
    known = known.concat(headers);
  },
  rewound(first) {
    known = known.filter(({ id }) => id < first);
  },
  assess({ moment, promptTokens, contextLength, reserve }) {
    const full = promptTokens / Math.max(contextLength - reserve, 1);
    const now = moment.tag === "manual" || moment.tag === "overflow" || full >= 0.95;
    // At a boundary, the host weighs the gain against the cache, and adopts the plan when it pays.
    const propose = now ? "now" : full >= config.full_at ? "boundary" : "not-now";
    return { prepare: false, propose, extra: [] };
  },
  prepare: () => "done",
  propose({ pressure, view }) {
    const count = folded(known, pressure.moment.tag === "overflow" ? 1 : config.keep_turns);
    if (count === 0) return null;
    const covers = { first: known[0].id, last: known[count - 1].id };
    // Text and covers under a key must never change. Both depend only on the messages.
    const key = `{{name}}:${covers.first}-${covers.last}`;
    const isShown = view.some(({ tag, val }) => tag === "summary" && val.key === key);
    if (isShown || key === refused) return null;
    const summary = { key, content: digest(history.readAll(covers)), covers: [covers] };
    const rest = { first: known[count].id, last: known.at(-1).id };
    proposed = key;
    return {
      segments: [
        { tag: "summary", val: summary },
        { tag: "restore", val: rest },
      ],
      reason: `folded ${count} messages into one line each`,
      extra: [],
    };
  },
  settled({ tag }) {
    // The host would refuse the same plan again.
    if (tag === "refused") refused = proposed;
  },
  status: () => JSON.stringify({ messages: known.length, keep_turns: config.keep_turns }),
});
