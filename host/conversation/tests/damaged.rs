//! Whatever a log holds, a provider accepts what is sent of it, and a longer log only appends.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;

use hermes_conversation::plan::{ReferenceState, verify};
use hermes_conversation::render::{Rendering, Repairs, render};
use hermes_conversation::{
    Conversation, Draft, Excerpt, Item, Media, Message, MessageId, MessageRange, Part, Plan, Role, Segment, Shown,
    Summary, ToolCall, View, closing, tokens, validity,
};
use proptest::prelude::*;

/// Few ids, so that calls and results meet, repeat and miss each other.
fn any_draft() -> impl Strategy<Value = Draft> {
    let id = || prop::sample::select(vec!["", "a", "b", "c"]).prop_map(str::to_owned);
    let call = id().prop_map(|id| ToolCall { id, name: "read_file".to_owned(), arguments: "{}".to_owned() });
    let role =
        prop::sample::select(vec![Role::User, Role::Assistant, Role::Assistant, Role::Tool, Role::Tool, Role::System]);
    let text =
        prop::sample::select(vec!["", "some words", "many words that an excerpt can shorten, one after the other"]);
    let links = prop::option::weighted(0.9, id());
    (role, text, prop::collection::vec(call, 0..4), links, prop::bool::weighted(0.2)).prop_map(
        |(role, text, tool_calls, tool_call_id, pictured)| {
            let links = if role == Role::Tool { tool_call_id } else { None };
            let plain = Draft { role, tool_calls, tool_call_id: links, ..Draft::user(text, 0) };
            if pictured { with_a_picture(plain) } else { plain }
        },
    )
}

fn with_a_picture(draft: Draft) -> Draft {
    let picture = Part::Image(Media::image(b"GIF89a\x01\0\x01\0".to_vec(), None).unwrap());
    let mut parts = draft.all_parts();
    match parts.first_mut() {
        Some(Part::ToolResult(result)) => result.parts.push(picture),
        _ => parts.push(picture),
    }
    draft.with_parts(parts)
}

fn numbered(drafts: &[Draft]) -> Vec<Message> {
    (1..).zip(drafts).map(|(at, draft)| draft.clone().numbered(MessageId(at * 2))).collect()
}

/// A plan over random stretches; the verifier refuses most that make no sense.
fn plan(messages: &[Message], segments: &[(u8, usize, usize)]) -> Plan {
    let at = |n: usize| messages[n % messages.len()].id;
    let range = |a: usize, b: usize| MessageRange::new(at(a).min(at(b)), at(a).max(at(b)));
    let mut named: Vec<Segment> = segments
        .iter()
        .enumerate()
        .map(|(n, &(kind, a, b))| match kind {
            0 => Segment::Excerpt(Excerpt {
                id: at(a),
                content: Some("short".to_owned()),
                arguments: Vec::new(),
                keep_images: a % 2 == 1,
            }),
            1 => Segment::Keep(range(a, b)),
            _ => Segment::Summary(Summary {
                key: format!("s{n}"),
                content: "what was said".to_owned(),
                covers: vec![MessageRange::new(at(0), at(messages.len() - 1))],
            }),
        })
        .collect();
    let user = messages.iter().rfind(|message| message.role == Role::User);
    named.extend(user.map(|user| Segment::Keep(MessageRange::new(user.id, at(messages.len() - 1)))));
    Plan { segments: named, reason: String::new(), extra: Vec::new() }
}

