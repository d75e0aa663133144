// The interface that every plugin exports.

import { known, settled } from "./border.js";
import { guarded, invalid } from "./errors.js";
import { begin } from "./globals.js";
import { jsonObject } from "./shapes.js";
import { seed } from "./random.js";

/**
 * The interface `lifecycle`. QuickJS is started during the build, and would draw the same random numbers in every process, so
 * `configure` seeds `Math.random` anew.
 */
export function lifecycle(functions = {}) {
  known("lifecycle", functions, ["configured", "sessionStart", "sessionEnd"]);
  const { configured, sessionStart, sessionEnd } = functions;
  return guarded({
    configure(config) {
      begin();
      seed();
      settled("`configured`", configured?.(whole(jsonObject(config, "the configuration"))));
    },
    sessionStart(session, how) {
      settled("`sessionStart`", sessionStart?.(session, how));
    },
    sessionEnd(how) {
      settled("`sessionEnd`", sessionEnd?.(how));
    },
  });
}

/** The configuration, whose integers have to be numbers: few authors expect a BigInt there. */
function whole(value, path = "") {
  if (typeof value === "bigint") throw invalid(`${path} must be a whole number of at most ${Number.MAX_SAFE_INTEGER}, not ${value}`);
  if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) whole(inner, path ? `${path}.${key}` : key);
  }
  return value;
}
