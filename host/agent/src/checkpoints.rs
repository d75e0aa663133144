//! The checkpoints of a session: what its plugins change in the workspace is recorded, and can be undone.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hermes_capabilities::changes::{ChangeRecorder, Changes, PendingChange, RunningProgram};
use hermes_capabilities::process::Run;
use hermes_checkpoints::{Changing, Limits, Places, Record, Recorder, RelPath, Store, UndoError, Window};
use hermes_conversation::{Draft, MessageId, SessionId, one_line_within};
use hermes_diagnostic::Diagnose as _;
use hermes_protocol::{Head, OnConflict, Problem, Turns, Undo, Unrestored};
use hermes_session_store::Session;

use crate::report::NoticeSender;

/// The model gets at most this many names of files, and at most this many bytes of each.
const MAX_NAMED: usize = 30;
const MAX_NAME: usize = 200;

/// The settings of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// Whether changes are recorded.
    pub enabled: bool,
    /// The limits of the store.
    pub limits: Limits,
}

impl CheckpointSettings {
    /// Nothing is recorded.
    pub fn off() -> Self {
        Self { enabled: false, limits: Limits::STANDARD }
    }
}

/// The recorder of a session, once it has one. It outlives the plugins' instances.
#[derive(Clone, Default)]
pub(crate) struct Checkpoints {
    open: Arc<OnceLock<Option<Open>>>,
    /// Whether the session works on a task of the recorder's session. What it changes belongs to a turn of that session.
    is_delegate: bool,
}

#[derive(Clone)]
struct Open {
    store: Store,
    session: String,
    recorder: Arc<Recorder>,
}

impl Checkpoints {
    /// The same recorder, for a session that works on a task of this one's.
    pub(crate) fn for_delegate(&self) -> Self {
        Self { open: Arc::clone(&self.open), is_delegate: true }
    }

    /// The recorder for the plugins of a session.
    pub(crate) fn open(
        &self,
        home: &Path,
        settings: CheckpointSettings,
        session: &Session,
        notices: &NoticeSender,
    ) -> Changes {
        let open = self.open.get_or_init(|| {
            let CheckpointSettings { enabled, limits } = settings;
            if !enabled {
                return None;
            }
            let store = Store::in_home(home);
            let places =
                Places { workspace: session.workspace.clone(), hermes: home.to_owned(), user: std::env::home_dir() };
            let notices = notices.clone();
            let notify = Box::new(move |line| notices.notice(line));
            let recorder = Recorder::new(store.clone(), session.id.as_str(), places, limits, notify)?;
            Some(Open { store, session: session.id.to_string(), recorder: Arc::new(recorder) })
        });
        match open {
            Some(open) => Changes::recorded_by(Arc::new(OfPlugins(Arc::clone(&open.recorder)))),
            None => Changes::default(),
        }
    }

    /// The recorder, if turns of this session are its turns.
    fn of_turns(&self) -> Option<Open> {
        self.get().filter(|_| !self.is_delegate)
    }

    fn get(&self) -> Option<Open> {
        self.open.get().cloned().flatten()
    }

    /// Adds to a message what the user has undone since the last one. Returns what the model knows once the message is stored.
    pub(crate) async fn tell_undone(&self, said: &mut Draft) -> Vec<Record> {
        let Some(open) = self.of_turns() else { return Vec::new() };
        let records =
            blocking(move || hermes_checkpoints::untold(&open.store, &open.session)).await.unwrap_or_default();
        if let Some(note) = note(&records) {
            said.sent = Some(format!("{}\n\n{note}", said.text_sent()));
        }
        records
    }

    /// A message began a turn.
    pub(crate) async fn turn_begins(&self, message: MessageId, text: &str, told: Vec<Record>) {
        let Some(Open { store, session, recorder }) = self.of_turns() else { return };
        let text = text.to_owned();
        blocking(move || {
            hermes_checkpoints::set_told(&store, &session, told, message.0);
            recorder.turn_begins(message.0, &text);
        })
        .await;
    }

    /// The user took back this message and all later ones. If one of them told the model of an undo, the next message does so again.
    pub(crate) async fn rewound(&self, home: &Path, session: &SessionId, to: MessageId) {
        let (store, session) = (Store::in_home(home), session.to_string());
        let told = blocking(move || hermes_checkpoints::rewound(&store, &session, to.0)).await;
        if let Some(Err(error)) = told {
            tracing::warn!(%error, "the model may not know of undone changes after a rewind");
        }
    }

    /// The turn is over.
    pub(crate) async fn turn_ends(&self) {
        if let Some(open) = self.of_turns() {
            blocking(move || open.recorder.turn_ends()).await;
        }
    }

