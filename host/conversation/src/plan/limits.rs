//! The limits of a plan. They are checked before any other work.

use super::{Plan, Refusal, Segment};
use crate::{Conversation, Excerpt, Summary};

/// Segments that a plan may have besides two for each message of the conversation. Covered ranges have the same limit.
pub const BESIDE_MESSAGES: usize = 10_000;
/// The most bytes of the texts and keys of a plan: no window has room for more.
pub const MOST_TEXT: usize = 16 << 20;

/// The most segments of a plan for a conversation with so many messages, and the most ranges that its summaries cover. A
/// view shows each message at most once, and a message is covered by few summaries.
pub fn parts_limit(messages: usize) -> usize {
    messages.saturating_mul(2).saturating_add(BESIDE_MESSAGES)
}

pub(super) fn check(plan: &Plan, conversation: &Conversation) -> Result<(), Refusal> {
    let most = parts_limit(conversation.messages().len());
    let covered: usize = plan.segments.iter().map(covers).sum();
    let parts = plan.segments.len().max(covered);
    if parts > most {
        return Err(Refusal::TooManyParts { parts, most });
    }
    let bytes: usize = plan.segments.iter().map(text).sum();
    if bytes > MOST_TEXT { Err(Refusal::TooMuchText { bytes }) } else { Ok(()) }
}

fn covers(segment: &Segment) -> usize {
    match segment {
        Segment::Summary(summary) => summary.covers.len(),
        Segment::Keep(_) | Segment::Restore(_) | Segment::Excerpt(_) | Segment::KeepSummary(_) => 0,
    }
}

/// The bytes of a segment's texts. Each pair of arguments counts for itself, too.
fn text(segment: &Segment) -> usize {
    match segment {
        Segment::Keep(_) | Segment::Restore(_) => 0,
        Segment::KeepSummary(key) => key.len(),
        Segment::Summary(Summary { key, content, .. }) => key.len() + content.len(),
        Segment::Excerpt(Excerpt { content, arguments, .. }) => {
            let arguments: usize = arguments.iter().map(|(call, shown)| call.len() + shown.len() + 16).sum();
            content.as_ref().map_or(0, String::len) + arguments
        }
    }
}
