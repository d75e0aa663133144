//! The records of a session besides its own row: prompts, messages, rewinds, views, requests, in this order.

use hermes_conversation::{Draft, Media, MessageRange, Role, ViewId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::lines::Line;
use super::survey::{Entry, Survey};
use super::{MOST_MESSAGES, PLAUSIBLE};
use crate::error::Fault;
use crate::log::to_json;
use crate::transfer::record::{Item, Prompt, Record, Rewind, Summary, View};
use crate::{Frozen, RequestRecord, StoreError, blobs, log, prompts, requests};

/// The position of messages in that order.
const OF_MESSAGES: u8 = 2;
/// The highest number of a prompt, rewind, view or request: later ones are counted from there.
const LAST_NUMBER: u64 = 1 << 31;
/// US dollars.
const MOST_COST: f64 = 1e12;

/// Why the records of a session are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The session is new: check whether it can be stored.
    Check,
    /// The session is new: store it.
    Store,
    /// The session exists: find the corresponding rows.
    Compare,
}

impl Survey {
    /// Reads a record of the current session.
    pub(super) fn part(
        &mut self,
        line: &Line,
        record: &Record,
        connection: &Connection,
        store: bool,
    ) -> Result<(), Fault> {
        let Some(at) = self.open else { return Err(line.refused("it comes before the first session").into()) };
        if self.entries[at].left_out {
            self.messages += u64::from(matches!(record, Record::Message(_)));
            return Ok(());
        }
        let purpose = match (self.entries[at].stored, store) {
            (true, _) => Purpose::Compare,
            (false, true) => Purpose::Store,
            (false, false) => Purpose::Check,
        };
        check_values(line, record)?;
        match record {
            Record::Prompt(prompt) => {
                self.in_place(line, at, 1, prompt.frozen.number.0)?;
                self.prompt(prompt, connection, at, purpose)
            }
            Record::Message(message) => {
                self.in_place(line, at, OF_MESSAGES, message.id.0)?;
                self.message(line, message, connection, at, purpose)
            }
            Record::Rewind(rewind) => {
                self.in_place(line, at, 3, rewind.number)?;
                self.rewind(line, rewind, connection, at, purpose)
            }
            Record::View(view) => {
                self.in_place(line, at, 4, view.number)?;
                self.view(line, view, connection, at, purpose)
            }
            Record::Request(request) => {
                self.in_place(line, at, 5, request.number)?;
                self.request(line, request, connection, at, purpose)
            }
            Record::Header(_) | Record::Session(_) | Record::End(_) => {
                Err(line.refused("it is not part of a session").into())
            }
        }
    }

    /// Checks that the kinds are in order, and that the numbers of each kind increase.
    fn in_place(&mut self, line: &Line, at: usize, kind: u8, number: u64) -> Result<(), Fault> {
        let (before, last) = self.entries[at].phase;
        if kind < before {
            return Err(line.refused("it comes after records that have to follow it").into());
        }
        let last = if kind == before { last } else { 0 };
        let most = if kind == OF_MESSAGES { PLAUSIBLE } else { LAST_NUMBER };
        if number <= last || number > most {
            return Err(line.refused(format!("its number {number} does not follow {last}")).into());
        }
        self.entries[at].phase = (kind, number);
        Ok(())
    }

    fn prompt(&mut self, prompt: &Prompt, connection: &Connection, at: usize, purpose: Purpose) -> Result<(), Fault> {
        let Frozen { system_prompt, tools, .. } = &prompt.frozen;
        let tools = serde_json::from_str::<Vec<serde::de::IgnoredAny>>(tools).map_or(0, |tools| tools.len());
        let of_file = &mut self.entries[at].of_file;
        (of_file.prompt_characters, of_file.tools) = (system_prompt.chars().count() as u64, tools as u64);
        if purpose == Purpose::Store {
            prompts::insert(connection, &self.entries[at].id, &prompt.frozen, prompt.created_at)?;
        }
        Ok(())
    }

