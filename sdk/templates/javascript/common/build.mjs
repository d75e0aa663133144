// Builds the component: `npm run build`. With `--generate`, writes only what the tests need.

import { cp, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { explained, project } from "hermes-plugin/build.js";
import { declarations } from "hermes-plugin/types.js";

const BUILD = "build";
const { name, hermes } = JSON.parse(await readFile("package.json", "utf8"));

/** The folder of the contract's version. */
async function contract() {
  const versions = (await readdir("wit", { withFileTypes: true })).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return join("wit", versions.sort().at(-1));
}

/** What an error can name. */
async function sources() {
  const found = {};
  for (const folder of ["src", "vendor/hermes-plugin"]) {
    for (const file of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
      const path = join(file.parentPath ?? file.path, file.name).replaceAll("\\", "/");
      if (file.isFile() && path.endsWith(".js")) found[path] = await readFile(path, "utf8");
    }
  }
  return found;
}

async function texts(wit) {
  const files = (await readdir(join(wit, "deps"))).sort();
  return Promise.all(files.map((file) => readFile(join(wit, "deps", file), "utf8")));
}

/** Writes the contract as TypeScript, for editors. */
async function types(wit) {
  await mkdir(join(BUILD, "types"), { recursive: true });
  await writeFile(join(BUILD, "types/contract.d.ts"), declarations(await texts(wit)));
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

/** A copy of the contract with one world of everything that package.json names, and the module that becomes the component. */
async function component(wit) {
  const copy = join(BUILD, "wit");
  await rm(copy, { recursive: true, force: true });
  await cp(wit, copy, { recursive: true });
  const { world, entry } = project(await texts(wit), await readFile(join(wit, "worlds.wit"), "utf8"), hermes?.worlds);
  await writeFile(join(copy, "worlds.wit"), world);
  const jsPath = join(BUILD, "component.js");
  await writeFile(jsPath, entry);
  const { componentize } = await import("componentize-qjs");
  const { component } = await componentize({ witPath: copy, world: "project", jsPath, jsSource: entry, moduleRoot: ".", sync: true });
  await writeFile(join(BUILD, `${name}.unfinished`), component);
  await rename(join(BUILD, `${name}.unfinished`), join(BUILD, `${name}.wasm`));
  console.error(`built ${BUILD}/${name}.wasm`);
}

try {
  const wit = await contract();
  await mkdir(BUILD, { recursive: true });
  await types(wit);
  await skills();
  if (!process.argv.includes("--generate")) await component(wit);
} catch (error) {
  console.error(`error: ${explained(error, await sources())}`);
  process.exitCode = 1;
}
