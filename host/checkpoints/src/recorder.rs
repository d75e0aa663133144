//! Records what a session changes in its workspace, while it does so.
//!
//! A file tool of the host names the paths that it is about to change, so that exactly these are saved. A program may change
//! anything: the whole workspace is looked through before it starts and after it ends. What changed while nothing of Hermes ran is
//! the user's, and is not recorded. While several programs run, only the first scans the workspace before it starts, and only the last
//! after it ends.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::git::Head;
use crate::index::{Difference, Index, Look, state_of};
use crate::path::RelPath;
use crate::record::{Change, Record, Records, unix_ms};
use crate::room;
use crate::scan::{self, Unwatched};
use crate::state::State;
use crate::store::{Limits, Store};
use crate::tree::{Kind, Tree};

/// How long a program that was stopped may take to end, before the workspace is looked at again.
const ENDING: Duration = Duration::from_millis(600);
/// How long a turn waits for the look after a program of the turn before.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a workspace that was too large is not looked at again.
const RETRY: Duration = Duration::from_secs(10 * 60);
/// The most entries of a folder that a file tool moves or removes.
const MAX_MOVED: usize = 20_000;
/// The most characters of the user's words and of a command.
const MAX_WORDS: usize = 120;
/// The most files outside of the workspace that a record names.
const MAX_OUTSIDE: usize = 50;

/// The folders that a session's recorder needs to know.
#[derive(Debug, Clone)]
pub struct Places {
    /// The workspace.
    pub workspace: PathBuf,
    /// The home folder of Hermes, which is never saved.
    pub hermes: PathBuf,
    /// The home folder of the user, which is too wide for a workspace.
    pub user: Option<PathBuf>,
}

/// Shows a line to the user.
pub type Notify = Box<dyn Fn(String) + Send + Sync>;

/// The recorder of one session.
pub struct Recorder {
    store: Store,
    session: String,
    records: Records,
    places: Places,
    limits: Limits,
    notify: Notify,
    inner: Mutex<Inner>,
    /// A program has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Inner {
    index: Option<Index>,
    turn: Turn,
    /// The record of the turn, once there is something to record.
    record: Option<Record>,
    /// Programs of the turn that run.
    foreground: usize,
    /// Programs that run in the background of the session.
    background: usize,
    /// Programs of either kind that have ended and whose changes were not yet looked for.
    ended: usize,
    /// Why there was no look, and when. The next look cannot tell what programs changed since the last good one.
    unwatched: Option<(Unwatched, Instant)>,
    /// Keeps the contents of open programs in the store.
    adding: Option<File>,
    /// What the user knows already.
    told: HashSet<String>,
    /// Whether a program that an earlier process left was looked for.
    is_settled: bool,
}

#[derive(Debug, Clone, Default)]
struct Turn {
    message: u64,
    started_at: u64,
    words: String,
}

