//! Skills: folders with a `SKILL.md`. Both programs read the same format.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_app::Setup;
use hermes_app::skills::{Review, SkillFile, SkillHeader, Suspicion, review};
use hermes_diagnostic::counted;
use hermes_prompt::scan::{self, Scope};
use hermes_skill_format::Header;
use md5::{Digest as _, Md5};

use crate::report::{PartReport, first};
use crate::{Mode, PeerHome};

const FOLDER: &str = "skills";
const SKILL: &str = "SKILL.md";
/// Where the peer lists the skills that it installs.
const INSTALLED: &str = "skills/.bundled_manifest";
/// The limits of a skill.
const MOST_FILES: usize = 1_000;
const MOST_BYTES: u64 = 16 << 20;
const DEEPEST: usize = 6;
/// More than anyone has.
const MOST_SKILLS: usize = 1_000;
/// Begins the names of copies that are not complete.
const STAGED: &str = ".import-";
/// Folders of tools, as sessions skip them.
const SKIPPED: [&str; 3] = ["node_modules", "__pycache__", "venv"];

/// A skill: its files by their paths in it.
struct Skill {
    files: BTreeMap<PathBuf, File>,
}

#[derive(PartialEq, Eq)]
struct File {
    content: Vec<u8>,
    is_program: bool,
}

pub(crate) fn import(peer: &PeerHome, setup: &Setup, mode: Mode, report: &mut PartReport) {
    let root = match peer.within(FOLDER) {
        Ok(Some(root)) => root,
        Ok(None) => return,
        Err(why) => return report.left(why),
    };
    let own = setup.home.path().join(FOLDER);
    if let Mode::Write { .. } = mode {
        clear_unfinished(&own);
    }
    let installed = installed(peer);
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let (mut known, mut bundled) = (0, 0);
    for path in found(&root) {
        let shown = path.display();
        if is_as_installed(&root.join(&path), &installed) {
            bundled += 1;
            continue;
        }
        let outcome = read(&root.join(&path), &root).and_then(|skill| {
            let rights = check(&path, &skill)?;
            Ok((put(&skill, &own, &path, mode)?, rights))
        });
        match outcome {
            Ok((true, rights)) => {
                taken.push(format!("{shown}"));
                rights.into_iter().for_each(|line| report.right(format!("skill {shown}: {line}")));
            }
            Ok((false, _)) => known += 1,
            Err(why) => left.push(format!("{shown}: {why}")),
        }
    }
    if !taken.is_empty() {
        let count = counted(taken.len() as u64, "skill");
        report.taken(format!("{count}: {}", taken.join(", ")));
    }
    if known > 0 {
        report.known(counted(known, "skill"));
    }
    first(left, "skill").into_iter().for_each(|line| report.left(line));
    if bundled > 0 {
        let count = counted(bundled, "skill");
        report.left(format!("{count} that Hermes Agent installs, without a change of yours"));
    }
}

/// `NAME` and `CATEGORY/NAME` of all folders with a `SKILL.md`.
fn found(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for outer in folders(root) {
        let path = root.join(&outer);
        if path.join(SKILL).symlink_metadata().is_ok() {
            found.push(PathBuf::from(outer));
            continue;
        }
        let inner = folders(&path).into_iter().map(|inner| Path::new(&outer).join(inner));
        found.extend(inner.filter(|inner| root.join(inner).join(SKILL).symlink_metadata().is_ok()));
    }
    found.truncate(MOST_SKILLS);
    found
}

/// The folders in a folder, without links, in the order of their names.
fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.') && !SKIPPED.contains(&name.as_str()));
    names.sort();
    names
}

/// The names of the skills that the peer installs, each with the digest of what it installed; an old list has none.
fn installed(peer: &PeerHome) -> BTreeMap<String, String> {
    let file = peer.within(INSTALLED).ok().flatten();
    let text = file.and_then(|file| hermes_private_files::read_text(&file, 1 << 20).ok()).unwrap_or_default();
    let entry = |line: &str| {
        let (name, digest) = line.split_once(':').unwrap_or((line, ""));
        (name.trim().to_owned(), digest.trim().to_owned())
    };
    text.lines().map(entry).collect()
}

