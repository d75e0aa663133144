//! Closes an interrupted turn: by appending, never by editing.

use std::collections::HashSet;

use crate::{Conversation, Draft, Role, ToolCall};

/// The result of an interrupted call.
pub const INTERRUPTED_CALL: &str = "interrupted; it may have run";
/// The reply to an unanswered message.
pub const INTERRUPTED_TURN: &str = "[The turn was cut off before a reply.]";

/// The messages to append before a person can speak again; none if the last turn is complete.
///
/// Every open call gets a result. A message that is then still unanswered gets a note in place of the model's reply.
pub fn close(conversation: &Conversation, now: u64) -> Vec<Draft> {
    let mut drafts: Vec<Draft> =
        open_calls(conversation).into_iter().map(|call| Draft::result(call, INTERRUPTED_CALL, now).by_host()).collect();
    let answered = match conversation.messages().last() {
        None => true,
        Some(last) => last.role == Role::Assistant && last.tool_calls.is_empty(),
    };
    if !answered {
        drafts.push(Draft::assistant(INTERRUPTED_TURN, Vec::new(), now).by_host());
    }
    drafts
}

/// Calls of the newest message that makes any, which no later message answers.
pub fn open_calls(conversation: &Conversation) -> Vec<&ToolCall> {
    let messages = conversation.messages();
    let Some(caller) = messages.iter().rposition(|message| message.role != Role::Tool) else {
        return Vec::new();
    };
    let answered: HashSet<&str> =
        messages[caller + 1..].iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    messages[caller].tool_calls.iter().filter(|call| !answered.contains(call.id.as_str())).collect()
}
