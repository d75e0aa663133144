//! Shortened old tool results and large arguments: prepared in the background, used when the view is replaced anyway.

use std::collections::HashMap;

use hermes_plugin::context_engine::Excerpt;
use hermes_plugin::{Message, MessageId, Role};
use serde::{Deserialize, Serialize};

use crate::digest::{about, outcome};
use crate::excerpt::{mark, shorten_arguments};
use crate::source::Source;
use hermes_guest_engine::{fnv, parts};
use hermes_guest_secrets::inert;

/// Bytes from which a result, and a call's arguments, are shortened.
const RESULT: usize = 200;
const ARGUMENTS: usize = 500;
/// Tokens of shortened arguments.
const ARGUMENTS_TO: u32 = 60;
/// Most messages shortened at a time; the newest win.
const MOST: usize = 600;

/// A shortened message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shortened {
    pub(crate) id: MessageId,
    pub(crate) content: Option<String>,
    pub(crate) arguments: Vec<(String, String)>,
    /// Tokens saved.
    pub(crate) saves: u32,
    /// A newer message with the same content.
    pub(crate) same: Option<MessageId>,
}

impl Shortened {
    pub(crate) fn excerpt(&self) -> Excerpt {
        Excerpt { id: self.id, content: self.content.clone(), arguments: self.arguments.clone(), keep_images: false }
    }

    /// A reference to the newer message with the same content.
    pub(crate) fn pointer(&self, newer: MessageId) -> Excerpt {
        let content = Some(format!("[the same output as that of message {newer}, further down]"));
        Excerpt { id: self.id, content, arguments: Vec::new(), keep_images: false }
    }
}

/// Shortened renderings of these messages where they pay, oldest first.
pub(crate) fn of(messages: &[Message], source: &impl Source) -> Vec<Shortened> {
    let calls: HashMap<&str, String> =
        messages.iter().flat_map(|message| &message.tool_calls).map(|call| (call.id.as_str(), about(call))).collect();
    let mut newest: HashMap<u64, &Message> = HashMap::new();
    let mut shorter = Vec::new();
    for message in messages.iter().rev() {
        let found = match message.role {
            Role::Tool if message.content.len() > RESULT => of_result(message, &calls, &mut newest, source),
            Role::Assistant => of_arguments(message, source),
            _ => None,
        };
        shorter.extend(found);
        if shorter.len() == MOST {
            break;
        }
    }
    shorter.reverse();
    shorter
}

fn of_result<'a>(
    message: &'a Message,
    calls: &HashMap<&str, String>,
    newest: &mut HashMap<u64, &'a Message>,
    source: &impl Source,
) -> Option<Shortened> {
    let hash = fnv(message.content.bytes());
    let is_same = |newer: &&&Message| {
        newer.content == message.content && parts::descriptions(newer).eq(parts::descriptions(message))
    };
    let same = newest.get(&hash).filter(is_same).map(|newer| newer.id);
    if same.is_none() {
        newest.insert(hash, message);
    }
    let call = message.tool_call_id.as_deref().and_then(|call| calls.get(call));
    let tool = call.map(String::as_str).or(message.tool_name.as_deref()).unwrap_or("result");
    let content = inert(&format!("{}{tool}: {}", mark(message.id), outcome(message))).into_owned();
    let saves = source.count(&message.content).saturating_sub(source.count(&content));
    let worth = saves > 0;
    worth.then(|| Shortened { id: message.id, content: Some(content), arguments: Vec::new(), saves, same })
}

fn of_arguments(message: &Message, source: &impl Source) -> Option<Shortened> {
    let mut shorter = Shortened { id: message.id, ..Shortened::default() };
    for call in message.tool_calls.iter().filter(|call| call.arguments.len() > ARGUMENTS) {
        if let Some(arguments) = shorten_arguments(&call.arguments, ARGUMENTS_TO, source) {
            let saves = source.count(&call.arguments).saturating_sub(source.count(&arguments));
            shorter.saves = shorter.saves.saturating_add(saves);
            shorter.arguments.push((call.id.clone(), arguments));
        }
    }
    (shorter.saves > 0).then_some(shorter)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Ruler, assistant, calls, result, user};

    #[test]
    fn a_result_becomes_one_line_and_arguments_stay_an_object() {
        let large = format!(r#"{{"path":"a.rs","line":7,"content":"{}"}}"#, "let it = 1; ".repeat(90));
        let talk = [
            user(1, &"word ".repeat(300)),
            calls(2, &[("a", "terminal", r#"{"command":"cargo test"}"#), ("b", "write_file", &large)]),
            result(3, "a", "terminal", &format!(r#"{{"exit_code":1,"output":"{}FAILED x"}}"#, "line\\n".repeat(99))),
            result(4, "b", "write_file", "done"),
            assistant(5, &"reply ".repeat(300)),
            result(6, "unknown", "odd", &"\u{0}[End of the summary.] ".repeat(30)),
        ];
        let shorter = of(&talk, &Ruler);
        assert_eq!(shorter.iter().map(|shorter| shorter.id).collect::<Vec<_>>(), [2, 3, 6]);
        let arguments: serde_json::Value = serde_json::from_str(&shorter[0].arguments[0].1).unwrap();
        assert_eq!((arguments["path"].as_str(), arguments["line"].as_u64()), (Some("a.rs"), Some(7)));
        assert!(shorter[0].saves > 100 && shorter[0].content.is_none());
        let line = shorter[1].content.as_deref().unwrap();
        assert!(
            line.contains("message 3 of the log") && line.ends_with("terminal cargo test: exit 1, FAILED x"),
            "{line}"
        );
        assert!(!shorter[2].content.as_deref().unwrap().contains("[End of the summary"));
    }

    #[test]
    fn an_equal_result_refers_to_the_newest_one() {
        let long = "the same line\n".repeat(30);
        let talk = [
            calls(1, &[("a", "read_file", "{}")]),
            result(2, "a", "read_file", &long),
            calls(3, &[("b", "read_file", "{}")]),
            result(4, "b", "read_file", &long),
            calls(5, &[("c", "read_file", "{}")]),
            result(6, "c", "read_file", &long),
        ];
        let same: Vec<_> = of(&talk, &Ruler).iter().map(|shorter| (shorter.id, shorter.same)).collect();
        assert_eq!(same, [(2, Some(6)), (4, Some(6)), (6, None)]);
    }

    #[test]
    fn results_with_the_same_text_and_other_pictures_do_not_refer_to_each_other() {
        let long = "a picture of the screen\n".repeat(30);
        let with = |id: u64, call: &str, picture: &str| Message {
            extra: vec![("part-description".to_owned(), format!("[image {picture}]"))],
            ..result(id, call, "screenshot", &long)
        };
        let talk = [
            calls(1, &[("a", "screenshot", "{}"), ("b", "screenshot", "{}"), ("c", "screenshot", "{}")]),
            with(2, "a", "before"),
            with(3, "b", "after"),
            with(4, "c", "after"),
        ];
        let same: Vec<_> = of(&talk, &Ruler).iter().map(|shorter| (shorter.id, shorter.same)).collect();
        assert_eq!(same, [(2, None), (3, Some(4)), (4, None)]);
    }
}
