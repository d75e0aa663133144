//! The verifier of plans is the wall between an engine and the user's words: whatever plan it lets through, nothing is lost
//! and the request is valid.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;

use hermes_conversation::plan::{ReferenceState, verify};
use hermes_conversation::render::Rendering;
use hermes_conversation::{
    Conversation, Draft, Excerpt, Item, Media, MessageId, MessageRange, Part, Plan, Refusal, Role, Segment, Summary,
    ToolCall, View, closing, last_resort, render, tokens, validity,
};
use proptest::prelude::*;

/// A step of a turn: how many calls, and how long each result is.
type Step = Vec<usize>;

/// Turns: the length of what the user says, the steps, the length of the answer. Ids have gaps, as in a shared store.
fn conversation(turns: &[(usize, Vec<Step>, usize)]) -> Conversation {
    let mut id = 0;
    let mut number = || {
        id += 3;
        MessageId(id)
    };
    let mut conversation = Conversation::default();
    let words = |count: usize, word: &str| vec![word; count.max(1)].join(" ");
    for (user, steps, answer) in turns {
        conversation.push(Draft::user(words(*user, "please"), 0).numbered(number()));
        for step in steps {
            let caller = number();
            let calls: Vec<ToolCall> = (0..step.len())
                .map(|n| ToolCall {
                    id: format!("call_{caller}_{n}"),
                    name: "read_file".to_owned(),
                    arguments: r#"{"path":"a/long/path/to/some/file.rs"}"#.to_owned(),
                })
                .collect();
            conversation.push(Draft::assistant("", calls.clone(), 0).numbered(caller));
            for (call, length) in calls.iter().zip(step) {
                let mut result = Draft::result(call, words(*length, "output"), 0);
                if length % 5 == 0 {
                    result = with_a_picture(result);
                }
                conversation.push(result.numbered(number()));
            }
        }
        conversation.push(Draft::assistant(words(*answer, "done"), Vec::new(), 0).numbered(number()));
    }
    conversation
}

fn with_a_picture(mut draft: Draft) -> Draft {
    let mut parts = draft.all_parts();
    let picture = Part::Image(Media::image_at("https://example.org/chart.png").unwrap());
    match &mut parts[0] {
        Part::ToolResult(result) => result.parts.push(picture),
        _ => parts.push(picture),
    }
    draft = draft.with_parts(parts);
    draft
}

fn turns() -> impl Strategy<Value = Vec<(usize, Vec<Step>, usize)>> {
    let step = prop::collection::vec(1..200usize, 1..4);
    let turn = (1..80usize, prop::collection::vec(step, 0..4), 1..80usize);
    prop::collection::vec(turn, 1..8)
}

/// Segments over random stretches of the conversation, sensible and not.
fn segments(length: usize) -> impl Strategy<Value = Vec<(u8, usize, usize)>> {
    prop::collection::vec((0..6u8, 0..length, 0..length), 1..8)
}

fn plan(conversation: &Conversation, segments: &[(u8, usize, usize)]) -> Plan {
    let ids: Vec<MessageId> = conversation.messages().iter().map(|message| message.id).collect();
    let range = |a: usize, b: usize| MessageRange::new(ids[a.min(b)], ids[a.max(b)]);
    let segments = segments
        .iter()
        .enumerate()
        .map(|(n, &(kind, a, b))| match kind {
            0 => Segment::Restore(range(a, b)),
            1 => Segment::Excerpt(Excerpt {
                id: ids[a],
                content: Some("short".to_owned()),
                arguments: vec![(format!("call_{}_0", ids[a]), "{}".to_owned())].into_iter().take(b % 2).collect(),
                keep_images: a % 2 == 1,
            }),
            2 => Segment::Summary(Summary {
                key: format!("s{n}"),
                content: "what was said".to_owned(),
                covers: vec![range(0, ids.len() - 1)],
            }),
            3 => Segment::Summary(Summary {
                key: format!("s{n}"),
                content: "a part".to_owned(),
                covers: vec![range(a, b)],
            }),
            _ => Segment::Keep(range(a, b)),
        })
        .collect();
    Plan { segments, reason: "test".to_owned(), extra: Vec::new() }
}