/// Whether the peer installed a skill, and the user has not changed it since.
fn is_as_installed(folder: &Path, installed: &BTreeMap<String, String>) -> bool {
    let text = hermes_private_files::read_text(&folder.join(SKILL), 1 << 20).unwrap_or_default();
    let of_folder = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    // The peer's list has the names of the skills, which are usually those of their folders.
    let names = [Header::parse(&text, None).ok().map(|header| header.name), of_folder];
    let Some(digest) = names.iter().flatten().find_map(|name| installed.get(name)) else { return false };
    // Running a script leaves files that are no change of the user's.
    digest.is_empty() || [true, false].iter().any(|whole| digest_of(folder, *whole).as_deref() == Some(digest))
}

/// The digest of a folder as the peer computes it (`_dir_hash` of `skills_sync.py`): the MD5 of names and contents in order.
/// Without hidden files and folders of tools unless it is `whole`; none for a folder beyond the limits of a skill.
fn digest_of(folder: &Path, whole: bool) -> Option<String> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((inner, depth)) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let name = name.to_str()?;
            if !whole && (name.starts_with('.') || SKIPPED.contains(&name)) {
                continue;
            }
            let kind = entry.file_type().ok()?;
            match kind.is_dir() {
                true if depth < DEEPEST => folders.push((inner.join(name), depth + 1)),
                false if kind.is_file() && files.len() < MOST_FILES => files.push(inner.join(name)),
                _ => return None,
            }
        }
    }
    files.sort();
    let (mut hash, mut left) = (Md5::new(), MOST_BYTES);
    for file in &files {
        let content = hermes_private_files::read_regular(&folder.join(file), left).ok()?;
        left = left.checked_sub(content.len() as u64)?;
        hash.update(file.to_str()?.as_bytes());
        hash.update(content);
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(path: &Path, root: &Path) -> Result<Skill, String> {
    let mut skill = Skill { files: BTreeMap::new() };
    let mut bytes = 0;
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > DEEPEST {
            return Err(format!("its folders are more than {DEEPEST} deep"));
        }
        let entries = fs::read_dir(path.join(&folder)).map_err(|error| format!("it cannot be read: {error}"))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("it cannot be read: {error}"))?;
            let inner = folder.join(entry.file_name());
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let kind = entry.file_type().map_err(|error| format!("it cannot be read: {error}"))?;
            if kind.is_symlink() {
                let real = fs::canonicalize(entry.path());
                if !real.is_ok_and(|real| real.starts_with(root)) {
                    return Err(format!("{} is a link that leads out of the skills", inner.display()));
                }
                return Err(format!("{} is a link", inner.display()));
            }
            if kind.is_dir() {
                if !hidden && !SKIPPED.contains(&entry.file_name().to_string_lossy().as_ref()) {
                    folders.push((inner, depth + 1));
                }
                continue;
            }
            if hidden {
                continue;
            }
            let content = hermes_private_files::read_regular(&entry.path(), MOST_BYTES - bytes)
                .map_err(|error| format!("{}: {error}", inner.display()))?;
            bytes += content.len() as u64;
            skill.files.insert(inner, File { content, is_program: is_program(&entry.path()) });
            if skill.files.len() > MOST_FILES {
                return Err(format!("it has more than {MOST_FILES} files"));
            }
        }
    }
    Ok(skill)
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_program(_: &Path) -> bool {
    false
}

