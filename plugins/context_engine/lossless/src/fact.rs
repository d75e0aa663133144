//! Facts: one line for each user message, tool call with its outcome, and reply, each with its message number.
//!
//! A fact depends only on its message and the results that answer it.

use std::collections::HashMap;

use hermes_plugin::{Message, MessageId, Role, ToolCall};
use serde::{Deserialize, Serialize};

use crate::action::{Action, outcome};
use crate::clip::{ends, line};
use hermes_guest_engine::{fnv, parts};

/// Bytes kept of a user message.
const SAID: usize = 24_000;
/// Characters kept of a reply, of words before a call, and of a call.
const REPLY: usize = 320;
const WORDS: usize = 160;
const CALL: usize = 300;
/// Names kept of one message.
const NAMES: usize = 12;

/// Kinds of facts, least important first. The names are part of the stored format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Identifiers, paths and addresses that the assistant mentioned.
    Names,
    /// A call that only reads.
    Look,
    /// The assistant's words before a call.
    Words,
    /// The assistant's answer.
    Reply,
    Command,
    /// A call that changes something.
    Change,
    /// A call that failed.
    Failure,
    User,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] =
        [Self::Names, Self::Look, Self::Words, Self::Reply, Self::Command, Self::Change, Self::Failure, Self::User];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// One line, or a user message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) id: MessageId,
    /// Position among the facts of its message.
    pub(crate) n: u32,
    /// The first message of its group.
    pub(crate) group: MessageId,
    pub(crate) kind: Kind,
    /// Equal for calls that do the same; only the newest of them is shown.
    pub(crate) same: u64,
    pub(crate) text: String,
}

/// A completed call: the call and its result.
pub(crate) struct CompletedCall<'a> {
    pub(crate) call: &'a ToolCall,
    /// The message with the call.
    pub(crate) caller: MessageId,
    pub(crate) action: &'a Action,
    pub(crate) result: &'a Message,
    pub(crate) failed: bool,
    /// Summary of the result on one line.
    pub(crate) outcome: &'a str,
    /// Equal for calls that do the same; see `Fact::same`.
    pub(crate) same: u64,
}

struct PendingCall {
    n: u32,
    caller: MessageId,
    group: MessageId,
    call: ToolCall,
    action: Action,
}

/// Reads messages in order.
#[derive(Default)]
pub(crate) struct Reader {
    open: HashMap<String, PendingCall>,
}

