// Skills from folders that the build puts into `build/skills.js`.

import { guarded, invalid } from "./errors.js";

/** The interface `skills`. `folders` are the files of each skill by path, one of them a `SKILL.md` with `name` and `description`. */
export function skills(folders, category) {
  const known = new Map();
  const index = folders.map((files) => {
    const fields = frontMatter(files["SKILL.md"] ?? "");
    const { name, description } = fields;
    if (!name || !description) throw new Error("a SKILL.md has no name or no description");
    known.set(name, files);
    return { name, description, category, tags: [], platforms: [], requiresToolsets: [], fallbackForToolsets: [], extra: [] };
  });
  return guarded({
    index: () => index,
    view(name, path) {
      const files = known.get(name);
      if (!files) throw invalid(`there is no such skill; available skills: ${[...known.keys()].join(", ")}`);
      const others = Object.keys(files).filter((other) => other !== "SKILL.md");
      if (path === null) return { content: files["SKILL.md"], files: others };
      // Paths are only compared, never opened, so they cannot lead outside.
      if (!others.includes(path)) throw invalid(`\`${name}\` has no such file; available files: ${others.join(", ")}`);
      return { content: files[path], files: [] };
    },
  });
}

function frontMatter(text) {
  const [begin, ...lines] = text.split("\n");
  const end = lines.indexOf("---");
  if (begin !== "---" || end < 0) return {};
  const pairs = lines.slice(0, end).map((line) => line.match(/^([\w-]+):\s*["']?(.*?)["']?\s*$/));
  return Object.fromEntries(pairs.filter(Boolean).map(([, key, value]) => [key, value]));
}
