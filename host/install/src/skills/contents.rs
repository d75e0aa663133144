//! The files of a skill: read once, within limits, and without following links.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use hermes_plugin_host::{Digest, digest};
use serde::Serialize;

use super::header::SkillFlaw;
use crate::archive::unfit;

/// Most files of a skill. The largest known ones have about 200; the model is shown no more than that.
pub const MOST_FILES: usize = 500;
/// Most bytes of all files: fonts, schemas and pictures need a few MiB, and each update reads all of them.
pub const MOST_BYTES: u64 = 16 << 20;
/// Most bytes of one file.
pub const MOST_FILE: u64 = 4 << 20;
/// Most bytes of a `SKILL.md`, which the model reads as a whole: about 64,000 tokens.
pub const MOST_TEXT: u64 = 256 << 10;
/// How many folders deep a file can lie: the plugin that shows skills to the model lists no deeper ones.
pub const MOST_DEPTH: usize = 6;

/// Names that tools leave in any folder. They do not belong to a skill, and are no change of it.
const NOT_ITS_OWN: &[&str] = &["node_modules", "__pycache__", "venv", ".venv", ".DS_Store"];

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillFile {
    /// Its name below the skill's folder, with `/`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Where a skill lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a source. Hidden files there are not part of the skill.
    Source,
    /// Among the user's skills, where a hidden file is one that the user added.
    Home,
}

/// All files below a folder, sorted by name.
pub(super) fn contents(folder: &Path, place: Place) -> Result<Vec<SkillFile>, SkillFlaw> {
    let mut files = Vec::new();
    let mut left = MOST_BYTES;
    let mut folders = vec![(String::new(), folder.to_owned(), 0)];
    while let Some((prefix, folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&error))? {
            let entry = entry.map_err(|error| unreadable(&error))?;
            let part = entry.file_name();
            let name = format!("{prefix}{}", part.to_string_lossy());
            let is_hidden = place == Place::Source && name[prefix.len()..].starts_with('.');
            if is_hidden || NOT_ITS_OWN.iter().any(|known| part == *known) {
                continue;
            }
            let why = part.to_str().map_or(Some("is not UTF-8"), unfit);
            if let Some(why) = why.filter(|_| place == Place::Source) {
                return Err(SkillFlaw::FileName { name, why });
            }
            // This is the type of the entry itself: links are not followed.
            let kind = entry.file_type().map_err(|error| unreadable(&error))?;
            if kind.is_dir() {
                if depth == MOST_DEPTH {
                    return Err(SkillFlaw::Deep(name));
                }
                folders.push((format!("{name}/"), entry.path(), depth + 1));
                continue;
            }
            if kind.is_symlink() {
                return Err(SkillFlaw::Link(name));
            }
            if !kind.is_file() {
                return Err(SkillFlaw::Special(name));
            }
            if files.len() == MOST_FILES {
                return Err(SkillFlaw::Many(MOST_FILES));
            }
            let most = if name == super::SKILL { MOST_TEXT } else { MOST_FILE };
            let bytes = read(&entry.path(), &name, most)?;
            left = left.checked_sub(bytes.len() as u64).ok_or(SkillFlaw::Heavy(MOST_BYTES))?;
            files.push(SkillFile { name, bytes });
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Reads a file of a skill.
pub(super) fn read(path: &Path, name: &str, most: u64) -> Result<Vec<u8>, SkillFlaw> {
    hermes_private_files::read_regular(path, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => SkillFlaw::Large { file: name.to_owned(), most },
        _ => unreadable(&error),
    })
}

/// The text of a `SKILL.md`.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, SkillFlaw> {
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| SkillFlaw::NotText(super::SKILL.to_owned()))
}

pub(super) fn unreadable(error: &io::Error) -> SkillFlaw {
    SkillFlaw::Unreadable(error.to_string())
}

/// The digest of a skill: that of a folder with these files.
pub(super) fn digest_of(files: &[SkillFile]) -> Digest {
    digest::of_files(files.iter().map(|file| (file.name.as_str(), file.bytes.as_slice())))
}

/// The digest of each file.
pub(super) fn digests(files: &[SkillFile]) -> BTreeMap<String, Digest> {
    files.iter().map(|file| (file.name.clone(), Digest::of(&file.bytes))).collect()
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// It has other content.
    Changed,
    /// It is gone.
    Removed,
}

/// A file that differs between two states of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The file.
    pub name: String,
    /// How it differs.
    pub change: Change,
}

/// The differences between two states, sorted by name.
pub(super) fn changes(before: &BTreeMap<String, Digest>, after: &BTreeMap<String, Digest>) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = after
        .iter()
        .filter_map(|(name, digest)| {
            let change = match before.get(name) {
                None => Change::Added,
                Some(old) if old != digest => Change::Changed,
                Some(_) => return None,
            };
            Some(FileChange { name: name.clone(), change })
        })
        .collect();
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    changes.extend(gone.map(|name| FileChange { name: name.clone(), change: Change::Removed }));
    changes.sort_by(|one, other| one.name.cmp(&other.name));
    changes
}
