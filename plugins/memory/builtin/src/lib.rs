//! Long-term memory in two short texts, `MEMORY.md` and `USER.md`. Both are part of the system prompt. The model edits
//! them with the tool `memory`, and the user can edit them at any time.
//!
//! All writes go through `documents`, so concurrent sessions do not overwrite each other. Changes appear in the prompt of
//! the next session, because the prompt of a running session is frozen.

mod notes;

use std::num::NonZeroUsize;

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Instance, MemoryProvider, Setup, Tools, documents, log};
use serde::Deserialize;
use serde_json::{Value, json};

use notes::{Change, Done, Notes, Refusal};

struct Builtin {
    limits: Limits,
}

/// Sizes in characters.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Limits {
    #[serde(rename = "memory_char_limit", default = "memory_limit")]
    memory: NonZeroUsize,
    #[serde(rename = "user_char_limit", default = "user_limit")]
    user: NonZeroUsize,
}

fn memory_limit() -> NonZeroUsize {
    const { NonZeroUsize::new(2_200).expect("not zero") }
}

fn user_limit() -> NonZeroUsize {
    const { NonZeroUsize::new(1_375).expect("not zero") }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    Memory,
    User,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    fn document(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY (your notes)",
            Self::User => "USER PROFILE (who the user is)",
        }
    }
}

impl Limits {
    fn of(self, target: Target) -> usize {
        match target {
            Target::Memory => self.memory.get(),
            Target::User => self.user.get(),
        }
    }
}

impl Instance for Builtin {
    type Config = Limits;

    fn new(setup: Setup<Limits>) -> Result<Self, Error> {
        Ok(Self { limits: setup.config })
    }
}

impl MemoryProvider for Builtin {
    fn system_prompt(&mut self) -> Result<String, Error> {
        let mut blocks = Vec::new();
        for target in [Target::Memory, Target::User] {
            let limit = self.limits.of(target);
            // A read error must not look like an empty document: the `?` keeps the session's earlier text.
            let Some(document) = documents::read(target.document())? else { continue };
            let notes = Notes::parse(&document.content);
            if notes.chars() > limit {
                log::warn(format!(
                    "{} has {} characters, more than its limit of {}: the prompt contains all of it, but nothing can be added",
                    target.document(),
                    thousands(notes.chars()),
                    thousands(limit),
                ));
            }
            blocks.extend(block(target, &notes, limit));
        }
        Ok(blocks.join("\n\n"))
    }
}

impl Tools for Builtin {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let description = format!(
            "Keep notes that last beyond this conversation; they stand at its start in every later one. Save without being \
             asked what will matter again: who the user is and how they like to work (target `user`, {} characters), and \
             facts about the environment, conventions and lessons learned (target `memory`, {} characters). Not progress \
             on the task at hand, nor what can be looked up. Short entries, one fact each. `replace` and `remove` find \
             an entry by any text in it that no other entry has, and act on the whole entry.",
            thousands(self.limits.user.get()),
            thousands(self.limits.memory.get()),
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "action": { "type": "string", "enum": ["add", "replace", "remove"] },
                "target": { "type": "string", "enum": ["memory", "user"] },
                "content": { "type": "string", "description": "The entry, for add and replace." },
                "old_text": { "type": "string", "description": "Text in the entry to replace or remove." },
            },
            "required": ["action", "target"],
        });
        Ok(vec![Tool::new("memory", description, parameters).toolset("memory").effect(Effect::Writes)])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        if invocation.name != "memory" {
            return Err(invocation.unknown());
        }
        let (target, change) = read_arguments(invocation.parse()?)?;
        let limit = self.limits.of(target);
        let (answer, done) = documents::update(target.document(), |text| keep(target, text, &change, limit))?;
        let output = Output::text(answer.to_string());
        let (target, text) = (target.name(), change.text());
        Ok(match &done {
            Done::Added => output.memory_write("added", target, text, None),
            Done::Replaced(old) => output.memory_write("replaced", target, text, Some(old)),
            Done::Removed(old) => output.memory_write("removed", target, "", Some(old)),
            Done::Duplicate => output,
        })
    }
}

hermes_plugin::export!(Builtin: MemoryProvider, Tools);

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    action: String,
    target: Option<String>,
    content: Option<String>,
    old_text: Option<String>,
}

