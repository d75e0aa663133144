//! A reply that reached the model's output limit: it ends with a mark, its calls are dropped, and the turn says so.

use hermes_conversation::Part;
use hermes_models::{Finish, Reply};
use hermes_protocol::{EventKind, TurnEnd};

use crate::feed::Feed;

/// Ends a text that was cut.
const CUT: &str = "[The reply reached the model's output limit here, so it is not complete.]";
/// Ends a reply with calls that were cut.
const CUT_CALLS: &str =
    "[The reply reached the model's output limit before its tool calls were complete; none of them was run.]";

/// Whether the output limit ended the reply.
pub(super) fn is_cut(reply: &Reply) -> bool {
    reply.finish == Finish::Length
}

/// Whether the reply has reasoning, and not only a count of it.
pub(super) fn has_thought(reply: &Reply) -> bool {
    let in_parts = || reply.parts.iter().any(|part| matches!(part, Part::Reasoning { .. }));
    let counted = || reply.usage.is_some_and(|usage| usage.reasoning > 0);
    reply.reasoning.as_ref().is_some_and(|text| !text.trim().is_empty()) || in_parts() || counted()
}

/// Like [`marked`], and shows the mark.
pub(super) fn mark(feed: &Feed, reply: &mut Reply) -> Option<TurnEnd> {
    let (end, mark) = marked(reply)?;
    feed.publish(EventKind::Text { text: mark });
    Some(end)
}

/// Removes the calls of a reply that reached the output limit, because the last one may be cut within its arguments, and marks
/// its end in the text that is stored. Returns how the turn ends then, and what was added; `None` for a whole reply.
pub(super) fn marked(reply: &mut Reply) -> Option<(TurnEnd, String)> {
    if !is_cut(reply) {
        return None;
    }
    let calls = reply.tool_calls.len();
    reply.tool_calls.clear();
    reply.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
    let text = reply.text.clone();
    let mark = if calls == 0 { CUT } else { CUT_CALLS };
    if !reply.parts.is_empty() {
        reply.parts.push(Part::text(mark));
    }
    let added = if text.is_empty() { mark.to_owned() } else { format!("\n\n{mark}") };
    reply.text.push_str(&added);
    Some((TurnEnd::Cut { text, calls }, added))
}