impl Reader {
    /// The facts that this message completes. `done` receives the call that the message answers.
    pub(crate) fn read(
        &mut self,
        message: &Message,
        group: MessageId,
        done: impl FnOnce(&CompletedCall<'_>),
    ) -> Vec<Fact> {
        let mut facts = if message.role == Role::Tool { Vec::new() } else { self.close() };
        match message.role {
            Role::User => {
                let text = message.content.trim();
                let text = ends(text, SAID, &format!("#{}", message.id));
                let text = parts::with_summary(&text, message, " ").into_owned();
                if !text.is_empty() {
                    facts.push(Fact { id: message.id, n: 0, group, kind: Kind::User, same: 0, text });
                }
            }
            Role::Assistant => {
                let (kind, most) =
                    if message.tool_calls.is_empty() { (Kind::Reply, REPLY) } else { (Kind::Words, WORDS) };
                let said = line(&message.content, most);
                let described = parts::with_summary(&said, message, " ");
                if !described.is_empty() {
                    let text = format!("assistant: {described}");
                    facts.push(Fact { id: message.id, n: 0, group, kind, same: 0, text });
                    let names = names(&message.content, &said);
                    if !names.is_empty() {
                        let text = names.join(", ");
                        let n = u32::MAX >> 1;
                        facts.push(Fact { id: message.id, n, group, kind: Kind::Names, same: 0, text });
                    }
                }
                for (n, call) in (1..).zip(&message.tool_calls) {
                    let open = PendingCall {
                        n,
                        caller: message.id,
                        group,
                        call: call.clone(),
                        action: Action::of(&call.arguments),
                    };
                    self.open.insert(call.id.clone(), open);
                }
            }
            Role::Tool => {
                let open = message.tool_call_id.as_ref().and_then(|call| self.open.remove(call));
                if let Some(open) = open {
                    let outcome = outcome(&open.action, &message.content);
                    let PendingCall { n, caller, call, action, .. } = &open;
                    let description = describe(call, action);
                    let same = fnv(description.bytes());
                    let (failed, text) = (outcome.failed, outcome.text.as_str());
                    done(&CompletedCall {
                        call,
                        caller: *caller,
                        action,
                        result: message,
                        failed,
                        outcome: text,
                        same,
                    });
                    let kind = match action {
                        _ if outcome.failed => Kind::Failure,
                        _ if action.changes_something() => Kind::Change,
                        Action::Command(_) => Kind::Command,
                        _ => Kind::Look,
                    };
                    let outcome = parts::with_summary(&outcome.text, message, " ");
                    let text = format!("{description} → #{} {outcome}", message.id);
                    facts.push(Fact { id: *caller, n: *n, group: open.group, kind, same, text });
                }
            }
            Role::System | Role::Other(_) => {}
        }
        facts
    }

    /// The facts of calls that got no result.
    pub(crate) fn close(&mut self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = self
            .open
            .drain()
            .map(|(_, open)| {
                let description = describe(&open.call, &open.action);
                let text = format!("{description} → no result");
                Fact {
                    id: open.caller,
                    n: open.n,
                    group: open.group,
                    kind: Kind::Failure,
                    same: fnv(description.bytes()),
                    text,
                }
            })
            .collect();
        facts.sort_unstable_by_key(|fact| (fact.id, fact.n));
        facts
    }
}

/// The tool and its arguments: verbatim if short, else only the most telling one.
fn describe(call: &ToolCall, action: &Action) -> String {
    let name = line(&call.name, 64);
    let arguments = call.arguments.trim();
    if arguments.chars().count() <= CALL && !arguments.contains(crate::clip::is_break) {
        return format!("{name} {arguments}");
    }
    let about = match action {
        Action::Read { path, .. } | Action::Write { path, .. } | Action::Edit { path, .. } => line(path, CALL),
        Action::Command(command) => line(command, CALL),
        Action::Other(Some(about)) => line(about, CALL),
        Action::Other(None) => line(arguments, CALL),
    };
    let size = match action {
        Action::Write { content, .. } => format!(" ({} lines)", content.lines().count()),
        Action::Edit { changes, .. } => format!(" ({} changes)", changes.len()),
        _ => String::new(),
    };
    format!("{name} {about}{size}")
}

/// Words in `text` that look like identifiers, paths or addresses and do not occur in `but`.
fn names(text: &str, but: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in text.split(|sign: char| sign.is_whitespace() || "`\"'()[]{}<>,;|*".contains(sign)) {
        let word = word.trim_matches(|sign: char| ".:!?#-=".contains(sign));
        if (4..=120).contains(&word.len()) && is_name(word) && !but.contains(word) && !names.iter().any(|n| n == word) {
            names.push(word.to_owned());
            if names.len() == NAMES {
                break;
            }
        }
    }
    names
}

fn is_name(word: &str) -> bool {
    if !word.is_ascii() || !word.bytes().any(|sign| sign.is_ascii_alphabetic()) {
        return false;
    }
    let inner = |sign: &str| word.find(sign).is_some_and(|at| at > 0 && at + sign.len() < word.len());
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let cased = word.bytes().skip(1).any(|sign| sign.is_ascii_uppercase())
        && word.bytes().any(|sign| sign.is_ascii_lowercase());
    inner("_") || inner("::") || inner("/") || inner(".") || inner("://") || cased || (digits > 0 && word.len() >= 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assistant, calls, result, user};

    fn read(messages: &[Message]) -> Vec<(MessageId, Kind, String)> {
        let mut reader = Reader::default();
        let mut facts: Vec<Fact> =
            messages.iter().flat_map(|message| reader.read(message, message.id, |_| {})).collect();
        facts.extend(reader.close());
        facts.sort_by_key(|fact| (fact.id, fact.n));
        facts.into_iter().map(|fact| (fact.id, fact.kind, fact.text)).collect()
    }

    #[test]
    fn every_message_leaves_its_important_facts() {
        let facts = read(&[
            user(1, "Fix the build.\nNo new dependencies."),
            calls(2, &[("a", "bash", r#"{"command":"cargo build"}"#), ("b", "read", r#"{"path":"src/main.rs"}"#)]),
            result(3, "a", "bash", r#"{"exit_code":101,"output":"error[E0425]: no"}"#),
            result(4, "b", "read", "fn main() {}\n"),
            assistant(5, "It lacks an import. See src/lib.rs and run_all."),
        ]);
        let expected = [
            (1, Kind::User, "Fix the build.\nNo new dependencies."),
            (2, Kind::Failure, r#"bash {"command":"cargo build"} → #3 exit 101: `error[E0425]: no`"#),
            (2, Kind::Look, r#"read {"path":"src/main.rs"} → #4 1 lines, 12 bytes"#),
            (5, Kind::Reply, "assistant: It lacks an import. See src/lib.rs and run_all."),
        ];
        assert_eq!(facts, expected.map(|(id, kind, text)| (id, kind, text.to_owned())));
    }

    #[test]
    fn long_arguments_are_reduced_to_their_subject() {
        let content = "line\\n".repeat(400);
        let arguments = format!(r#"{{"path":"src/a.rs","content":"{content}"}}"#);
        let facts = read(&[calls(2, &[("a", "write", &arguments)]), result(3, "a", "write", "ok")]);
        assert_eq!(facts[0].2, "write src/a.rs (400 lines) → #3 done");
    }

    #[test]
    fn an_unanswered_call_is_reported_when_the_conversation_continues() {
        let facts = read(&[calls(2, &[("a", "bash", r#"{"command":"sleep 9"}"#)]), user(3, "stop")]);
        assert_eq!(facts[0].2, r#"bash {"command":"sleep 9"} → no result"#);
    }

    #[test]
    fn names_are_those_missing_from_the_shown_line() {
        let long = format!("{} then `read_page` in host/store and https://example.org/x, v1.2", "word ".repeat(100));
        let facts = read(&[assistant(1, &long)]);
        assert_eq!(facts[1].1, Kind::Names);
        assert_eq!(facts[1].2, "read_page, host/store, https://example.org/x, v1.2");
    }
}
