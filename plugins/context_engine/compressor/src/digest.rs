//! A summary by rule, for when no model has written one: what the user said, one line for each tool call, and the rest
//! by number.

use std::collections::{HashMap, HashSet};

use hermes_plugin::{Message, MessageId, MessageRange, Role};
use serde_json::Value;

use crate::excerpt::shorten;
use crate::secrets::redact;
use crate::source::Source;

/// More ranges than this cost more than they tell.
const MOST_RANGES: usize = 24;

/// Tokens for the two lists of a digest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) said: u32,
    pub(crate) calls: u32,
}

/// States these messages. Of each list the newest lines win when not all fit; they stand in the order of the messages.
pub(crate) fn digest(messages: &[Message], room: Room, source: &impl Source) -> String {
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else { return String::new() };
    let results: HashMap<&str, &Message> =
        messages.iter().filter_map(|message| message.tool_call_id.as_deref().map(|call| (call, message))).collect();
    let mut named = HashSet::new();

    let most = room.said / 2;
    let said = messages.iter().filter(|message| message.role == Role::User && !message.content.trim().is_empty());
    let said = lines(said, room.said, &mut named, source, |message| {
        vec![shorten(&format!("- [{}] {}", message.id, message.content.trim()), most, source)]
    });
    let calls = messages.iter().filter(|message| !message.tool_calls.is_empty());
    let calls = lines(calls, room.calls, &mut named, source, |message| {
        let line = |call: &hermes_plugin::ToolCall| {
            let outcome =
                results.get(call.id.as_str()).map_or_else(|| "no result".to_owned(), |result| outcome(result));
            let argument = main_argument(&call.arguments).map(|argument| format!(" {argument}")).unwrap_or_default();
            format!("- [{}] {}{argument}: {outcome}", message.id, call.name)
        };
        message.tool_calls.iter().map(line).collect()
    });
    for message in messages {
        // A result is named with its call.
        if message.tool_calls.iter().any(|_| named.contains(&message.id)) {
            let answered = message.tool_calls.iter().filter_map(|call| results.get(call.id.as_str()));
            named.extend(answered.map(|result| result.id).collect::<Vec<_>>());
        }
    }

    let mut text = format!("Messages {} to {}, listed by rule. All of them are kept in the log.", first.id, last.id);
    for (heading, lines) in [("What the user said, by message number:", said), ("Tool calls:", calls)] {
        if !lines.is_empty() {
            text.push_str(&format!("\n\n{heading}\n{}", lines.join("\n")));
        }
    }
    let rest = ranges(messages, |id| !named.contains(&id));
    if !rest.is_empty() {
        text.push_str(&format!("\n\nNot listed: {rest}."));
    }
    redact(&text).into_owned()
}

/// The lines of the newest messages that fit, in order; a message whose lines do not all fit has none.
fn lines<'a>(
    messages: impl DoubleEndedIterator<Item = &'a Message>,
    room: u32,
    named: &mut HashSet<MessageId>,
    source: &impl Source,
    of: impl Fn(&Message) -> Vec<String>,
) -> Vec<String> {
    let mut left = room;
    let mut chosen = Vec::new();
    for message in messages.rev() {
        // What follows would hardly fit either, and counting takes time.
        if left < 8 {
            break;
        }
        let lines = of(message);
        let cost = lines.iter().map(|line| source.count(line) + 1).fold(0, u32::saturating_add);
        if cost <= left {
            left -= cost;
            named.insert(message.id);
            chosen.push(lines);
        }
    }
    chosen.into_iter().rev().flatten().collect()
}

/// What a call is about: the argument that tells most, on one line.
fn main_argument(arguments: &str) -> Option<String> {
    const TELLING: [&str; 10] =
        ["path", "file_path", "command", "cmd", "query", "pattern", "url", "name", "action", "target"];
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return None };
    let telling = TELLING.iter().find_map(|key| arguments.get(*key)).or_else(|| arguments.values().next())?;
    let text = telling.as_str().map_or_else(|| telling.to_string(), str::to_owned);
    // Which folder a command runs in tells less than the command.
    let text =
        text.strip_prefix("cd ").and_then(|rest| rest.split_once(" && ")).map_or(text.as_str(), |(_, command)| command);
    Some(first_line(text, 80))
}

