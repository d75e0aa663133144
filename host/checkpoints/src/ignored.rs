//! What git ignores, for walks through a workspace.
//!
//! The rules are files of the workspace, and a hostile workspace can have a pipe or a link to a device in their place. The reader of
//! the crate `ignore` would wait forever or fill the memory, so they are read here, up to a limit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The largest file of rules that is read, and the size of all that are. Hostile rules of this size take seconds, and a multiple in memory.
const MOST: u64 = 128 << 10;
const MOST_OF_ALL: u64 = 512 << 10;
const LONGEST: u64 = 64 << 10;

/// What git ignores in a folder, by the files with rules in it, in those around it, and by the user's own.
#[derive(Debug)]
pub struct Ignored {
    root: PathBuf,
    /// Whether files called `.ignore` count as well.
    has_own_name: bool,
    global: Gitignore,
    folders: RwLock<HashMap<PathBuf, Arc<OnceLock<Arc<Rules>>>>>,
    /// The size of all rules so far.
    size: AtomicU64,
}

/// The rules of a folder.
#[derive(Debug)]
struct Rules {
    /// Those of `.ignore`, of `.gitignore` and of the repository.
    kinds: [Option<Gitignore>; 3],
    around: Option<Arc<Self>>,
}

impl Ignored {
    /// The rules of git for what is in a folder.
    pub fn below(root: &Path) -> Self {
        let global = GitignoreBuilder::new(root).build_global().0;
        Self { root: root.to_owned(), has_own_name: false, global, folders: RwLock::default(), size: AtomicU64::new(0) }
    }

    /// The same with files called `.ignore`, which search tools know.
    #[must_use]
    pub fn and_of_searches(self) -> Self {
        Self { has_own_name: true, ..self }
    }

    /// Whether an entry is ignored. The folders around it are not: a walk does not go into those.
    pub fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        if path == self.root {
            return false;
        }
        let Some(folder) = path.parent() else { return false };
        let rules = self.rules(folder);
        // The nearest rule counts.
        let of_kind = |kind: usize| {
            let mut next = Some(&rules);
            while let Some(rules) = next {
                if let Some(decided) = decision(rules.kinds[kind].as_ref(), path, is_folder) {
                    return Some(decided);
                }
                next = rules.around.as_ref();
            }
            None
        };
        (0..3).find_map(of_kind).or_else(|| decision(Some(&self.global), path, is_folder)).unwrap_or(false)
    }

    fn rules(&self, folder: &Path) -> Arc<Rules> {
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
        let slot = known.unwrap_or_else(|| {
            let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(folders.entry(folder.to_owned()).or_default())
        });
        // One thread of a walk reads them, and the others wait: each reading counts in the size of all rules.
        let rules = slot.get_or_init(|| {
            let around = folder.parent().map(|around| self.rules(around));
            Arc::new(self.read(folder, around))
        });
        Arc::clone(rules)
    }

    fn read(&self, folder: &Path, around: Option<Arc<Rules>>) -> Rules {
        let own = if self.has_own_name { self.rules_in(folder, &folder.join(".ignore")) } else { None };
        let excluded = repository(folder).and_then(|git| self.rules_in(folder, &git.join("info/exclude")));
        Rules { kinds: [own, self.rules_in(folder, &folder.join(".gitignore")), excluded], around }
    }

    fn rules_in(&self, folder: &Path, file: &Path) -> Option<Gitignore> {
        let content = hermes_private_files::read_regular(file, MOST).ok()?;
        let size = content.len() as u64;
        if self.size.fetch_add(size, Ordering::Relaxed) + size > MOST_OF_ALL {
            return None;
        }
        let mut builder = GitignoreBuilder::new(folder);
        for line in String::from_utf8_lossy(&content).trim_start_matches('\u{feff}').lines() {
            // Like git, skip a line that is not a valid pattern.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok().filter(|rules| !rules.is_empty())
    }
}

