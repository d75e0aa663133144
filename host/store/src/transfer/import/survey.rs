//! What an import knows about the sessions of its file: which are new, what each has of its parent, and which rows of the
//! store correspond to the ids of the file.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Seek};

use hermes_conversation::{BlobId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::lines::{Line, Lines, Place};
use super::{PLAUSIBLE, next_step};
use crate::error::Fault;
use crate::session::{IMPORTED, UNFINISHED, path_text};
use crate::title::Series;
use crate::transfer::numbers::{Numbers, Pair, Stretch};
use crate::transfer::record::{self, End};
use crate::{ImportProblem, Imported, OfFile, ParentKind, StoreError, lease};

/// More than anyone has. Memory use is proportional to this number.
const MOST_SESSIONS: usize = 100_000;
/// The longest chain of sessions that continue one another.
const DEEPEST: usize = 1_000;
/// The limit of counts, which are summed up over all sessions.
const MOST_TOKENS: u64 = 1 << 45;

/// What is known about a session of the file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) place: Place,
    /// It exists in the store: its records are read for their ids only.
    pub(super) stored: bool,
    /// Its parent has other messages here.
    pub(super) left_out: bool,
    pub(super) parent: Option<Link>,
    /// The newest view and rewind of the parent when it branched, as in its row.
    pub(super) bounds: (i64, i64),
    pub(super) messages: Vec<Pair>,
    /// For a stored session: from here on the file differs from the store.
    pub(super) differs: bool,
    /// Rows of views, and the last row of each rewind, by number.
    pub(super) views: Vec<(u64, i64)>,
    pub(super) rewinds: Vec<(u64, i64)>,
    /// The number of the view that contains each summary, and the summary's row, by id in the file.
    pub(super) summaries: HashMap<u64, (u64, i64)>,
    /// Numbers and rows of views, by id in the file.
    pub(super) view_ids: HashMap<u64, (u64, i64)>,
    pub(super) taken_back: HashSet<u64>,
    /// The kind of the last record, and its number.
    pub(super) phase: (u8, u64),
    /// Of all lines of the session in the first pass.
    pub(super) digest: blake3::Hasher,
    pub(super) of_file: OfFile,
}

impl Entry {
    pub(super) fn is_new(&self) -> bool {
        !self.stored && !self.left_out
    }
}

/// The parent of a session of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) id: SessionId,
    pub(super) kind: ParentKind,
    pub(super) through: Option<u64>,
    pub(super) view: u64,
    pub(super) rewind: u64,
    /// Its place in the file; `None` if only the store has it.
    pub(super) at: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) entries: Vec<Entry>,
    pub(super) by_id: HashMap<SessionId, usize>,
    /// The session whose records are being read.
    pub(super) open: Option<usize>,
    pub(super) messages: u64,
    pub(super) detached: Vec<SessionId>,
    /// Blobs that the file adds to the store with their sizes, and the sum of the sizes.
    pub(super) brought: HashMap<BlobId, u64>,
    pub(super) brought_bytes: u64,
    /// Whether the file has the seal of this home.
    pub(super) is_own: bool,
    /// Whether folder and prompt of the new sessions wait for the user's decision.
    pub(super) waits: bool,
    /// The numbers of titles that the import has given.
    pub(super) titles: Series,
}

impl Survey {
    pub(super) fn imported(&self) -> Imported {
        let ids = |which: fn(&Entry) -> bool| {
            let entries = self.entries.iter().filter(|entry| which(entry));
            entries.map(|entry| entry.id.clone()).collect()
        };
        let left_out = self.entries.iter().filter(|entry| entry.left_out);
        Imported {
            sessions: ids(Entry::is_new),
            messages: self.entries.iter().filter(|entry| entry.is_new()).map(|entry| entry.messages.len() as u64).sum(),
            skipped: ids(|entry| entry.stored),
            renamed: Vec::new(),
            detached: self.detached.clone(),
            left_out: left_out
                .filter_map(|entry| Some((entry.id.clone(), entry.parent.as_ref()?.id.clone())))
                .collect(),
            is_own: self.is_own,
            of_file: self.entries.iter().filter(|entry| entry.is_new()).map(|entry| entry.of_file.clone()).collect(),
        }
    }

    pub(super) fn check_end(&self, line: &Line, end: &End) -> Result<(), StoreError> {
        let read = (self.entries.len() as u64, self.messages);
        if read == (end.sessions, end.messages) {
            return Ok(());
        }
        let described =
            |(sessions, messages)| format!("{} and {}", counted(sessions, "session"), counted(messages, "message"));
        let counted = described((end.sessions, end.messages));
        Err(line.refused(ImportProblem::Counts { counted, found: described(read) }))
    }

