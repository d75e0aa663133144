// Keeps what the user said in a document, and recalls what shares words with a new message.

import { check, documents, guarded, lifecycle as exported, models } from "hermes-plugin";

// A document of the plugin's own, which needs no permission. All sessions share it.
const DIARY = "diary.jsonl";
// The key must match plugin.yaml.
const CONFIG = { type: "object", properties: { shared: { type: "integer", minimum: 1 } } };
let least = 2;

export const lifecycle = exported({
  configured(config) {
    least = check(CONFIG, config).shared ?? 2;
  },
});

const entries = (diary) => diary.split("\n").filter(Boolean).map((line) => JSON.parse(line));

const words = (text) => new Set(text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => [...word].length > 3));

export const memoryProvider = guarded({
  systemPrompt: () => "",
  recall({ text, budget }) {
    const asked = words(text);
    const shared = (entry) => [...words(entry.text)].filter((word) => asked.has(word)).length;
    let left = budget;
    return entries(documents.read(DIARY))
      .map((entry) => ({ entry, count: shared(entry) }))
      .filter(({ count }) => count >= least)
      .sort((one, other) => other.count - one.count)
      .filter(({ entry }) => {
        const tokens = models.countTokens(entry.text);
        const fits = tokens <= left;
        left -= fits ? tokens : 0;
        return fits;
      })
      .map(({ entry }) => ({ key: `${entry.session}:${entry.first}`, text: entry.text, extra: [] }));
  },
  syncTurn({ sessionId, messages: { first }, user }) {
    // The function runs again if another session wrote in between.
    documents.update(DIARY, (diary) => {
      const known = entries(diary);
      // Session and first message name the turn.
      if (!user || known.some((entry) => entry.session === sessionId && entry.first === first)) return null;
      known.push({ session: sessionId, first, text: [...user].slice(0, 500).join("") });
      return known.slice(-1_000).map((entry) => JSON.stringify(entry)).join("\n");
    });
  },
});
