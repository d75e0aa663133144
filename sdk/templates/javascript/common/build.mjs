// Builds the component: `npm run build`. With `--generate`, writes only what the tests need.

import { cp, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { declarations } from "hermes-plugin/types.js";

const BUILD = "build";
const { name, hermes } = JSON.parse(await readFile("package.json", "utf8"));

/** The folder of the contract's version. */
async function contract() {
  const versions = (await readdir("wit", { withFileTypes: true })).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return join("wit", versions.sort().at(-1));
}

/** Writes the contract as TypeScript, for editors. */
async function types(wit) {
  const files = (await readdir(join(wit, "deps"))).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(wit, "deps", file), "utf8")));
  await mkdir(join(BUILD, "types"), { recursive: true });
  await writeFile(join(BUILD, "types/contract.d.ts"), declarations(texts));
}

/** Puts the files below `src/skills/` into a module: a component has no files. */
async function skills() {
  const place = join("src", "skills");
  const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
  const folders = [];
  for (const folder of entries.filter((entry) => entry.isDirectory()).map((entry) => join(place, entry.name)).sort()) {
    const files = {};
    for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(file.parentPath ?? file.path, file.name);
      if (file.isFile()) files[path.slice(folder.length + 1).replaceAll("\\", "/")] = await readFile(path, "utf8");
    }
    folders.push(files);
  }
  if (folders.length) await writeFile(join(BUILD, "skills.js"), `export default ${JSON.stringify(folders, null, 2)};\n`);
}

/** A copy of the contract with one world of all kinds that package.json names. */
async function world(wit) {
  const copy = join(BUILD, "wit");
  await rm(copy, { recursive: true, force: true });
  await cp(wit, copy, { recursive: true });
  const includes = hermes.worlds.map((world) => `    include ${world};\n`).join("");
  await writeFile(join(copy, "worlds.wit"), `${await readFile(join(wit, "worlds.wit"), "utf8")}\nworld project {\n${includes}}\n`);
  return copy;
}

const wit = await contract();
await mkdir(BUILD, { recursive: true });
await types(wit);
await skills();
if (!process.argv.includes("--generate")) {
  const { componentize } = await import("componentize-qjs");
  const { component } = await componentize({
    witPath: await world(wit),
    world: "project",
    jsPath: "src/plugin.js",
    jsSource: await readFile("src/plugin.js", "utf8"),
    moduleRoot: ".",
    sync: true,
  });
  await writeFile(join(BUILD, `${name}.unfinished`), component);
  await rename(join(BUILD, `${name}.unfinished`), join(BUILD, `${name}.wasm`));
  console.error(`built ${BUILD}/${name}.wasm`);
}
