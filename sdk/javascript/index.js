// Helpers for Hermes plugins in JavaScript, over the interfaces of `wit/`.

import "./globals.js";

export { decode, encode } from "./bytes.js";
export {
  PluginError,
  cancelled,
  conflict,
  denied,
  exhausted,
  failed,
  guarded,
  invalid,
  kindOf,
  timeout,
  unavailable,
  unsupported,
} from "./errors.js";
export { documents, history, log, models, replaceSecret, request, secret, sql } from "./imports.js";
export { refusal, room, summaryTokens } from "./engine.js";
export { lifecycle } from "./lifecycle.js";
export { randomBytes, randomUUID } from "./random.js";
export { check, jsonObject } from "./shapes.js";
export { skills } from "./skills.js";
export { Toolbox, text } from "./tools.js";
