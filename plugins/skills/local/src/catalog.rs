//! Finds skills in folders, and the files that belong to each.

use hermes_plugin::files::{Entry, Kind};
use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, log};
use hermes_skill_format::{Header, Item};
use serde_json::json;

/// A folder with this file is a skill.
const SKILL: &str = "SKILL.md";
/// Folders that are skipped, besides hidden ones: tools put files there that do not belong to a skill.
const SKIPPED: &[&str] = &["node_modules", "__pycache__", "venv"];
/// Most files listed for a skill. The others can still be read by name.
const FILES: usize = 200;
/// How many folders deep the files of a skill can lie.
const DEPTH: usize = 6;

/// A folder of skills. Paths are relative to it.
pub(crate) trait Folder {
    fn entries(&self, path: &str) -> Result<Vec<Entry>, Error>;
    fn read(&self, path: &str) -> Result<Vec<u8>, Error>;
}

/// A skill, its folder and the text of its `SKILL.md`.
struct FoundSkill {
    skill: Skill,
    folder: String,
    text: String,
}

/// All skills, sorted by name, and the reasons why others were skipped.
pub(crate) struct Catalog {
    skills: Vec<FoundSkill>,
    /// One line per problem.
    pub(crate) warnings: Vec<String>,
}

impl Catalog {
    /// Reads `NAME/SKILL.md` and `CATEGORY/NAME/SKILL.md`.
    pub(crate) fn read(folder: &impl Folder) -> Result<Self, Error> {
        let mut catalog = Self { skills: Vec::new(), warnings: Vec::new() };
        for outer in folders(folder, "")? {
            if !catalog.load(folder, &outer) {
                match folders(folder, &outer) {
                    Ok(inner) => inner.iter().for_each(|inner| {
                        catalog.load(folder, inner);
                    }),
                    Err(error) if is_no_folder(&error) => {}
                    Err(error) => catalog.warnings.push(format!("skipped the skills in {outer}: {error}")),
                }
            }
        }
        catalog.sort();
        Ok(catalog)
    }

    /// Loads the skill in a folder. Returns whether the folder is a skill.
    fn load(&mut self, folder: &impl Folder, path: &str) -> bool {
        let file = format!("{path}/{SKILL}");
        let found = match folder.read(&file) {
            Ok(bytes) => text(&file, bytes).and_then(|text| load_skill(path, text)),
            Err(error) if is_no_folder(&error) => return false,
            Err(error) => Err(error),
        };
        match found {
            Ok((found, warning)) => {
                self.skills.push(found);
                self.warnings.extend(warning);
            }
            Err(error) => self.warnings.push(format!("skipped the skill in {path}: {error}")),
        }
        true
    }

    fn sort(&mut self) {
        self.skills.sort_by(|a, b| (&a.skill.name, &a.folder).cmp(&(&b.skill.name, &b.folder)));
        self.skills.dedup_by(|later, first| {
            let same = later.skill.name == first.skill.name;
            if same {
                self.warnings.push(format!(
                    "skipped the skill in {}: the one in {} has the same name, {}",
                    later.folder, first.folder, first.skill.name
                ));
            }
            same
        });
    }

    /// The skills, each with its folder below `root`, the absolute path of all of them.
    pub(crate) fn index(self, root: &str) -> Vec<Skill> {
        let placed = |mut found: FoundSkill| {
            if !root.is_empty() {
                let folder = format!("{}/{}", root.trim_end_matches('/'), found.folder);
                found.skill.extra.push(("folder".to_owned(), folder));
            }
            found.skill
        };
        self.skills.into_iter().map(placed).collect()
    }

