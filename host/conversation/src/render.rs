//! From a view to the messages that a model is sent.
//!
//! The frame of summaries and the alternation of roles are made here and nowhere else, as a function of the
//! view alone: the same view gives the same messages, and a longer conversation under it begins with them.

use crate::{Conversation, Excerpt, Item, Message, MessageId, Role, Summary, ToolCall, View};

/// A message as a model is sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Never `Role::System`.
    pub role: Role,
    /// The text; may be empty where there are calls.
    pub content: String,
    /// The model's own reasoning, for the providers that want it back.
    pub reasoning: Option<String>,
    /// Calls of an assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The message of the log that it shows; none for summaries and for the host's words between them.
    pub id: Option<MessageId>,
}

const SUMMARY_OPENS: &str = "[Summary of earlier messages of this conversation. They are kept in full and are left out here to save \
     room. This is background: whatever is said after it is newer and counts more.]";
/// Of a summary right behind another one.
const SUMMARY_GOES_ON: &str = "[Summary of the messages after those.]";
const SUMMARY_ENDS: &str = "[End of the summary.]";
/// Between two messages of the user's side.
const NOTED: &str = "Understood.";
/// Before a reply that nothing would precede.
const GO_ON: &str = "Please go on.";

/// The messages of a view, in order: a person's first, roles in turn, results right behind their calls.
pub fn render(conversation: &Conversation, view: &View) -> Vec<Shown> {
    let mut shown = Vec::new();
    let mut behind_summary = false;
    for item in conversation.items(view) {
        let opens = if behind_summary { SUMMARY_GOES_ON } else { SUMMARY_OPENS };
        behind_summary = matches!(item, Item::Summary(_));
        match item {
            Item::Messages(range) => {
                for message in &conversation.messages()[conversation.span(range)] {
                    push(&mut shown, of_message(message));
                }
            }
            Item::Excerpt(excerpt) => {
                if let Some(message) = conversation.get(excerpt.id) {
                    push(&mut shown, of_excerpt(message, &excerpt));
                }
            }
            Item::Summary(summary) => push(&mut shown, of_summary(opens, &summary)),
        }
    }
    shown
}

/// Messages as they follow others that are rendered already, the last of which has this role.
///
/// A view that stays the same is never rendered again: what was sent of it keeps its bytes, and only this is put behind.
pub fn following(last: Option<Role>, messages: &[Message]) -> Vec<Shown> {
    let mut shown = Vec::new();
    for message in messages {
        let before = shown.last().map(|shown: &Shown| shown.role).or(last);
        push_behind(before, &mut shown, of_message(message));
    }
    shown
}

fn push(shown: &mut Vec<Shown>, next: Shown) {
    push_behind(shown.last().map(|last| last.role), shown, next);
}

fn push_behind(last: Option<Role>, shown: &mut Vec<Shown>, next: Shown) {
    match (last, next.role) {
        (Some(Role::User | Role::Tool), Role::User) => shown.push(host_words(Role::Assistant, NOTED)),
        (None | Some(Role::Assistant), Role::Assistant) => shown.push(host_words(Role::User, GO_ON)),
        _ => {}
    }
    shown.push(next);
}

fn host_words(role: Role, text: &str) -> Shown {
    Shown { role, content: text.to_owned(), reasoning: None, tool_calls: Vec::new(), tool_call_id: None, id: None }
}

fn of_message(message: &Message) -> Shown {
    Shown {
        role: message.role,
        content: message.text_sent().to_owned(),
        reasoning: message.reasoning.clone(),
        tool_calls: message.tool_calls.clone(),
        tool_call_id: message.tool_call_id.clone(),
        id: Some(message.id),
    }
}

fn of_excerpt(message: &Message, excerpt: &Excerpt) -> Shown {
    let mut shown = of_message(message);
    if let Some(content) = &excerpt.content {
        shown.content.clone_from(content);
    }
    shown.tool_calls = message.tool_calls.iter().map(|call| shortened_call(call, excerpt)).collect();
    shown
}

/// A call with the arguments that an excerpt shows in place of its own.
pub(crate) fn shortened_call(call: &ToolCall, excerpt: &Excerpt) -> ToolCall {
    let mut call = call.clone();
    if let Some((_, arguments)) = excerpt.arguments.iter().find(|(id, _)| *id == call.id) {
        call.arguments.clone_from(arguments);
    }
    call
}

fn of_summary(opens: &str, summary: &Summary) -> Shown {
    host_words(Role::User, &format!("{opens}\n\n{}\n\n{SUMMARY_ENDS}", summary.content.trim()))
}
