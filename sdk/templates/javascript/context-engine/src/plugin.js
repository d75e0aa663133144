// A context engine that keeps the last turns in full and folds older messages into one line each.
//
// The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
// message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

import { check, guarded, history, lifecycle as exported, models, refusal, room, summaryTokens } from "hermes-plugin";
import { digest, excerpts, folded, tokensOf } from "./digest.js";

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
// The last proposal, the last ones that the host adopted and refused, and the tokens by which plans were too large.
let proposed = "";
let adopted = "";
let refused = "";
let spare = 0;

export const lifecycle = exported({
  configured(given) {
    config = { keep_turns: 4, full_at: 0.75, ...check(CONFIG, given) };
    known = [];
    proposed = adopted = refused = "";
    spare = 0;
  },
});

/** Segments for messages in full, except those with an excerpt. */
function shown(headers, short) {
  const segments = [];
  for (const { id } of headers) {
    const excerpt = short.find((each) => each.id === id);
    const last = segments.at(-1);
    if (excerpt) segments.push({ tag: "excerpt", val: excerpt });
    else if (last?.tag === "restore") last.val.last = id;
    else segments.push({ tag: "restore", val: { first: id, last: id } });
  }
  return segments;
}

export const contextEngine = guarded({
  // Nothing to store: every call brings the window's size.
  modelChanged() {},
  observe(headers) {
    known = known.concat(headers);
  },
  rewound(first) {
    known = known.filter(({ id }) => id < first);
    adopted = "";
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
    // A little less than fits: messages can arrive while the host checks the plan.
    const most = Math.floor(room(pressure) * 0.95) - spare;
    const keepTurns = pressure.moment.tag === "overflow" ? 1 : config.keep_turns;
    // The turns that stay leave room for the next ones.
    const count = folded(known, keepTurns, most * 0.6);
    const [old, rest] = [known.slice(0, count), known.slice(count)];
    if (!rest.length) return null;
    const segments = [];
    let left = most;
    let plan = "";
    if (old.length) {
      const covers = { first: old[0].id, last: old.at(-1).id };
      const { text, lines } = digest(history.readAll(covers), most * 0.25, models.countTokens);
      // Text and covers under a key must never change. Both depend only on the messages and the number of lines.
      const key = `{{name}}:${covers.first}-${covers.last}:${lines}`;
      segments.push({ tag: "summary", val: { key, content: text, covers: [covers] } });
      left -= summaryTokens(text);
      plan = key;
    }
    // One turn can be too long by itself.
    const range = { first: rest[0].id, last: rest.at(-1).id };
    const short = tokensOf(rest) <= left ? [] : excerpts(history.readAll(range), left, models.countTokens);
    if (short === null) return null;
    const isShown = view.some(({ tag, val }) => tag === "summary" && val.key === plan);
    if (!short.length && (!plan || isShown)) return null;
    segments.push(...shown(rest, short));
    plan += short.map(({ id, content }) => `,${id}:${content.length}`).join("");
    if (plan === refused || plan === adopted) return null;
    proposed = plan;
    const shortened = short.length ? `, shortened ${short.length}` : "";
    return { segments, reason: `folded ${count} messages into one line each${shortened}`, extra: [] };
  },
  settled(outcome) {
    if (outcome.tag === "adopted") adopted = proposed;
    const refusedNow = refusal(outcome);
    if (!refusedNow) return;
    // The host would refuse the same plan again. It counts what the engine could not know.
    refused = proposed;
    if (refusedNow.needed !== null && refusedNow.room !== null) spare += Math.max(refusedNow.needed - refusedNow.room, 0);
  },
  status: () => JSON.stringify({ messages: known.length, keep_turns: config.keep_turns }),
});
