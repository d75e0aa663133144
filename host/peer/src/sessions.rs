//! Sessions: written to a temporary file as an export of this program, and imported like any other export.
//!
//! So the rules of imports hold here too: a session becomes visible when it is complete, and the folder that the peer's
//! database names is used only if the user agrees when the session is resumed. The peer's system prompts stay behind.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::PathBuf;

use hermes_conversation::render::{Rendering, Repairs};
use hermes_conversation::{Conversation, Draft, Message, MessageId, Role, SessionId, View, closing};
use hermes_diagnostic::{counted, grouped};
use hermes_session_store::{RequestRecord, SessionError, SessionStore, StoreError, Totals, Trust};
use serde_json::{Value, json};

use crate::database::{Database, SessionRow};
use crate::folding::{Fold, Folded, folded, view};
use crate::lineage::{Chain, chains};
use crate::report::{PartReport, first};
use crate::translation::{Losses, entries, milliseconds};
use crate::{Mode, PeerError, PeerHome};

/// Precedes the ids of imported sessions, which otherwise look like those of this program.
const PREFIX: &str = "peer_";
/// Who made the views, and the reason that `hermes context` shows.
const ENGINE: &str = "hermes-agent";
const REASON: &str = "compacted by Hermes Agent";
/// The window where nothing says more. It is used until a model answers here.
const WINDOW: u32 = 128_000;
/// The most bytes of a line of the file: what imports accept, with room.
const LONGEST: usize = 60 << 20;
const LONGEST_TITLE: usize = 100;

/// A conversation of the peer in the terms of this program.
struct Translated {
    id: SessionId,
    folded: Folded,
    losses: Losses,
}

/// What is counted over all sessions.
#[derive(Default)]
struct Tally {
    joined: u64,
    folded: u64,
    losses: Losses,
    repaired: Vec<String>,
    open: Vec<String>,
    empty: u64,
    refused: Vec<String>,
    apart: Vec<String>,
    grown: Vec<(SessionId, u64)>,
    counted: u64,
    unchanged: u64,
}

pub(crate) async fn import(
    database: &Database,
    peer: &PeerHome,
    store: &dyn SessionStore,
    engine: &str,
    mode: Mode,
    report: &mut PartReport,
) -> Result<(), PeerError> {
    let sessions = match database.sessions() {
        Ok(sessions) => sessions,
        Err(why) => {
            report.left(why);
            return Ok(());
        }
    };
    if let Some(version) = database.newer {
        report.changed(format!("state.db has the newer schema {version}; what only that schema has stays behind"));
    }
    let chains = chains(&sessions);
    let mut file = ExportFile::create(peer, engine).map_err(|source| PeerError::Temporary { source })?;
    let mut tally = Tally::default();
    for chain in &chains {
        file.find_folder(&sessions, chain);
        let translated = match translated(database, &sessions, chain) {
            Ok(translated) => translated,
            Err(why) => {
                tally.refused.push(format!("session {}: {why}", sessions[chain.links[0]].id));
                continue;
            }
        };
        if translated.folded.messages.is_empty() {
            tally.empty += 1;
            continue;
        }
        let known = match store.session(&translated.id).await {
            Ok(_) => true,
            Err(StoreError::Session(SessionError::UnknownSession(_))) => false,
            Err(error) => return Err(error.into()),
        };
        if known {
            let sums = totals(chain.links.iter().map(|link| &sessions[*link]));
            // New sessions may descend from it.
            file.ids.insert(chain.links[0], translated.id.clone());
            grow(store, &translated, &sums, mode, &mut tally).await?;
            continue;
        }
        let added = file.add(&sessions, chain, &translated).map_err(|source| PeerError::Temporary { source })?;
        match added {
            Ok(()) => tally.count(chain, &translated),
            Err(why) => tally.refused.push(format!("session {}: {why}", sessions[chain.links[0]].id)),
        }
    }
    let reader = file.finish().map_err(|source| PeerError::Temporary { source })?;
    let done = match mode {
        Mode::DryRun => store.examine_import(Box::new(reader)).await?,
        Mode::Write { now } => store.import(Box::new(reader), now, Trust::OwnFiles).await?,
    };
    if !done.sessions.is_empty() {
        let count = done.sessions.len() as u64;
        report.taken(format!("{} with {}", counted(count, "session"), counted(done.messages, "message")));
    }
    let renamed =
        done.renamed.iter().map(|(id, title)| format!("session {id} is called `{title}`: its title was taken"));
    first(renamed.collect(), "session").into_iter().for_each(|line| report.changed(line));
    tally.report(report);
    Ok(())
}

