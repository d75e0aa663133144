// Keeps tools away from private files, asks before some tools, and logs how long calls take.

import { check, guarded, lifecycle as exported, log } from "hermes-plugin";

// Keys and defaults must match plugin.yaml.
const names = { type: "array", items: { type: "string", minLength: 1 } };
const CONFIG = { type: "object", properties: { private: names, ask: names } };
let config = { private: [".env", "id_rsa"], ask: ["write_file"] };

export const lifecycle = exported({
  configured(given) {
    config = { ...config, ...check(CONFIG, given) };
  },
});

export const hooks = guarded({
  interests: () => ["before-tool", "after-tool"],
  onEvent({ tag, val }) {
    if (tag === "before-tool") {
      // The model reads why its call was blocked. The user reads the question.
      const name = config.private.find((name) => val.arguments.includes(name));
      if (name) return { tag: "block", val: `\`${name}\` is private: do without it` };
      if (config.ask.includes(val.name)) {
        return { tag: "ask", val: `\`${val.name}\` of \`${val.plugin}\` wants to run` };
      }
    }
    if (tag === "after-tool") log.info("a call ended", { tool: val.event.name, elapsed_ms: val.elapsedMs });
    return { tag: "proceed" };
  },
});
