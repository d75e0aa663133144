//! The folders of git that programs may write, and the files in them that they may not: those that choose which programs git
//! runs.
//!
//! Objects, refs, the index, `HEAD` and logs stay writable, so that `git commit` works. `config` and `hooks` name programs, and
//! `commondir` and `gitdir` lead to another `config`.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that choose programs.
const DECISIVE: [&str; 5] = ["config", "config.worktree", "hooks", "commondir", "gitdir"];
/// Those of them that must not appear where they are absent.
pub(super) const ABSENT: [&str; 3] = ["config", "config.worktree", "commondir"];
/// How deep folders of submodules are looked for: their names may contain slashes.
const DEEPEST: usize = 4;
const LONGEST: u64 = 64 << 10;

/// A folder of git, with links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The folder with objects and refs, or that of one work tree.
    pub(super) folder: PathBuf,
    /// The paths in it that must not change.
    pub(super) decisive: Vec<PathBuf>,
    /// Whether it only contains others. It must not move either: another folder could take its place.
    pub(super) is_passage: bool,
}

/// Whether a folder looks like one of git.
pub(super) fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))
}

/// Whether a folder has what would choose programs as soon as it is one of git: `git init` keeps it.
pub(super) fn has_parts(folder: &Path) -> bool {
    let has_entries = |name: &str| fs::read_dir(folder.join(name)).is_ok_and(|mut entries| entries.next().is_some());
    let is_closed = |name: &str| is_unlistable(&folder.join(name));
    ABSENT.iter().any(|name| folder.join(name).symlink_metadata().is_ok())
        || ["hooks", "modules"].iter().any(|name| has_entries(name) || is_closed(name))
}

/// Whether there is a folder that cannot be listed.
fn is_unlistable(folder: &Path) -> bool {
    fs::read_dir(folder)
        .is_err_and(|error| !matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory))
}

impl Repository {
    /// The folder in it whose contents cannot be protected, because it cannot be listed.
    pub(super) fn unlistable(&self) -> Option<PathBuf> {
        let parts = ["worktrees", "modules"].map(|name| self.folder.join(name));
        let own = Some(self.folder.clone()).filter(|_| self.is_passage);
        parts.into_iter().chain(own).find(|folder| is_unlistable(folder))
    }

    fn new(folder: PathBuf) -> Self {
        let decisive = DECISIVE.iter().map(|name| folder.join(name)).filter(|path| path.symlink_metadata().is_ok());
        Self { decisive: decisive.collect(), folder, is_passage: false }
    }

    fn passage(folder: PathBuf) -> Self {
        Self { folder, decisive: Vec::new(), is_passage: true }
    }

    /// The folder of git, and those of its work trees and submodules.
    pub(super) fn with_parts(folder: PathBuf) -> Vec<Self> {
        let hooks = folder.join("hooks");
        if hooks.symlink_metadata().is_err() && folder.join("objects").is_dir() {
            // An empty folder is what `git init` makes. Where it is absent, a program could create it.
            let _ = fs::create_dir(&hooks);
        }
        let mut all = Vec::new();
        worktrees(&folder.join("worktrees"), &mut all);
        modules(&folder.join("modules"), 0, &mut all);
        all.push(Self::new(folder));
        all
    }

    /// The folders of git that a file `.git` leads to, if the folder of git leads back to that file: only then did git create
    /// the connection, and not a program that wants to write there.
    pub(super) fn behind(file: &Path) -> Option<Vec<Self>> {
        let named = gitdir(file)?;
        let own = file.canonicalize().ok()?;
        let worktree = file.parent()?.canonicalize().ok()?;
        let leads_back = match text(&named.join("gitdir")) {
            Some(back) => named.join(back.trim()).canonicalize().ok()? == own,
            // A submodule names its work tree in its configuration.
            None => {
                let config = text(&named.join("config"))?;
                let tree = config.lines().find_map(|line| line.trim().strip_prefix("worktree = "))?;
                named.join(tree.trim()).canonicalize().ok()? == worktree
            }
        };
        if !leads_back || !is_repository(&named) {
            return None;
        }
        Some(match text(&named.join("commondir")) {
            Some(common) => {
                let common = named.join(common.trim()).canonicalize().ok()?;
                if !is_repository(&common) || !named.starts_with(common.join("worktrees")) {
                    return None;
                }
                Self::with_parts(common)
            }
            None => Self::with_parts(named),
        })
    }
}

/// The folder that a file `.git` names, with links resolved.
pub(super) fn gitdir(file: &Path) -> Option<PathBuf> {
    let content = text(file)?;
    let named = content.strip_prefix("gitdir:")?.trim_matches(|character: char| character.is_ascii_whitespace());
    file.parent()?.join(named).canonicalize().ok()
}

