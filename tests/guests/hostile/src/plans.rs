//! Plans: a good one, and one for each rule to break.

use hermes_plugin::context_engine::{Plan, Segment, Summary};
use hermes_plugin::{Header, MessageRange, Role};

use crate::mode::Misdeed;

/// Bytes of a summary that no window holds.
const HUGE: usize = 50_000_000;

/// The plan of a misdeed; none where the conversation gives no occasion for it, or it is none of a plan.
pub(crate) fn bad(misdeed: Misdeed, headers: &[Header]) -> Option<Plan> {
    let whole = whole(headers)?;
    let user = headers.iter().rev().find(|header| header.role == Role::User)?.id;
    let said = Segment::Restore(MessageRange::one(user));
    let segments = match misdeed {
        // With a single message even its words are dropped.
        Misdeed::BadPlan if headers.len() == 1 => Vec::new(),
        Misdeed::BadPlan => vec![said],
        Misdeed::BadOrder => vec![Segment::Restore(whole), Segment::Restore(MessageRange::one(whole.first))],
        Misdeed::BadSplit => {
            let result = headers.iter().rev().find(|header| header.role == Role::Tool)?;
            let mut shown = [user, result.group];
            shown.sort_unstable();
            let shown = shown.map(|id| Segment::Restore(MessageRange::one(id)));
            [summary("hostile:split", "All of it.", whole)].into_iter().chain(shown).collect()
        }
        Misdeed::BadKey => {
            vec![summary("hostile:twice", "One.", whole), summary("hostile:twice", "Another.", whole), said]
        }
        Misdeed::HugePlan => vec![summary("hostile:huge", &"huge ".repeat(HUGE / 5), whole), said],
        _ => return None,
    };
    Some(plan(segments))
}

/// Folds all but the user's newest message and the newest group; none while there is little to fold.
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
