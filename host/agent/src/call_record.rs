//! What a call changed in files and what was refused to it, for the user. Calls that change files run one by one, so what is noted
//! while one runs is its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_capabilities::approval::Refusal;
use hermes_capabilities::changes::{ChangeRecorder, Changes, Pending, PendingChange, RunningProgram};
use hermes_capabilities::process::Run;
use hermes_protocol::{FileDiff, RefusedBy};

use crate::difference::changed_lines;

/// The most bytes of a text whose changed lines are shown.
const LARGEST: u64 = 1 << 20;
/// The most lines of all changes of a call, and the most bytes of one.
const MOST_LINES: usize = 1_000;
const LONGEST: usize = 400;

/// What is noted while a call runs.
#[derive(Debug)]
pub(crate) struct CallRecord {
    workspace: PathBuf,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    changes: Vec<FileDiff>,
    refusals: Vec<(RefusedBy, String)>,
}

impl CallRecord {
    pub(crate) fn new(workspace: &Path) -> Arc<Self> {
        Arc::new(Self { workspace: workspace.to_owned(), noted: Mutex::default() })
    }

    /// The same changes, which are also noted here.
    pub(crate) fn watching(self: &Arc<Self>, changes: Changes) -> Changes {
        Changes::recorded_by(Arc::new(Watched { changes, record: Arc::clone(self) }))
    }

    /// The calls of a reply begin. What plugins kept to themselves of earlier refusals belongs to none of them.
    pub(crate) fn run_begins(&self) {
        self.noted().refusals.clear();
    }

    /// Notes a refusal in the words that the plugin gets.
    pub(crate) fn refused(&self, by: Refusal, text: &str) {
        self.noted().refusals.push((refused_by(by), text.to_owned()));
    }

    /// Whether an answer quotes a refusal of the mode `plan`.
    pub(crate) fn is_of_plan(&self, answer: &str) -> bool {
        self.noted().refusals.iter().any(|(by, text)| *by == RefusedBy::Mode && answer.contains(text))
    }

    /// Ends a call with this answer: what it changed, and who refused something that the answer quotes.
    pub(crate) fn end(&self, answer: &str) -> (Vec<FileDiff>, Option<RefusedBy>) {
        let mut noted = self.noted();
        let refusal = noted.refusals.iter().find(|(_, text)| answer.contains(text)).map(|(by, _)| *by);
        // A call beside this one may still quote its own.
        noted.refusals.retain(|(_, text)| !answer.contains(text));
        (std::mem::take(&mut noted.changes), refusal)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, path: &Path, before: Before) {
        let after = Before::of(path);
        let lines = match (&before, &after) {
            (Before::Other, _) | (_, Before::Other) => Vec::new(),
            (before, after) if before == after => return,
            (before, after) => changed_lines(before.text(), after.text()),
        };
        let count = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
        let (added, removed) = (count('+'), count('-'));
        let mut noted = self.noted();
        let room = MOST_LINES.saturating_sub(noted.changes.iter().map(|change| change.lines.len()).sum());
        let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        noted.changes.push(FileDiff {
            path: shown.display().to_string(),
            added: number(added),
            removed: number(removed),
            left_out: number(lines.len().saturating_sub(room)),
            lines: lines.into_iter().take(room).map(cut).collect(),
        });
    }
}

fn cut(mut line: String) -> String {
    if line.len() > LONGEST {
        line.truncate(line.floor_char_boundary(LONGEST));
        line.push('…');
    }
    line
}

/// Who refused, as a front end reads it.
pub(crate) fn refused_by(refusal: Refusal) -> RefusedBy {
    match refusal {
        Refusal::User => RefusedBy::User,
        Refusal::Configuration => RefusedBy::Rule,
        Refusal::Unattended => RefusedBy::Unattended,
        Refusal::Plan => RefusedBy::Mode,
    }
}

/// What is at a path before a change, or after it.
#[derive(Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Text(String),
    /// A folder, a link, a large file, one that is no text, or one with secrets.
    Other,
}