fn view(messages: &[Message], segments: &[(u8, usize, usize)]) -> View {
    if messages.is_empty() {
        return View::default();
    }
    let conversation = Conversation::new(messages.to_vec());
    let (whole, none) = (View::default(), HashMap::new());
    let ground = ReferenceState {
        conversation: &conversation,
        view: &whole,
        summaries: &none,
        limit: u32::MAX,
        must_shrink: false,
    };
    verify(&plan(messages, segments), &ground).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_log_holds_what_is_sent_is_valid_and_only_grows(
        drafts in prop::collection::vec(any_draft(), 0..24),
        segments in prop::collection::vec((0..4u8, 0..24usize, 0..24usize), 0..4),
        viewed in 0..24usize,
    ) {
        let messages = numbered(&drafts);
        let viewed = viewed.min(messages.len());
        let view = view(&messages[..viewed], &segments);
        let (mut rendering, mut sent) = Rendering::of(&Conversation::new(messages[..viewed].to_vec()), &view);
        validity::check(&sent).unwrap();
        for length in viewed..messages.len() {
            sent.extend(rendering.follow(&messages[length..=length]));
            let (whole, shown) = Rendering::of(&Conversation::new(messages[..=length].to_vec()), &view);
            // Piece by piece or as a whole, the messages and the report are the same.
            prop_assert_eq!(&sent, &shown);
            prop_assert_eq!(rendering.repairs(), whole.repairs());
            validity::check(&shown).unwrap();
        }
    }

    #[test]
    fn no_words_are_lost_and_no_result_is_shown_under_another_call(
        drafts in prop::collection::vec(any_draft(), 0..24),
    ) {
        let mut messages = numbered(&drafts);
        messages.push(Draft::user("go on", 0).numbered(MessageId(1_000)));
        let conversation = Conversation::new(messages);
        let shown = render(&conversation, &View::default());
        for message in conversation.messages().iter().filter(|message| matches!(message.role, Role::User | Role::Assistant)) {
            prop_assert!(shown.iter().any(|shown| shown.id == Some(message.id) && shown.content == message.content));
        }
        for shown in shown.iter().filter(|shown| shown.role == Role::Tool) {
            match shown.id.and_then(|id| conversation.get(id)) {
                Some(result) => prop_assert_eq!(&shown.tool_call_id, &Some(result.tool_call_id.clone().unwrap_or_default())),
                None => prop_assert_eq!(&shown.content, closing::INTERRUPTED_CALL),
            }
        }
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() }
}

fn calls(ids: &[&str]) -> Draft {
    Draft::assistant("", ids.iter().map(|id| call(id)).collect(), 0)
}

fn result(id: &str) -> Draft {
    Draft::result(&call(id), format!("output of {id}"), 0)
}