/// The beginning of a text in one line.
fn beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl Recorder {
    /// The recorder of a session; `None` if the workspace does not exist, or the session's id is none of Hermes. `notify` shows why
    /// something could not be recorded.
    pub fn new(store: Store, session: &str, places: Places, limits: Limits, notify: Notify) -> Option<Self> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let places = Places {
            workspace: places.workspace.canonicalize().ok()?,
            hermes: real(&places.hermes),
            user: places.user,
        };
        let records = Records::of(&store, session)?;
        let (inner, ended) = (Mutex::default(), Condvar::new());
        Some(Self { store, session: session.to_owned(), records, places, limits, notify, inner, ended })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message of the user began a turn: what follows is recorded for it. Waits until the programs of the turn before have ended.
    pub fn turn_begins(&self, message: u64, words: &str) {
        let (mut inner, _) = self
            .ended
            .wait_timeout_while(self.lock(), PATIENCE, |inner| inner.foreground > 0)
            .unwrap_or_else(PoisonError::into_inner);
        inner.turn = Turn { message, started_at: unix_ms(), words: beginning(words) };
        inner.record = None;
    }

    /// Waits for the looks after programs that have ended.
    fn looked(&self) -> MutexGuard<'_, Inner> {
        self.ended.wait_while(self.lock(), |inner| inner.ended > 0).unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn is over. What programs in the background have changed so far belongs to it.
    pub fn turn_ends(&self) {
        let mut inner = self.looked();
        if inner.background > 0 && inner.foreground == 0 {
            self.look(&mut inner);
            self.save(&mut inner);
        }
        let last = inner.record.as_ref().map_or(0, |record| record.number);
        drop(inner);
        if last > 0 {
            room::make_if_due(&self.store, &self.limits);
        }
    }

    /// A program is about to run. The look at the workspace ends with [`Window::end`], or when the window is dropped.
    pub fn program_begins(self: &Arc<Self>, command: &str, in_background: bool) -> Window {
        let command = beginning(command);
        let mut inner = self.lock();
        self.keep_contents(&mut inner);
        let head = Head::of(&self.places.workspace);
        let record = self.record(&mut inner);
        record.add_program(&command);
        if let Some(head) = head {
            record.heads.get_or_insert((head.clone(), head));
        }
        // While other programs run, their changes are recorded when the last one ends.
        if inner.foreground == 0 {
            self.look(&mut inner);
        } else if let Some((why, _)) = inner.unwatched.clone() {
            self.unwatched(&mut inner, &why.to_string());
        }
        match in_background {
            true => inner.background += 1,
            false => inner.foreground += 1,
        }
        if !in_background {
            self.record(&mut inner).running = Some(command);
        }
        self.save(&mut inner);
        if inner.foreground == 0 {
            inner.adding = None;
        }
        Window { recorder: Some(Arc::clone(self)), in_background }
    }

    fn program_ended(&self, in_background: bool) {
        let mut inner = self.lock();
        if inner.foreground <= usize::from(!in_background) {
            self.look(&mut inner);
        }
        let open = if in_background { &mut inner.background } else { &mut inner.foreground };
        *open = open.saturating_sub(1);
        let is_last = inner.foreground == 0;
        let head = Head::of(&self.places.workspace);
        if let Some(record) = &mut inner.record {
            if is_last {
                record.running = None;
            }
            if let (Some((_, after)), Some(head)) = (&mut record.heads, head) {
                *after = head;
            }
        }
        self.save(&mut inner);
        if is_last {
            inner.adding = None;
        }
        drop(inner);
        self.ended.notify_all();
    }

    /// A file tool of the host begins.
    pub fn change_begins(self: &Arc<Self>) -> Changing {
        Changing { recorder: Arc::clone(self), before: Mutex::default() }
    }

    /// Looks for what a program changed that ran when Hermes was killed.
    pub fn settle(&self) {
        let mut inner = self.looked();
        self.settle_once(&mut inner);
    }

    fn settle_once(&self, inner: &mut Inner) {
        if std::mem::replace(&mut inner.is_settled, true) {
            return;
        }
        let Some(mut record) = self.records.all().ok().and_then(|mut records| records.pop()) else { return };
        let Some(program) = record.running.take() else { return };
        let index = inner.index.get_or_insert_with(|| Index::load(&self.store, &self.places.workspace));
        // Another session that looked since has taken the changes for the user's.
        let looked = match index.session == self.session && index.has_looked() {
            true => self.tree().and_then(|tree| index.look(&self.looking(&tree)).map_err(|error| error.to_string())),
            false => Err(format!("Hermes was killed while `{program}` ran")),
        };
        match looked {
            Ok(differences) => record.changes.extend(differences.into_iter().map(|change| changed(change, true))),
            Err(why) => record.unrecorded.push(why),
        }
        if let Some((_, after)) = &mut record.heads {
            *after = Head::of(&self.places.workspace).unwrap_or_else(|| after.clone());
        }
        if let Err(error) = self.records.save(&record) {
            self.tell(inner, &error.to_string());
        }
    }

    fn keep_contents(&self, inner: &mut Inner) {
        if inner.adding.is_none() {
            inner.adding = self.store.adding().ok();
        }
    }

    fn record<'a>(&self, inner: &'a mut Inner) -> &'a mut Record {
        let turn = &inner.turn;
        inner.record.get_or_insert_with(|| Record {
            number: self.records.next_number(),
            message: turn.message,
            started_at: turn.started_at,
            words: turn.words.clone(),
            workspace: self.places.workspace.clone(),
            changes: Vec::new(),
            programs: Vec::new(),
            more_programs: 0,
            unrecorded: Vec::new(),
            outside: Vec::new(),
            heads: None,
            running: None,
            undone: None,
        })
    }

    fn tree(&self) -> Result<Tree, String> {
        let workspace = &self.places.workspace;
        Tree::open(workspace).map_err(|error| format!("{} cannot be opened: {error}", workspace.display()))
    }

    fn looking<'a>(&'a self, tree: &'a Tree) -> Look<'a> {
        Look { tree, store: &self.store, limits: &self.limits, hermes: &self.places.hermes }
    }

    /// Looks at the workspace. Changes since the last look count as those of running programs, or else of the user.
    fn look(&self, inner: &mut Inner) {
        self.settle_once(inner);
        match self.differences(inner) {
            Err(why) => {
                self.unwatched(inner, &why.to_string());
                inner.unwatched.get_or_insert((why, Instant::now()));
            }
            // Without earlier looks, the differences may be the user's, so none is recorded.
            Ok(_) if inner.unwatched.take().is_some() => {}
            Ok(differences) if inner.foreground > 0 || inner.background > 0 => {
                let unsure = inner.foreground == 0;
                let changes = differences.into_iter().map(|change| changed(change, unsure));
                let changes: Vec<Change> = changes.collect();
                if !changes.is_empty() {
                    self.record(inner).changes.extend(changes);
                }
            }
            Ok(_) => {}
        }
    }

    fn differences(&self, inner: &mut Inner) -> Result<Vec<Difference>, Unwatched> {
        match &inner.unwatched {
            Some((why, at)) if why.is_of_size() && at.elapsed() < RETRY => return Err(why.clone()),
            Some((why, _)) if why.is_of_size() => inner.unwatched = Some((why.clone(), Instant::now())),
            _ => {}
        }
        scan::check_width(&self.places.workspace, self.places.user.as_deref())?;
        let tree = self.tree().map_err(|why| Unwatched::Failed { why })?;
        let index = inner.index.get_or_insert_with(|| Index::load(&self.store, &self.places.workspace));
        index.look(&self.looking(&tree))
    }

    fn unwatched(&self, inner: &mut Inner, why: &str) {
        let record = self.record(inner);
        if !record.unrecorded.iter().any(|known| known == why) {
            record.unrecorded.push(why.to_owned());
        }
        self.tell(inner, why);
    }

    fn tell(&self, inner: &mut Inner, why: &str) {
        if inner.told.insert(why.to_owned()) {
            (self.notify)(format!("/undo restores only what file tools change, not what commands change: {why}"));
        }
    }

    fn save(&self, inner: &mut Inner) {
        let index =
            inner.index.as_mut().map_or(Ok(()), |index| index.save(&self.store, &self.places.workspace, &self.session));
        let record = inner.record.as_ref().map_or(Ok(()), |record| self.records.save(record));
        if let Err(error) = index.and(record) {
            self.tell(inner, &format!("the store of checkpoints cannot be written: {error}"));
        }
    }

    /// The states of a path, of the missing folders above it, and of everything below it.
    fn states(&self, path: &RelPath) -> io::Result<BTreeMap<RelPath, State>> {
        let tree = Tree::open(&self.places.workspace)?;
        let look = self.looking(&tree);
        let mut states = BTreeMap::new();
        for folder in path.folders() {
            if tree.look(&folder)?.is_none() {
                states.insert(folder, State::Absent);
            }
        }
        let mut open = vec![path.clone()];
        while let Some(path) = open.pop() {
            if states.len() >= MAX_MOVED {
                return Err(io::Error::other(format!("it has more than {MAX_MOVED} files")));
            }
            let found = tree.look(&path)?;
            let state = state_of(&look, &path, found.as_ref())?;
            if found.is_some_and(|found| found.kind == Kind::Folder) {
                open.extend(tree.entries(&path)?.iter().map(|name| path.join(name)));
            }
            states.insert(path, state);
        }
        Ok(states)
    }
}

