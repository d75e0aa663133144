//! The most important facts of a stretch of messages, and a count of the rest. A gist contains all facts that a segment may
//! show, before the segment's size is known. Gists can be united, so merging old segments takes time proportional to their
//! gists, not to the conversation.

use std::collections::HashMap;

use hermes_plugin::MessageId;
use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Kind};

/// Bytes kept of the user's words, of calls and replies, and of names: more than any segment has room for.
const SAID: usize = 40_000;
const DEEDS: usize = 20_000;
const NAMES: usize = 4_000;

/// See the module documentation. Stored as JSON; the field names are part of the stored format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gist {
    /// The user's messages, oldest first.
    pub(crate) said: Vec<Fact>,
    /// Ids of earlier user messages whose text was dropped.
    pub(crate) named: Vec<MessageId>,
    /// Calls and replies, most important first. Of identical calls only the newest is kept, with their number.
    #[serde(rename = "deeds")]
    pub(crate) actions: Vec<(Fact, u32)>,
    /// Number of further calls and replies.
    pub(crate) omitted: usize,
    /// Other identifiers mentioned, newest first.
    pub(crate) names: Vec<Fact>,
}

impl Gist {
    pub(crate) fn of(facts: impl IntoIterator<Item = Fact>) -> Self {
        let mut whole = Self::default();
        for fact in facts {
            match fact.kind {
                Kind::User => whole.said.push(fact),
                Kind::Names => whole.names.push(fact),
                _ => whole.actions.push((fact, 1)),
            }
        }
        whole.bounded()
    }

    /// The gist of several stretches together.
    pub(crate) fn united<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut whole = Self::default();
        for part in parts {
            whole.said.extend(part.said.iter().cloned());
            whole.named.extend(&part.named);
            whole.actions.extend(part.actions.iter().cloned());
            whole.omitted = whole.omitted.saturating_add(part.omitted);
            whole.names.extend(part.names.iter().cloned());
        }
        whole.bounded()
    }

    fn bounded(mut self) -> Self {
        self.said.sort_unstable_by_key(|fact| (fact.id, fact.n));
        self.said.dedup_by_key(|fact| fact.id);
        let mut left = SAID;
        let fits = self.said.iter().rev().take_while(|fact| takes(&mut left, fact)).count();
        // Messages before one that is only named are named too.
        let named = self.named.iter().copied().max().unwrap_or_default();
        let older = (self.said.len() - fits).max(self.said.partition_point(|fact| fact.id < named));
        self.named.extend(self.said.drain(..older).map(|fact| fact.id));
        self.named.sort_unstable();
        self.named.dedup();

        self.actions = newest_of_each(self.actions);
        self.actions.sort_unstable_by_key(|(fact, _)| std::cmp::Reverse((fact.kind, fact.id, fact.n)));
        let mut left = DEEDS;
        let kept = self.actions.iter().take_while(|(fact, _)| takes(&mut left, fact)).count();
        self.omitted = self.omitted.saturating_add(self.actions.len() - kept);
        self.actions.truncate(kept);

        self.names.sort_unstable_by_key(|fact| std::cmp::Reverse((fact.id, fact.n)));
        self.names.dedup_by_key(|fact| fact.id);
        let mut left = NAMES;
        let kept = self.names.iter().take_while(|fact| takes(&mut left, fact)).count();
        self.names.truncate(kept);
        self
    }
}

fn takes(left: &mut usize, fact: &Fact) -> bool {
    match left.checked_sub(fact.text.len() + 24) {
        Some(less) => {
            *left = less;
            true
        }
        None => false,
    }
}

