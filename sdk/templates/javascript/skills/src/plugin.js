// Skills embedded in the plugin: the build puts the files in `src/skills/` into the component.
//
// The model sees the index in its prompt. It opens a skill when needed, and files that the skill mentions. To add a skill, add a folder
// with a SKILL.md.

import { lifecycle as exported, skills as embedded } from "hermes-plugin";
import folders from "../build/skills.js";

export const lifecycle = exported();
export const skills = embedded(folders, "household");
