//! What this instance has read of the recent conversation: facts of messages still in view, the newest text of files,
//! tool calls, and texts the assistant wrote. Each message is read once; a new instance starts with the newest ones.

use std::collections::{HashMap, VecDeque};

use hermes_plugin::{Error, Message, MessageId, MessageRange, Role};
use serde_json::Value;

use crate::action::Action;
use crate::current_view::{Row, Rows};
use crate::fact::{CompletedCall, Fact, Kind, Reader};
use crate::files::{Files, line_hash};
use crate::policy;
use crate::source::Source;

/// Most bytes read in one `catch_up`.
const MOST: usize = 6 << 20;
/// Number of calls, failures and texts kept, and bytes kept of one text.
const CALLS: usize = 256;
const FAILURES: usize = 16;
const TEXTS: usize = 100;
const TEXT: usize = 32_000;
/// A call whose subject is longer than this many bytes is not kept.
const CALL: usize = 600;

/// A tool call and its subject (path, command or main argument), verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallRecord {
    pub(crate) id: MessageId,
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) times: u32,
    /// Number of assistant messages before this call.
    pub(crate) replies: u32,
    /// Number and outcome of the result message, if the call failed.
    pub(crate) failed: Option<String>,
    /// Equal for calls that do the same; see `Fact::same`.
    pub(crate) same: u64,
}

/// Text that the assistant wrote into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenText {
    pub(crate) id: MessageId,
    pub(crate) path: String,
    /// Without passages that a later edit replaced.
    pub(crate) text: String,
    pub(crate) failed: bool,
}

/// The cache; see the module documentation.
#[derive(Default)]
pub(crate) struct ReadCache {
    reader: Reader,
    pub(crate) files: Files,
    pub(crate) calls: Vec<CallRecord>,
    /// Failed calls, oldest first, without those that a later identical call repaired.
    pub(crate) failures: Vec<Fact>,
    /// Texts that the assistant wrote into files, oldest first.
    pub(crate) texts: VecDeque<WrittenText>,
    facts: Vec<Fact>,
    /// First and newest message read.
    from: MessageId,
    through: Option<MessageId>,
    /// Line hashes of each message still in view.
    shown: VecDeque<(MessageId, u32, Vec<u64>)>,
    counts: HashMap<u64, u32>,
    /// Tokens and assistant messages read so far.
    tokens: u64,
    replies: u32,
}

impl ReadCache {
    /// Drops the whole cache if it has read the message `first` or a later one.
    pub(crate) fn rewind(&mut self, first: MessageId) {
        if self.through.is_some_and(|through| through >= first) {
            *self = Self::default();
        }
    }

    /// Reads the messages added since the last call.
    pub(crate) fn catch_up(&mut self, rows: &Rows, source: &impl Source) -> Result<(), Error> {
        let Some(last) = rows.last().filter(|last| self.through != Some(last.id)) else { return Ok(()) };
        let mut start = match self.through.and_then(|through| rows.position(through)) {
            Some(at) => at + 1,
            None => {
                *self = Self::default();
                let mut start = rows.len();
                let mut tokens = 0_u32;
                while start > 0 && tokens < policy::LOOK_BACK {
                    let group = rows.group(start - 1);
                    start = group.start;
                    tokens = rows.slice(group).iter().map(|row| row.tokens).fold(tokens, u32::saturating_add);
                }
                start
            }
        };
        let mut bytes = 0;
        for at in (start..rows.len()).rev() {
            bytes += rows.get(at).bytes as usize;
            if bytes > MOST && rows.group(at).end < rows.len() {
                *self = Self::default();
                start = rows.group(at).end;
                break;
            }
        }
        let begins = self.through.is_none();
        if begins {
            self.from = rows.get(start).id;
        }
        for message in read(source, MessageRange::new(rows.get(start).id, last.id))? {
            let Some(at) = rows.position(message.id) else { continue };
            self.take(&message, rows.get(at), rows.get(rows.group(at).start).id);
            if begins {
                self.as_if_folded();
            }
        }
        self.through = Some(last.id);
        Ok(())
    }

    fn take(&mut self, message: &Message, row: Row, group: MessageId) {
        self.tokens += u64::from(row.tokens);
        let lines = typed(message);
        if message.role == Role::Assistant {
            self.replies += 1;
            let missing: Vec<u64> = lines.iter().copied().filter(|line| !self.counts.contains_key(line)).collect();
            self.files.credit(&missing, self.tokens);
        }
        let Self { reader, files, calls, texts, tokens, replies, .. } = self;
        let facts = reader.read(message, group, |done| {
            files.take(done, *tokens);
            remember(calls, done, *replies);
            write_down(texts, done);
        });
        for fact in &facts {
            self.failures.retain(|failure| failure.same != fact.same);
            if fact.kind == Kind::Failure {
                self.failures.push(fact.clone());
                let many = self.failures.len().saturating_sub(FAILURES);
                self.failures.drain(..many);
            }
        }
        self.facts.extend(facts);
        for line in &lines {
            *self.counts.entry(*line).or_insert(0) += 1;
        }
        self.shown.push_back((message.id, row.tokens, lines));
    }