/// What rules say about an entry.
fn decision(rules: Option<&Gitignore>, path: &Path, is_folder: bool) -> Option<bool> {
    match rules?.matched(path, is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// The folder of git with the rules of a repository whose work tree is this folder.
fn repository(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let kind = git.metadata().ok()?.file_type();
    if kind.is_dir() {
        return Some(git);
    }
    let read = |file: &Path| hermes_private_files::read_text(file, LONGEST).ok();
    let named = folder.join(read(&git)?.strip_prefix("gitdir:")?.trim());
    // A linked work tree has the rules of its repository.
    Some(read(&named.join("commondir")).map_or(named.clone(), |common| named.join(common.trim())))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_rules_are_those_of_git() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let root = top.join("work");
        let status = Command::new("git").args(["init", "-q"]).arg(&top).status().unwrap();
        assert!(status.success());
        write(&top.join(".gitignore"), "\u{feff}*.log\nwork/out/\n/only-top\n");
        write(&top.join(".git/info/exclude"), "mine\n*.tmp\n");
        write(&root.join(".gitignore"), "!keep.log\n/here\ndeep/**/x\n\\#a\nb\\ \n!mine\n");
        write(&root.join("sub/.gitignore"), "!*.tmp\nkeep.log\n");
        let names = [
            "a.log",
            "keep.log",
            "sub/keep.log",
            "out/x",
            "only-top",
            "here",
            "sub/here",
            "deep/a/b/x",
            "deep/x",
            "mine",
            "a.tmp",
            "sub/a.tmp",
            "#a",
            "b ",
            "plain",
        ];
        for name in names {
            write(&root.join(name), "");
        }
        let ignored = Ignored::below(&root);
        let is_ignored = |name: &str| {
            let whole = root.join(name);
            let folders = whole.ancestors().skip(1).take_while(|folder| *folder != root);
            folders.into_iter().any(|folder| ignored.is_ignored(folder, true)) || ignored.is_ignored(&whole, false)
        };
        for name in names {
            let asked =
                Command::new("git").args(["-C"]).arg(&root).args(["check-ignore", "-q", name]).status().unwrap();
            assert_eq!(is_ignored(name), asked.success(), "{name:?}");
        }
    }

    /// Each thread of a walk counted the same rules, until they seemed to be too large and were left out.
    #[test]
    fn a_linked_work_tree_has_the_excluded_files_of_its_repository() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (main, tree) = (top.join("main"), top.join("tree"));
        fs::create_dir(&main).unwrap();
        let git = |folder: &Path, arguments: &[&str]| {
            let named = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            Command::new("git").arg("-C").arg(folder).args(named).args(arguments).status().unwrap().success()
        };
        assert!(git(&main, &["init", "-q"]) && git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]));
        assert!(git(&main, &["worktree", "add", "-q", "../tree"]));
        write(&main.join(".git/info/exclude"), "mine\n");
        for name in ["mine", "plain"] {
            write(&tree.join(name), "");
            let is_ignored = Ignored::below(&tree).is_ignored(&tree.join(name), false);
            assert_eq!(is_ignored, git(&tree, &["check-ignore", "-q", name]), "{name}");
            assert_eq!(is_ignored, name == "mine");
        }
    }

    #[test]
    fn rules_count_once_however_many_threads_want_them_at_once() {
        const THREADS: usize = 16;
        let top = tempfile::tempdir().unwrap();
        let rules: String = (0..3_000).map(|number| format!("file-{number}.log\n")).collect();
        assert!(rules.len() as u64 * 2 < MOST_OF_ALL && (rules.len() * THREADS) as u64 > MOST_OF_ALL);
        write(&top.path().join(".gitignore"), &rules);
        let ignored = Ignored::below(top.path());
        let before = ignored.size.load(Ordering::Relaxed);
        let start = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    assert!(ignored.is_ignored(&top.path().join("file-7.log"), false));
                });
            }
        });
        assert_eq!(ignored.size.load(Ordering::Relaxed) - before, rules.len() as u64);
    }

    #[test]
    fn what_is_no_file_in_the_place_of_rules_is_not_opened() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at(".git/info")).unwrap();
        assert!(Command::new("mkfifo").args([at(".gitignore"), at(".ignore")]).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", at(".git/info/exclude")).unwrap();
        assert!(!Ignored::below(top.path()).and_of_searches().is_ignored(&at("a"), false));
    }
}
