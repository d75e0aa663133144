// Tools with checked arguments.

import { guarded, invalid } from "./errors.js";
import { check, jsonObject } from "./shapes.js";

/** A result with one text. `structured` is the same result as JSON, for programs. */
export function text(content, structured) {
  return {
    content: [{ tag: "text", val: content }],
    structured: structured === undefined ? null : JSON.stringify(structured),
    extra: [],
  };
}

/** A set of tools that belong together. */
export class Toolbox {
  #tools = new Map();

  constructor(toolset) {
    this.toolset = toolset;
  }

  /** Adds a tool. `parameters` are JSON Schemas by name; `effect` is `reads`, `writes` or `dangerous`. */
  tool({
    name,
    description,
    parameters = {},
    required = [],
    title = null,
    effect = "writes",
    parallel = false,
    idempotent = effect === "reads",
    openWorld = false,
    outputSchema = null,
    run,
  }) {
    const schema = { type: "object", properties: parameters, required, additionalProperties: false };
    const entry = {
      schema: { name, description, parameters: JSON.stringify(schema), extra: [] },
      title,
      outputSchema: outputSchema && JSON.stringify(outputSchema),
      toolset: this.toolset,
      parallel,
      effect,
      idempotent,
      openWorld,
      extra: [],
    };
    this.#tools.set(name, { entry, schema, run });
    return this;
  }

  catalog() {
    return Array.from(this.#tools.values(), ({ entry }) => entry);
  }

  /** Runs a tool. The model reads the message of an error. */
  call(invocation) {
    const found = this.#tools.get(invocation.name);
    if (!found) {
      const names = [...this.#tools.keys()].join(", ");
      throw invalid(`there is no tool \`${invocation.name.slice(0, 80)}\`; there are ${names}`);
    }
    const result = found.run(check(found.schema, jsonObject(invocation.arguments, "the arguments")), invocation);
    if (typeof result === "string") return text(result);
    return Array.isArray(result?.content) ? { structured: null, extra: [], ...result } : text(JSON.stringify(result ?? null), result ?? null);
  }

  /** The interface to export: `export const tools = toolbox.exports()`. */
  exports() {
    return guarded({ catalog: () => this.catalog(), call: (invocation) => this.call(invocation) });
  }
}
