// An embedder: computes vectors of texts, so that other plugins can compare and search them.
//
// This one counts words and needs no model. To use a real one, replace `vector` in words.js.

import { check, guarded, lifecycle as exported } from "hermes-plugin";
import { vector } from "./words.js";

// Keys and defaults must match plugin.yaml.
const CONFIG = {
  type: "object",
  properties: { dimensions: { type: "integer", minimum: 16, maximum: 4096 } },
};
let dimensions = 256;

export const lifecycle = exported({
  configured(config) {
    dimensions = check(CONFIG, config).dimensions ?? dimensions;
  },
});

export const embedder = guarded({
  // Plugins store this name beside each vector. Change it whenever the vectors change.
  describe: () => ({ model: `{{name}}-1-${dimensions}`, dimensions, extra: [] }),
  // `purpose` says whether the texts search or are searched. Word counts are the same for both.
  embed: ({ texts }) => texts.map((text) => vector(text, dimensions)),
});