    /// Undoes turns, also those that were recorded before checkpoints were switched off.
    pub(crate) async fn undo(
        &self,
        home: &Path,
        limits: Limits,
        session: &SessionId,
        turns: Turns,
        on_conflict: OnConflict,
    ) -> Result<Undo, Problem> {
        let (store, session) = (Store::in_home(home), session.to_string());
        let (turns, on_conflict) = (recorded_turns(turns), at_conflict(on_conflict));
        let open = self.get();
        let undone = blocking(move || {
            if let Some(open) = open {
                open.recorder.settle();
            }
            hermes_checkpoints::undo(&store, &session, turns, on_conflict, &limits)
        });
        let undone = undone.await.unwrap_or(Err(UndoError::Busy));
        undone.map(undo_report).map_err(|error| error.diagnose().into())
    }
}

/// The turns in the terms of the store of checkpoints.
fn recorded_turns(turns: Turns) -> hermes_checkpoints::Turns {
    match turns {
        Turns::Last(count) => hermes_checkpoints::Turns::Last(count),
        Turns::From(number) => hermes_checkpoints::Turns::From(number),
    }
}

fn at_conflict(on_conflict: OnConflict) -> hermes_checkpoints::OnConflict {
    match on_conflict {
        OnConflict::Refuse => hermes_checkpoints::OnConflict::Refuse,
        OnConflict::Skip => hermes_checkpoints::OnConflict::Skip,
        OnConflict::Overwrite => hermes_checkpoints::OnConflict::Overwrite,
    }
}

/// The result of an undo, as front ends get it.
pub fn undo_report(undo: hermes_checkpoints::Undo) -> Undo {
    let texts = |paths: Vec<RelPath>| paths.iter().map(ToString::to_string).collect();
    let unrestored = |path: &RelPath, why: &str| Unrestored { path: path.to_string(), why: why.to_owned() };
    let head = |head: hermes_checkpoints::Head| Head { branch: head.branch, commit: head.commit };
    Undo {
        turns: undo.turns,
        words: undo.words,
        restored: texts(undo.restored),
        skipped: undo.skipped.iter().map(|conflict| unrestored(&conflict.path, conflict.cause.words())).collect(),
        left: texts(undo.left),
        unsaved: undo.unsaved.iter().map(|(path, why)| unrestored(path, why.why())).collect(),
        kept_folders: texts(undo.kept_folders),
        heads: undo.heads.map(|(before, after)| (head(before), head(after))),
        programs: undo.programs,
        more_programs: undo.more_programs,
        unrecorded: undo.unrecorded,
        outside: undo.outside.iter().map(|path| path.display().to_string()).collect(),
    }
}

/// Runs work that blocks. `None` if it panicked.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.inspect_err(|error| tracing::warn!(%error, "a checkpoint failed")).ok()
}

/// What the model must know of undone changes.
fn note(records: &[Record]) -> Option<String> {
    let mut paths: Vec<String> = Vec::new();
    for path in records.iter().filter_map(|record| record.undone.as_ref()).flat_map(|undone| &undone.restored) {
        let name = one_line_within(&path.to_string(), MAX_NAME);
        if !paths.contains(&name) {
            paths.push(name);
        }
    }
    if paths.is_empty() {
        return None;
    }
    let more = match paths.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    paths.truncate(MAX_NAMED);
    Some(format!(
        "[Note by Hermes: the user has undone changes that you made to files. These are as they were before: {}{more}. Read a \
         file again before you rely on what it contains.]",
        paths.join(", ")
    ))
}

/// Records what plugins do.
struct OfPlugins(Arc<Recorder>);

struct Change(Changing);
struct Program(Window);

impl ChangeRecorder for OfPlugins {
    fn change(&self) -> Box<dyn PendingChange> {
        Box::new(Change(self.0.change_begins()))
    }

    fn program(&self, run: &Run) -> Box<dyn RunningProgram> {
        Box::new(Program(self.0.program_begins(&command(run), run.background)))
    }
}

impl PendingChange for Change {
    fn will_change(&self, path: &Path) {
        self.0.will_change(path);
    }
}

impl RunningProgram for Program {
    fn ended(self: Box<Self>) {
        self.0.end_meanwhile();
    }
}

/// A program as the user knows it: the command of a shell, or the program with its arguments.
fn command(run: &Run) -> String {
    match run.arguments.as_slice() {
        [flag, command] if flag == "-c" => command.clone(),
        arguments => std::iter::once(&run.program).chain(arguments).cloned().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_undo_the_model_is_told_nothing() {
        assert_eq!(note(&[]), None);
    }
}