impl Tally {
    fn count(&mut self, chain: &Chain, translated: &Translated) {
        self.joined += u64::from(chain.links.len() > 1);
        self.folded += u64::from(translated.folded.fold.is_some());
        let Losses { rewound, empty, media, arguments } = translated.losses;
        self.losses.rewound += rewound;
        self.losses.empty += empty;
        self.losses.media += media;
        self.losses.arguments += arguments;
        let conversation = conversation(&translated.folded.messages);
        let (rendering, _) = Rendering::of(&conversation, &View::default());
        let open = closing::open_calls(&conversation).len();
        let repairs = rendering.repairs();
        let repairs = Repairs {
            calls_answered: repairs.calls_answered.saturating_sub(u32::try_from(open).unwrap_or(u32::MAX)),
            ..repairs
        };
        if repairs.any() {
            self.repaired.push(format!("session {} has {repairs}; requests show it sound", translated.id));
        }
        let last = conversation.messages().last();
        if last.is_some_and(|last| last.role != Role::Assistant || !last.tool_calls.is_empty()) {
            self.open.push(translated.id.0.clone());
        }
    }

    fn report(self, report: &mut PartReport) {
        let session = |count: u64| counted(count, "session");
        let mut grown: Vec<String> = Vec::new();
        for (id, messages) in &self.grown {
            grown.push(format!("{} of session {id}, which continued", counted(*messages, "new message")));
        }
        first(grown, "session").into_iter().for_each(|line| report.taken(line));
        if self.counted > 0 {
            report.taken(format!("the newer sums of tokens and costs of {}", session(self.counted)));
        }
        if self.unchanged > 0 {
            report.known(format!("{} imported before, without news", session(self.unchanged)));
        }
        if self.joined > 0 {
            report.changed(format!("{} joined from the parts before and after compactions", session(self.joined)));
        }
        if self.folded > 0 {
            report.changed(format!(
                "{} continue with the summary of the peer; all messages are here",
                session(self.folded)
            ));
        }
        first(self.repaired, "session").into_iter().for_each(|line| report.changed(line));
        if !self.open.is_empty() {
            report.changed(format!(
                "{} with an interrupted turn, which is closed when you resume: {}",
                session(self.open.len() as u64),
                some(&self.open)
            ));
        }
        let Losses { rewound, empty, media, arguments } = self.losses;
        if arguments > 0 {
            report.changed(format!("{} whose arguments were no JSON object", counted(arguments, "tool call")));
        }
        for (count, what, why) in [
            (rewound, "message", "taken back by you there"),
            (empty, "row", "without content, or of another role"),
            (media, "picture or file", "not readable, or of an unknown type"),
        ] {
            if count > 0 {
                report.left(format!("{} ({why})", counted_words(count, what)));
            }
        }
        if self.empty > 0 {
            report.left(format!("{} without messages", session(self.empty)));
        }
        first(self.apart, "session").into_iter().for_each(|line| report.left(line));
        first(self.refused, "session").into_iter().for_each(|line| report.left(line));
    }
}

fn counted_words(count: u64, what: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what}"),
        (_, "picture or file") => format!("{} pictures or files", grouped(count)),
        _ => counted(count, what),
    }
}

