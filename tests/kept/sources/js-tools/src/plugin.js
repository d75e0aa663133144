// A tool that counts lines, words or characters of a text.

import { Toolbox, invalid, lifecycle as exported } from "hermes-plugin";

export const lifecycle = exported();

// To add a tool, call `tool` again. This one has no side effects, so it may run in parallel with others.
export const toolbox = new Toolbox("text").tool({
  name: "count",
  description: "Counts the lines, words or characters of a text. Use it instead of counting yourself.",
  parameters: {
    text: { type: "string", description: "The text." },
    unit: { type: "string", enum: ["lines", "words", "characters"], description: "What to count; words by default." },
  },
  required: ["text"],
  effect: "reads",
  parallel: true,
  run({ text, unit = "words" }) {
    // The model sees this message, so it suggests a fix.
    if (!text) throw invalid("text is empty: give the text itself, not a file's name");
    const parts = {
      lines: () => text.replace(/\n$/, "").split("\n"),
      words: () => text.split(/\s+/).filter(Boolean),
      characters: () => Array.from(text),
    };
    return `${parts[unit]().length} ${unit}`;
  },
});

export const tools = toolbox.exports();
