//! Decides which messages to fold, and writes their digest. Plain functions, which `cargo test` runs natively.

use hermes_plugin::{Header, Message, Role};

/// The most characters of each message.
const LINE: usize = 80;
/// The most characters of a shortened message.
const BEGINNING: usize = 200;

/// The number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results.
pub fn folded(headers: &[Header], keep_turns: u32) -> usize {
    let Some(newest) = headers.last() else { return 0 };
    headers.iter().take_while(|header| header.turn.saturating_add(keep_turns) <= newest.turn).count()
}

/// A digest with one line for each of the newest messages, at most so many. Older messages are only counted.
pub fn text(messages: &[Message], lines: usize) -> String {
    let listed = &messages[messages.len().saturating_sub(lines)..];
    let left_out = messages.len() - listed.len();
    let begin = if left_out > 0 { format!("({left_out} earlier messages)\n") } else { String::new() };
    begin + &listed.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The beginning of a long text; `None` for a short one.
pub fn beginning(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(2 * BEGINNING)?;
    let begin: String = text[..end].chars().take(BEGINNING).collect();
    Some(format!("{begin} […]"))
}

fn line(message: &Message) -> String {
    let who = match &message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => message.tool_name.as_deref().unwrap_or("tool"),
        Role::Other(role) => role,
    };
    let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
    let calls = if calls.is_empty() { String::new() } else { format!(" [calls {}]", calls.join(", ")) };
    let words = message.content.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(LINE).collect();
    format!("#{} {who}: {short}{calls}", message.id)
}

#[cfg(test)]
mod tests {
    use hermes_plugin::ToolCall;

    use super::*;

    fn header(id: u64, turn: u32) -> Header {
        Header { turn, ..Header::new(id, Role::User) }
    }

    #[test]
    fn whole_turns_are_folded_and_the_newest_stay() {
        let headers = [header(1, 1), header(2, 1), header(5, 2), header(6, 3), header(7, 3)];
        assert_eq!(folded(&headers, 1), 3);
        assert_eq!(folded(&headers, 2), 2);
        assert_eq!(folded(&headers, 3), 0);
        assert_eq!(folded(&[], 1), 0);
    }

    #[test]
    fn a_message_becomes_a_line_with_its_calls() {
        let mut caller = Message::new(7, Role::Assistant, "I read\n\nit.");
        caller.tool_calls = vec![ToolCall { id: "a".into(), name: "read_file".into(), arguments: "{}".into() }];
        let long = Message::new(8, Role::User, &"ü".repeat(500));
        let text = text(&[caller, long], 9);
        let (first, second) = text.split_once('\n').unwrap_or_default();
        assert_eq!(first, "#7 assistant: I read it. [calls read_file]");
        assert_eq!(second.chars().count(), "#8 user: ".len() + LINE);
    }

    #[test]
    fn only_a_long_text_is_shortened() {
        assert_eq!(beginning(&"ü".repeat(2 * BEGINNING)), None);
        let short = beginning(&"ü".repeat(2 * BEGINNING + 1)).unwrap_or_default();
        assert_eq!(short.chars().count(), BEGINNING + " […]".len() - "…".len() + 1);
    }

    #[test]
    fn a_long_digest_lists_only_the_newest_messages() {
        let messages: Vec<Message> = (0..300).map(|id| Message::new(id, Role::User, "x")).collect();
        let text = text(&messages, 200);
        assert!(text.starts_with("(100 earlier messages)\n#100 user: x\n") && text.ends_with("#299 user: x"));
    }
}
