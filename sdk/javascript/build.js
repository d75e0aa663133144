// What the build of a project writes: types for editors, the contract with one world of everything that the project exports, and the module
// that becomes the component. Runs in Node.js.

import { likely } from "./border.js";
import { exportsOf, partOf, readContract } from "./contract.js";
import { moduleRemedy, placeIn, remedy } from "./remedies.js";

/**
 * The world of a project and its entry module. `files` are the texts of `wit/deps`, `worlds` is the text of `worlds.wit`, and `names` lists worlds, and
 * interfaces that no world of one kind has.
 */
export function project(files, worlds, names) {
  if (!Array.isArray(names) || !names.length) {
    throw new Error('package.json: `worlds` in `hermes` lists what the plugin exports, such as ["tools-plugin"]');
  }
  const contract = readContract(files, worlds);
  const ids = Object.keys(contract.interfaces);
  const lines = names.map((name) => {
    if (contract.worlds[name]) return `include ${name};`;
    const id = ids.find((each) => each.endsWith(`/${name}`));
    if (!id) {
      const known = [...Object.keys(contract.worlds), ...ids.map((each) => each.split("/")[1])];
      throw new Error(`package.json: wit/ has no world and no interface \`${name}\`${likely(name, known)}`);
    }
    return `export ${id}@${contract.interfaces[id].version};`;
  });
  const text = `${worlds}\nworld project {\n${lines.map((line) => `    ${line}\n`).join("")}}\n`;
  const exported = exportsOf(readContract([], text), "project");
  return { world: text, entry: entry(partOf(contract, exported)) };
}

function entry(contract) {
  const interfaces = Object.entries(contract.interfaces);
  return [
    'import "hermes-plugin/globals.js";',
    'import { bordered } from "hermes-plugin/component.js";',
    'import * as plugin from "../src/plugin.js";',
    `const contract = ${JSON.stringify(contract)};`,
    ...interfaces.map(([id, { name }]) => `export const ${name} = bordered(contract, ${JSON.stringify(id)}, plugin);`),
    "",
  ].join("\n");
}

/** The text of an error of the build: what, where, and what to write instead, without the stacks of the tools. `sources` are texts by path. */
export function explained(error, sources = {}) {
  const text = String(error?.message ?? error);
  if (text.includes("wasm backtrace")) {
    return "code outside of functions called the host, and it runs during the build: call `log`, `sql`, `request` and the like in functions";
  }
  const [, inner] = text.match(/JavaScript module[^:]*: Error: ([^]*)$/) ?? [];
  if (inner === undefined) return text.replace(/^: /, "");
  const [first, ...stack] = inner.split("\n");
  const [, name, file] = first.match(/^Error resolving module '([^']*)' from '\/?([^']*)'/) ?? [];
  if (name) return `${lineOf(name, sources, file) ?? file}: there is no module "${name}"; ${moduleRemedy(name)}`;
  const [, missing, from] = first.match(/^Could not find export '([^']*)' in module '\/?([^']*)'/) ?? [];
  if (missing) {
    const place = lineOf(missing, sources);
    const module = from === "vendor/hermes-plugin/index.js" ? "hermes-plugin" : from;
    return `${place ? `${place}: ` : ""}${module} does not export \`${missing}\`${likely(missing, exportedBy(sources[from] ?? ""))}`;
  }
  // What the SDK refuses names the place itself.
  const place = placeIn(stack.join("\n"));
  return `${first.startsWith("src/") || !place ? "" : `${place}: `}${first}${remedy(first)}`;
}

/** The first line of a source that has a word. */
function lineOf(word, sources, only) {
  for (const [path, text] of Object.entries(sources)) {
    if (only ? path !== only : !path.startsWith("src/")) continue;
    const line = text.split("\n").findIndex((each) => each.includes(word)) + 1;
    if (line) return `${path}:${line}`;
  }
}

/** The names in `export { … }` and `export const …` of a module. */
function exportedBy(text) {
  const lists = Array.from(text.matchAll(/export \{([^}]*)\}/g), ([, names]) => names.split(",").map((name) => name.trim().split(" ").at(-1)));
  return [...lists.flat(), ...Array.from(text.matchAll(/export (?:const|function|class) ([\w$]+)/g), ([, name]) => name)].filter(Boolean);
}