fn assert_nothing_is_lost(conversation: &Conversation, view: &View) {
    for message in conversation.messages() {
        let accounted = conversation.items(view).iter().any(|item| match item {
            Item::Messages(range) => range.contains(message.id),
            Item::Excerpt(excerpt) => excerpt.id == message.id,
            Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(message.id)),
        });
        assert!(accounted, "message {} is neither shown nor covered", message.id);
    }
    let shown = render::render(conversation, view);
    validity::check(&shown).unwrap();
    let last = conversation.last_user().unwrap();
    assert!(shown.iter().any(|shown| shown.id == Some(last.id) && shown.content == last.text_sent()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_plan_is_accepted_loses_nothing_and_gives_a_valid_request(
        (turns, segments) in turns().prop_flat_map(|turns| {
            let length = conversation(&turns).messages().len();
            (Just(turns), segments(length))
        }),
        limit in 50..20_000u32,
    ) {
        let conversation = conversation(&turns);
        let (view, summaries) = (View::default(), HashMap::new());
        let ground = ReferenceState { conversation: &conversation, view: &view, summaries: &summaries, limit, must_shrink: true };
        if let Ok(accepted) = verify(&plan(&conversation, &segments), &ground) {
            assert_nothing_is_lost(&conversation, &accepted);
            prop_assert!(conversation.view_tokens(&accepted) <= limit);
            prop_assert!(conversation.view_tokens(&accepted) < conversation.view_tokens(&view));
        }
    }

    #[test]
    fn the_hosts_own_plan_is_always_accepted_also_again_and_again(all in turns(), limit in 1_200..6_000u32) {
        let (mut view, mut summaries) = (View::default(), HashMap::<String, Summary>::new());
        for count in 1..=all.len() {
            let conversation = conversation(&all[..count]);
            if conversation.view_tokens(&view) <= limit {
                continue;
            }
            let plan = last_resort::plan(&conversation, &view, &summaries, limit);
            let plan = plan.expect("the generator makes nothing that cannot be cut to fit");
            let ground = ReferenceState { conversation: &conversation, view: &view, summaries: &summaries, limit, must_shrink: false };
            view = verify(&plan, &ground).unwrap();
            summaries.extend(view.summaries().map(|summary| (summary.key.clone(), summary.clone())));
            assert_nothing_is_lost(&conversation, &view);
        }
    }

    #[test]
    fn under_one_view_a_longer_request_begins_with_the_shorter_one(all in turns(), limit in 1_200..6_000u32) {
        let short = conversation(&all[..all.len().div_ceil(2)]);
        let summaries = HashMap::new();
        let view = last_resort::plan(&short, &View::default(), &summaries, limit)
            .and_then(|plan| {
                let ground = ReferenceState { conversation: &short, view: &View::default(), summaries: &summaries, limit, must_shrink: false };
                verify(&plan, &ground).ok()
            })
            .unwrap_or_default();
        let whole = conversation(&all);
        let (mut rendering, before) = Rendering::of(&short, &view);
        let after = render::render(&whole, &view);
        let mut continued = before.clone();
        let new = &whole.messages()[short.messages().len()..];
        continued.extend(rendering.follow(new));
        prop_assert_eq!(&continued, &after);
        prop_assert!(after.starts_with(&before));
    }

    #[test]
    fn an_accepted_plan_stays_valid_when_messages_are_appended(
        (all, segments) in turns().prop_flat_map(|all| {
            let length = conversation(&all[..all.len().div_ceil(2)]).messages().len();
            (Just(all), segments(length))
        }),
    ) {
        let short = conversation(&all[..all.len().div_ceil(2)]);
        let whole = conversation(&all);
        let (view, summaries) = (View::default(), HashMap::new());
        let ground = |conversation| ReferenceState {
            conversation, view: &view, summaries: &summaries, limit: u32::MAX, must_shrink: true,
        };
        let plan = plan(&short, &segments);
        let through = short.messages().last().map(|message| message.id);
        if verify(&plan, &ground(&short)).is_ok() {
            // The user's last message and the messages that came meanwhile have to be shown verbatim.
            let rebased = plan.clone().rebase(through, &whole).unwrap();
            let accepted = verify(&rebased, &ground(&whole)).unwrap();
            assert_nothing_is_lost(&whole, &accepted);
            // An engine that was asked later knows the new messages, and includes them in its own plan.
            let mut late = plan.clone();
            late.segments = rebased.segments.clone();
            prop_assert_eq!(late.rebase(through, &whole).unwrap(), rebased);
            let new = &whole.messages()[short.messages().len()..];
            let shown = render::render(&whole, &accepted);
            prop_assert!(new.iter().all(|new| shown.iter().any(|shown| shown.id == Some(new.id) && shown.content == new.text_sent())));
        }
        // A plan for messages that were rewound is void.
        prop_assert_eq!(plan.rebase(Some(MessageId(u64::MAX)), &whole), None);
    }

    #[test]
    fn a_conversation_cut_off_anywhere_is_closed_by_appending(all in turns(), at in 0..200usize) {
        let whole = conversation(&all);
        let cut = &whole.messages()[..at.min(whole.messages().len())];
        let mut conversation = Conversation::new(cut.to_vec());
        for draft in closing::close(&conversation.clone(), 1) {
            let id = MessageId(conversation.messages().last().unwrap().id.0 + 1);
            conversation.push(draft.numbered(id));
        }
        validity::check(&render::render(&conversation, &View::default())).unwrap();
        prop_assert!(conversation.messages().starts_with(cut));
        prop_assert!(conversation.messages().last().is_none_or(|last| last.role == Role::Assistant && last.tool_calls.is_empty()));
        prop_assert!(closing::close(&conversation, 2).is_empty());
    }
}

/// Two turns, the first with a call: ids 3 (user) 6 (call) 9 (result) 12 (answer) 15 (user) 18 (answer).
fn small() -> Conversation {
    conversation(&[(40, vec![vec![300]], 40), (5, Vec::new(), 5)])
}

fn refusal(segments: Vec<Segment>) -> Refusal {
    let conversation = small();
    let (view, summaries) = (View::default(), HashMap::new());
    let ground = ReferenceState {
        conversation: &conversation,
        view: &view,
        summaries: &summaries,
        limit: 10_000,
        must_shrink: true,
    };
    verify(&Plan { segments, reason: String::new(), extra: Vec::new() }, &ground).unwrap_err()
}

fn keep(first: u64, last: u64) -> Segment {
    Segment::Keep(MessageRange::new(MessageId(first), MessageId(last)))
}

fn summary(key: &str, first: u64, last: u64) -> Segment {
    Segment::Summary(Summary {
        key: key.to_owned(),
        content: "text".to_owned(),
        covers: vec![MessageRange::new(MessageId(first), MessageId(last))],
    })
}

#[test]
fn each_rule_is_refused_by_its_name() {
    let excerpt = |content: &str| {
        Segment::Excerpt(Excerpt {
            id: MessageId(15),
            content: Some(content.to_owned()),
            arguments: Vec::new(),
            keep_images: false,
        })
    };
    let empty = |content: &str, covers: &[(u64, u64)]| {
        let covers =
            covers.iter().map(|(first, last)| MessageRange::new(MessageId(*first), MessageId(*last))).collect();
        Segment::Summary(Summary { key: "a".into(), content: content.into(), covers })
    };
    let cases = [
        ("no-such-message", vec![keep(100, 200)]),
        ("order", vec![summary("a", 3, 12), keep(18, 18), keep(15, 15)]),
        ("order", vec![summary("a", 3, 12), keep(15, 18), keep(18, 18)]),
        ("uncovered", vec![summary("a", 3, 6), keep(15, 18)]),
        ("split-group", vec![summary("a", 3, 12), keep(6, 6), keep(15, 18)]),
        ("split-group", vec![summary("a", 3, 12), keep(9, 9), keep(15, 18)]),
        ("split-group", vec![keep(3, 6), summary("a", 3, 6), keep(9, 18)]),
        ("last-user", vec![summary("a", 3, 18)]),
        ("last-user", vec![summary("a", 3, 12), excerpt("hm"), keep(18, 18)]),
        ("excerpt", vec![summary("a", 3, 12), excerpt(&"far longer ".repeat(50)), keep(18, 18)]),
        ("key", vec![summary("a", 3, 6), summary("a", 9, 12), keep(15, 18)]),
        ("key", vec![summary("", 3, 12), keep(15, 18)]),
        // A blank text over messages, and a text over none: each half of the rule alone.
        ("empty-summary", vec![empty(" ", &[(3, 12)]), keep(15, 18)]),
        ("empty-summary", vec![empty("a text", &[]), keep(3, 18)]),
        ("no-such-summary", vec![Segment::KeepSummary("a".to_owned()), keep(3, 18)]),
        ("not-smaller", vec![keep(3, 18)]),
    ];
    for (code, segments) in cases {
        assert_eq!(refusal(segments.clone()).code(), code, "{segments:?}");
    }
}

#[test]
fn an_excerpt_replaces_words_or_arguments_and_nothing_else() {
    let conversation = small();
    let caller = conversation.messages().iter().find(|message| !message.tool_calls.is_empty()).unwrap();
    let call = caller.tool_calls[0].clone();
    let excerpt = |content: Option<&str>, arguments: &str| Excerpt {
        id: caller.id,
        content: content.map(str::to_owned),
        arguments: vec![(call.id.clone(), arguments.to_owned())],
        keep_images: false,
    };
    let rest: Vec<u64> = conversation.messages().iter().map(|message| message.id.0).collect();
    let last = *rest.last().unwrap();
    let segments = |excerpt| vec![keep(3, 3), Segment::Excerpt(excerpt), keep(9, last)];
    for arguments in ["[]", "{\"path\"", "7"] {
        assert_eq!(refusal(segments(excerpt(None, arguments))).code(), "excerpt", "{arguments}");
    }
    let (view, summaries) = (View::default(), HashMap::new());
    let ground = ReferenceState {
        conversation: &conversation,
        view: &view,
        summaries: &summaries,
        limit: 10_000,
        must_shrink: true,
    };
    let plan = Plan { segments: segments(excerpt(None, "{}")), reason: String::new(), extra: Vec::new() };
    let shorter = render::render(&conversation, &verify(&plan, &ground).unwrap());
    let whole = render::render(&conversation, &View::default());
    let differ: Vec<_> = whole.iter().zip(&shorter).filter(|(whole, shorter)| whole != shorter).collect();
    let [(whole, shorter)] = &differ[..] else { panic!("{differ:?}") };
    let expected = format!("{whole:?}").replace(&format!("{:?}", call.arguments), "\"{}\"");
    assert_eq!(format!("{shorter:?}"), expected, "only the arguments differ");
}

#[test]
fn a_view_that_does_not_fit_the_window_is_refused() {
    let conversation = small();
    let (view, summaries) = (View::default(), HashMap::new());
    let ground = ReferenceState {
        conversation: &conversation,
        view: &view,
        summaries: &summaries,
        limit: 1,
        must_shrink: false,
    };
    let plan = Plan { segments: vec![summary("a", 3, 12), keep(15, 18)], reason: String::new(), extra: Vec::new() };
    assert_eq!(verify(&plan, &ground).unwrap_err().code(), "too-large");
}

#[test]
fn a_key_means_one_text_for_ever() {
    let conversation = small();
    let known = Summary {
        key: "a".to_owned(),
        content: "first text".to_owned(),
        covers: vec![MessageRange::new(MessageId(3), MessageId(12))],
    };
    let summaries = HashMap::from([("a".to_owned(), known)]);
    let view = View::default();
    let ground = ReferenceState {
        conversation: &conversation,
        view: &view,
        summaries: &summaries,
        limit: 10_000,
        must_shrink: true,
    };
    let plan = |first| Plan { segments: vec![first, keep(15, 18)], reason: String::new(), extra: Vec::new() };
    assert_eq!(verify(&plan(summary("a", 3, 12)), &ground).unwrap_err().code(), "key-changed");
    let view = verify(&plan(Segment::KeepSummary("a".to_owned())), &ground).unwrap();
    assert_eq!(view.summaries().next().unwrap().content, "first text");
}

#[test]
fn what_the_view_folded_can_be_restored_but_not_kept() {
    let conversation = small();
    let summaries = HashMap::new();
    let ground = |view| ReferenceState {
        conversation: &conversation,
        view,
        summaries: &summaries,
        limit: 10_000,
        must_shrink: false,
    };
    let plan = |segments| Plan { segments, reason: String::new(), extra: Vec::new() };
    let view = View::default();
    let folded = verify(&plan(vec![summary("a", 3, 12), keep(15, 18)]), &ground(&view)).unwrap();
    assert_eq!(verify(&plan(vec![keep(3, 18)]), &ground(&folded)).unwrap_err().code(), "not-in-view");
    let whole = MessageRange::new(MessageId(3), MessageId(18));
    let restored = verify(&plan(vec![Segment::Restore(whole)]), &ground(&folded)).unwrap();
    assert_eq!(render::render(&conversation, &restored), render::render(&conversation, &View::default()));
}

#[test]
fn the_estimate_counts_what_is_sent() {
    let call = ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{}".into() };
    let mut draft = Draft::result(&call, "long ".repeat(1000), 0);
    draft.sent = Some("short".to_owned());
    assert!(tokens::of_message(&draft.numbered(MessageId(1))) < 30);
}
