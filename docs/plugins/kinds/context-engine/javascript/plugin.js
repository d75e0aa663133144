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

// The first lines of the newest of these messages, as many as fit into so many tokens.
function outline(covers, tokens) {
  const lines = history.readAll(covers).map(line);
  for (const most of [200, 50, 10, 1]) {
    const content = lines.slice(-most).join("\n");
    // The text under a key must never change. It depends on the messages and on the number of lines.
    if (summaryTokens(content) <= tokens) return { key: `outline:${covers.first}-${covers.last}:${most}`, content, covers: [covers] };
  }
  return null;
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
    // Fewer turns stay where more would not fit.
    for (let keep = keepTurns; keep > 0; keep--) {
      const newest = headers.at(-1);
      // Whole turns are folded, so that no call loses its result.
      const count = headers.filter(({ turn }) => turn + keep <= newest.turn).length;
      if (count === 0) continue;
      const covers = { first: headers[0].id, last: headers[count - 1].id };
      const kept = headers.slice(count).reduce((sum, { tokens }) => sum + tokens, 0);
      const summary = outline(covers, room(pressure) - kept);
      const isShown = ({ tag, val }) => tag === "summary" && val.key === summary.key;
      if (!summary || summary.key === refused || view.some(isShown)) continue;
      proposed = summary.key;
      return {
        segments: [
          { tag: "summary", val: summary },
          { tag: "restore", val: { first: headers[count].id, last: newest.id } },
        ],
        reason: `folded ${count} messages into their first lines`,
        extra: [],
      };
    }
    // Nothing fits: the host folds by its own rule.
    return null;
  },
  settled({ tag }) {
    if (tag === "refused") refused = proposed;
  },
  status: () => "{}",
});
