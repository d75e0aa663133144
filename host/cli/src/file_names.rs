//! The names of the files in the session's folder, for the completion of `@PATH`.
//!
//! A thread of its own collects them, so that typing never waits. Files that git ignores are left out.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_app::workspace;
use hermes_terminal::{Candidate, Candidates};

use crate::attached;

/// The most files that are known.
const MOST_FILES: usize = 50_000;
/// The longest time to look for files.
const PATIENCE: Duration = Duration::from_secs(5);
/// The age at which names are collected again.
const STALE: Duration = Duration::from_secs(3);
/// The most completions.
const MOST_SHOWN: usize = 50;

/// The names of files. All clones are the same.
#[derive(Clone, Default)]
pub(crate) struct FileNames(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    folder: PathBuf,
    names: Arc<Vec<String>>,
    collected: Option<Instant>,
    is_collecting: bool,
    /// Told when names were collected.
    listener: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl FileNames {
    /// Tells when there are other names.
    pub(crate) fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.state().listener = Some(Arc::new(listener));
    }

    /// Names the files of this folder from now on.
    pub(crate) fn of(&self, folder: &Path) {
        let mut state = self.state();
        if state.folder != folder {
            folder.clone_into(&mut state.folder);
            (state.names, state.collected) = (Arc::default(), None);
        }
    }

    /// The completions, if the text ends with the begin of a path behind `@`.
    pub(crate) fn complete(&self, typed: &str) -> Option<Candidates> {
        let (begin, path) = attached::begun(typed)?;
        let names = self.names();
        let list = best(&names, path)
            .map(|name| Candidate { text: format!("{} ", attached::written(name)), about: String::new() });
        Some(Candidates { begin, list: list.collect() })
    }

    /// Waits until names were collected once, if the text ends with the begin of a path. It blocks for so long at most.
    pub(crate) fn collect_within(&self, typed: &str, patience: Duration) {
        const POLL: Duration = Duration::from_millis(5);
        if attached::begun(typed).is_none() {
            return;
        }
        let until = Instant::now() + patience;
        self.names();
        while self.state().collected.is_none() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
    }

    /// The names that are known, and begins to collect them again if they are old.
    fn names(&self) -> Arc<Vec<String>> {
        let mut state = self.state();
        let is_old = state.collected.is_none_or(|collected| collected.elapsed() > STALE);
        if is_old && !state.is_collecting && !state.folder.as_os_str().is_empty() {
            let (own, folder) = (self.clone(), state.folder.clone());
            let collect = move || own.keep(&folder, workspace::files(&folder, MOST_FILES, PATIENCE));
            // Without a thread there are no completions.
            state.is_collecting = std::thread::Builder::new().name("file names".to_owned()).spawn(collect).is_ok();
        }
        Arc::clone(&state.names)
    }

    fn keep(&self, folder: &Path, names: Vec<String>) {
        let mut state = self.state();
        state.is_collecting = false;
        if state.folder != folder {
            return;
        }
        state.collected = Some(Instant::now());
        if *state.names != names {
            state.names = Arc::new(names);
            let listener = state.listener.clone();
            drop(state);
            // Not under the lock: the listener asks for completions.
            if let Some(listener) = listener {
                listener();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names that fit what is typed, the best first.
fn best<'a>(names: &'a [String], typed: &str) -> impl Iterator<Item = &'a str> {
    let typed = typed.trim_start_matches("./").to_lowercase();
    let mut ranked: [Vec<&str>; 3] = Default::default();
    for name in names {
        let low = name.to_lowercase();
        let last = low.rsplit('/').next().unwrap_or(&low);
        let rank = match () {
            () if low.starts_with(&typed) => 0,
            () if last.starts_with(&typed) => 1,
            () if low.contains(&typed) => 2,
            () => continue,
        };
        if ranked[rank].len() < MOST_SHOWN {
            ranked[rank].push(name);
        }
    }
    ranked.into_iter().flatten().take(MOST_SHOWN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_collected_in_the_background_without_what_git_ignores() {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in [
            (".gitignore", "target\n"),
            ("src/main.rs", ""),
            ("target/x", ""),
            (".git/config", ""),
            ("my main.txt", ""),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let names = FileNames::default();
        names.of(folder.path());
        let (send, receive) = std::sync::mpsc::channel();
        names.listen(move || {
            let _ = send.send(());
        });
        assert_eq!(names.complete("see"), None);
        assert!(names.complete("see @ma").unwrap().list.is_empty(), "it waited");
        names.collect_within("see @ma", Duration::from_secs(60));
        assert!(!names.complete("see @ma").unwrap().list.is_empty());
        receive.recv_timeout(Duration::from_secs(60)).unwrap();
        let texts = |typed: &str| {
            let Candidates { begin, list } = names.complete(typed).unwrap();
            (begin, list.into_iter().map(|candidate| candidate.text).collect::<Vec<_>>())
        };
        assert_eq!(texts("see @MA"), (4, vec!["@src/main.rs ".to_owned(), "@\"my main.txt\" ".to_owned()]));
        let all = ["@.gitignore ", "@\"my main.txt\" ", "@src/main.rs "].map(str::to_owned).to_vec();
        assert_eq!(texts("@"), (0, all));
        assert_eq!(texts("@target").1, Vec::<String>::new());
    }

    #[test]
    fn the_begin_of_a_path_is_better_than_that_of_a_name_and_both_than_a_part() {
        let names: Vec<String> = ["a/main.rs", "main.rs", "domain.rs"].map(str::to_owned).to_vec();
        assert_eq!(best(&names, "main").collect::<Vec<_>>(), ["main.rs", "a/main.rs", "domain.rs"]);
        assert_eq!(best(&names, "./a/").collect::<Vec<_>>(), ["a/main.rs"]);
    }
}
