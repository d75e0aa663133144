// Hooks that ask for approval before a tool call with words that delete, and log failed calls.
//
// Hooks observe the agent loop and can stop a tool call, but never change the prompt. The host waits only for `before-tool`.

import { check, guarded, lifecycle as exported, log } from "hermes-plugin";

// Keys and defaults must match plugin.yaml.
const CONFIG = {
  type: "object",
  properties: { ask_for: { type: "array", items: { type: "string", minLength: 1 } } },
};
let askFor = ["rm -rf", "DROP TABLE", "git push --force"];
let failed = 0;

export const lifecycle = exported({
  configured(config) {
    askFor = check(CONFIG, config).ask_for ?? askFor;
  },
});

export const hooks = guarded({
  interests: () => ["before-tool", "after-tool"],
  onEvent({ tag, val }) {
    if (tag === "before-tool") {
      const words = askFor.find((words) => val.arguments.includes(words));
      if (words) return { tag: "ask", val: `\`${val.name}\` is called with \`${words}\`` };
    }
    if (tag === "after-tool" && val.failed) {
      failed += 1;
      log.info("a tool failed", { tool: val.event.name, failed_so_far: failed });
    }
    return { tag: "proceed" };
  },
});