fn changed(difference: Difference, unsure: bool) -> Change {
    let Difference { path, before, after } = difference;
    Change { path, before, after, unsure }
}

/// A program that runs.
#[must_use]
pub struct Window {
    recorder: Option<Arc<Recorder>>,
    in_background: bool,
}

impl Window {
    /// The program has ended: looks at what it changed. Blocks.
    pub fn end(mut self) {
        if let Some(recorder) = self.recorder.take() {
            recorder.program_ended(self.in_background);
        }
    }

    /// The same in another thread, so that the model gets the result at once. The end of the turn and an undo wait for it.
    pub fn end_meanwhile(mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let in_background = self.in_background;
        recorder.lock().ended += 1;
        let look = move |recorder: &Recorder| {
            let _looked = Looked(recorder);
            recorder.program_ended(in_background);
        };
        let meanwhile = Arc::clone(&recorder);
        if thread::Builder::new().spawn(move || look(&meanwhile)).is_err() {
            look(&recorder);
        }
    }
}

/// Ends the wait for a look when it is dropped, also after a failure or a panic.
struct Looked<'a>(&'a Recorder);

impl Drop for Looked<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.ended = inner.ended.saturating_sub(1);
        drop(inner);
        self.0.ended.notify_all();
    }
}

/// A call that is stopped has no time to look, and its program still ends.
impl Drop for Window {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            let in_background = self.in_background;
            let meanwhile = Arc::clone(&recorder);
            let looks = thread::Builder::new().spawn(move || {
                thread::sleep(ENDING);
                meanwhile.program_ended(in_background);
            });
            if looks.is_err() {
                recorder.program_ended(in_background);
            }
        }
    }
}