/// Of identical calls the newest, with their number.
fn newest_of_each(mut actions: Vec<(Fact, u32)>) -> Vec<(Fact, u32)> {
    actions.sort_unstable_by_key(|(fact, _)| (fact.id, fact.n));
    actions.dedup_by_key(|(fact, _)| (fact.id, fact.n));
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut told: Vec<(Fact, u32)> = Vec::new();
    for (fact, times) in actions {
        match places.get(&fact.same).filter(|_| fact.same != 0) {
            Some(&at) => told[at] = (fact, told[at].1.saturating_add(times)),
            None => {
                places.insert(fact.same, told.len());
                told.push((fact, times));
            }
        }
    }
    told
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::{SegmentHeader, render};

    fn fact(id: u64, kind: Kind, same: u64, length: usize) -> Fact {
        Fact { id, n: 0, group: id, kind, same, text: format!("{id} {}", "x".repeat(length)) }
    }

    fn facts(most: usize) -> impl Strategy<Value = Vec<Fact>> {
        prop::collection::vec((0_usize..8, 0_u64..40, 0_usize..most), 0..300).prop_map(|all| {
            let of = |(id, (kind, same, length)): (u64, (usize, u64, usize))| {
                let kind = Kind::ALL[kind];
                fact(id, kind, if matches!(kind, Kind::User | Kind::Names) { 0 } else { same }, length)
            };
            (1..).zip(all).map(of).collect()
        })
    }

    /// The whole names every message before one that does not fit, so a union of its parts does, too.
    #[test]
    fn what_was_said_before_a_message_without_room_is_named_whichever_part_has_it() {
        let said = || [fact(1, Kind::User, 0, 10), fact(2, Kind::User, 0, 30_000), fact(3, Kind::User, 0, 15_000)];
        let shown = |gist: &Gist| (gist.named.clone(), gist.said.iter().map(|fact| fact.id).collect::<Vec<_>>());
        let whole = Gist::of(said());
        assert_eq!(shown(&whole), (vec![1, 2], vec![3]));
        for cut in 0..=3 {
            let parts = [Gist::of(said()[..cut].to_vec()), Gist::of(said()[cut..].to_vec())];
            assert_eq!(shown(&Gist::united(&parts)), shown(&whole), "{cut}");
        }
    }

    #[test]
    fn an_action_counts_as_often_as_it_was_done_and_not_as_often_as_parts_tell_it() {
        let kind = Kind::ALL.into_iter().find(|kind| !matches!(kind, Kind::User | Kind::Names)).unwrap();
        let twice = Gist::of([fact(1, kind, 7, 3), fact(2, kind, 7, 3)]);
        let times = |gist: &Gist| gist.actions.iter().map(|(fact, times)| (fact.id, *times)).collect::<Vec<_>>();
        assert_eq!(times(&twice), [(2, 2)]);
        assert_eq!(times(&Gist::united([&twice, &twice])), [(2, 2)]);
    }

    proptest! {
        #[test]
        fn a_union_of_parts_equals_the_gist_of_the_whole(facts in facts(60), cut in 0_usize..300, bytes in 0_usize..12_000) {
            let (old, new) = facts.split_at(cut.min(facts.len()));
            let united = Gist::united([&Gist::of(old.to_vec()), &Gist::of(new.to_vec())]);
            let whole = Gist::of(facts.clone());
            let head = SegmentHeader::example();
            prop_assert_eq!(render(&head, &united, &[], bytes), render(&head, &whole, &[], bytes));
        }

        #[test]
        fn a_gist_is_bounded_and_drops_no_user_message(facts in facts(4_000), cuts in 1_usize..9) {
            let parts: Vec<Gist> =
                facts.chunks(facts.len().div_ceil(cuts).max(1)).map(|part| Gist::of(part.to_vec())).collect();
            let gist = Gist::united(&parts);
            let size = |fact: &Fact| fact.text.len();
            prop_assert!(gist.actions.iter().map(|(fact, _)| size(fact)).sum::<usize>() <= DEEDS);
            prop_assert!(gist.said.iter().map(size).sum::<usize>() <= SAID && gist.names.iter().map(size).sum::<usize>() <= NAMES);
            let users = facts.iter().filter(|fact| fact.kind == Kind::User).map(|fact| fact.id);
            let known = gist.named.iter().copied().chain(gist.said.iter().map(|fact| fact.id));
            prop_assert_eq!(known.collect::<Vec<_>>(), users.collect::<Vec<_>>());
        }
    }
}