    /// The text of a skill or of one of its files, and a list of its files.
    pub(crate) fn view(self, folder: &impl Folder, name: &str, path: Option<&str>) -> Result<Document, Error> {
        let Some(found) = self.skills.iter().find(|found| found.skill.name == name) else {
            let names: Vec<_> = self.skills.iter().map(|found| found.skill.name.as_str()).collect();
            return Err(Error::invalid(format!("there is no skill `{name}`; available skills: {}", listed(&names))));
        };
        let mut files = files_of(folder, &found.folder)?;
        let path = path.map(|path| path.trim_start_matches("./")).filter(|path| !path.is_empty() && *path != SKILL);
        let known = path.is_none_or(|path| files.iter().any(|file| file == path));
        if files.len() > FILES {
            log::warn(format!("the skill {name} has {} files; only the first {FILES} are listed", files.len()));
            files.truncate(FILES);
        }
        let Some(path) = path else { return Ok(Document { content: found.text.clone(), files }) };
        if !known {
            return Err(Error::invalid(format!(
                "the skill `{name}` has no file `{path}`; available files: {}",
                listed(&files)
            )));
        }
        let full = format!("{}/{path}", found.folder);
        Ok(Document { content: text(&full, folder.read(&full)?)?, files: Vec::new() })
    }
}

fn folders(folder: &impl Folder, path: &str) -> Result<Vec<String>, Error> {
    let mut paths: Vec<_> = folder
        .entries(path)?
        .into_iter()
        .filter(|entry| matches!(entry.kind, Kind::Directory | Kind::Link) && is_wanted(&entry.path))
        .map(|entry| entry.path)
        .collect();
    paths.sort();
    Ok(paths)
}

/// Whether the path is missing or not a folder. A link can lead to a file or to nothing.
fn is_no_folder(error: &Error) -> bool {
    error.code == "not-found" || error.code == "not-a-directory"
}

fn is_wanted(path: &str) -> bool {
    let name = last_part(path);
    !name.starts_with('.') && !SKIPPED.contains(&name)
}

/// Parses a skill. The second value is a warning about a skill that can still be used.
fn load_skill(folder: &str, text: String) -> Result<(FoundSkill, Option<String>), Error> {
    let header = Header::parse(&text, Some(last_part(folder))).map_err(|flaw| Error::invalid(flaw.to_string()))?;
    let warning = header.guessed.as_ref().map(|reason| {
        format!("{folder}/{SKILL} has broken YAML front matter, so its fields were guessed line by line: {reason}")
    });
    let of_folder = || folder.rsplit_once('/').map(|(category, _)| category.to_owned()).unwrap_or_default();
    let extra = extra(&header);
    let skill = Skill {
        name: header.name,
        description: header.description,
        category: header.category.unwrap_or_else(of_folder),
        tags: header.tags,
        platforms: header.platforms,
        requires_toolsets: header.requires_toolsets,
        fallback_for_toolsets: header.fallback_for_toolsets,
        extra,
    };
    Ok((FoundSkill { skill, folder: folder.to_owned(), text }, warning))
}

/// What the contract's record of a skill has no fields for, as the host reads it.
fn extra(header: &Header) -> Vec<(String, String)> {
    let texts =
        |key: &str, texts: &[String]| texts.iter().map(|text| (key.to_owned(), text.clone())).collect::<Vec<_>>();
    let items = |key: &str, name: &str, items: &[Item]| {
        let value = |item: &Item| {
            let mut value = json!({ name: item.name });
            item.fields.iter().for_each(|(about, text)| value[*about] = json!(text));
            (key.to_owned(), value.to_string())
        };
        items.iter().map(value).collect::<Vec<_>>()
    };
    [
        texts("requires-tool", &header.requires_tools),
        texts("fallback-for-tool", &header.fallback_for_tools),
        texts("command", &header.programs),
        items("variable", "name", &header.variables),
        items("setting", "key", &header.settings),
    ]
    .concat()
}