    pub(super) fn session(
        &mut self,
        line: &Line,
        session: &record::Session,
        connection: &Connection,
    ) -> Result<(), Fault> {
        let id = &session.id;
        if self.entries.len() == MOST_SESSIONS {
            return Err(line.refused(format!("there are more than {MOST_SESSIONS} sessions")).into());
        }
        // A command would take a hyphen for an option.
        if !lease::is_file_name(id) || id.as_str().starts_with('-') {
            let why = "a session id may contain only letters, digits, `_`, and `-` after the first character";
            return Err(line.refused(why).into());
        }
        if self.by_id.contains_key(id) {
            return Err(line.refused(format!("session {id} appears twice in the file")).into());
        }
        check_values(line, session)?;
        let stored = is_stored(connection, id)?;
        let mut parent = session.parent.as_ref().map(|parent| self.link(parent));
        let mut left_out = false;
        if stored {
            parent = parent.filter(|link| link.at.is_some());
        } else if let Some(link) = &parent {
            left_out = !self.check_link(line, link)?;
            let nowhere = match link.at {
                Some(at) => link.through.is_none() && self.entries[at].left_out,
                None => !is_stored(connection, &link.id)?,
            };
            if nowhere {
                self.detached.push(id.clone());
                parent = None;
            }
        }
        self.open = Some(self.entries.len());
        self.by_id.insert(id.clone(), self.entries.len());
        self.entries.push(Entry {
            id: id.clone(),
            place: line.place,
            stored,
            left_out,
            parent,
            bounds: if stored { stored_bounds(connection, id)? } else { (0, 0) },
            messages: Vec::new(),
            differs: false,
            views: Vec::new(),
            rewinds: Vec::new(),
            summaries: HashMap::new(),
            view_ids: HashMap::new(),
            taken_back: HashSet::new(),
            phase: (0, 0),
            digest: blake3::Hasher::new(),
            of_file: OfFile {
                session: id.clone(),
                workspace: session.workspace.clone(),
                prompt_characters: 0,
                tools: 0,
            },
        });
        if self.line_of(self.entries.len() - 1).count() > DEEPEST {
            return Err(line.refused(format!("more than {DEEPEST} sessions continue one another")).into());
        }
        Ok(())
    }

    fn link(&self, parent: &record::Parent) -> Link {
        Link {
            id: parent.id.clone(),
            kind: parent.kind,
            through: parent.through.map(|id| id.0),
            view: parent.view,
            rewind: parent.rewind,
            at: self.by_id.get(&parent.id).copied(),
        }
    }

    /// Everything that a new session has of its parent must be in the file, before the session, so that no session is
    /// its own ancestor.
    ///
    /// False if only the store's version of the parent lacks it.
    fn check_link(&self, line: &Line, link: &Link) -> Result<bool, StoreError> {
        let Some(through) = link.through else { return Ok(true) };
        if link.kind == ParentKind::Delegate {
            return Err(line.refused("a delegate has no messages of its parent"));
        }
        let Some(at) = link.at else {
            let problem = format!("it continues session {}, which does not come before it in the file", link.id);
            return Err(line.refused(problem));
        };
        if self.entries[at].left_out {
            return Ok(false);
        }
        match self.missing(at, link, through) {
            None => Ok(true),
            // An ancestor may be such a session.
            Some(_) if self.line_of(at).any(|(entry, ..)| entry.stored) => Ok(false),
            Some(missing) => Err(line.refused(format!("it continues session {}, which has no {missing}", link.id))),
        }
    }

    /// Names the part to which a child refers and which the entry lacks.
    fn missing(&self, at: usize, link: &Link, through: u64) -> Option<String> {
        let parent = &self.entries[at];
        let has = |pairs: &[(u64, i64)], number: u64| number == 0 || pairs.iter().any(|pair| pair.0 == number);
        if self.numbers(at).of(through).is_none() {
            Some(format!("message {through}"))
        } else if !has(&parent.views, link.view) {
            Some(format!("view {}", link.view))
        } else if !has(&parent.rewinds, link.rewind) {
            Some(format!("rewind {}", link.rewind))
        } else {
            None
        }
    }

    /// The entry and its ancestors, nearest first, each with the last message and the last view that belong to the
    /// conversation.
    fn line_of(&self, at: usize) -> impl Iterator<Item = (&Entry, u64, u64)> {
        let mut next = Some((at, u64::MAX, u64::MAX));
        std::iter::from_fn(move || {
            let (at, last_message, last_view) = next?;
            let entry = &self.entries[at];
            let parent = entry.parent.as_ref();
            next = parent.and_then(|link| Some((link.at?, link.through?.min(last_message), link.view)));
            Some((entry, last_message, last_view))
        })
    }