/// What the user should know of a skill: its description, which prompts contain, and passages that the scan reports. Sessions
/// would skip a broken skill, and a suspicious one must be read by a person first.
fn check(path: &Path, skill: &Skill) -> Result<Vec<String>, String> {
    let text = skill.files.get(Path::new(SKILL)).map(|file| std::str::from_utf8(&file.content));
    let Some(Ok(text)) = text else { return Err("SKILL.md is not a text".to_owned()) };
    let folder = path.file_name().and_then(|name| name.to_str());
    Header::parse(text, folder).map_err(|flaw| flaw.to_string())?;
    // The name of the category is in the list of skills, too.
    let findings = scan::findings(&path.to_string_lossy().replace(['-', '_', '/'], " "), Scope::Context);
    if let Some(finding) = findings.first() {
        return Err(format!("its name is suspicious ({finding})"));
    }
    let header = SkillHeader::parse(text, folder).map_err(|flaw| flaw.to_string())?;
    let files: Vec<SkillFile> = skill.files.iter().map(|(path, file)| file.of_skill(path)).collect();
    let Review { blocked, asked, noted } = review(&header, &files);
    // An import asks one question about everything, and no such passage.
    if let Some(Suspicion { file, passage, .. }) = blocked.iter().chain(&asked).next() {
        return Err(format!(
            "{file} is suspicious, {passage}; read it, and install its folder with `hermes skills install`"
        ));
    }
    let noted = noted.into_iter().map(|suspicion| format!("{suspicion} is unusual"));
    Ok([header.description].into_iter().chain(noted).collect())
}

impl File {
    fn of_skill(&self, path: &Path) -> SkillFile {
        SkillFile { name: path.to_string_lossy().replace('\\', "/"), bytes: self.content.clone() }
    }
}

/// Copies a skill; false if it is here.
fn put(skill: &Skill, own: &Path, path: &Path, mode: Mode) -> Result<bool, String> {
    let target = own.join(path);
    if target.symlink_metadata().is_ok() {
        let here = read(&target, own).is_ok_and(|here| {
            here.files.len() == skill.files.len()
                && here
                    .files
                    .iter()
                    .zip(&skill.files)
                    .all(|(here, there)| here.0 == there.0 && here.1.content == there.1.content)
        });
        return if here { Ok(false) } else { Err("another skill of this name is here".to_owned()) };
    }
    if let Mode::Write { .. } = mode {
        copy(skill, own, &target).map_err(|error| format!("it cannot be written: {error}"))?;
    }
    Ok(true)
}

/// Under another name first: nobody reads a skill before it is complete.
fn copy(skill: &Skill, own: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(own)?;
    let staged = tempfile::Builder::new().prefix(STAGED).tempdir_in(own)?;
    let inner = staged.path().join("skill");
    for (path, file) in &skill.files {
        let path = inner.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&inner))?;
        hermes_private_files::write_atomically(&path, &file.content)?;
        make_program(&path, file.is_program)?;
    }
    fs::create_dir_all(target.parent().unwrap_or(own))?;
    fs::rename(&inner, target)?;
    hermes_private_files::sync_folder(target.parent().unwrap_or(own))
}

#[cfg(unix)]
fn make_program(path: &Path, is_program: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if is_program { fs::set_permissions(path, fs::Permissions::from_mode(0o700)) } else { Ok(()) }
}

#[cfg(not(unix))]
fn make_program(_: &Path, _: bool) -> io::Result<()> {
    Ok(())
}

/// Removes what an interrupted import left.
fn clear_unfinished(own: &Path) {
    let entries = fs::read_dir(own).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(STAGED)) {
        // If it stays, it is hidden and does no harm.
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_of_the_peer_is_as_installed_until_the_user_changes_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tea");
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("SKILL.md", "---\nname: brew\ndescription: Brews tea.\n---\n");
        write("a/b.md", "one");
        write("a.md", "two");
        // What `_dir_hash` of Hermes Agent 0.19.0 gives for this folder.
        let list = |name: &str, digest: &str| BTreeMap::from([(name.to_owned(), digest.to_owned())]);
        let known = list("brew", "157cd8fa6251ebde0aecdf6f868a4eab");
        assert!(is_as_installed(&folder, &known));
        write("__pycache__/x.pyc", "x");
        assert!(is_as_installed(&folder, &known));
        write("a.md", "three");
        assert!(!is_as_installed(&folder, &known));
        // An old list has no digests, and another skill is not in it.
        assert!(is_as_installed(&folder, &list("tea", "")));
        assert!(!is_as_installed(&folder, &list("coffee", "")));
    }
}
