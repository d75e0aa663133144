//! Entries for rule-based summaries, made as messages arrive; a summary only joins them.
//!
//! They need no model and no background work, so neither a slow model nor a fast conversation leaves a gap. A restart
//! loses them; the stored list covers the messages before it.

use std::collections::BTreeMap;

use hermes_plugin::{Error, MessageId, MessageRange};

use crate::current_view::CurrentView;
use crate::digest::digest;
use crate::message_index::MessageIndex;
use crate::notes::Notes;
use crate::set::Set;
use crate::source::Source;

/// Most tokens read after a restart. About as much as stays in full, and no more, because a turn waits for it.
const FIRST: u32 = 30_000;

/// The lines for one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MessageEntry {
    said: Option<String>,
    done: Option<String>,
}

/// Entries by message id.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleEntries {
    entries: BTreeMap<MessageId, MessageEntry>,
    /// The newest message that was read.
    through: MessageId,
}

impl RuleEntries {
    /// Reads the messages added since the last call.
    pub(crate) fn take(&mut self, index: &MessageIndex, source: &impl Source) -> Result<(), Error> {
        let end = index.len();
        let start = if self.through == 0 {
            start_of_newest(index, FIRST)
        } else {
            let new = index.before(self.through.saturating_add(1));
            // Reread a group that has grown: a call may have its result now.
            if new < end { index.group(new).start } else { end }
        };
        if start >= end {
            return Ok(());
        }
        let (first, last) = (index.id(start), index.id(end - 1));
        let messages = source.messages(MessageRange::new(first, last))?;
        let Notes { mut said, mut done, .. } = digest(&messages);
        for message in &messages {
            let entry = MessageEntry { said: said.remove(&message.id), done: done.remove(&message.id) };
            self.entries.insert(message.id, entry);
        }
        self.through = last;
        Ok(())
    }

    /// The entries of these messages, and the messages without an entry.
    pub(crate) fn of(&self, index: &MessageIndex, messages: &Set) -> (Notes, Set) {
        let mut unread = Set::empty(index.len());
        for at in messages.iter().filter(|at| !self.entries.contains_key(&index.id(*at))) {
            unread.insert(index.group(at));
        }
        let unread = unread.and(messages);
        let mut notes = Notes::default();
        for at in messages.without(&unread).iter() {
            let id = index.id(at);
            let Some(MessageEntry { said, done }) = self.entries.get(&id) else { continue };
            notes.said.extend(said.clone().map(|said| (id, said)));
            notes.done.extend(done.clone().map(|done| (id, done)));
        }
        (notes, unread)
    }

    /// Drops entries of messages that are not in the view.
    pub(crate) fn keep_shown(&mut self, current: &CurrentView<'_>) {
        if self.entries.len() > current.shown.count() {
            self.entries.retain(|id, _| current.index.position(*id).is_some_and(|at| current.is_shown(at)));
        }
    }

    /// After a rewind, drops entries from the last remaining group on, so that it is read again.
    pub(crate) fn rewound(&mut self, index: &MessageIndex) {
        let start = index.len().checked_sub(1).map_or(0, |last| index.group(last).start);
        let sure = start.checked_sub(1).map_or(0, |before| index.id(before));
        self.through = self.through.min(sure);
        self.entries.split_off(&self.through.saturating_add(1));
    }
}

/// Start of the newest groups that fit into `most` tokens.
fn start_of_newest(index: &MessageIndex, most: u32) -> usize {
    let mut start = index.len();
    while let Some(before) = start.checked_sub(1) {
        let group = index.group(before).start;
        if index.tokens(group..index.len()) > most {
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
    use crate::testing::{calls, grouped, index, result, user};

    /// A log that counts reads.
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

    fn all(index: &MessageIndex) -> Set {
        Set::empty(index.len()).neither(&Set::empty(index.len()))
    }

    #[test]
    fn every_message_is_read_once() {
        let log = Log::of((1..=30).map(|id| user(id, "Fix it.")).collect());
        let mut entries = RuleEntries::default();
        for length in 1..=30 {
            let index = index(&(1..=length).map(|id| (id, 10)).collect::<Vec<_>>());
            entries.take(&index, &log).unwrap();
            entries.take(&index, &log).unwrap();
            assert_eq!(log.read(), 1);
            let (notes, unread) = entries.of(&index, &all(&index));
            assert!(unread.is_empty());
            assert_eq!(notes.said.len() as u64, length);
        }
    }

    #[test]
    fn a_call_is_listed_again_when_its_result_arrives() {
        let complete = grouped();
        let log = Log::of(vec![
            user(2, "Go."),
            calls(5, &[("a", "terminal", r#"{"command":"ls"}"#)]),
            result(6, "a", "terminal", "ok"),
            result(7, "b", "terminal", "ok"),
        ]);
        let mut index = complete.clone();
        index.rewind(6);
        let mut entries = RuleEntries::default();
        entries.take(&index, &Log::of(log.0[..2].to_vec())).unwrap();
        assert!(entries.of(&index, &all(&index)).0.done[&5].contains("no result"));
        let (notes, unread) = entries.of(&complete, &all(&complete));
        assert!(notes.done.is_empty() && unread.contains(1), "an incomplete group has no entry");
        entries.take(&complete, &log).unwrap();
        assert_eq!(entries.of(&complete, &all(&complete)).0.done[&5], "terminal ls: ok");
        index = complete;
        index.rewind(6);
        entries.rewound(&index);
        entries.take(&index, &Log::of(log.0[..2].to_vec())).unwrap();
        assert!(entries.of(&index, &all(&index)).0.done[&5].contains("no result"), "the rewind removed the result");
    }

    #[test]
    fn after_a_restart_only_the_newest_messages_are_read() {
        let log = Log::of((1..=50).map(|id| user(id, "Fix it.")).collect());
        let index = index(&(1..=50).map(|id| (id, FIRST / 20)).collect::<Vec<_>>());
        let mut entries = RuleEntries::default();
        entries.take(&index, &log).unwrap();
        assert_eq!(log.read(), 20);
        assert!(entries.of(&index, &all(&index)).1.iter().eq(0..30));
    }
}
