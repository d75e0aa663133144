// Vectors from counted words. Plain functions, which `npm test` runs in Node.js.

import { encode } from "hermes-plugin";

// Letters of a part of a word, and what a part counts. Words with a common part are a little similar: `ferry` and `ferries`.
const PART = 4;
const PART_WEIGHT = 0.3;

/** A vector of length 1. Each word and each beginning of a word adds to one of its numbers. */
export function vector(text, dimensions) {
  const vector = new Array(dimensions).fill(0);
  for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)) {
    vector[hash(word) % dimensions] += 1;
    const letters = [...word];
    if (letters.length > PART) vector[hash(letters.slice(0, PART).join("")) % dimensions] += PART_WEIGHT;
  }
  const length = Math.hypot(...vector);
  // A text without words: plugins that divide by the length must not divide by 0.
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((number) => number / length);
}

/** FNV-1a: the same number on every machine and in every run. */
function hash(word) {
  return encode(word).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}
