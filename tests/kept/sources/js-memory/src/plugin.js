// A memory provider that stores lines of the user beginning with `remember`, and recalls those that share a word with a later
// question.
//
// The notes are stored in the plugin's own document `notes.md`, which needs no permission. An instance can be dropped at any time, so it
// keeps no notes in memory.

import { check, documents, guarded, lifecycle as exported, models } from "hermes-plugin";
import { about, added, inText } from "./notes.js";

const NOTES = "notes.md";
// Keys and defaults must match plugin.yaml.
const CONFIG = { type: "object", properties: { keyword: { type: "string", minLength: 1 } } };
let keyword = "remember";

export const lifecycle = exported({
  configured(config) {
    keyword = check(CONFIG, config).keyword ?? keyword;
  },
});

export const memoryProvider = guarded({
  systemPrompt: () => "",
  recall({ text, budget }) {
    let left = budget;
    const found = [];
    for (const note of about(documents.read(NOTES), text)) {
      // The host's own estimate; needs no permission.
      const tokens = models.countTokens(note);
      if (tokens <= left) {
        left -= tokens;
        found.push({ key: note, text: note, extra: [] });
      }
    }
    return found;
  },
  syncTurn({ user }) {
    const notes = inText(user, keyword);
    // A turn can arrive twice, but each note is stored once.
    if (notes.length) documents.update(NOTES, (text) => added(text, notes));
  },
});