/// The other files of a skill, relative to its folder.
fn files_of(folder: &impl Folder, skill: &str) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    let mut pending = vec![(skill.to_owned(), 0)];
    while let Some((path, depth)) = pending.pop() {
        for entry in folder.entries(&path)? {
            if !is_wanted(&entry.path) {
                continue;
            }
            let Some(relative) = entry.path.strip_prefix(skill).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            match entry.kind {
                Kind::File if relative != SKILL => files.push(relative.to_owned()),
                Kind::Directory if depth < DEPTH => pending.push((entry.path, depth + 1)),
                // Do not follow links: they could lead to another skill or form a cycle.
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

fn text(path: &str, bytes: Vec<u8>) -> Result<String, Error> {
    let size = bytes.len();
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| {
        Error::invalid(format!("{path} is not UTF-8 text: it is a binary file of {size} bytes, which cannot be shown"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn listed(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// A folder in memory: contents by path.
    struct Memory(BTreeMap<&'static str, &'static [u8]>);

    impl Memory {
        fn new(files: &[(&'static str, &'static str)]) -> Self {
            Self(files.iter().map(|(path, text)| (*path, text.as_bytes())).collect())
        }
    }

    impl Folder for Memory {
        fn entries(&self, path: &str) -> Result<Vec<Entry>, Error> {
            let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
            let below = self.0.keys().filter_map(|file| file.strip_prefix(prefix.as_str()));
            let found: BTreeSet<_> =
                below.map(|rest| rest.split_once('/').map_or((rest, true), |(dir, _)| (dir, false))).collect();
            let entry = |(name, is_file): (&str, bool)| Entry {
                path: format!("{prefix}{name}"),
                kind: if is_file { Kind::File } else { Kind::Directory },
                size: 0,
                modified_at: 0,
                version: String::new(),
            };
            // Reverse the order, to show that the order does not matter.
            Ok(found.into_iter().rev().map(entry).collect())
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
            let missing = || Error::invalid(format!("no {path}")).with_code("not-found");
            self.0.get(path).map(|bytes| bytes.to_vec()).ok_or_else(missing)
        }
    }

    fn index(folder: &Memory) -> Result<Vec<Skill>, Error> {
        Catalog::read(folder).map(|catalog| catalog.index(""))
    }

    fn view(folder: &Memory, name: &str, path: Option<&str>) -> Result<Document, Error> {
        Catalog::read(folder)?.view(folder, name, path)
    }

    fn catalog() -> Memory {
        Memory::new(&[
            ("zip/SKILL.md", "---\nname: archive\ndescription: Packs files.\n---\n# Zip\n"),
            ("zip/scripts/run.sh", "#!/bin/sh\n"),
            ("zip/notes.md", "notes"),
            ("zip/.git/config", "x"),
            ("zip/node_modules/a/b.js", "x"),
            ("office/pdf/SKILL.md", "\u{feff}---\nname: pdf\n---\n# PDF\n\nReads   PDF files.\n"),
            ("office/DESCRIPTION.md", "Office work."),
            (
                "office/docx/SKILL.md",
                "---\ndescription: Word.\nplatforms: [Linux]\nmetadata: {hermes: {category: texts}}\n---\n",
            ),
            ("a/b/c/SKILL.md", "---\ndescription: too deep\n---\n"),
            (".hub/x/SKILL.md", "---\ndescription: hidden\n---\n"),
            ("README.md", "not a skill"),
        ])
    }

    #[test]
    fn skills_are_found_one_or_two_folders_deep_and_sorted_by_name() {
        let skills = index(&catalog()).unwrap();
        let seen: Vec<_> = skills
            .iter()
            .map(|skill| (skill.name.as_str(), skill.category.as_str(), skill.description.as_str()))
            .collect();
        assert_eq!(
            seen,
            [("archive", "", "Packs files."), ("docx", "texts", "Word."), ("pdf", "office", "Reads PDF files.")]
        );
        assert_eq!(skills[1].platforms, ["linux"]);
        assert_eq!(index(&catalog()).unwrap(), skills);
    }

    #[test]
    fn a_skill_is_shown_unchanged_with_its_files() {
        let document = view(&catalog(), "archive", None).unwrap();
        assert_eq!(document.content, "---\nname: archive\ndescription: Packs files.\n---\n# Zip\n");
        assert_eq!(document.files, ["notes.md", "scripts/run.sh"]);
        assert_eq!(view(&catalog(), "archive", Some("./scripts/run.sh")).unwrap().content, "#!/bin/sh\n");
    }

    #[test]
    fn only_files_of_the_skill_can_be_read() {
        for path in
            ["../README.md", "../office/pdf/SKILL.md", "/etc/passwd", ".git/config", "scripts", "scripts/../notes.md"]
        {
            let error = view(&catalog(), "archive", Some(path)).unwrap_err();
            assert!(error.message.contains("available files: notes.md, scripts/run.sh"), "{path}: {error}");
        }
        let error = view(&catalog(), "nothing", None).unwrap_err();
        assert!(error.message.contains("archive, docx, pdf"), "{error}");
    }

    #[test]
    fn a_binary_file_is_named_as_one() {
        let mut folder = catalog();
        folder.0.insert("zip/logo.png", b"\x89PNG\0");
        assert_eq!(view(&folder, "archive", None).unwrap().files, ["logo.png", "notes.md", "scripts/run.sh"]);
        let error = view(&folder, "archive", Some("logo.png")).unwrap_err();
        assert!(error.message.contains("a binary file of 5 bytes"), "{error}");
    }

    #[test]
    fn each_skill_has_the_path_of_its_folder() {
        let skills = Catalog::read(&catalog()).unwrap().index("/home/a/skills/");
        let folders: Vec<_> = skills.iter().flat_map(|skill| &skill.extra).collect();
        let folder = |path: &str| ("folder".to_owned(), format!("/home/a/skills/{path}"));
        assert_eq!(folders, [&folder("zip"), &folder("office/docx"), &folder("office/pdf")]);
    }

    #[test]
    fn unusable_skills_are_skipped_with_a_reason() {
        let mut catalog = Memory::new(&[
            ("good/SKILL.md", "---\ndescription: Good.\n---\n"),
            ("again/SKILL.md", "---\nname: good\ndescription: First in order of folders.\n---\n"),
            ("empty/SKILL.md", ""),
            ("bare/SKILL.md", "---\nname: bare\n---\n# Bare\n"),
            ("odd/SKILL.md", "---\nname: Bad Name!!\ndescription: x\n---\n"),
            ("broken/SKILL.md", "---\nname: broken\ndescription\n---\nno\n"),
            (
                "long/SKILL.md",
                "---\nname: a name that is much longer than anyone would ever want to read or write it\ndescription: x\n---\n",
            ),
        ]);
        catalog.0.insert("binary/SKILL.md", b"\xff\xfe\x00");
        let catalog = Catalog::read(&catalog).unwrap();
        for reason in [
            "in again has the same name, good",
            "skill in empty: it has no front matter",
            "skill in bare: it has no description",
            "skill in long: its name has more than 64",
            "skill in odd: its name `Bad Name!!` may have only",
            "skill in broken: its YAML front matter is broken",
            "skill in binary: binary/SKILL.md is not UTF-8",
        ] {
            assert!(catalog.warnings.iter().any(|warning| warning.contains(reason)), "{:?}", catalog.warnings);
        }
        assert_eq!(catalog.warnings.len(), 7);
        let seen: Vec<_> = catalog.index("").into_iter().map(|skill| (skill.name, skill.description)).collect();
        assert_eq!(seen, [("good".to_owned(), "First in order of folders.".to_owned())]);
    }

    #[test]
    fn declared_variables_programs_settings_and_tools_are_named_for_the_host() {
        let text = "---\ndescription: x\nprerequisites:\n  commands: [pandoc]\nrequired_environment_variables:\n  - {name: KEY, \
            prompt: Your key, optional: true}\n  - PLAIN\nmetadata:\n  hermes:\n    requires_tools: [web_search]\n    \
            fallback_for_tools: browse\n    config: [{key: wiki.path, default: ~/wiki}]\n---\n";
        let skills = index(&Memory::new(&[("wiki/SKILL.md", text)])).unwrap();
        let seen: Vec<String> = skills[0].extra.iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(
            seen,
            [
                "requires-tool web_search",
                "fallback-for-tool browse",
                "command pandoc",
                r#"variable {"name":"KEY","prompt":"Your key","optional":"true"}"#,
                r#"variable {"name":"PLAIN"}"#,
                r#"setting {"key":"wiki.path","default":"~/wiki"}"#,
            ]
        );
    }

    #[test]
    fn a_folder_without_skills_gives_an_empty_list() {
        assert_eq!(index(&Memory::new(&[])), Ok(Vec::new()));
    }
}