    fn message(
        &mut self,
        line: &Line,
        message: &hermes_conversation::Message,
        connection: &Connection,
        at: usize,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        if message.role == Role::System {
            return Err(line.refused("a system message cannot be part of a conversation").into());
        }
        if let Err(error) = blobs::check(&message.draft) {
            return Err(line.refused(error.to_string()).into());
        }
        let entry = &self.entries[at];
        let number = message.id.0;
        if let Some(through) = entry.parent.as_ref().and_then(|link| link.through)
            && number <= through
        {
            let problem = format!("message {number} does not come after message {through} of the parent");
            return Err(line.refused(problem).into());
        }
        if purpose == Purpose::Check {
            self.bring(line, &message.draft, connection)?;
        }
        self.messages += 1;
        if self.messages > MOST_MESSAGES {
            return Err(line.refused(format!("there are more than {MOST_MESSAGES} messages")).into());
        }
        let entry = &self.entries[at];
        let row = match purpose {
            Purpose::Check => Some(number),
            Purpose::Store => Some(log::insert(connection, &entry.id, &message.draft)?.cast_unsigned()),
            // After the first message that differs, the two have nothing in common.
            Purpose::Compare if entry.differs => None,
            Purpose::Compare => same_message(connection, entry, message)?,
        };
        let entry = &mut self.entries[at];
        match row {
            Some(row) => entry.messages.push((number, row)),
            None => entry.differs = true,
        }
        Ok(())
    }

    /// Checks that a new message names only pictures and files that the store has, or that are in the file up to here.
    fn bring(&mut self, line: &Line, draft: &Draft, connection: &Connection) -> Result<(), Fault> {
        for blob in draft.media().filter_map(Media::blob) {
            let known = match self.brought.get(&blob.hash) {
                Some(size) => Some(*size),
                None => blobs::size(connection, &blob.hash)?,
            };
            match (known, &blob.bytes) {
                (Some(size), _) if size == blob.size => {}
                (Some(_), _) => {
                    return Err(line.refused(StoreError::BlobChanged(blob.hash.clone()).to_string()).into());
                }
                (None, None) => return Err(line.refused(StoreError::NoSuchBlob(blob.hash.clone()).to_string()).into()),
                (None, Some(_)) => {
                    self.brought.insert(blob.hash.clone(), blob.size);
                    self.brought_bytes += blob.size;
                    let (size, used) = (self.brought_bytes, blobs::used(connection)?);
                    if used + size > blobs::MAX_STORE_BYTES {
                        return Err(StoreError::BlobQuota { size, used, most: blobs::MAX_STORE_BYTES }.into());
                    }
                }
            }
        }
        Ok(())
    }

    fn rewind(
        &mut self,
        line: &Line,
        rewind: &Rewind,
        connection: &Connection,
        at: usize,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        let mut last_row = 0;
        if purpose == Purpose::Compare {
            let sql = "SELECT coalesce(max(id), 0) FROM rewound WHERE session_id = ?1 AND number <= ?2";
            last_row = connection
                .prepare_cached(sql)?
                .query_row(params![self.entries[at].id.as_str(), rewind.number.cast_signed()], |row| row.get(0))?;
        } else {
            for message in &rewind.messages {
                let Some(row) = self.numbers(at).of(message.0) else {
                    return Err(line.refused(format!("message {message} is not part of this conversation")).into());
                };
                let entry = &mut self.entries[at];
                if !entry.taken_back.insert(message.0) {
                    return Err(line.refused(format!("message {message} is rewound twice")).into());
                }
                if purpose == Purpose::Store {
                    let sql =
                        "INSERT INTO rewound (session_id, message_id, rewound_at, number) VALUES (?1, ?2, ?3, ?4)";
                    last_row = connection.prepare_cached(sql)?.insert(params![
                        entry.id.as_str(),
                        row.cast_signed(),
                        rewind.rewound_at.cast_signed(),
                        rewind.number.cast_signed(),
                    ])?;
                }
            }
        }
        self.entries[at].rewinds.push((rewind.number, last_row));
        Ok(())
    }