    /// Drops facts and line hashes of messages before `before`: segments hold them now.
    pub(crate) fn folded(&mut self, before: MessageId) {
        self.facts.retain(|fact| fact.id >= before);
        self.from = self.from.max(before);
        self.hide(|id, _| id < before);
    }

    /// A new instance replays old messages as if views had been published on the way, so that files earn the same credit
    /// as in an instance that ran all along.
    fn as_if_folded(&mut self) {
        let tokens: u32 = self.shown.iter().map(|(_, tokens, _)| *tokens).fold(0, u32::saturating_add);
        if tokens > policy::TAIL + policy::FOLD {
            let mut left = tokens;
            self.hide(|_, tokens| {
                let hides = left > policy::TAIL;
                left = left.saturating_sub(tokens);
                hides
            });
        }
    }

    fn hide(&mut self, mut hides: impl FnMut(MessageId, u32) -> bool) {
        while let Some((id, tokens, _)) = self.shown.front() {
            if !hides(*id, *tokens) {
                break;
            }
            for line in self.shown.pop_front().map(|(_, _, lines)| lines).unwrap_or_default() {
                if let Some(count) = self.counts.get_mut(&line) {
                    *count -= 1;
                    if *count == 0 {
                        self.counts.remove(&line);
                    }
                }
            }
        }
    }

    /// Whether the facts of all messages from `first` on are cached.
    pub(crate) fn has(&self, first: MessageId) -> bool {
        self.through.is_some() && self.from <= first
    }

    /// The cached facts of these ranges, in order.
    pub(crate) fn facts(&self, ranges: &[MessageRange]) -> Vec<Fact> {
        let named = |fact: &&Fact| ranges.iter().any(|range| range.contains(fact.id));
        let mut facts: Vec<Fact> = self.facts.iter().filter(named).cloned().collect();
        facts.sort_unstable_by_key(|fact| (fact.id, fact.n));
        facts
    }

    /// Tokens read so far. File credit decays on this clock.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// Hashes of a message's distinctive lines, without duplicates.
fn typed(message: &Message) -> Vec<u64> {
    let mut lines: Vec<u64> = message.content.lines().filter_map(line_hash).collect();
    for call in &message.tool_calls {
        if let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) {
            each_text(&arguments, &mut |text| lines.extend(text.lines().filter_map(line_hash)));
        }
    }
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Calls `take` on every string in a JSON value.
pub(crate) fn each_text(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, take)),
        Value::Object(values) => values.values().for_each(|value| each_text(value, take)),
        _ => {}
    }
}

fn remember(calls: &mut Vec<CallRecord>, done: &CompletedCall<'_>, replies: u32) {
    let about = match done.action {
        Action::Read { path, .. } | Action::Write { path, .. } | Action::Edit { path, .. } => path,
        Action::Command(about) | Action::Other(Some(about)) => about,
        Action::Other(None) => return,
    };
    if about.len() > CALL || about.trim().is_empty() {
        return;
    }
    let times = match calls.iter().position(|made| made.about == *about) {
        Some(at) => calls.remove(at).times + 1,
        None => 1,
    };
    calls.push(CallRecord {
        id: done.caller,
        name: done.call.name.clone(),
        about: about.clone(),
        times,
        replies,
        failed: done.failed.then(|| format!("#{} {}", done.result.id, done.outcome)),
        same: done.same,
    });
    let many = calls.len().saturating_sub(CALLS);
    calls.drain(..many);
}

fn write_down(texts: &mut VecDeque<WrittenText>, done: &CompletedCall<'_>) {
    let Some(path) = done.action.path() else { return };
    let clipped = |text: &str| text[..crate::clip::floor(text, TEXT)].to_owned();
    if !done.failed {
        match done.action {
            Action::Write { .. } => texts.retain(|written| written.path != path),
            Action::Edit { changes, .. } => {
                for written in texts.iter_mut().filter(|written| written.path == path && !written.failed) {
                    for (old, new) in changes.iter().filter(|(old, _)| !old.is_empty()) {
                        written.text = clipped(&written.text.replacen(old, new, 1));
                    }
                }
            }
            _ => {}
        }
    }
    let mut add = |text: &str| {
        let (id, path, text) = (done.caller, path.to_owned(), clipped(text));
        texts.push_back(WrittenText { id, path, text, failed: done.failed });
        if texts.len() > TEXTS {
            texts.pop_front();
        }
    };
    match done.action {
        Action::Write { content, .. } => add(content),
        Action::Edit { changes, .. } => changes.iter().for_each(|(_, new)| add(new)),
        _ => {}
    }
}

/// All messages of a range. The log returns them page by page.
pub(crate) fn read(source: &impl Source, range: MessageRange) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    let mut first = range.first;
    loop {
        let page = source.page(MessageRange::new(first, range.last))?;
        messages.extend(page.messages);
        match page.next {
            // Stop on a page that does not advance, to avoid an endless loop.
            Some(next) if next <= first => {
                return Err(Error::failed(format!(
                    "the page at message {first} continues at {next}, which is not later"
                )));
            }
            Some(next) => first = next,
            None => return Ok(messages),
        }
    }
}
