// Random numbers from the host. QuickJS has no `crypto`.

import random from "hermes:host/random@1.0.0";

/** At most 65,536 random bytes. */
export function randomBytes(count) {
  return Uint8Array.from(random.bytes(count));
}

/** A random UUID. */
export function randomUUID() {
  const bytes = randomBytes(16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join("-");
}

/** Replaces `Math.random` by a generator (xoshiro128++) with a new seed. */
export function seed() {
  const state = new Uint32Array(randomBytes(16).buffer);
  if (state.every((word) => word === 0)) state[0] = 1;
  const rotated = (word, by) => (word << by) | (word >>> (32 - by));
  const next = () => {
    const result = (rotated(state[0] + state[3], 7) + state[0]) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotated(state[3], 11);
    return result;
  };
  // 53 bits, as many as a number has.
  Math.random = () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}
