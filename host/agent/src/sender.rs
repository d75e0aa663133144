//! The author, the thread and the answered message of a user's message, in a line that the model reads before the text.
//!
//! The names come from a channel that anyone may write to, so the line is in a fence of its own, which the text cannot imitate.

use hermes_conversation::fence::{self, MESSAGE_SENDER, Marks};
use hermes_conversation::{Author, Conversation, one_line_within};
use hermes_protocol::UserMessage;

/// The most characters of a name.
const LONGEST_NAME: usize = 80;

/// The most characters of the answered message.
const LONGEST_QUOTE: usize = 160;

/// The line about a message; `None` if it names neither an author, nor a thread, nor a message that it answers.
pub(crate) fn line(message: &UserMessage, conversation: &Conversation) -> Option<String> {
    let name = |name: &str| one_line_within(name, LONGEST_NAME);
    let author = message.author.as_ref().map(|Author { id, name: shown }| match shown {
        Some(shown) => format!("written by {} (id {})", name(shown), name(id)),
        None => format!("written by {}", name(id)),
    });
    let thread = message.thread.as_ref().map(|thread| format!("in the thread {}", name(thread)));
    let answered = message.reply_to.and_then(|id| conversation.get(id)).map(|message| {
        format!("in reply to message {}: \"{}\"", message.id, one_line_within(&message.draft.content, LONGEST_QUOTE))
    });
    let parts: Vec<String> = [author, thread, answered].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The text with the line before it.
pub(crate) fn before(text: &str, line: &str, marks: &Marks) -> String {
    let text = fence::defuse_tag(text, MESSAGE_SENDER);
    format!("{}\n\n{text}", marks.enclose(MESSAGE_SENDER, &fence::defuse_tag(line, MESSAGE_SENDER)))
}
