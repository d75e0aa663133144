//! The skills of a fetched source: the folder itself, those below `skills`, or all others.

use std::fs;
use std::path::{Path, PathBuf};

use super::SKILL;
use super::contents::{self, MOST_TEXT, unreadable};
use super::header::{SkillFlaw, SkillHeader};
use crate::error::InstallError;
use crate::stage::Stage;

/// How many folders deep a skill can lie in its source, as in `plugins/NAME/skills/NAME`.
const DEPTH: usize = 5;
/// Most entries of folders that are visited: a user may name a large folder by mistake.
const MOST_VISITED: usize = 20_000;
/// Folders of tools, in which nobody keeps skills.
const SKIPPED: &[&str] = &[".git", "node_modules", "__pycache__", "venv", ".venv", "target"];

/// A fetched source. Dropping it removes its files.
#[derive(Debug)]
pub struct FetchedSkills {
    pub(super) _stage: Stage,
    /// The source in full.
    pub source: String,
    /// The commit or the digest of an image that the source resolved to.
    pub resolved: Option<String>,
    /// The skills in it, sorted by their folders.
    pub skills: Vec<OfferedSkill>,
    /// The links that were left out of an archive.
    pub(super) links: Vec<PathBuf>,
}

/// A skill of a source.
#[derive(Debug, Clone)]
pub struct OfferedSkill {
    /// Its folder in the source, with `/`; empty if the source is the skill.
    pub path: String,
    /// What its `SKILL.md` says, or why it cannot be used.
    pub header: Result<SkillHeader, SkillFlaw>,
    pub(super) folder: PathBuf,
}

impl OfferedSkill {
    /// Its name; that of its folder if its `SKILL.md` cannot be used.
    pub fn name(&self) -> &str {
        match &self.header {
            Ok(header) => &header.name,
            Err(_) => self.path.rsplit('/').next().unwrap_or(&self.path),
        }
    }
}

impl FetchedSkills {
    /// The skill with this name or, if several have it, in this folder.
    ///
    /// # Errors
    ///
    /// When there is none, or there are several.
    pub fn get(&self, name: &str) -> Result<&OfferedSkill, InstallError> {
        let named: Vec<&OfferedSkill> = self.skills.iter().filter(|skill| skill.name() == name).collect();
        let at = || self.skills.iter().find(|skill| skill.path == name);
        match named.as_slice() {
            [one] => Ok(one),
            [] => at().ok_or_else(|| InstallError::NoSuchSkill {
                name: name.to_owned(),
                from: self.source.clone(),
                there: self.skills.iter().map(|skill| skill.name().to_owned()).collect(),
            }),
            several => Err(InstallError::SkillTwice {
                name: name.to_owned(),
                from: self.source.clone(),
                paths: several.iter().map(|skill| skill.path.clone()).collect(),
            }),
        }
    }
}

/// Finds the skills of a folder. `own_name` is the name of the folder, if it says something.
pub(super) fn find(root: &Path, own_name: Option<&str>) -> Result<Vec<OfferedSkill>, SkillFlaw> {
    if is_skill(root) {
        return Ok(vec![offered(root, String::new(), own_name)]);
    }
    // What lies elsewhere, such as a template, is not meant to be installed.
    let skills = root.join("skills");
    let is_folder = fs::symlink_metadata(&skills).is_ok_and(|found| found.is_dir());
    let below = if is_folder { search(&skills, "skills")? } else { Vec::new() };
    if below.is_empty() { search(root, "") } else { Ok(below) }
}

fn is_skill(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(SKILL)).is_ok_and(|found| found.is_file())
}

fn search(root: &Path, path: &str) -> Result<Vec<OfferedSkill>, SkillFlaw> {
    let mut found = Vec::new();
    let mut visited = 0;
    let mut folders = vec![(root.to_owned(), path.to_owned(), 0)];
    while let Some((folder, path, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&error))? {
            let entry = entry.map_err(|error| unreadable(&error))?;
            visited += 1;
            if visited > MOST_VISITED {
                return Err(SkillFlaw::Many(MOST_VISITED));
            }
            // This is the type of the entry itself: links are not followed.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Some(part) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if !is_folder || SKIPPED.contains(&part.as_str()) {
                continue;
            }
            let path = if path.is_empty() { part.clone() } else { format!("{path}/{part}") };
            match is_skill(&entry.path()) {
                true => found.push(offered(&entry.path(), path, Some(&part))),
                false if depth + 1 < DEPTH => folders.push((entry.path(), path, depth + 1)),
                false => {}
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn offered(folder: &Path, path: String, own_name: Option<&str>) -> OfferedSkill {
    let header = contents::read(&folder.join(SKILL), SKILL, MOST_TEXT).and_then(contents::text);
    let header = header.and_then(|text| SkillHeader::parse(&text, own_name));
    OfferedSkill { path, header, folder: folder.to_owned() }
}
