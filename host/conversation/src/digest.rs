//! A summary by rule, for when no model can write one.

use crate::{Message, MessageId, MessageRange, Role, tokens};

/// Lists what the user said in these messages within a token budget, and names the other messages by id.
///
/// If not everything fits, the newest messages win. They are listed in their original order.
pub fn digest(messages: &[&Message], budget: u32) -> String {
    let mut left = budget;
    let mut said: Vec<String> = Vec::new();
    let mut unsaid: Vec<MessageId> = Vec::new();
    for message in messages.iter().rev() {
        let line = (message.role == Role::User).then(|| format!("- [{}] {}", message.id, message.told().trim()));
        match line {
            Some(line) if tokens::of_text(&line) <= left => {
                left -= tokens::of_text(&line);
                said.push(line);
            }
            _ => unsaid.push(message.id),
        }
    }
    said.reverse();
    unsaid.reverse();
    let mut text = String::new();
    if !said.is_empty() {
        text.push_str("What the user said, by message number:\n");
        text.push_str(&said.join("\n"));
    }
    if !unsaid.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str("Left out here, kept in the log: messages ");
        text.push_str(&ranges(messages, &unsaid));
        text.push('.');
    }
    text
}

/// Ids as ranges: two ids share a range if no other message of the list lies between them.
fn ranges(messages: &[&Message], ids: &[MessageId]) -> String {
    let mut ranges: Vec<MessageRange> = Vec::new();
    let mut wanted = ids.iter().peekable();
    let mut open = false;
    for message in messages {
        if wanted.peek() == Some(&&message.id) {
            wanted.next();
            match ranges.last_mut() {
                Some(last) if open => last.last = message.id,
                _ => ranges.push(MessageRange::one(message.id)),
            }
            open = true;
        } else {
            open = false;
        }
    }
    // A list that interleaves words and calls would cost more than it tells.
    const MOST: usize = 24;
    let count = ranges.len();
    if count > MOST {
        return format!("{}-{} ({} of them)", ids[0], ids[ids.len() - 1], ids.len());
    }
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