/// The text of a file of usual size.
pub(super) fn text(file: &Path) -> Option<String> {
    String::from_utf8(hermes_private_files::read_regular(file, LONGEST).ok()?).ok()
}

/// The folders in a folder.
fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// The folders of work trees. One without `HEAD` counts as well: a program could complete it later.
fn worktrees(folder: &Path, all: &mut Vec<Repository>) {
    all.extend(folders(folder).map(Repository::new));
    all.extend(Some(folder).filter(|folder| is_folder(folder)).map(|folder| Repository::passage(folder.to_owned())));
}

/// The folders of submodules, at any depth, because their names may contain slashes. Incomplete ones count as well.
fn modules(folder: &Path, depth: usize, all: &mut Vec<Repository>) {
    for path in folders(folder) {
        if has_signs(&path) {
            all.extend(Repository::with_parts(path));
        } else if depth < DEEPEST {
            modules(&path, depth + 1, all);
        }
    }
    all.extend(Some(folder).filter(|folder| is_folder(folder)).map(|folder| Repository::passage(folder.to_owned())));
}

/// Whether a folder is that of a submodule, perhaps an incomplete one.
pub(super) fn has_signs(folder: &Path) -> bool {
    ["HEAD", "config", "hooks", "objects"].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// The folder of git, and the folders of its work trees and submodules.
pub(super) fn folders_of_git(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    worktrees(&folder.join("worktrees"), &mut all);
    modules(&folder.join("modules"), 0, &mut all);
    let parts = all.into_iter().filter(|part| !part.is_passage).map(|part| part.folder);
    parts.chain([folder.to_owned()]).collect()
}

/// The state of a path that must not change: what it is, and what it contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Link(PathBuf),
    /// The digest of a file. None if it is not a regular file, or larger than such a file ever is.
    File(Option<blake3::Hash>),
    /// The entries of a folder of hooks.
    Folder(Vec<(std::ffi::OsString, State)>),
}

impl State {
    pub(super) fn of(path: &Path) -> Self {
        const MOST_HOOKS: usize = 1_000;
        let Ok(data) = path.symlink_metadata() else { return Self::Absent };
        if data.is_symlink() {
            return Self::Link(fs::read_link(path).unwrap_or_default());
        }
        if !data.is_dir() {
            let content = hermes_private_files::read_regular(path, LONGEST);
            return Self::File(content.ok().map(|content| blake3::hash(&content)));
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MOST_HOOKS);
        let flat = |path: &Path| if is_folder(path) { Self::Folder(Vec::new()) } else { Self::of(path) };
        let mut entries: Vec<_> = entries.map(|entry| (entry.file_name(), flat(&entry.path()))).collect();
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self::Folder(entries)
    }
}

/// Whether a file has no other name: another one could be used to change it later.
pub(super) fn has_one_name(file: &Path) -> bool {
    #[cfg(unix)]
    let one = |data: fs::Metadata| std::os::unix::fs::MetadataExt::nlink(&data) == 1;
    #[cfg(not(unix))]
    let one = |_: fs::Metadata| true;
    file.symlink_metadata().is_ok_and(one)
}

/// Whether the folder of a new work tree leads to the repository that contains it.
pub(super) fn is_own_worktree(folder: &Path) -> bool {
    let commondir = folder.join("commondir");
    text(&commondir).is_some_and(|leads_to| leads_to.trim() == "../..")
        && has_one_name(&commondir)
        && ["config", "config.worktree", "hooks"].iter().all(|name| folder.join(name).symlink_metadata().is_err())
}

/// The folders of submodules of a folder of git.
fn parts_of(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    modules(&folder.join("modules"), 0, &mut all);
    all.into_iter().filter(|part| !part.is_passage).map(|part| part.folder).collect()
}

/// Whether a new folder of git runs no program: git's own defaults, with remotes and a name, and sample hooks.
pub(super) fn is_harmless(folder: &Path) -> bool {
    runs_nothing(folder, false)
}

/// The same for the folder of a new submodule, whose configuration names its work tree.
pub(super) fn is_harmless_module(folder: &Path) -> bool {
    runs_nothing(folder, true)
}

