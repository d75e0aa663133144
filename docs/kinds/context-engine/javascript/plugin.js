// Keeps the last turns in full, and folds each older message into its first line.

import { check, guarded, history, lifecycle as exported, room, summaryTokens } from "hermes-plugin";

// The key must match plugin.yaml.
const CONFIG = { type: "object", properties: { keep_turns: { type: "integer", minimum: 1 } } };
let keepTurns = 3;
// Every message of the conversation, oldest first. A new instance gets all of them again.
let headers = [];
// The key of the last plan, and that of the last refused one.
let proposed = "";
let refused = "";

export const lifecycle = exported({
  configured(config) {
    keepTurns = check(CONFIG, config).keep_turns ?? 3;
  },
});

function line({ id, content, toolCalls }) {
  const calls = toolCalls.map(({ name }) => ` [calls ${name}]`).join("");
  return `#${id} ${[...content.split("\n", 1)[0]].slice(0, 100).join("")}${calls}`;
}

export const contextEngine = guarded({
  modelChanged() {},
  observe(added) {
    headers = headers.concat(added);
  },
  rewound(first) {
    headers = headers.filter(({ id }) => id < first);
  },
  assess({ promptTokens, contextLength, reserve }) {
    const full = promptTokens / (contextLength - reserve);
    // At a boundary, the host adopts the plan when it saves more than the changed prefix costs.
    return { prepare: false, propose: full > 0.95 ? "now" : full > 0.7 ? "boundary" : "not-now", extra: [] };
  },
  prepare: () => "done",
  propose({ pressure, view }) {
    const newest = headers.at(-1);
    if (!newest) return null;
    const most = room(pressure);
    // Whole turns are folded, so that no call loses its result. Fewer stay if they would fill the window.
    const tokens = (keep) => headers.reduce((sum, each) => sum + (each.turn + keep > newest.turn ? each.tokens : 0), 0);
    let keep = Math.min(keepTurns, newest.turn);
    while (keep > 1 && tokens(keep) > most * 0.7) keep--;
    const count = headers.filter(({ turn }) => turn + keep <= newest.turn).length;
    if (count === 0 || tokens(keep) > most * 0.7) return null;
    const covers = { first: headers[0].id, last: headers[count - 1].id };
    let lines = history.readAll(covers).map(line).slice(-200);
    while (lines.length > 1 && summaryTokens(lines.join("\n")) > most * 0.25) lines = lines.slice(lines.length / 2);
    // The text under a key must never change. It depends only on the messages and the number of lines.
    const key = `outline:${covers.first}-${covers.last}:${lines.length}`;
    if (key === refused || view.some(({ tag, val }) => tag === "summary" && val.key === key)) return null;
    proposed = key;
    const content = lines.join("\n");
    return {
      segments: [
        { tag: "summary", val: { key, content, covers: [covers] } },
        { tag: "restore", val: { first: headers[count].id, last: newest.id } },
      ],
      reason: `folded ${count} messages into their first lines`,
      extra: [],
    };
  },
  settled({ tag }) {
    if (tag === "refused") refused = proposed;
  },
  status: () => "{}",
});
