// The interface that every plugin exports.

import { known, settled } from "./border.js";
import { guarded } from "./errors.js";
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
      settled("`configured`", configured?.(jsonObject(config, "the configuration")));
    },
    sessionStart(session, how) {
      settled("`sessionStart`", sessionStart?.(session, how));
    },
    sessionEnd(how) {
      settled("`sessionEnd`", sessionEnd?.(how));
    },
  });
}
