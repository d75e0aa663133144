//! What the instance that serves the turns has read: the facts of messages that are still shown, the newest text of files, the
//! calls made lately. It reads each message once, and a stretch of the newest ones when it begins.

use std::collections::HashMap;

use hermes_plugin::{Error, Message, MessageId, MessageRange};

use crate::fact::{Done, Fact, Kind, Reader};
use crate::files::Files;
use crate::ground::Rows;
use crate::policy;
use crate::source::Source;

/// Bytes that one catching up reads at most.
const MOST: usize = 6 << 20;
/// Calls that are remembered.
const CALLS: usize = 64;

/// A call that was made, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) id: MessageId,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// What was read.
#[derive(Default)]
pub(crate) struct Desk {
    reader: Reader,
    pub(crate) files: Files,
    /// Short calls, each once, the newest at the end.
    pub(crate) calls: Vec<Made>,
    /// Failures that nothing has undone since, oldest first, by what was tried.
    pub(crate) failures: Vec<(u64, Fact)>,
    facts: Vec<Fact>,
    /// Where reading began, and the newest message that was read.
    from: MessageId,
    through: Option<MessageId>,
    groups: HashMap<MessageId, MessageId>,
}

impl Desk {
    /// Forgets everything that hangs on messages from this one on.
    pub(crate) fn rewind(&mut self, first: MessageId) {
        if self.through.is_some_and(|through| through >= first) {
            *self = Self::default();
        }
    }

    /// Reads what is new.
    pub(crate) fn catch_up(&mut self, rows: &Rows, source: &impl Source) -> Result<(), Error> {
        let Some(last) = rows.last().filter(|last| self.through != Some(last.id)) else { return Ok(()) };
        let mut start = match self.through.and_then(|through| rows.position(through)) {
            Some(at) => at + 1,
            None => {
                *self = Self::default();
                let mut start = rows.len();
                let mut tokens = 0;
                while start > 0 && tokens < policy::LOOK_BACK {
                    start = rows.group(start - 1).start;
                    tokens += rows.get(start).tokens;
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
        if start >= rows.len() {
            return Ok(());
        }
        if self.through.is_none() {
            self.from = rows.get(start).id;
        }
        for message in read(source, MessageRange::new(rows.get(start).id, last.id))? {
            let Some(at) = rows.position(message.id) else { continue };
            self.take(&message, rows.get(rows.group(at).start).id);
        }
        self.through = Some(last.id);
        Ok(())
    }

    fn take(&mut self, message: &Message, group: MessageId) {
        let (files, calls) = (&mut self.files, &mut self.calls);
        let facts = self.reader.read(message, group, |done| {
            files.take(done);
            remember(calls, done);
        });
        for fact in &facts {
            self.failures.retain(|(same, _)| *same != fact.same || fact.same == 0);
            if fact.kind == Kind::Failure {
                self.failures.push((fact.same, fact.clone()));
                let many = self.failures.len().saturating_sub(CALLS);
                self.failures.drain(..many);
            }
        }
        self.facts.extend(facts);
        self.groups.insert(message.id, group);
    }

    /// Lets go of facts that stand in segments by now.
    pub(crate) fn folded(&mut self, before: MessageId) {
        self.facts.retain(|fact| fact.id >= before);
    }

    /// Whether all messages from this one on were read and are still at hand.
    pub(crate) fn has(&self, first: MessageId) -> bool {
        self.through.is_some() && self.from <= first
    }

    /// The facts at hand of these ranges, in order.
    pub(crate) fn facts(&self, ranges: &[MessageRange]) -> Vec<Fact> {
        let named = |fact: &&Fact| ranges.iter().any(|range| range.contains(fact.id));
        let mut facts: Vec<Fact> = self.facts.iter().filter(named).cloned().collect();
        facts.sort_unstable_by_key(|fact| (fact.id, fact.n));
        facts
    }
}

fn remember(calls: &mut Vec<Made>, done: &Done<'_>) {
    const LONGEST: usize = 1_200;
    let arguments = &done.call.arguments;
    if arguments.len() > LONGEST || done.deed.changes_something() {
        return;
    }
    calls.retain(|made| made.name != done.call.name || made.arguments != *arguments);
    calls.push(Made { id: done.caller, name: done.call.name.clone(), arguments: arguments.clone() });
    let many = calls.len().saturating_sub(CALLS);
    calls.drain(..many);
}

/// All messages of a range, page by page.
pub(crate) fn read(source: &impl Source, range: MessageRange) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    let mut first = range.first;
    loop {
        let page = source.page(MessageRange::new(first, range.last))?;
        messages.extend(page.messages);
        match page.next {
            // A page that does not lead on would otherwise be read for ever.
            Some(next) if next <= first => {
                return Err(Error::failed(format!("the page at message {first} leads back to {next}")));
            }
            Some(next) => first = next,
            None => return Ok(messages),
        }
    }
}
