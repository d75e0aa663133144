// Makes a skill of each checklist in the configuration. A skill whose text is fixed needs no code: a folder is enough.

import { check, guarded, invalid, lifecycle as exported } from "hermes-plugin";

// Keys and defaults must match plugin.yaml.
const CONFIG = { type: "object", properties: { lists: { type: "object" } } };
let lists = { release: ["Run the tests.", "Update the changelog.", "Tag the commit."] };

export const lifecycle = exported({
  configured(config) {
    lists = check(CONFIG, config).lists ?? lists;
  },
});

export const skills = guarded({
  // The index is part of the prompt. Sorting gives the same list each time.
  index: () =>
    Object.keys(lists)
      .sort()
      .map((name) => ({
        name,
        description: `The checklist \`${name}\`, with ${lists[name].length} steps.`,
        category: "checklists",
        tags: [],
        platforms: [],
        requiresToolsets: [],
        fallbackForToolsets: [],
        extra: [],
      })),
  view(name, path) {
    if (!Object.hasOwn(lists, name) || path) {
      const names = Object.keys(lists).sort().join(", ");
      throw invalid(`the skills are ${names}; they have no further files`);
    }
    const steps = lists[name].map((step, at) => `${at + 1}. ${step}\n`);
    return { content: `# ${name}\n\n${steps.join("")}`, files: [] };
  },
});