    fn view(
        &mut self,
        line: &Line,
        view: &View,
        connection: &Connection,
        at: usize,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        let number = view.number;
        if purpose == Purpose::Compare {
            return self.same_view(view, connection, at);
        }
        let foreign = |id: u64| line.refused(format!("message {id} is not part of this conversation"));
        let through = match view.through {
            Some(id) => Some(self.numbers(at).of(id.0).ok_or_else(|| foreign(id.0))?),
            None => None,
        };
        let row = match purpose {
            Purpose::Store => connection
                .prepare_cached(
                    "INSERT INTO views (session_id, number, through, engine, reason, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .insert(params![
                    self.entries[at].id.as_str(),
                    number.cast_signed(),
                    through.map(u64::cast_signed),
                    view.engine,
                    view.reason,
                    view.created_at.cast_signed(),
                ])?,
            _ => number.cast_signed(),
        };
        for summary in &view.summaries {
            let of_row = self.summary(line, summary, connection, at, (purpose == Purpose::Store).then_some(row))?;
            self.entries[at].summaries.insert(summary.id, (number, of_row));
        }
        let mut last = 0;
        for (position, item) in (0i64..).zip(&view.items) {
            last =
                self.item(line, item, last, connection, at, (purpose == Purpose::Store).then_some((row, position)))?;
        }
        let entry = &mut self.entries[at];
        entry.views.push((number, row));
        if entry.view_ids.insert(view.id, (number, row)).is_some() {
            return Err(line.refused(format!("the view {} appears twice", view.id)).into());
        }
        Ok(())
    }

    /// Returns the row of the summary; stores it if `view` is given.
    fn summary(
        &self,
        line: &Line,
        summary: &Summary,
        connection: &Connection,
        at: usize,
        view: Option<i64>,
    ) -> Result<i64, Fault> {
        let entry = &self.entries[at];
        if summary.key.is_empty() || entry.summaries.contains_key(&summary.id) {
            return Err(line.refused(format!("the summary {} has no key or appears twice", summary.id)).into());
        }
        let numbers = self.numbers(at);
        let mut covers = Vec::with_capacity(summary.covers.len());
        for range in &summary.covers {
            let Some((first, last)) = numbers.of_range(range.first.0, range.last.0) else {
                let problem = format!("the summary {} covers nothing of this conversation in {range}", summary.id);
                return Err(line.refused(problem).into());
            };
            covers.push(MessageRange::new(hermes_conversation::MessageId(first), hermes_conversation::MessageId(last)));
        }
        let Some(view) = view else { return Ok(0) };
        Ok(connection
            .prepare_cached(
                "INSERT INTO summaries (session_id, key, content, covers, view_id) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .insert(params![entry.id.as_str(), summary.key, summary.content, to_json(&covers)?, view])?)
    }

    /// Returns the last message that the view shows so far. Stores the item if `to`, its view and position, is given.
    fn item(
        &self,
        line: &Line,
        item: &Item,
        before: u64,
        connection: &Connection,
        at: usize,
        to: Option<(i64, i64)>,
    ) -> Result<u64, Fault> {
        let numbers = self.numbers(at);
        let (mut range, mut excerpt, mut of_summary) = (None, None, None);
        let kind = match item {
            Item::Messages(messages) => {
                range = numbers.of_range(messages.first.0, messages.last.0);
                if range.is_none() {
                    return Err(line.refused(format!("no message of this conversation is in {messages}")).into());
                }
                "messages"
            }
            Item::Excerpt(shorter) => {
                let Some(row) = numbers.of(shorter.id.0) else {
                    return Err(line
                        .refused(format!("message {} is not part of this conversation", shorter.id))
                        .into());
                };
                let id = hermes_conversation::MessageId(row);
                excerpt = Some(hermes_conversation::Excerpt { id, ..shorter.clone() });
                "excerpt"
            }
            Item::Summary(id) => {
                let found = self.found(at, |entry| entry.summaries.get(id).copied());
                if found.is_none() {
                    return Err(line.refused(format!("no view of this conversation contains the summary {id}")).into());
                }
                of_summary = found;
                "summary"
            }
        };
        let shown = range.or_else(|| excerpt.as_ref().map(|excerpt| (excerpt.id.0, excerpt.id.0)));
        if shown.is_some_and(|(first, _)| first <= before) {
            return Err(line.refused("the view shows a message twice or out of order").into());
        }
        if let Some((view, position)) = to {
            connection
                .prepare_cached(
                    "INSERT INTO view_items (view_id, position, kind, first_id, last_id, excerpt, summary_id) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    view,
                    position,
                    kind,
                    range.map(|range| range.0.cast_signed()),
                    range.map(|range| range.1.cast_signed()),
                    excerpt.as_ref().map(to_json).transpose()?,
                    of_summary,
                ])?;
        }
        Ok(shown.map_or(before, |(_, last)| last))
    }

    fn request(
        &mut self,
        line: &Line,
        request: &RequestRecord,
        connection: &Connection,
        at: usize,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        if purpose == Purpose::Compare {
            return Ok(());
        }
        let through = match request.through {
            None => None,
            Some(id) => match self.numbers(at).of(id.0) {
                None => return Err(line.refused(format!("message {id} is not part of this conversation")).into()),
                found => found.map(hermes_conversation::MessageId),
            },
        };
        let view = match request.view {
            ViewId::WHOLE => Some(0),
            ViewId(id) => self.found(at, |entry| entry.view_ids.get(&id).copied()),
        };
        let Some(view) = view else {
            return Err(line.refused(format!("the view {} is not part of this conversation", request.view)).into());
        };
        if purpose == Purpose::Store {
            let request = RequestRecord { through, view: ViewId(view.cast_unsigned()), ..request.clone() };
            requests::put(connection, &self.entries[at].id, request.number.cast_signed(), &request)?;
        }
        Ok(())
    }

    /// Finds the rows of a view of a stored session, so that a branch in the file can refer to them.
    fn same_view(&mut self, view: &View, connection: &Connection, at: usize) -> Result<(), Fault> {
        let sql = "SELECT id FROM views WHERE session_id = ?1 AND number = ?2";
        let row: Option<i64> = connection
            .prepare_cached(sql)?
            .query_row(params![self.entries[at].id.as_str(), view.number.cast_signed()], |row| row.get(0))
            .optional()?;
        let Some(row) = row else { return Ok(()) };
        let sql = "SELECT id FROM summaries WHERE view_id = ?1 AND key = ?2 AND content = ?3";
        let mut same = connection.prepare_cached(sql)?;
        for summary in &view.summaries {
            let found: Option<i64> =
                same.query_row(params![row, summary.key, summary.content], |row| row.get(0)).optional()?;
            if let Some(found) = found {
                self.entries[at].summaries.insert(summary.id, (view.number, found));
            }
        }
        self.entries[at].views.push((view.number, row));
        self.entries[at].view_ids.insert(view.id, (view.number, row));
        Ok(())
    }
}

