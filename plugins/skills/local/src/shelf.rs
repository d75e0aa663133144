//! Which folders are skills, and which files belong to one.

use hermes_plugin::files::{Entry, Kind};
use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, log};

use crate::front_matter::{self, Parts};

/// The file that makes a folder a skill.
const SKILL: &str = "SKILL.md";
/// Folders with what belongs to tools and not to a skill, beside all that are hidden.
const SKIPPED: &[&str] = &["node_modules", "__pycache__", "venv"];
/// Files of a skill that are listed; others can be read by whoever knows of them.
const FILES: usize = 200;
/// How deep the files of a skill may lie.
const DEPTH: usize = 6;
/// Characters of a name and a description that the index takes.
const NAME: usize = 64;
const DESCRIPTION: usize = 1_024;

/// A folder with skills; paths are relative to it.
pub(crate) trait Folder {
    fn entries(&self, path: &str) -> Result<Vec<Entry>, Error>;
    fn read(&self, path: &str) -> Result<Vec<u8>, Error>;
}

/// A skill and where it lies.
struct Shelved {
    skill: Skill,
    folder: String,
    text: String,
}

/// All skills by name, and why others are left out.
pub(crate) struct Shelf {
    skills: Vec<Shelved>,
    /// One line each.
    pub(crate) complaints: Vec<String>,
}

impl Shelf {
    /// `NAME/SKILL.md` and `CATEGORY/NAME/SKILL.md`.
    pub(crate) fn read(folder: &impl Folder) -> Result<Self, Error> {
        let mut shelf = Self { skills: Vec::new(), complaints: Vec::new() };
        for outer in folders(folder, "")? {
            if !shelf.load(folder, &outer) {
                match folders(folder, &outer) {
                    Ok(inner) => inner.iter().for_each(|inner| {
                        shelf.load(folder, inner);
                    }),
                    Err(error) if is_no_folder(&error) => {}
                    Err(error) => shelf.complaints.push(format!("the skills in {outer} are left out: {error}")),
                }
            }
        }
        shelf.sort();
        Ok(shelf)
    }

    /// Takes the skill in a folder, if it is one; says whether it is.
    fn load(&mut self, folder: &impl Folder, path: &str) -> bool {
        let file = format!("{path}/{SKILL}");
        let shelved = match folder.read(&file) {
            Ok(bytes) => text(&file, bytes).and_then(|text| shelve(path, text)),
            Err(error) if is_no_folder(&error) => return false,
            Err(error) => Err(error),
        };
        match shelved {
            Ok((shelved, complaint)) => {
                self.skills.push(shelved);
                self.complaints.extend(complaint);
            }
            Err(error) => self.complaints.push(format!("the skill in {path} is left out: {error}")),
        }
        true
    }

    fn sort(&mut self) {
        self.skills.sort_by(|a, b| (&a.skill.name, &a.folder).cmp(&(&b.skill.name, &b.folder)));
        self.skills.dedup_by(|later, first| {
            let same = later.skill.name == first.skill.name;
            if same {
                self.complaints.push(format!(
                    "the skill in {} is left out: the one in {} has the same name, {}",
                    later.folder, first.folder, first.skill.name
                ));
            }
            same
        });
    }

    pub(crate) fn index(self) -> Vec<Skill> {
        self.skills.into_iter().map(|shelved| shelved.skill).collect()
    }

    /// A skill, or one of its files.
    pub(crate) fn view(self, folder: &impl Folder, name: &str, path: Option<&str>) -> Result<Document, Error> {
        let Some(shelved) = self.skills.iter().find(|shelved| shelved.skill.name == name) else {
            let names: Vec<_> = self.skills.iter().map(|shelved| shelved.skill.name.as_str()).collect();
            return Err(Error::invalid(format!("there is no skill `{name}`; there are: {}", listed(&names))));
        };
        let mut files = files_of(folder, &shelved.folder)?;
        let path = path.map(|path| path.trim_start_matches("./")).filter(|path| !path.is_empty() && *path != SKILL);
        let known = path.is_none_or(|path| files.iter().any(|file| file == path));
        if files.len() > FILES {
            log::warn(format!("the skill {name} has {} files, of which the first {FILES} are listed", files.len()));
            files.truncate(FILES);
        }
        let Some(path) = path else { return Ok(Document { content: shelved.text.clone(), files }) };
        if !known {
            return Err(Error::invalid(format!("the skill `{name}` has no file `{path}`; it has: {}", listed(&files))));
        }
        let full = format!("{}/{path}", shelved.folder);
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

/// Nothing is there, or a link stands among the folders and leads to a file or nowhere.
fn is_no_folder(error: &Error) -> bool {
    error.code == "not-found" || error.code == "not-a-directory"
}

fn is_wanted(path: &str) -> bool {
    let name = last_part(path);
    !name.starts_with('.') && !SKIPPED.contains(&name)
}

/// The skill, and what is wrong with it all the same.
fn shelve(folder: &str, text: String) -> Result<(Shelved, Option<String>), Error> {
    let Parts { front, body, complaint } = front_matter::split(&text);
    let complaint = complaint.map(|reason| {
        format!("{folder}/{SKILL} has no valid YAML between its lines of ---, which is read line by line: {reason}")
    });
    let given = |text: &Option<String>| text.as_deref().map(one_line).filter(|text| !text.is_empty());
    let name = given(&front.name).unwrap_or_else(|| last_part(folder).to_owned());
    if name.chars().count() > NAME {
        return Err(Error::invalid(format!("its name has more than {NAME} characters")));
    }
    let description = given(&front.description)
        .or_else(|| first_sentence(body))
        .ok_or_else(|| Error::invalid("it has no description: put one between lines of --- at its top"))?;
    let category = match &front.category {
        Some(category) => one_line(category),
        None => folder.rsplit_once('/').map(|(category, _)| category.to_owned()).unwrap_or_default(),
    };
    let skill = Skill {
        name,
        description: description.chars().take(DESCRIPTION).collect(),
        category,
        tags: front.tags,
        platforms: front.platforms.iter().map(|platform| platform.to_lowercase()).collect(),
        requires_toolsets: front.requires_toolsets,
        fallback_for_toolsets: front.fallback_for_toolsets,
        extra: Vec::new(),
    };
    Ok((Shelved { skill, folder: folder.to_owned(), text }, complaint))
}

/// For a skill that does not describe itself: the first line that is no heading.
fn first_sentence(body: &str) -> Option<String> {
    body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).map(one_line)
}

/// Relative to the skill, without the skill itself.
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
                // Links are not followed: they could lead to another skill, or in a circle.
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

fn text(path: &str, bytes: Vec<u8>) -> Result<String, Error> {
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| Error::invalid(format!("{path} is no text in UTF-8")))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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