/// A file tool of the host that changes files. What changed is recorded when it is dropped.
pub struct Changing {
    recorder: Arc<Recorder>,
    before: Mutex<Before>,
}

#[derive(Default)]
struct Before {
    /// The paths that were named.
    named: Vec<RelPath>,
    states: BTreeMap<RelPath, State>,
    outside: Vec<PathBuf>,
    adding: Option<File>,
}

impl Changing {
    /// The tool is about to change this path, with links resolved. Saves what is there. Blocks.
    pub fn will_change(&self, path: &Path) {
        let recorder = &self.recorder;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match RelPath::below(&recorder.places.workspace, path) {
            Some(path) if !path.as_path().starts_with(".git") => path,
            _ => return before.outside.push(path.to_owned()),
        };
        if before.named.contains(&path) {
            return;
        }
        if before.adding.is_none() {
            before.adding = recorder.store.adding().ok();
        }
        match recorder.states(&path) {
            Ok(states) => {
                before.named.push(path);
                for (path, state) in states {
                    before.states.entry(path).or_insert(state);
                }
            }
            Err(error) => {
                let why = format!("{path} cannot be saved: {error}");
                recorder.unwatched(&mut recorder.lock(), &why);
            }
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let recorder = &self.recorder;
        let Before { named, mut states, outside, adding } =
            std::mem::take(&mut *self.before.lock().unwrap_or_else(PoisonError::into_inner));
        let mut after = BTreeMap::new();
        for path in &named {
            // A path whose state cannot be read now is left out of the record.
            if let Ok(found) = recorder.states(path) {
                after.extend(found);
            }
        }
        for path in after.keys() {
            states.entry(path.clone()).or_insert(State::Absent);
        }
        let mut inner = recorder.lock();
        let tree = recorder.tree().ok();
        let mut changes = Vec::new();
        for (path, before) in states {
            let is_new_folder = || tree.as_ref().and_then(|tree| tree.look(&path).ok().flatten()).is_some();
            let after = match after.remove(&path) {
                Some(after) => after,
                // A folder above that was missing is no longer among the missing ones.
                None if before == State::Absent && is_new_folder() => State::Folder { mode: 0o755 },
                None => State::Absent,
            };
            if before == after {
                continue;
            }
            if let Some(index) = &mut inner.index {
                // A program has changed it since the last look.
                let earlier = index.state(&path).filter(|earlier| **earlier != before).cloned();
                if let Some(tree) = &tree {
                    index.update(tree, &path, &after);
                }
                let runs = (inner.foreground > 0, inner.background > 0);
                if let (Some(earlier), (true, _) | (_, true)) = (earlier, runs) {
                    let (after, unsure) = (before.clone(), !runs.0);
                    changes.push(Change { path: path.clone(), before: earlier, after, unsure });
                }
            }
            changes.push(Change { path, before, after, unsure: false });
        }
        if changes.is_empty() && outside.is_empty() {
            return;
        }
        let record = recorder.record(&mut inner);
        record.changes.extend(changes);
        for path in outside {
            if record.outside.len() < MAX_OUTSIDE && !record.outside.contains(&path) {
                record.outside.push(path);
            }
        }
        recorder.save(&mut inner);
        drop(adding);
    }
}