/// The first ids, and how many more there are.
fn some(ids: &[String]) -> String {
    const FEW: usize = 3;
    let more = ids.len().saturating_sub(FEW);
    let shown = ids.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn translated(database: &Database, sessions: &[SessionRow], chain: &Chain) -> Result<Translated, String> {
    let (mut losses, mut rows) = (Losses::default(), Vec::new());
    for link in &chain.links {
        let session = &sessions[*link];
        let messages = database.messages(&session.id)?;
        rows.extend(entries(&messages, session.started_at, &mut losses));
    }
    let id = own_id(&sessions[chain.links[0]].id).ok_or_else(|| "its id is empty or too long".to_owned())?;
    Ok(Translated { id, folded: folded(rows), losses })
}

/// The id here of a session of the peer. It is the same in every import.
fn own_id(id: &str) -> Option<SessionId> {
    /// Leaves room for the prefix within the longest id.
    const LONGEST: usize = 80;
    if id.is_empty() || id.chars().count() > 200 {
        return None;
    }
    let is_plain =
        id.len() <= LONGEST && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_plain {
        return Some(SessionId(format!("{PREFIX}{id}")));
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    Some(SessionId(format!("{PREFIX}x_{}", &hash[..24])))
}

/// Adds what is new to a session that was imported before.
async fn grow(
    store: &dyn SessionStore,
    translated: &Translated,
    sums: &Totals,
    mode: Mode,
    tally: &mut Tally,
) -> Result<(), PeerError> {
    let Translated { id, folded, .. } = translated;
    let lease = match mode {
        Mode::DryRun => None,
        Mode::Write { .. } => match store.lease(id).await {
            Ok(lease) => Some(lease),
            Err(StoreError::Session(SessionError::InUse { .. })) => {
                tally.apart.push(format!("what is new in session {id}: it is in use here"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        },
    };
    let here = store.conversation(id).await?;
    let equal = here.iter().zip(&folded.messages).take_while(|(here, there)| is_same(here, there)).count();
    // If the session continued in both programs, the peer's sums cover messages that are not here.
    if equal == here.len() || equal == folded.messages.len() {
        let now = store.session(id).await?.totals;
        let joint = joint(&now, sums, &store.requests(id).await?);
        // Sums of the same prices in another order differ in their last digits.
        let has_cost = joint.cost - now.cost > 1e-9;
        if has_cost || (Totals { cost: now.cost, ..joint }) != now {
            tally.counted += 1;
            if lease.is_some() {
                store.set_totals(id, &joint).await?;
            }
        }
    }
    if equal == folded.messages.len() {
        tally.unchanged += 1;
        return Ok(());
    }
    if equal < here.len() {
        tally
            .apart
            .push(format!("what is new in session {id}: since the last import it went on here and changed there"));
        return Ok(());
    }
    let new = &folded.messages[equal..];
    if lease.is_some() {
        let added = store.append(id, new).await?;
        if let Some(fold) = folded.fold.as_ref().filter(|fold| fold.through > equal) {
            let ids: Vec<MessageId> = here.iter().chain(&added).map(|message| message.id).collect();
            store.put_view(id, &view(fold, &|at| ids[at], &key(fold)), REASON, ENGINE).await?;
        }
    }
    tally.grown.push((id.clone(), new.len() as u64));
    Ok(())
}

/// The totals of a session that the peer counted up to `there`, with the requests made here. They never shrink.
fn joint(now: &Totals, there: &Totals, here: &[RequestRecord]) -> Totals {
    let mut sums = *there;
    for request in here {
        let usage = request.usage.unwrap_or_default();
        sums.input += u64::from(usage.input);
        sums.output += u64::from(usage.output);
        sums.cache_read += u64::from(usage.cache_read);
        sums.cache_write += u64::from(usage.cache_write);
        sums.requests += 1;
        sums.cost += request.cost.unwrap_or(0.0);
    }
    Totals {
        input: sums.input.max(now.input),
        output: sums.output.max(now.output),
        cache_read: sums.cache_read.max(now.cache_read),
        cache_write: sums.cache_write.max(now.cache_write),
        // The ledger does not have it.
        reasoning: sums.reasoning.max(now.reasoning),
        requests: sums.requests.max(now.requests),
        cost: sums.cost.max(now.cost),
    }
}

/// Whether a stored message is the translated one.
fn is_same(here: &Message, there: &Draft) -> bool {
    let without_bytes = |draft: &Draft| {
        let mut draft = draft.clone();
        draft.media_mut().for_each(|media| media.set_bytes(None));
        draft
    };
    without_bytes(&here.draft) == without_bytes(there)
}

fn conversation(messages: &[Draft]) -> Conversation {
    let numbered = messages.iter().cloned().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id)));
    Conversation::new(numbered)
}

/// The key of a summary: the same for the same text and place.
fn key(fold: &Fold) -> String {
    let place = format!("{} {} {}", fold.first, fold.rest, fold.summary);
    format!("peer-{}", &blake3::hash(place.as_bytes()).to_hex()[..16])
}

/// An export of the peer's sessions.
struct ExportFile<'a> {
    out: BufWriter<File>,
    engine: &'a str,
    /// Where sessions without a folder worked.
    fallback: PathBuf,
    /// The ids of messages, views and summaries, which are unique in the file.
    next: u64,
    sessions: u64,
    messages: u64,
    ids: HashMap<usize, SessionId>,
    /// The folders of conversations by their first sessions.
    folders: HashMap<usize, PathBuf>,
}

impl<'a> ExportFile<'a> {
    fn create(peer: &PeerHome, engine: &'a str) -> io::Result<Self> {
        let fallback = std::env::home_dir().unwrap_or_else(|| peer.path().to_owned());
        let out = BufWriter::new(tempfile::tempfile()?);
        let mut file = Self {
            out,
            engine,
            fallback,
            next: 1,
            sessions: 0,
            messages: 0,
            ids: HashMap::new(),
            folders: HashMap::new(),
        };
        file.put(&json!({ "type": "header", "format": "hermes-sessions", "version": 2, "exported_at": 0 }))?;
        Ok(file)
    }

    /// Adds a session; the inner error says why the session stays behind.
    fn add(&mut self, rows: &[SessionRow], chain: &Chain, translated: &Translated) -> io::Result<Result<(), String>> {
        let mut next = self.next;
        let mut number = || {
            next += 1;
            next - 1
        };
        let messages = &translated.folded.messages;
        let ids: Vec<MessageId> = messages.iter().map(|_| MessageId(number())).collect();
        let mut lines = Vec::with_capacity(messages.len() + 2);
        let parent = chain.parent.and_then(|(parent, kind)| {
            Some(json!({ "id": self.ids.get(&parent)?, "kind": kind, "through": null, "view": 0, "rewind": 0 }))
        });
        lines.push(json!(self.session(rows, chain, translated, parent)));
        for (draft, id) in messages.iter().zip(&ids) {
            if let Err(error) = draft.check_parts() {
                return Ok(Err(format!("a message is not sound: {error}")));
            }
            lines.push(tagged("message", json!(draft.clone().numbered(*id))));
        }
        if let Some(fold) = &translated.folded.fold {
            let (view_id, summary_id) = (number(), number());
            lines.push(of_view(fold, &ids, view_id, summary_id));
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        if lines.iter().any(|line| line.len() > LONGEST) {
            return Ok(Err(format!("a message is larger than {} MiB", LONGEST >> 20)));
        }
        for line in &lines {
            writeln!(self.out, "{line}")?;
        }
        self.next = next;
        self.sessions += 1;
        self.messages += messages.len() as u64;
        self.ids.insert(chain.links[0], translated.id.clone());
        Ok(Ok(()))
    }

    /// Where a conversation worked. The peer stores no folder for a subagent, which worked where its parent did.
    fn find_folder(&mut self, rows: &[SessionRow], chain: &Chain) {
        let own = chain.links.iter().rev().find_map(|link| rows[*link].cwd.as_ref().filter(|cwd| !cwd.is_empty()));
        // Parents come first.
        let of_parent = || self.folders.get(&chain.parent?.0).cloned();
        if let Some(folder) = own.map(PathBuf::from).or_else(of_parent) {
            self.folders.insert(chain.links[0], folder);
        }
    }

    fn session(&self, rows: &[SessionRow], chain: &Chain, translated: &Translated, parent: Option<Value>) -> Value {
        let links = || chain.links.iter().map(|link| &rows[*link]);
        let newest =
            |of: fn(&SessionRow) -> Option<&String>| links().rev().find_map(of).filter(|text| !text.is_empty());
        let first = &rows[chain.links[0]];
        let folder = self.folders.get(&chain.links[0]).unwrap_or(&self.fallback);
        let messages = &translated.folded.messages;
        let updated = messages.last().map_or(0, |message| message.created_at);
        json!({
            "type": "session",
            "id": translated.id,
            "source": source(&first.source),
            "title": newest(|row| row.title.as_ref()).and_then(|title| cleaned(title)),
            "workspace": folder,
            "engine": self.engine,
            "provider": newest(|row| row.provider.as_ref()).map_or("unknown", String::as_str),
            "model": newest(|row| row.model.as_ref()).map_or("unknown", String::as_str),
            "context_length": WINDOW,
            "started_at": milliseconds(first.started_at),
            "updated_at": updated,
            "totals": totals(links()),
            "parent": parent,
        })
    }

    fn put(&mut self, record: &Value) -> io::Result<()> {
        writeln!(self.out, "{record}")
    }

    fn finish(mut self) -> io::Result<BufReader<File>> {
        let end = json!({ "type": "end", "sessions": self.sessions, "messages": self.messages });
        self.put(&end)?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(BufReader::new(file))
    }
}

fn tagged(kind: &str, mut record: Value) -> Value {
    record["type"] = kind.into();
    record
}

fn of_view(fold: &Fold, ids: &[MessageId], view_id: u64, summary_id: u64) -> Value {
    let range = |from: usize, to: usize| json!({ "first": ids[from], "last": ids[to - 1] });
    let mut items = Vec::new();
    if fold.first > 0 {
        items.push(json!({ "messages": range(0, fold.first) }));
    }
    items.push(json!({ "summary": summary_id }));
    if fold.rest < fold.through {
        items.push(json!({ "messages": range(fold.rest, fold.through) }));
    }
    let covers = [range(fold.first, fold.rest)];
    let summary = json!({ "id": summary_id, "key": key(fold), "content": fold.summary, "covers": covers });
    json!({
        "type": "view",
        "id": view_id,
        "number": 1,
        "through": ids[fold.through - 1],
        "engine": ENGINE,
        "reason": REASON,
        "created_at": fold.made_at,
        "summaries": [summary],
        "items": items,
    })
}

/// The front end of the peer, such as `hermes-agent cli`.
fn source(of_peer: &str) -> String {
    let plain: String = of_peer.chars().filter(char::is_ascii_graphic).take(40).collect();
    if plain.is_empty() { ENGINE.to_owned() } else { format!("{ENGINE} {plain}") }
}

/// A title that the store accepts.
fn cleaned(title: &str) -> Option<String> {
    let title: String = title.chars().filter(|character| !character.is_control()).take(LONGEST_TITLE).collect();
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}

/// What a conversation used so far. Implausible counts are left out.
fn totals<'a>(rows: impl Iterator<Item = &'a SessionRow>) -> Totals {
    const MOST: u64 = 1 << 44;
    const MOST_COST: f64 = 1e9;
    let count = |number: i64| u64::try_from(number).ok().filter(|count| *count <= MOST).unwrap_or(0);
    let mut totals = Totals::default();
    for row in rows {
        totals.input += count(row.input);
        totals.output += count(row.output);
        totals.cache_read += count(row.cache_read);
        totals.cache_write += count(row.cache_write);
        totals.reasoning += count(row.reasoning);
        totals.requests += count(row.requests);
        totals.cost += if (0.0..=MOST_COST).contains(&row.cost) { row.cost } else { 0.0 };
    }
    let counts =
        [totals.input, totals.output, totals.cache_read, totals.cache_write, totals.reasoning, totals.requests];
    if counts.iter().any(|count| *count > MOST) { Totals::default() } else { totals }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::Usage;

    use super::*;

    #[test]
    fn totals_are_joined_with_the_requests_made_here_and_never_shrink() {
        let there = Totals { input: 100, reasoning: 7, requests: 3, cost: 1.0, ..Totals::default() };
        assert_eq!(joint(&Totals::default(), &there, &[]), there);
        let usage = Usage { input: 10, output: 2, cache_read: 0, cache_write: 0, reasoning: 1 };
        let here = [RequestRecord { usage: Some(usage), cost: Some(0.5), ..RequestRecord::default() }];
        let now = Totals { input: 110, output: 2, reasoning: 8, requests: 4, cost: 1.5, ..Totals::default() };
        let grown = Totals { input: 150, requests: 5, cost: 1.25, ..there };
        let sums = Totals { input: 160, output: 2, reasoning: 8, requests: 6, cost: 1.75, ..Totals::default() };
        assert_eq!(joint(&now, &grown, &here), sums);
        assert_eq!(joint(&sums, &there, &here), sums);
    }
}
