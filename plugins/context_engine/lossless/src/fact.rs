//! What a digest may say of messages: a line for what the user said, for each call and its outcome, and for what the
//! assistant said, each under the number of its message.
//!
//! A fact is a function of its message and the results that answer it, and of nothing else.

use std::collections::HashMap;

use hermes_plugin::{Message, MessageId, Role, ToolCall};
use serde::{Deserialize, Serialize};

use crate::clip::{ends, line};
use crate::deed::{Deed, outcome};
use crate::ground::fnv;

/// Bytes of a user's message that are kept beside the log.
const SAID: usize = 24_000;
/// Characters of a reply, of words before a call, of a call.
const REPLY: usize = 320;
const WORDS: usize = 160;
const CALL: usize = 300;
/// Names of one message.
const NAMES: usize = 12;

/// What a fact is about: what counts more stands lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Identifiers, paths and addresses that the assistant spoke of.
    Names,
    /// A call that looks.
    Look,
    /// What the assistant said before a call.
    Words,
    /// What the assistant answered.
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

/// One line, or what the user said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) id: MessageId,
    /// Among those of its message.
    pub(crate) n: u32,
    /// The first message of its group.
    pub(crate) group: MessageId,
    pub(crate) kind: Kind,
    /// The same for calls that do the same: the newest of them is told.
    pub(crate) same: u64,
    pub(crate) text: String,
}

/// A call with its result.
pub(crate) struct Done<'a> {
    pub(crate) call: &'a ToolCall,
    /// The message that makes it.
    pub(crate) caller: MessageId,
    pub(crate) deed: &'a Deed,
    pub(crate) result: &'a Message,
    pub(crate) failed: bool,
    /// What the result says of it, on one line.
    pub(crate) outcome: &'a str,
    /// As in its fact.
    pub(crate) same: u64,
}

struct Open {
    n: u32,
    caller: MessageId,
    group: MessageId,
    call: ToolCall,
    deed: Deed,
}

/// Reads messages in their order.
#[derive(Default)]
pub(crate) struct Reader {
    open: HashMap<String, Open>,
}

impl Reader {
    /// The facts that a message completes; `done` is told of the call that it answers.
    pub(crate) fn read(&mut self, message: &Message, group: MessageId, done: impl FnOnce(&Done<'_>)) -> Vec<Fact> {
        let mut facts = if message.role == Role::Tool { Vec::new() } else { self.close() };
        match message.role {
            Role::User => {
                let text = message.content.trim();
                let images = if message.images > 0 { format!(" [{} images]", message.images) } else { String::new() };
                let text = ends(text, SAID, &format!("#{}", message.id)) + &images;
                if !text.is_empty() {
                    facts.push(Fact { id: message.id, n: 0, group, kind: Kind::User, same: 0, text });
                }
            }
            Role::Assistant => {
                let (kind, most) =
                    if message.tool_calls.is_empty() { (Kind::Reply, REPLY) } else { (Kind::Words, WORDS) };
                let said = line(&message.content, most);
                if !said.is_empty() {
                    let text = format!("assistant: {said}");
                    facts.push(Fact { id: message.id, n: 0, group, kind, same: 0, text });
                    let names = names(&message.content, &said);
                    if !names.is_empty() {
                        let text = names.join(", ");
                        let n = u32::MAX >> 1;
                        facts.push(Fact { id: message.id, n, group, kind: Kind::Names, same: 0, text });
                    }
                }
                for (n, call) in (1..).zip(&message.tool_calls) {
                    let open =
                        Open { n, caller: message.id, group, call: call.clone(), deed: Deed::of(&call.arguments) };
                    self.open.insert(call.id.clone(), open);
                }
            }
            Role::Tool => {
                let open = message.tool_call_id.as_ref().and_then(|call| self.open.remove(call));
                if let Some(open) = open {
                    let outcome = outcome(&open.deed, &message.content);
                    let Open { n, caller, call, deed, .. } = &open;
                    let told = told(call, deed);
                    let same = fnv(told.bytes());
                    let (failed, text) = (outcome.failed, outcome.text.as_str());
                    done(&Done { call, caller: *caller, deed, result: message, failed, outcome: text, same });
                    let kind = match deed {
                        _ if outcome.failed => Kind::Failure,
                        _ if deed.changes_something() => Kind::Change,
                        Deed::Command(_) => Kind::Command,
                        _ => Kind::Look,
                    };
                    let text = format!("{told} → #{} {}", message.id, outcome.text);
                    facts.push(Fact { id: *caller, n: *n, group: open.group, kind, same, text });
                }
            }
            Role::System => {}
        }
        facts
    }

    /// The facts of calls that nothing answered.
    pub(crate) fn close(&mut self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = self
            .open
            .drain()
            .map(|(_, open)| {
                let told = told(&open.call, &open.deed);
                let text = format!("{told} → no result");
                Fact {
                    id: open.caller,
                    n: open.n,
                    group: open.group,
                    kind: Kind::Failure,
                    same: fnv(told.bytes()),
                    text,
                }
            })
            .collect();
        facts.sort_unstable_by_key(|fact| (fact.id, fact.n));
        facts
    }
}

/// The tool and what it was asked: word for word where that is short.
fn told(call: &ToolCall, deed: &Deed) -> String {
    let name = line(&call.name, 64);
    let arguments = call.arguments.trim();
    if arguments.chars().count() <= CALL && !arguments.contains(crate::clip::is_break) {
        return format!("{name} {arguments}");
    }
    let about = match deed {
        Deed::Read { path, .. } | Deed::Write { path, .. } | Deed::Edit { path, .. } => line(path, CALL),
        Deed::Command(command) => line(command, CALL),
        Deed::Other(Some(about)) => line(about, CALL),
        Deed::Other(None) => line(arguments, CALL),
    };
    let size = match deed {
        Deed::Write { content, .. } => format!(" ({} lines)", content.lines().count()),
        Deed::Edit { changes, .. } => format!(" ({} changes)", changes.len()),
        _ => String::new(),
    };
    format!("{name} {about}{size}")
}

/// Words of a text that look like identifiers, paths or addresses and that another text lacks.
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
    fn every_message_leaves_what_matters_of_it() {
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
    fn long_arguments_are_told_by_what_they_are_about() {
        let content = "line\\n".repeat(400);
        let arguments = format!(r#"{{"path":"src/a.rs","content":"{content}"}}"#);
        let facts = read(&[calls(2, &[("a", "write", &arguments)]), result(3, "a", "write", "ok")]);
        assert_eq!(facts[0].2, "write src/a.rs (400 lines) → #3 done");
    }

    #[test]
    fn a_call_that_nothing_answers_is_told_once_the_talk_goes_on() {
        let facts = read(&[calls(2, &[("a", "bash", r#"{"command":"sleep 9"}"#)]), user(3, "stop")]);
        assert_eq!(facts[0].2, r#"bash {"command":"sleep 9"} → no result"#);
    }

    #[test]
    fn names_are_those_that_the_line_lacks() {
        let long = format!("{} then `read_page` in host/store and https://example.org/x, v1.2", "word ".repeat(100));
        let facts = read(&[assistant(1, &long)]);
        assert_eq!(facts[1].1, Kind::Names);
        assert_eq!(facts[1].2, "read_page, host/store, https://example.org/x, v1.2");
    }
}