/// Role, text and call of each message.
fn outline(shown: &[Shown]) -> Vec<String> {
    let line = |shown: &Shown| match &shown.tool_call_id {
        Some(id) => format!("result {id}: {}", shown.content),
        None if !shown.tool_calls.is_empty() => {
            format!("calls {}", shown.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        None => format!("{}: {}", shown.role.as_str(), shown.content),
    };
    shown.iter().map(line).collect()
}

fn rendered(drafts: &[Draft]) -> (Vec<String>, Repairs) {
    let (rendering, shown) = Rendering::of(&Conversation::new(numbered(drafts)), &View::default());
    (outline(&shown), rendering.repairs())
}

#[test]
fn a_lost_result_is_given_right_behind_its_call_and_a_stray_one_is_left_out() {
    let drafts = [
        Draft::user("look", 0),
        calls(&["a", "b", "c"]),
        result("c"),
        result("a"),
        Draft::user("well?", 0),
        result("b"),
        calls(&["d", "d"]),
        result("d"),
        result("d"),
        result("elsewhere"),
        Draft::user("and?", 0),
    ];
    let (shown, repairs) = rendered(&drafts);
    assert_eq!(
        shown,
        [
            "user: look",
            "calls a b c",
            "result a: output of a",
            "result b: interrupted; it may have run",
            "result c: output of c",
            "assistant: Understood.",
            "user: well?",
            "calls d",
            "result d: output of d",
            "assistant: Understood.",
            "user: and?",
        ]
    );
    assert_eq!(repairs, Repairs { calls_answered: 1, results_left_out: 3, calls_left_out: 1, ..Repairs::default() });
    assert_eq!(
        repairs.to_string(),
        "1 tool call without a result, 3 tool results without a call, 1 repeated tool call"
    );
}

#[test]
fn a_call_that_is_being_run_waits_for_its_result() {
    let drafts = [Draft::user("look", 0), calls(&["a", "b"]), result("b"), result("a")];
    assert_eq!(rendered(&drafts[..2]), (vec!["user: look".to_owned()], Repairs::default()));
    assert_eq!(rendered(&drafts[..3]), (vec!["user: look".to_owned()], Repairs::default()));
    let (whole, repairs) = rendered(&drafts);
    // All are there: they stay in the order in which they came.
    assert_eq!(whole, ["user: look", "calls a b", "result b: output of b", "result a: output of a"]);
    assert!(!repairs.any());
}

#[test]
fn parts_and_fields_say_the_same() {
    let call = call("a");
    for plain in [
        Draft::user("hello", 0),
        Draft { reasoning: Some("hm".to_owned()), ..Draft::assistant("so", vec![call.clone()], 0) },
        result("a"),
    ] {
        // Parts that the plain fields can express are stored as fields, without a list.
        let same = plain.clone().with_parts(plain.all_parts());
        assert_eq!(same, plain);
        let pictured = with_a_picture(plain.clone());
        assert_eq!((&pictured.content, &pictured.tool_calls), (&plain.content, &plain.tool_calls));
        assert_eq!((&pictured.tool_call_id, &pictured.reasoning), (&plain.tool_call_id, &plain.reasoning));
        assert_eq!((pictured.images(), pictured.media().count()), (1, 1));
        assert!(pictured.told().ends_with("[image: image/gif]"));
    }
}

#[test]
fn what_is_sent_in_place_of_the_words_keeps_the_pictures() {
    let mut said = with_a_picture(Draft::user("look", 0));
    said.sent = Some("look\n\nrecalled".to_owned());
    let shown = render(&Conversation::new(numbered(&[said])), &View::default());
    assert_eq!(shown[0].content, "look\n\nrecalled");
    assert_eq!(shown[0].parts[0], Part::text("look\n\nrecalled"));
    assert!(shown[0].parts[1].media().is_some());
}

#[test]
fn pictures_of_parallel_results_follow_all_of_them() {
    let drafts = [Draft::user("look", 0), calls(&["a", "b"]), with_a_picture(result("a")), result("b")];
    let shown = render(&Conversation::new(numbered(&drafts)), &View::default());
    let roles: Vec<(Role, bool)> = shown.iter().map(|shown| (shown.role, shown.repeats_pictures)).collect();
    assert_eq!(
        roles,
        [(Role::User, false), (Role::Assistant, false), (Role::Tool, false), (Role::Tool, false), (Role::User, true)]
    );
}

#[test]
fn a_shortened_message_keeps_its_pictures_or_names_them() {
    let drafts = [Draft::user("look", 0), calls(&["a"]), with_a_picture(result("a"))];
    let conversation = Conversation::new(numbered(&drafts));
    let result = conversation.messages()[2].clone();
    for (content, keep_images, text) in [
        (None, false, "output of a\n[image: image/gif]"),
        (Some("cut"), false, "cut\n[image: image/gif]"),
        (Some("cut"), true, "cut"),
        (None, true, "output of a"),
    ] {
        let excerpt =
            Excerpt { id: result.id, content: content.map(str::to_owned), arguments: Vec::new(), keep_images };
        let range = MessageRange::new(conversation.messages()[0].id, conversation.messages()[1].id);
        let view =
            View { items: vec![Item::Messages(range), Item::Excerpt(excerpt.clone())], through: Some(result.id) };
        let shown = render(&conversation, &view);
        assert_eq!(shown[2].content, text);
        let kept: Vec<&Part> = shown[2].parts.iter().collect();
        match kept.as_slice() {
            [] => assert!(!keep_images && shown.len() == 3),
            [Part::ToolResult(shown)] => {
                assert!(keep_images && shown.parts[0] == Part::text(text) && shown.parts[1].media().is_some());
            }
            other => panic!("{other:?}"),
        }
        // A picture that stays is counted.
        let tokens = tokens::of_excerpt(&result, &excerpt);
        assert_eq!(tokens > 200, keep_images, "{tokens}");
    }
}
