//! What the model reads about its request. Successes and errors are JSON objects of the same form.

use hermes_notes::{Done, Notes, Refusal, Rules, Target, thousands, usage};
use hermes_plugin::Error;
use serde_json::{Value, json};

use crate::advice;
use crate::failure::failure;
use crate::request::Request;

/// Applies a request to a document, all of it or nothing.
pub(crate) fn apply(target: Target, text: &str, request: &Request, rules: &Rules) -> Result<(Notes, Vec<Done>), Error> {
    let before = Notes::parse(text);
    let applied = match request.changes.as_slice() {
        [change] => {
            before.apply(change, rules).map(|(notes, done)| (notes, vec![done])).map_err(|refusal| (0, refusal))
        }
        changes => before.apply_all(changes, rules),
    };
    applied.map_err(|(at, refusal)| {
        let failed = (request.is_batch && !matches!(refusal, Refusal::OverLimit { .. })).then_some(at);
        explain(target, &before, rules.limit, refusal, failed, request.is_batch)
    })
}

/// Says what was done, without the entries that stayed.
pub(crate) fn success(target: Target, notes: &Notes, request: &Request, done: &[Done], limit: usize) -> Value {
    let message = match done {
        _ if request.is_batch => match request.changes.len() {
            1 => "applied 1 operation".to_owned(),
            count => format!("applied {count} operations"),
        },
        [Done::Duplicate] => "this entry already exists; nothing was added".to_owned(),
        [Done::Replaced(_)] => "entry replaced".to_owned(),
        [Done::Removed(_)] => "entry removed".to_owned(),
        _ => "entry added".to_owned(),
    };
    let mut answer = json!({
        "success": true,
        "done": true,
        "target": target.name(),
        "message": message,
        "usage": usage(notes.chars(), limit),
        "entry_count": notes.entries().len(),
    });
    // Return old entries in full, so that the model can undo a mistake.
    let replaced: Vec<&String> =
        done.iter().filter_map(|done| if let Done::Replaced(old) = done { Some(old) } else { None }).collect();
    let removed: Vec<&String> =
        done.iter().filter_map(|done| if let Done::Removed(old) = done { Some(old) } else { None }).collect();
    for (one, several, old) in
        [("replaced_entry", "replaced_entries", replaced), ("removed_entry", "removed_entries", removed)]
    {
        match old.as_slice() {
            [] => {}
            [old] if !request.is_batch => answer[one] = json!(old),
            old => answer[several] = json!(old),
        }
    }
    if let Some(advice) = advice(target, notes.chars(), limit) {
        answer["consolidate"] = advice;
    }
    answer
}

fn explain(
    target: Target,
    notes: &Notes,
    limit: usize,
    refusal: Refusal,
    failed: Option<usize>,
    is_batch: bool,
) -> Error {
    let used = format!("{}/{}", thousands(notes.chars()), thousands(limit));
    let mut details = json!({});
    let shows_entries = is_batch || !matches!(refusal, Refusal::NoContent | Refusal::Ambiguous { .. });
    let (code, mut error) = match refusal {
        Refusal::NoContent => {
            ("content-required", "content is empty; to delete an entry use the action remove".to_owned())
        }
        Refusal::Ambiguous { old_text, previews } => {
            let error =
                format!("{} entries contain {old_text:?}; give more text of the intended entry", previews.len());
            details["matches"] = json!(previews);
            ("ambiguous", error)
        }
        Refusal::NoOldText => {
            ("old-text-required", "old_text is empty; give some text of the intended entry".to_owned())
        }
        Refusal::NoMatch { old_text } => ("no-match", format!("no entry contains {old_text:?}")),
        Refusal::OverLimit { content, would_be } => (
            "over-limit",
            format!(
                "{} is at {used} characters, and with {} of {} it would be at {}. Nothing was written: merge, shorten \
                 or remove entries first, then try again",
                target.name(),
                if is_batch { "these entries" } else { "this entry" },
                thousands(content),
                thousands(would_be),
            ),
        ),
    };
    if let Some(at) = failed {
        error = format!("operation {}: {error}; no operation was applied", at + 1);
        details["failed_operation"] = json!(at + 1);
    }
    details["error"] = json!(error);
    if shows_entries {
        details["usage"] = json!(used);
        details["current_entries"] = json!(notes.entries());
    }
    failure(code, details)
}