fn runs_nothing(folder: &Path, is_module: bool) -> bool {
    let no = |name: &str| folder.join(name).symlink_metadata().is_err();
    let hooks = fs::read_dir(folder.join("hooks")).into_iter().flatten();
    let is_sample = |hook: std::io::Result<fs::DirEntry>| {
        hook.is_ok_and(|hook| hook.file_name().to_string_lossy().ends_with(".sample"))
    };
    // git finds a hook by its name.
    let only_samples = !is_unlistable(&folder.join("hooks")) && hooks.into_iter().all(is_sample);
    let real = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|data| !data.is_symlink());
    let plain = folder.symlink_metadata().is_ok_and(|data| data.is_dir());
    let config = text(&folder.join("config"));
    plain
        && no("commondir")
        && no("config.worktree")
        && (no("modules") || (real("modules") && !is_unlistable(&folder.join("modules"))))
        && parts_of(folder).iter().all(|part| is_harmless_module(part))
        && no("worktrees")
        && only_samples
        && (no("hooks") || real("hooks"))
        && (no("config")
            || (real("config")
                && has_one_name(&folder.join("config"))
                && config.is_some_and(|config| is_plain(&config, is_module) && leads_back(folder, &config))))
}

/// Whether the work tree that a configuration names has a file `.git` that leads to this folder. git writes into it, so it must not be
/// any other folder of the user.
fn leads_back(folder: &Path, config: &str) -> bool {
    let value = |line: &str| {
        let (name, value) = line.split_once('=')?;
        name.trim().eq_ignore_ascii_case("worktree").then(|| value.trim().to_owned())
    };
    let own = folder.canonicalize().ok();
    config.lines().filter_map(value).all(|tree| own.is_some() && gitdir(&folder.join(tree).join(".git")) == own)
}

/// Whether a configuration has only settings that start no program.
fn is_plain(config: &str, is_module: bool) -> bool {
    const PLAIN: &[(&str, &[&str])] = &[
        (
            "core",
            &[
                "repositoryformatversion",
                "filemode",
                "bare",
                "logallrefupdates",
                "ignorecase",
                "precomposeunicode",
                "symlinks",
            ],
        ),
        ("remote", &["url", "fetch", "tagopt"]),
        ("branch", &["remote", "merge"]),
        ("user", &["name", "email"]),
        ("init", &["defaultbranch"]),
        ("extensions", &["objectformat"]),
    ];
    let mut known: Option<&[&str]> = None;
    for line in config.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.contains('\\') || line.contains("ext::") {
            return false;
        }
        if let Some(section) = line.strip_prefix('[') {
            // A setting behind the bracket would need a second look.
            let Some(section) = section.strip_suffix(']').filter(|name| !name.contains(']')) else { return false };
            let name = section.split([' ', '.']).next().unwrap_or_default().to_lowercase();
            known = PLAIN.iter().find(|(known, _)| *known == name).map(|(_, settings)| *settings);
            if known.is_none() {
                return false;
            }
            continue;
        }
        let name = line.split('=').next().unwrap_or_default().trim().to_lowercase();
        let is_work_tree = is_module && name == "worktree" && known == Some(PLAIN[0].1);
        if !is_work_tree && !known.is_some_and(|settings| settings.contains(&name.as_str())) {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_start_no_program_are_plain() {
        let init =
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        assert!(is_plain(init, false));
        let clone =
            "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
        assert!(is_plain(
            &format!("{init}{clone}[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"),
            false
        ));
        for evil in [
            "[core]\n\tfsmonitor = ./evil\n",
            "[core]\n\thooksPath = hooks\n",
            "[core] fsmonitor = ./evil\n",
            "[include]\n\tpath = ../evil\n",
            "[alias]\n\tst = !evil\n",
            "[filter \"x\"]\n\tclean = evil\n",
            "[core]\n\tbare = false \\\n\tfsmonitor = x\n",
            "[remote \"origin\"] uploadpack = x ; ;]\n",
            "[remote \"a\"]\n\turl = ext::sh -c evil\n",
            "[remote \"a\"]\n\tuploadpack = evil\n",
            "fsmonitor = x\n",
            "[core\n",
        ] {
            assert!(!is_plain(evil, true), "{evil}");
        }
    }

    #[test]
    fn a_git_file_counts_only_if_its_folder_leads_back() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (main, work) = (top.join("main/.git"), top.join("work"));
        let own = main.join("worktrees/work");
        for folder in [main.join("objects"), main.join("refs"), own.clone(), work.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(main.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(main.join("config"), "").unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/work\n").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        let found = Repository::behind(&work.join(".git")).unwrap();
        let folders: Vec<&Path> = found.iter().map(|repository| repository.folder.as_path()).collect();
        assert_eq!(folders, [own.as_path(), &main.join("worktrees"), main.as_path()]);
        assert_eq!(found[0].decisive, [own.join("commondir"), own.join("gitdir")]);
        assert_eq!(found[2].decisive, [main.join("config"), main.join("hooks")], "absent hooks are created");

        let other = top.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(Repository::behind(&other.join(".git")), None);
    }
}
