// Computes vectors of texts from their words: texts that share words have similar vectors.

import { encode, guarded, lifecycle as exported } from "hermes-plugin";

const DIMENSIONS = 256;

export const lifecycle = exported();

export const embedder = guarded({
  // Stored vectors are valid under this name. Change it together with `vector`.
  describe: () => ({ model: "word-vectors-1", dimensions: DIMENSIONS, extra: [] }),
  // `purpose` is for models that embed questions in another way than documents.
  embed: ({ texts }) => texts.map(vector),
});

/** A vector of length 1. Each word adds to one of its numbers. */
function vector(text) {
  const vector = new Array(DIMENSIONS).fill(0);
  // A text without words has a direction too.
  vector[0] = 0.01;
  for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)) {
    const found = hash(word);
    vector[found % DIMENSIONS] += found >>> 31 ? -1 : 1;
  }
  const length = Math.hypot(...vector);
  return vector.map((number) => number / length);
}

/** FNV-1a, which is the same on every machine and in every run. */
function hash(word) {
  return encode(word).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}