fn read_arguments(arguments: Arguments) -> Result<(Target, Change), Error> {
    let target = match arguments.target.as_deref() {
        None | Some("memory") => Target::Memory,
        Some("user") => Target::User,
        Some(other) => {
            return Err(failure(
                "invalid-target",
                json!({ "error": format!("there is no target {other:?}: use memory or user") }),
            ));
        }
    };
    let content = arguments.content.unwrap_or_default();
    let old_text = arguments.old_text.unwrap_or_default();
    let change = match arguments.action.as_str() {
        "add" => Change::Add { content },
        "replace" => Change::Replace { old_text, content },
        "remove" => Change::Remove { old_text },
        other => {
            let error = format!("there is no action {other:?}: use add, replace or remove");
            return Err(failure("unknown-action", json!({ "error": error })));
        }
    };
    Ok((target, change))
}

/// Applies a change. Returns the new text, or `None` if nothing changes; the answer for the model; and what was done.
fn keep(target: Target, text: &str, change: &Change, limit: usize) -> Result<(Option<String>, (Value, Done)), Error> {
    let before = Notes::parse(text);
    let (notes, done) = before.apply(change, limit).map_err(|refusal| explain(target, &before, limit, refusal))?;
    let message = match done {
        Done::Added => "entry added",
        Done::Duplicate => "this entry already exists; nothing was added",
        Done::Replaced(_) => "entry replaced",
        Done::Removed(_) => "entry removed",
    };
    let mut answer = json!({
        "success": true,
        "done": true,
        "target": target.name(),
        "message": message,
        "usage": usage(notes.chars(), limit),
        "entry_count": notes.entries().len(),
    });
    let new = match &done {
        Done::Duplicate => None,
        Done::Added => Some(notes.text()),
        // Return the old entry in full, so that the model can undo a mistake.
        Done::Replaced(old) => {
            answer["replaced_entry"] = json!(old);
            Some(notes.text())
        }
        Done::Removed(old) => {
            answer["removed_entry"] = json!(old);
            Some(notes.text())
        }
    };
    Ok((new, (answer, done)))
}

fn explain(target: Target, notes: &Notes, limit: usize, refusal: Refusal) -> Error {
    let used = format!("{}/{}", thousands(notes.chars()), thousands(limit));
    let (code, error) = match refusal {
        Refusal::NoContent => {
            return failure(
                "content-required",
                json!({ "error": "content is empty; to delete an entry use the action remove" }),
            );
        }
        Refusal::Ambiguous { old_text, previews } => {
            let error =
                format!("{} entries contain {old_text:?}; give more text of the intended entry", previews.len());
            return failure("ambiguous", json!({ "error": error, "matches": previews }));
        }
        Refusal::NoOldText => {
            ("old-text-required", "old_text is empty; give some text of the intended entry".to_owned())
        }
        Refusal::NoMatch { old_text } => ("no-match", format!("no entry contains {old_text:?}")),
        Refusal::OverLimit { content, would_be } => (
            "over-limit",
            format!(
                "{} is at {used} characters, and with this entry of {} it would be at {}. Nothing was written: merge, shorten \
                 or remove entries first, then try again",
                target.name(),
                thousands(content),
                thousands(would_be),
            ),
        ),
    };
    failure(code, json!({ "error": error, "usage": used, "current_entries": notes.entries() }))
}

/// An error whose message has the same JSON format as a success.
fn failure(code: &str, mut details: Value) -> Error {
    details["success"] = json!(false);
    Error::invalid(details.to_string()).with_code(code)
}

fn block(target: Target, notes: &Notes, limit: usize) -> Option<String> {
    let (title, usage) = (target.title(), usage(notes.chars(), limit));
    (!notes.entries().is_empty()).then(|| format!("{title} [{usage}]\n\n{}", notes.text()))
}

