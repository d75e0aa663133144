//! A correct plan, and one for each rule to break.

use hermes_plugin::context_engine::{Plan, Segment, Summary};
use hermes_plugin::{Header, MessageRange, Role};

use crate::mode::Fault;

/// Bytes of a summary that exceeds every window.
const HUGE: usize = 50_000_000;

/// A plan with this fault. `None` if the conversation is too short for it, or if the fault does not concern plans.
pub(crate) fn bad(fault: Fault, headers: &[Header]) -> Option<Plan> {
    let whole = whole(headers)?;
    let user = headers.iter().rev().find(|header| header.role == Role::User)?.id;
    let said = Segment::Restore(MessageRange::one(user));
    let segments = match fault {
        // With a single message, drop even the user's words.
        Fault::BadPlan if headers.len() == 1 => Vec::new(),
        Fault::BadPlan => vec![said],
        Fault::BadOrder => vec![Segment::Restore(whole), Segment::Restore(MessageRange::one(whole.first))],
        Fault::BadSplit => {
            let result = headers.iter().rev().find(|header| header.role == Role::Tool)?;
            let mut shown = [user, result.group];
            shown.sort_unstable();
            let shown = shown.map(|id| Segment::Restore(MessageRange::one(id)));
            [summary("hostile:split", "All of it.", whole)].into_iter().chain(shown).collect()
        }
        Fault::BadKey => {
            vec![summary("hostile:twice", "One.", whole), summary("hostile:twice", "Another.", whole), said]
        }
        Fault::HugePlan => vec![summary("hostile:huge", &"huge ".repeat(HUGE / 5), whole), said],
        _ => return None,
    };
    Some(plan(segments))
}

/// Folds everything but the user's newest message and the newest group. `None` if there is too little to fold.
pub(crate) fn good(headers: &[Header]) -> Option<Plan> {
    const LEAST: usize = 4;
    let whole = whole(headers).filter(|_| headers.len() > LEAST)?;
    let user = headers.iter().rev().find(|header| header.role == Role::User)?.id;
    let newest = headers.last()?.group;
    let key = format!("hostile:{}", whole.last);
    let mut segments =
        vec![summary(&key, "What was said before was folded by a plugin that behaves, for once.", whole)];
    if user < newest {
        segments.push(Segment::Restore(MessageRange::one(user)));
    }
    segments.push(Segment::Restore(MessageRange::new(newest, whole.last)));
    Some(plan(segments))
}

fn whole(headers: &[Header]) -> Option<MessageRange> {
    Some(MessageRange::new(headers.first()?.id, headers.last()?.id))
}

fn summary(key: &str, content: &str, covers: MessageRange) -> Segment {
    Segment::Summary(Summary { key: key.to_owned(), content: content.to_owned(), covers: vec![covers] })
}

fn plan(segments: Vec<Segment>) -> Plan {
    Plan { segments, reason: "a plan by a hostile engine".to_owned(), extra: Vec::new() }
}
