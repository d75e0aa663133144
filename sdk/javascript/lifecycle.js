// The interface that every plugin exports.

import { guarded } from "./errors.js";
import { jsonObject } from "./shapes.js";
import { seed } from "./random.js";

/**
 * The interface `lifecycle`. QuickJS is started during the build, and would draw the same random numbers in every process, so
 * `configure` seeds `Math.random` anew.
 */
export function lifecycle({ configured, sessionStart, sessionEnd } = {}) {
  return guarded({
    configure(config) {
      seed();
      configured?.(jsonObject(config, "the configuration"));
    },
    sessionStart(session, how) {
      sessionStart?.(session, how);
    },
    sessionEnd(how) {
      sessionEnd?.(how);
    },
  });
}