impl Before {
    fn of(path: &Path) -> Self {
        if path.file_name().is_some_and(hermes_private_files::holds_secrets) {
            return Self::Other;
        }
        match hermes_private_files::read_text(path, LARGEST) {
            Ok(text) => Self::Text(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Nothing,
            Err(_) => Self::Other,
        }
    }

    fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }
}

/// Hands changes on to the checkpoints, and notes them for the user.
struct Watched {
    changes: Changes,
    record: Arc<CallRecord>,
}

impl ChangeRecorder for Watched {
    fn change(&self) -> Box<dyn PendingChange> {
        let record = Arc::clone(&self.record);
        Box::new(Watching { pending: self.changes.begin(), record, before: Mutex::default() })
    }

    fn program(&self, run: &Run) -> Box<dyn RunningProgram> {
        self.changes.program(run).unwrap_or_else(|| Box::new(Unrecorded))
    }
}

struct Watching {
    pending: Pending,
    record: Arc<CallRecord>,
    before: Mutex<BTreeMap<PathBuf, Before>>,
}

impl PendingChange for Watching {
    fn will_change(&self, path: &Path) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.entry(path.to_owned()).or_insert_with(|| Before::of(path));
        self.pending.will_change(path);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let before = self.before.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (path, before) in std::mem::take(before) {
            self.record.changed(&path, before);
        }
    }
}

/// A program of a session without checkpoints.
struct Unrecorded;

impl RunningProgram for Unrecorded {
    fn ended(self: Box<Self>) {}
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_call_ends_with_the_lines_that_it_changed_and_the_next_one_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cart.py");
        fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let record = CallRecord::new(folder.path());
        let changes = record.watching(Changes::default());
        let pending = changes.begin();
        pending.will_change(&file);
        pending.will_change(&file);
        fs::write(&file, "one\n2\nthree\n").unwrap();
        drop(pending);
        let (changed, refused) = record.end("done");
        assert_eq!(refused, None);
        let lines = [" one", "-two", "+2", " three"].map(str::to_owned).to_vec();
        assert_eq!(changed, [FileDiff { path: "cart.py".to_owned(), added: 1, removed: 1, lines, left_out: 0 }]);
        assert_eq!(record.end("done"), (Vec::new(), None));
    }

    #[test]
    fn what_is_no_text_or_holds_secrets_is_only_named_and_what_stayed_the_same_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (binary, same) = (folder.path().join("a.bin"), folder.path().join("same"));
        let secret = folder.path().join(".env");
        fs::write(&same, "as it was").unwrap();
        let record = CallRecord::new(folder.path());
        let pending = record.watching(Changes::default()).begin();
        pending.will_change(&binary);
        pending.will_change(&same);
        pending.will_change(&secret);
        fs::write(&secret, "KEY=x\n").unwrap();
        fs::write(&binary, [0xff, 0xfe]).unwrap();
        drop(pending);
        let (changed, _) = record.end("");
        assert_eq!(
            changed.iter().map(|change| (change.path.as_str(), change.lines.len())).collect::<Vec<_>>(),
            [(".env", 0), ("a.bin", 0)]
        );
    }

    #[test]
    fn a_refusal_belongs_to_the_answer_that_quotes_it() {
        let record = CallRecord::new(Path::new("/w"));
        record.refused(Refusal::User, "`rm` was not run: the user refused");
        record.refused(Refusal::Plan, "`x` was not changed: plan");
        assert_eq!(record.end("fine").1, None);
        assert_eq!(record.end("error: `x` was not changed: plan").1, Some(RefusedBy::Mode));
        assert_eq!(record.end("error: `rm` was not run: the user refused").1, Some(RefusedBy::User));
        assert_eq!(record.end("error: `rm` was not run: the user refused").1, None);
        record.refused(Refusal::User, "`cp` was not run");
        record.run_begins();
        assert_eq!(record.end("error: `cp` was not run").1, None, "an earlier call was refused");
    }
}
