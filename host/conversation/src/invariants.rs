//! Rules that hold for any plan of an engine. The property tests of this crate and the targets in `fuzz/` call the same
//! functions, which panic if a rule is broken.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use crate::plan::{MOST_TEXT, ReferenceState, parts_limit, verify};
use crate::{
    Conversation, Draft, Excerpt, Item, MessageId, MessageRange, Part, Plan, Segment, Summary, ToolCall, View, render,
    validity,
};

/// Takes numbers from untrusted bytes; zeros follow the last one.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn id(&mut self) -> MessageId {
        MessageId(match self.next() {
            255 => u64::MAX,
            byte => byte.into(),
        })
    }

    fn range(&mut self) -> MessageRange {
        MessageRange::new(self.id(), self.id())
    }

    fn text(&mut self) -> String {
        let byte = self.next();
        let unit = ["word ", "é", " ", "{}", "x", "{\"a\":1}", "\u{1b}", ""][usize::from(byte % 8)];
        unit.repeat(usize::from(byte / 8))
    }
}

/// Reads bytes as a conversation, the view in force, and a plan. An accepted plan loses nothing, shows each message at most
/// once and in order, and gives a valid request; a refusal is short.
pub fn plan(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let conversation = conversation(&mut bytes);
    let (view, summaries) = view_in_force(&mut bytes, &conversation);
    let ground = ReferenceState {
        conversation: &conversation,
        view: &view,
        summaries: &summaries,
        limit: u32::from(bytes.next()) * 16,
        must_shrink: bytes.next() % 2 == 1,
    };
    let plan = any_plan(&mut bytes);
    match verify(&plan, &ground) {
        Ok(view) => check(&plan, &view, &conversation),
        Err(refusal) => assert!(refusal.to_string().len() < 500 && !refusal.code().is_empty(), "{refusal}"),
    }
}

fn conversation(bytes: &mut Bytes<'_>) -> Conversation {
    let mut conversation = Conversation::default();
    let mut id = 0;
    let mut push = |conversation: &mut Conversation, draft: Draft| {
        id += 1 + u64::from(id % 3 == 0);
        conversation.push(draft.numbered(MessageId(id)));
    };
    for _ in 0..=bytes.next() % 4 {
        push(&mut conversation, Draft::user(bytes.text() + "?", 0));
        let calls: Vec<ToolCall> = (0..bytes.next() % 4)
            .map(|at| ToolCall {
                id: format!("{at}"),
                name: "ls".to_owned(),
                arguments: "{\"path\":\"src\"}".to_owned(),
            })
            .collect();
        if !calls.is_empty() {
            push(&mut conversation, Draft::assistant("", calls.clone(), 0));
            calls.iter().for_each(|call| {
                let draft = Draft::result(call, bytes.text(), 0);
                push(&mut conversation, if call.id == "0" { reminding(draft) } else { draft });
            });
        }
        push(&mut conversation, Draft::assistant(bytes.text() + ".", Vec::new(), 0));
    }
    conversation
}

/// The result with a reminder.
fn reminding(draft: Draft) -> Draft {
    let mut parts = draft.all_parts();
    for part in &mut parts {
        if let Part::ToolResult(result) = part {
            result.reminder = Some("one step is left".to_owned());
        }
    }
    draft.with_parts(parts)
}

/// The view that an earlier plan made, or the whole conversation.
fn view_in_force(bytes: &mut Bytes<'_>, conversation: &Conversation) -> (View, HashMap<String, Summary>) {
    let (whole, none) = (View::default(), HashMap::new());
    let earlier = any_plan(bytes);
    let ground = ReferenceState { conversation, view: &whole, summaries: &none, limit: u32::MAX, must_shrink: false };
    let Ok(view) = verify(&earlier, &ground) else { return (whole, none) };
    let summaries = view.summaries().map(|summary| (summary.key.clone(), summary.clone())).collect();
    (view, summaries)
}

fn any_plan(bytes: &mut Bytes<'_>) -> Plan {
    let segments = (0..bytes.next() % 16)
        .map(|_| match bytes.next() % 6 {
            0 | 1 => Segment::Keep(bytes.range()),
            2 => Segment::Restore(bytes.range()),
            3 => Segment::Excerpt(Excerpt {
                id: bytes.id(),
                content: (!bytes.next().is_multiple_of(3)).then(|| bytes.text()),
                arguments: (0..bytes.next() % 4).map(|_| (format!("{}", bytes.next() % 4), bytes.text())).collect(),
                keep_images: bytes.next() % 2 == 1,
            }),
            4 => Segment::Summary(Summary {
                key: format!("s{}", bytes.next() % 4),
                content: bytes.text(),
                covers: (0..usize::from(bytes.next()) * 2).map(|_| bytes.range()).collect(),
            }),
            _ => Segment::KeepSummary(format!("s{}", bytes.next() % 4)),
        })
        .collect();
    Plan { segments, reason: bytes.text(), extra: Vec::new() }
}

fn check(plan: &Plan, view: &View, conversation: &Conversation) {
    let messages = conversation.messages().len();
    assert!(plan.segments.len() <= parts_limit(messages));
    let mut accounted = vec![false; messages];
    let mut before = None;
    let mut text = 0;
    for item in &view.items {
        let (shown, covered) = match item {
            Item::Messages(range) => (Some(*range), Vec::new()),
            Item::Excerpt(excerpt) => (Some(MessageRange::one(excerpt.id)), Vec::new()),
            Item::Summary(summary) => {
                text += summary.content.len();
                (None, summary.covers.clone())
            }
        };
        if let Some(range) = shown {
            for message in &conversation.messages()[conversation.span(range)] {
                assert!(before < Some(message.id), "message {} is shown twice or out of order", message.id);
                before = Some(message.id);
            }
        }
        for range in shown.into_iter().chain(covered) {
            accounted[conversation.span(range)].fill(true);
        }
    }
    assert!(text <= 2 * MOST_TEXT);
    assert!(accounted.iter().all(|accounted| *accounted), "a message is neither shown nor covered");
    let shown = render::render(conversation, view);
    validity::check(&shown).unwrap();
    let last = conversation.last_user().unwrap();
    assert!(shown.iter().any(|shown| shown.id == Some(last.id) && shown.content == last.text_sent()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_plan_is_refused_or_loses_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            super::plan(&bytes);
        }

        #[test]
        fn plans_over_few_messages_are_often_accepted(bytes in prop::collection::vec(0_u8..12, 0..120)) {
            super::plan(&bytes);
        }
    }
}