/// How a call went, as far as its result says so.
fn outcome(result: &Message) -> String {
    let text = result.content.trim();
    if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
        if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
            let error = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return format!("error: {}", first_line(&error, 100));
        }
        if let Some(code) = fields.get("exit_code").and_then(Value::as_i64) {
            return format!("exit {code}");
        }
    }
    let line = first_line(text, 100);
    match text.len() {
        0 => "empty".to_owned(),
        _ if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) => line,
        length if length <= 100 => line,
        length => format!("{length} bytes"),
    }
}

fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= most { line.to_owned() } else { line.chars().take(most).chain(['…']).collect() }
}

/// The messages that a test holds for, by ranges of numbers.
fn ranges(messages: &[Message], holds: impl Fn(MessageId) -> bool) -> String {
    let mut ranges: Vec<MessageRange> = Vec::new();
    let mut open = false;
    let mut count = 0;
    for message in messages {
        let holds = holds(message.id);
        if holds {
            count += 1;
            match ranges.last_mut() {
                Some(last) if open => last.last = message.id,
                _ => ranges.push(MessageRange::one(message.id)),
            }
        }
        open = holds;
    }
    match (ranges.first(), ranges.last()) {
        (Some(first), Some(last)) if ranges.len() > MOST_RANGES => {
            format!("{count} of the messages {} to {}", first.first, last.last)
        }
        _ => {
            let range = |range: &MessageRange| {
                if range.first == range.last {
                    range.first.to_string()
                } else {
                    format!("{}-{}", range.first, range.last)
                }
            };
            ranges.iter().map(range).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ruler, assistant, calls, result, user};

    fn talk() -> Vec<Message> {
        vec![
            user(1, "Fix the build. My key is ghp_0123456789abcdefghij0123456789."),
            calls(
                2,
                &[
                    ("a", "terminal", r#"{"command":"cd /a/b && cargo build"}"#),
                    ("b", "read_file", r#"{"path":"src/main.rs"}"#),
                ],
            ),
            result(3, "a", "terminal", r#"{"exit_code":101,"output":"error[E0425]"}"#),
            result(4, "b", "read_file", &"fn main() {}\n".repeat(40)),
            assistant(5, "It lacks an import."),
            user(7, "Then add it."),
            assistant(8, "Done."),
        ]
    }

    #[test]
    fn it_states_what_was_said_and_done_and_names_the_rest() {
        let text = digest(&talk(), Room { said: 500, calls: 500 }, &Ruler);
        let expected = "Messages 1 to 8, listed by rule. All of them are kept in the log.\n\n\
            What the user said, by message number:\n\
            - [1] Fix the build. My key is [REDACTED].\n\
            - [7] Then add it.\n\n\
            Tool calls:\n\
            - [2] terminal cargo build: exit 101\n\
            - [2] read_file src/main.rs: 519 bytes\n\n\
            Not listed: 5, 8.";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_newest_words_win_when_room_is_short() {
        let text = digest(&talk(), Room { said: 16, calls: 0 }, &Ruler);
        assert!(text.contains("[7] Then add it.") && !text.contains("Fix the build"), "{text}");
        assert!(text.ends_with("Not listed: 1-5, 8."), "{text}");
    }

    #[test]
    fn a_long_speech_is_cut_rather_than_left_out() {
        let talk = [user(1, &"We must not change the public interface. ".repeat(300)), assistant(2, "Good.")];
        let text = digest(&talk, Room { said: 200, calls: 0 }, &Ruler);
        assert!(text.contains("We must not change") && text.contains("characters left out"), "{text}");
        assert!(Ruler.count(&text) < 200, "{text}");
    }

    #[test]
    fn a_great_many_gaps_are_told_in_one() {
        let talk: Vec<Message> =
            (1..=100).map(|id| if id % 2 == 0 { assistant(id, "yes") } else { user(id, "and?") }).collect();
        let text = digest(&talk, Room { said: 5_000, calls: 0 }, &Ruler);
        assert!(text.ends_with("Not listed: 50 of the messages 2 to 100."), "{text}");
    }
}
