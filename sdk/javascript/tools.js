// Tools with checked arguments.

import { Misfit, known, likely, settled, toJson } from "./border.js";
import { guarded, invalid } from "./errors.js";
import { check, isA, jsonObject } from "./shapes.js";

/** A result with one text. `structured` is the same result as JSON, for programs. */
export function text(content, structured) {
  return {
    content: [{ tag: "text", val: content }],
    structured: structured === undefined ? null : toJson(structured, "the structured result"),
    extra: [],
  };
}

const OPTIONS = ["name", "description", "parameters", "required", "title", "effect", "parallel", "idempotent", "openWorld", "outputSchema", "run"];

/** A set of tools that belong together. */
export class Toolbox {
  #tools = new Map();

  constructor(toolset) {
    this.toolset = toolset;
  }

  /** Adds a tool. `parameters` are JSON Schemas by name; `effect` is `reads`, `writes` or `dangerous`. */
  tool(options) {
    known(`the tool \`${options.name}\``, options, OPTIONS);
    const {
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
    } = options;
    if (parameters.type === "object") {
      throw new Misfit(`the tool \`${name}\`: \`parameters\` are schemas by name: write what is in its \`properties\`, and \`required\` beside it`);
    }
    for (const [key, schema] of Object.entries(parameters)) {
      if (!isA("object", schema)) throw new Misfit(`the tool \`${name}\`: the parameter \`${key}\` needs a schema, such as { type: 'string' }`);
    }
    for (const key of required) {
      if (!Object.hasOwn(parameters, key)) throw new Misfit(`the tool \`${name}\` requires \`${key}\`, which is no parameter${likely(key, Object.keys(parameters))}`);
    }
    if (typeof run !== "function") throw new Misfit(`the tool \`${name}\` needs a function \`run\``);
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
    const what = `the tool \`${invocation.name}\``;
    const given = check(found.schema, jsonObject(invocation.arguments, "the arguments"));
    const result = settled(what, found.run(given, invocation));
    if (typeof result === "string") return text(result);
    if (Array.isArray(result?.content)) return { structured: null, extra: [], ...result };
    const json = toJson(result, `the result of ${what}`);
    if (json === undefined) {
      throw new Misfit(`${what} returned undefined: return a text, an output, or a value that becomes JSON, such as \`null\``);
    }
    return { ...text(json), structured: json };
  }

  /** The interface to export: `export const tools = toolbox.exports()`. */
  exports() {
    return guarded({ catalog: () => this.catalog(), call: (invocation) => this.call(invocation) });
  }
}