/// Stored numbers are used in calculations, and a number out of range would block all later ones.
fn check_values(line: &Line, record: &Record) -> Result<(), Fault> {
    let plausible = |numbers: &[u64]| numbers.iter().all(|number| *number <= PLAUSIBLE);
    let sound = match record {
        Record::Prompt(prompt) => plausible(&[prompt.created_at]),
        Record::Message(message) => plausible(&[message.created_at]),
        Record::Rewind(rewind) => plausible(&[rewind.rewound_at]),
        Record::View(view) => plausible(&[view.created_at]),
        Record::Request(request) => {
            let costs = [request.cost, request.saved, request.lost];
            plausible(&[request.sent_at, request.bytes, request.prefix_bytes])
                && request.prompt.0 <= LAST_NUMBER
                && costs.iter().flatten().all(|cost| cost.abs() <= MOST_COST)
        }
        Record::Header(_) | Record::Session(_) | Record::End(_) => true,
    };
    if sound { Ok(()) } else { Err(line.refused("its times, bytes or costs are not plausible").into()) }
}

/// The next message of a stored session, if it is this one.
fn same_message(
    connection: &Connection,
    entry: &Entry,
    message: &hermes_conversation::Message,
) -> Result<Option<u64>, Fault> {
    let last = entry.messages.last().map_or(0, |pair| pair.1.cast_signed());
    let sql = format!("SELECT {} FROM messages WHERE session_id = ?1 AND id > ?2 ORDER BY id LIMIT 1", log::COLUMNS);
    let next =
        connection.prepare_cached(&sql)?.query_row(params![entry.id.as_str(), last], log::from_row).optional()?;
    Ok(next.filter(|next| next.draft == blobs::stripped(&message.draft)).map(|next| next.id.0))
}
