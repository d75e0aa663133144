//! A picture of a view leaves nothing out and counts nothing twice.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{HashMap, HashSet};

use hermes_conversation::picture::{Picture, Stretch, compare};
use hermes_conversation::plan::{ReferenceState, verify};
use hermes_conversation::{
    Conversation, Draft, Excerpt, MessageId, MessageRange, Plan, Segment, Summary, View, last_resort,
};
use proptest::prelude::*;

/// Messages of so many words, every second one of the user; ids have gaps, as in a shared store.
fn conversation(lengths: &[usize]) -> Conversation {
    Conversation::new(lengths.iter().enumerate().map(|(at, length)| {
        let text = vec!["words"; *length].join(" ");
        let draft = if at % 2 == 0 { Draft::user(text, 0) } else { Draft::assistant(text, Vec::new(), 0) };
        draft.numbered(MessageId(at as u64 * 3 + 1))
    }))
}

/// A plan that shows each message as its kind says and covers all by two summaries that overlap.
fn plan(conversation: &Conversation, kinds: &[u8], cut: usize) -> Plan {
    let ids: Vec<MessageId> = conversation.messages().iter().map(|message| message.id).collect();
    let last = ids.len() - 1;
    let summary = |key: &str, first: usize, end: usize| {
        let covers = vec![MessageRange::new(ids[first], ids[end])];
        Segment::Summary(Summary { key: key.to_owned(), content: "what was said".to_owned(), covers })
    };
    let cut = cut.min(last);
    let mut segments = vec![summary("early", 0, cut), summary("late", cut / 2, last)];
    let user = conversation.last_user().unwrap().id;
    for (id, kind) in ids.iter().zip(kinds) {
        match kind {
            _ if *id == user => segments.push(Segment::Restore(MessageRange::one(*id))),
            0 => {}
            1 => segments.push(Segment::Restore(MessageRange::one(*id))),
            _ => segments.push(Segment::Excerpt(Excerpt {
                id: *id,
                content: Some("w".to_owned()),
                arguments: Vec::new(),
                keep_images: false,
            })),
        }
    }
    Plan { segments, reason: String::new(), extra: Vec::new() }
}

fn adopt(conversation: &Conversation, view: &View, plan: &Plan) -> View {
    let known: HashMap<String, Summary> =
        view.summaries().map(|summary| (summary.key.clone(), summary.clone())).collect();
    let ground = ReferenceState { conversation, view, summaries: &known, limit: u32::MAX, must_shrink: false };
    verify(plan, &ground).unwrap()
}

proptest! {
    #[test]
    fn every_message_is_shown_once_or_covered_and_sums_agree_with_the_view(
        (lengths, kinds) in (2..30usize).prop_flat_map(|count| (
            prop::collection::vec(1..60usize, count),
            prop::collection::vec(0..3u8, count),
        )),
        later in prop::collection::vec(1..60usize, 0..6),
        cut in 0..30usize,
    ) {
        let before = conversation(&lengths);
        let view = adopt(&before, &View::default(), &plan(&before, &kinds, cut));
        let whole = conversation(&[lengths, later].concat());
        let Picture { stretches, sums } = Picture::of(&whole, &view, (11, 13), &HashMap::new());

        let mut shown = HashSet::new();
        let mut covered = HashSet::new();
        for stretch in &stretches {
            match stretch {
                Stretch::Verbatim { ids, messages, .. } | Stretch::Shortened { ids, messages, .. } => {
                    let span = whole.span(*ids);
                    prop_assert_eq!(span.len(), *messages);
                    for at in span {
                        prop_assert!(shown.insert(at), "message {} is drawn twice", at);
                    }
                }
                Stretch::Summarised { covers, .. } => {
                    covered.extend(covers.iter().flat_map(|range| whole.span(*range)));
                }
                Stretch::Tools { .. } | Stretch::SystemPrompt { .. } => {}
            }
        }
        let count = whole.messages().len();
        prop_assert!((0..count).all(|at| shown.contains(&at) || covered.contains(&at)));
        prop_assert_eq!(sums.verbatim.messages + sums.shortened.messages, shown.len());
        prop_assert_eq!(sums.summarised.messages, covered.difference(&shown).count());
        prop_assert_eq!(sums.verbatim.messages + sums.shortened.messages + sums.summarised.messages, count);
        prop_assert_eq!(stretches.iter().map(Stretch::tokens).sum::<u32>(), sums.tokens());
        prop_assert_eq!(sums.tokens(), 24 + whole.view_tokens(&view));
        let said: u32 = whole.headers().iter().map(|header| header.tokens).sum();
        prop_assert_eq!(sums.verbatim.said + sums.shortened.said + sums.summarised.said, said);
    }

    #[test]
    fn a_comparison_accounts_for_every_token_of_both_views(
        (lengths, kinds) in (4..30usize).prop_flat_map(|count| (
            prop::collection::vec(1..60usize, count),
            prop::collection::vec(0..3u8, count),
        )),
        later in prop::collection::vec(1..60usize, 0..6),
        cut in 0..30usize,
        limit in 400..4_000u32,
    ) {
        let before = conversation(&lengths);
        let old = adopt(&before, &View::default(), &plan(&before, &kinds, cut));
        let whole = conversation(&[lengths, later].concat());
        let known = old.summaries().map(|summary| (summary.key.clone(), summary.clone())).collect();
        if let Some(plan) = last_resort::plan(&whole, &old, &known, limit) {
            let new = adopt(&whole, &old, &plan);
            let changes = compare(&whole, &old, &new);
            prop_assert_eq!(changes.iter().map(|change| change.before).sum::<u32>(), whole.view_tokens(&old));
            prop_assert_eq!(changes.iter().map(|change| change.stretch.tokens()).sum::<u32>(), whole.view_tokens(&new));
        }
    }
}