    /// Files by path.
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
            let found: BTreeSet<_> = below
                .map(|rest| {
                    rest.split_once('/').map_or((rest, Kind::File as u8), |(dir, _)| (dir, Kind::Directory as u8))
                })
                .collect();
            let entry = |(name, kind): (&str, u8)| Entry {
                path: format!("{prefix}{name}"),
                kind: if kind == Kind::File as u8 { Kind::File } else { Kind::Directory },
                size: 0,
                modified_at: 0,
                version: String::new(),
            };
            // In no particular order.
            Ok(found.into_iter().rev().map(entry).collect())
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
            let missing = || Error::invalid(format!("no {path}")).with_code("not-found");
            self.0.get(path).map(|bytes| bytes.to_vec()).ok_or_else(missing)
        }
    }

    fn index(folder: &Memory) -> Result<Vec<Skill>, Error> {
        Shelf::read(folder).map(Shelf::index)
    }

    fn view(folder: &Memory, name: &str, path: Option<&str>) -> Result<Document, Error> {
        Shelf::read(folder)?.view(folder, name, path)
    }

    fn shelf() -> Memory {
        Memory::new(&[
            ("zip/SKILL.md", "---\nname: archive\ndescription: Packs files.\n---\n# Zip\n"),
            ("zip/scripts/run.sh", "#!/bin/sh\n"),
            ("zip/notes.md", "notes"),
            ("zip/.git/config", "x"),
            ("zip/node_modules/a/b.js", "x"),
            ("office/pdf/SKILL.md", "\u{feff}# PDF\n\nReads   PDF files.\n"),
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
    fn skills_lie_one_or_two_folders_deep_and_are_sorted_by_name() {
        let skills = index(&shelf()).unwrap();
        let seen: Vec<_> = skills
            .iter()
            .map(|skill| (skill.name.as_str(), skill.category.as_str(), skill.description.as_str()))
            .collect();
        assert_eq!(
            seen,
            [("archive", "", "Packs files."), ("docx", "texts", "Word."), ("pdf", "office", "Reads PDF files.")]
        );
        assert_eq!(skills[1].platforms, ["linux"]);
        assert_eq!(index(&shelf()).unwrap(), skills);
    }

    #[test]
    fn a_skill_comes_as_written_with_its_files() {
        let document = view(&shelf(), "archive", None).unwrap();
        assert_eq!(document.content, "---\nname: archive\ndescription: Packs files.\n---\n# Zip\n");
        assert_eq!(document.files, ["notes.md", "scripts/run.sh"]);
        assert_eq!(view(&shelf(), "archive", Some("./scripts/run.sh")).unwrap().content, "#!/bin/sh\n");
    }

    #[test]
    fn only_files_of_the_skill_are_served() {
        for path in
            ["../README.md", "../office/pdf/SKILL.md", "/etc/passwd", ".git/config", "scripts", "scripts/../notes.md"]
        {
            let error = view(&shelf(), "archive", Some(path)).unwrap_err();
            assert!(error.message.contains("it has: notes.md, scripts/run.sh"), "{path}: {error}");
        }
        let error = view(&shelf(), "nothing", None).unwrap_err();
        assert!(error.message.contains("archive, docx, pdf"), "{error}");
    }

    #[test]
    fn skills_that_cannot_be_used_are_left_out_with_the_reason() {
        let mut shelf = Memory::new(&[
            ("good/SKILL.md", "---\ndescription: Good.\n---\n"),
            ("again/SKILL.md", "---\nname: good\ndescription: First in order of folders.\n---\n"),
            ("empty/SKILL.md", ""),
            ("bare/SKILL.md", "---\nname: bare\n---\n# Bare\n"),
            (
                "long/SKILL.md",
                "---\nname: a name that is much longer than anyone would ever want to read or write it\ndescription: x\n---\n",
            ),
        ]);
        shelf.0.insert("binary/SKILL.md", b"\xff\xfe\x00");
        let shelf = Shelf::read(&shelf).unwrap();
        for reason in [
            "in again has the same name, good",
            "in empty is left out: it has no description",
            "in bare is left out: it has no description",
            "in long is left out: its name has more than 64",
            "in binary is left out: binary/SKILL.md is no text",
        ] {
            assert!(shelf.complaints.iter().any(|complaint| complaint.contains(reason)), "{:?}", shelf.complaints);
        }
        assert_eq!(shelf.complaints.len(), 5);
        let seen: Vec<_> = shelf.index().into_iter().map(|skill| (skill.name, skill.description)).collect();
        assert_eq!(seen, [("good".to_owned(), "First in order of folders.".to_owned())]);
    }

    #[test]
    fn no_skills_are_an_empty_list() {
        assert_eq!(index(&Memory::new(&[])), Ok(Vec::new()));
    }
}
