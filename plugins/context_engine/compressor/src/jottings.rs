//! Entries for a list by rule, made as messages come: when a list is needed, it is only put together.
//!
//! They need no model and no background work, so that neither a slow model nor a fast conversation leaves a gap. A restart
//! loses them; the list on the shelf stands for what was said before it.

use std::collections::BTreeMap;

use hermes_plugin::{Error, MessageId, MessageRange};

use crate::digest::digest;
use crate::ground::Ground;
use crate::ledger::Ledger;
use crate::notes::Notes;
use crate::set::Set;
use crate::source::Source;

/// Tokens that are read at most where there are no entries yet, as after a restart: about what stays word for word, and
/// no more, since a turn waits for it.
const FIRST: u32 = 30_000;

/// What a list says of a message, if anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    said: Option<String>,
    done: Option<String>,
}

/// Entries by message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jottings {
    entries: BTreeMap<MessageId, Entry>,
    /// Up to here messages were read.
    through: MessageId,
}

impl Jottings {
    /// Reads what was said since the last time.
    pub(crate) fn take(&mut self, ledger: &Ledger, source: &impl Source) -> Result<(), Error> {
        let end = ledger.len();
        let start = if self.through == 0 {
            start_of_newest(ledger, FIRST)
        } else {
            let new = ledger.before(self.through.saturating_add(1));
            // Of a group that has grown all is read again: a call may have its result now.
            if new < end { ledger.group(new).start } else { end }
        };
        if start >= end {
            return Ok(());
        }
        let (first, last) = (ledger.id(start), ledger.id(end - 1));
        let messages = source.messages(MessageRange::new(first, last))?;
        let Notes { mut said, mut done, .. } = digest(&messages);
        for message in &messages {
            let entry = Entry { said: said.remove(&message.id), done: done.remove(&message.id) };
            self.entries.insert(message.id, entry);
        }
        self.through = last;
        Ok(())
    }

    /// What there is on these messages, and those on which nothing is.
    pub(crate) fn of(&self, ledger: &Ledger, messages: &Set) -> (Notes, Set) {
        let mut unread = Set::empty(ledger.len());
        for at in messages.iter().filter(|at| !self.entries.contains_key(&ledger.id(*at))) {
            unread.insert(ledger.group(at));
        }
        let unread = unread.and(messages);
        let mut notes = Notes::default();
        for at in messages.without(&unread).iter() {
            let id = ledger.id(at);
            let Some(Entry { said, done }) = self.entries.get(&id) else { continue };
            notes.said.extend(said.clone().map(|said| (id, said)));
            notes.done.extend(done.clone().map(|done| (id, done)));
        }
        (notes, unread)
    }

    /// Keeps those of messages that are shown: a summary stands for the others.
    pub(crate) fn keep_shown(&mut self, ground: &Ground<'_>) {
        if self.entries.len() > ground.shown.count() {
            self.entries.retain(|id, _| ground.ledger.position(*id).is_some_and(|at| ground.is_shown(at)));
        }
    }

    /// Messages were taken back; what is left of the group that stands last now is read again.
    pub(crate) fn rewound(&mut self, ledger: &Ledger) {
        let start = ledger.len().checked_sub(1).map_or(0, |last| ledger.group(last).start);
        let sure = start.checked_sub(1).map_or(0, |before| ledger.id(before));
        self.through = self.through.min(sure);
        self.entries.split_off(&self.through.saturating_add(1));
    }
}

/// Where the newest groups begin that take so many tokens at most.
fn start_of_newest(ledger: &Ledger, most: u32) -> usize {
    let mut start = ledger.len();
    while let Some(before) = start.checked_sub(1) {
        let group = ledger.group(before).start;
        if ledger.tokens(group..ledger.len()) > most {
            break;
        }
        start = group;
    }
    start
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::Message;

    use super::*;
    use crate::testing::{calls, grouped, ledger, result, user};

    /// Counts how many messages are read.
    struct Log(Vec<Message>, std::cell::Cell<usize>);

    impl Log {
        fn of(messages: Vec<Message>) -> Self {
            Self(messages, 0.into())
        }

        fn read(&self) -> usize {
            self.1.take()
        }
    }

    impl Source for Log {
        fn messages(&self, range: MessageRange) -> Result<Vec<Message>, Error> {
            let within = self.0.iter().filter(|message| (range.first..=range.last).contains(&message.id));
            let messages: Vec<Message> = within.cloned().collect();
            self.1.set(self.1.get() + messages.len());
            Ok(messages)
        }

        fn summary(&self, key: &str) -> Result<String, Error> {
            Err(Error::invalid(key))
        }

        fn count(&self, _: &str) -> u32 {
            0
        }
    }

    fn all(ledger: &Ledger) -> Set {
        Set::empty(ledger.len()).neither(&Set::empty(ledger.len()))
    }

    #[test]
    fn every_message_is_read_once() {
        let log = Log::of((1..=30).map(|id| user(id, "Fix it.")).collect());
        let mut jottings = Jottings::default();
        for length in 1..=30 {
            let ledger = ledger(&(1..=length).map(|id| (id, 10)).collect::<Vec<_>>());
            jottings.take(&ledger, &log).unwrap();
            jottings.take(&ledger, &log).unwrap();
            assert_eq!(log.read(), 1);
            let (notes, unread) = jottings.of(&ledger, &all(&ledger));
            assert!(unread.is_empty());
            assert_eq!(notes.said.len() as u64, length);
        }
    }

    #[test]
    fn a_call_whose_result_came_later_is_told_with_it() {
        let complete = grouped();
        let log = Log::of(vec![
            user(2, "Go."),
            calls(5, &[("a", "terminal", r#"{"command":"ls"}"#)]),
            result(6, "a", "terminal", "ok"),
            result(7, "b", "terminal", "ok"),
        ]);
        let mut ledger = complete.clone();
        ledger.rewind(6);
        let mut jottings = Jottings::default();
        jottings.take(&ledger, &Log::of(log.0[..2].to_vec())).unwrap();
        assert!(jottings.of(&ledger, &all(&ledger)).0.done[&5].contains("no result"));
        let (notes, unread) = jottings.of(&complete, &all(&complete));
        assert!(notes.done.is_empty() && unread.contains(1), "nothing is told of half a group");
        jottings.take(&complete, &log).unwrap();
        assert_eq!(jottings.of(&complete, &all(&complete)).0.done[&5], "terminal ls: ok");
        ledger = complete;
        ledger.rewind(6);
        jottings.rewound(&ledger);
        jottings.take(&ledger, &Log::of(log.0[..2].to_vec())).unwrap();
        assert!(jottings.of(&ledger, &all(&ledger)).0.done[&5].contains("no result"), "the result was taken back");
    }

    #[test]
    fn after_a_restart_no_more_is_read_than_what_is_newest() {
        let log = Log::of((1..=50).map(|id| user(id, "Fix it.")).collect());
        let ledger = ledger(&(1..=50).map(|id| (id, FIRST / 20)).collect::<Vec<_>>());
        let mut jottings = Jottings::default();
        jottings.take(&ledger, &log).unwrap();
        assert_eq!(log.read(), 20);
        assert!(jottings.of(&ledger, &all(&ledger)).1.iter().eq(0..30));
    }
}