fn usage(chars: usize, limit: usize) -> String {
    let percent = (chars * 100 / limit).min(100);
    format!("{percent}% — {}/{} chars", thousands(chars), thousands(limit))
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::testing::Host;

    use super::*;

    fn call(text: &str, arguments: Value) -> Result<(Option<String>, Value), Error> {
        let (target, change) = read_arguments(serde_json::from_value(arguments).unwrap())?;
        let (text, (answer, _)) = keep(target, text, &change, 100)?;
        Ok((text, answer))
    }

    fn refused(text: &str, arguments: Value) -> (String, Value) {
        let error = call(text, arguments).unwrap_err();
        (error.code, serde_json::from_str(&error.message).unwrap())
    }

    #[test]
    fn a_success_reports_usage_without_echoing_entries() {
        let (text, answer) = call("a", json!({"action": "add", "target": "user", "content": "likes tea"})).unwrap();
        assert_eq!(text.as_deref(), Some("a\n§\nlikes tea"));
        assert_eq!(
            answer,
            json!({
                "success": true, "done": true, "target": "user", "message": "entry added",
                "usage": "13% — 13/100 chars", "entry_count": 2,
            })
        );
    }

    #[test]
    fn a_duplicate_is_a_success_that_writes_nothing() {
        let (text, answer) = call("a\n§\nb", json!({"action": "add", "target": null, "content": "b"})).unwrap();
        assert_eq!((text, &answer["success"], &answer["target"]), (None, &json!(true), &json!("memory")));
    }

    #[test]
    fn a_replaced_entry_is_returned_in_full() {
        let arguments = json!({"action": "replace", "target": "memory", "old_text": "vim", "content": "editor: helix"});
        assert_eq!(call("editor: vim, since 2009", arguments).unwrap().1["replaced_entry"], "editor: vim, since 2009");
    }

    #[test]
    fn an_over_limit_error_reports_the_limit_and_all_entries() {
        let full = "x".repeat(90);
        let (code, answer) = refused(&full, json!({"action": "add", "target": "memory", "content": "y".repeat(50)}));
        assert_eq!(
            (code.as_str(), &answer["success"], &answer["usage"]),
            ("over-limit", &json!(false), &json!("90/100"))
        );
        assert_eq!(answer["current_entries"], json!([full]));
        let error = answer["error"].as_str().unwrap();
        assert!(["90/100", "50", "143"].iter().all(|number| error.contains(number)), "{error}");
    }

    #[test]
    fn every_refusal_has_a_code_and_an_error_for_the_model() {
        let cases = [
            (json!({"action": "add", "target": "notes", "content": "x"}), "invalid-target"),
            (json!({"action": "merge", "target": "user"}), "unknown-action"),
            (json!({"action": "add", "target": "user"}), "content-required"),
            (json!({"action": "remove", "target": "user"}), "old-text-required"),
            (json!({"action": "remove", "target": "user", "old_text": "zzz"}), "no-match"),
            (json!({"action": "remove", "target": "user", "old_text": "p"}), "ambiguous"),
        ];
        for (arguments, expected) in cases {
            let (code, answer) = refused("p one\n§\np two", arguments);
            assert_eq!(code, expected);
            assert!(answer["success"] == false && answer["error"].is_string(), "{answer}");
        }
    }

    #[test]
    fn the_prompt_shows_entries_under_a_header_and_nothing_without_entries() {
        let notes = Notes::parse(&format!("a\n§\n{}", "b".repeat(260)));
        let shown = block(Target::Memory, &notes, 2_200).unwrap();
        assert!(shown.starts_with("MEMORY (your notes) [12% — 264/2,200 chars]\n\na\n§\nbbb"), "{shown}");
        assert_eq!(block(Target::User, &Notes::parse(" \n"), 1_375), None);
        assert_eq!(usage(3_000, 2_200), "100% — 3,000/2,200 chars");
    }

    #[test]
    fn limits_come_from_the_configuration() {
        let host = Host::new();
        let limits =
            |config| host.start::<Builtin>(config).map(|plugin| (plugin.limits.memory.get(), plugin.limits.user.get()));
        assert_eq!(limits(json!({})), Ok((2_200, 1_375)));
        assert_eq!(limits(json!({ "memory_char_limit": 5000, "other": 1 })), Ok((5_000, 1_375)));
        for wrong in [json!(0), json!("many")] {
            let error = limits(json!({ "user_char_limit": wrong })).unwrap_err();
            assert!(error.message.starts_with("`user_char_limit`: "), "{}", error.message);
        }
    }
}