    pub(super) fn numbers(&self, at: usize) -> Numbers<'_> {
        let mut stretches: Vec<Stretch<'_>> =
            self.line_of(at).map(|(entry, through, _)| Stretch { pairs: &entry.messages, through }).collect();
        stretches.reverse();
        Numbers(stretches)
    }

    /// Looks up an id of the file in the views of a conversation.
    pub(super) fn found(&self, at: usize, of: impl Fn(&Entry) -> Option<(u64, i64)>) -> Option<i64> {
        self.line_of(at)
            .find_map(|(entry, _, last_view)| of(entry).filter(|(view, _)| *view <= last_view).map(|(_, row)| row))
    }

    /// Reads a session again that another import has stored meanwhile, to find the rows that correspond to the file.
    pub(super) fn compare(
        &mut self,
        connection: &Connection,
        file: &mut (impl BufRead + Seek),
        at: usize,
    ) -> Result<(), Fault> {
        self.reopen(at);
        self.entries[at].bounds = stored_bounds(connection, &self.entries[at].id)?;
        let mut lines = Lines::from(file, self.entries[at].place)?;
        lines.next()?;
        while let Some(step) = next_step(&mut lines)? {
            step.iter().try_for_each(|(line, record)| self.part(line, record, connection, false))?;
        }
        Ok(())
    }

    /// Whether everything that it has of its parent exists.
    pub(super) fn is_tied(&self, at: usize) -> bool {
        let Some(link) = &self.entries[at].parent else { return true };
        let (Some(parent), Some(through)) = (link.at, link.through) else { return true };
        !self.entries[parent].left_out && self.missing(parent, link, through).is_none()
    }

    /// Resets a session before it is read again: its parent now has the store's ids.
    pub(super) fn reopen(&mut self, at: usize) {
        let bounds = self.entries[at].parent.as_ref().and_then(|link| Some((link, &self.entries[link.at?])));
        let bounds = bounds.map_or((0, 0), |(link, parent)| {
            let newest = |pairs: &[(u64, i64)], number: u64, least: i64| {
                pairs.iter().filter(|pair| pair.0 <= number).map(|pair| pair.1).fold(least, i64::max)
            };
            (newest(&parent.views, link.view, parent.bounds.0), newest(&parent.rewinds, link.rewind, parent.bounds.1))
        });
        self.open = Some(at);
        let entry = &mut self.entries[at];
        self.messages = self.messages.saturating_sub(entry.messages.len() as u64);
        entry.bounds = bounds;
        entry.differs = false;
        entry.messages.clear();
        entry.views.clear();
        entry.rewinds.clear();
        entry.summaries.clear();
        entry.view_ids.clear();
        entry.taken_back.clear();
        entry.phase = (0, 0);
    }

    pub(super) fn put(
        &self,
        connection: &Connection,
        session: &record::Session,
        at: usize,
        now: u64,
    ) -> Result<(), Fault> {
        let entry = &self.entries[at];
        let link = entry.parent.as_ref();
        let through = link.and_then(|link| self.numbers(link.at?).of(link.through?));
        let totals = &session.totals;
        connection
            .prepare_cached(
                "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, \
                 started_at, updated_at, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, \
                 reasoning_tokens, request_count, cost, parent_id, parent_kind, parent_through, parent_view, \
                 parent_rewound) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
                 ?19, ?20, ?21)",
            )?
            .execute(params![
                session.id.as_str(),
                UNFINISHED,
                path_text(&session.workspace)?,
                session.engine,
                session.provider,
                session.model,
                session.context_length,
                session.started_at.cast_signed(),
                session.updated_at.min(now).cast_signed(),
                totals.input.cast_signed(),
                totals.output.cast_signed(),
                totals.cache_read.cast_signed(),
                totals.cache_write.cast_signed(),
                totals.reasoning.cast_signed(),
                totals.requests.cast_signed(),
                totals.cost,
                link.map(|link| link.id.as_str()),
                link.map(|link| link.kind.as_str()),
                through.map(u64::cast_signed),
                link.map(|_| entry.bounds.0),
                entry.bounds.1,
            ])?;
        Ok(())
    }
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn check_values(line: &Line, session: &record::Session) -> Result<(), StoreError> {
    hermes_session_store::title::clean(session.title.as_deref().unwrap_or_default())
        .map_err(|error| line.refused(error.to_string()))?;
    if session.source == UNFINISHED || session.source.starts_with(IMPORTED) {
        return Err(line.refused("its source is reserved"));
    }
    path_text(&session.workspace).map_err(|error| line.refused(error.to_string()))?;
    let totals = &session.totals;
    let counts =
        [totals.input, totals.output, totals.cache_read, totals.cache_write, totals.reasoning, totals.requests];
    if counts.iter().any(|count| *count > MOST_TOKENS) || !(0.0..=1e12).contains(&totals.cost) {
        return Err(line.refused("its tokens or costs are not plausible"));
    }
    if session.started_at > PLAUSIBLE || session.updated_at > PLAUSIBLE {
        return Err(line.refused("its times are not plausible"));
    }
    Ok(())
}

pub(super) fn is_stored(connection: &Connection, id: &SessionId) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")?;
    Ok(statement.query_row([id.as_str()], |row| row.get(0))?)
}

fn stored_bounds(connection: &Connection, id: &SessionId) -> Result<(i64, i64), Fault> {
    let mut statement =
        connection.prepare_cached("SELECT coalesce(parent_view, 0), parent_rewound FROM sessions WHERE id = ?1")?;
    Ok(statement.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?.unwrap_or_default())
}
