//! The four tools, with the names and arguments of other mem0 clients.

use hermes_guest_backend::without_fence;
use hermes_plugin::tools::{Effect, Output};
use hermes_plugin::{Error, Toolbox, arguments};
use serde_json::{Value, json};

use crate::Mem0;
use crate::memory::{Added, Memory, TEXT};

/// How long a search of a tool waits.
const SEARCH: u32 = 25_000;
/// The place that `memory-mirror` names.
const TARGET: &str = "user";

/// Searches what is remembered of the user from earlier conversations, by meaning; returns memories with their ids, best first.
/// Search before you answer what may depend on the user's preferences, plans, people or decisions. Search again with other words if
/// the question has several parts.
#[arguments]
pub(crate) struct Search {
    /// What to look for.
    query: String,
    /// Most results, up to 50; 10 if left out.
    top_k: Option<u32>,
    /// Whether the platform sorts the results once more by relevance.
    rerank: Option<bool>,
}

/// Stores one lasting fact about the user, word for word. Use it as soon as the user states a preference, a correction, a decision
/// or a personal detail that matters in later conversations, unless it is stored already.
#[arguments]
pub(crate) struct Add {
    /// The fact, understandable without this conversation.
    content: String,
}

/// Replaces the text of a memory, if the fact has changed or was wrong.
#[arguments]
pub(crate) struct Update {
    /// The id, from mem0_search.
    memory_id: String,
    /// The new text.
    text: String,
}

/// Deletes a memory, if the fact is obsolete or the user wants it forgotten.
#[arguments]
pub(crate) struct Delete {
    /// The id, from mem0_search.
    memory_id: String,
}

pub(crate) fn toolbox() -> Toolbox<Mem0> {
    Toolbox::new("memory")
        .tool("mem0_search", search)
        .effect(Effect::Reads)
        .parallel(true)
        .tool("mem0_add", add)
        .tool("mem0_update", update)
        .tool("mem0_delete", delete)
}

fn answer(value: Value) -> Output {
    Output::text(value.to_string())
}

fn missing(id: &str) -> Output {
    let id: String = id.chars().take(80).collect();
    answer(json!({ "result": format!("Memory not found: {id}. mem0_search returns the ids of memories.") }))
}

/// A text that the model wrote, without what was recalled.
fn text(name: &str, text: &str) -> Result<String, Error> {
    let text = without_fence(text);
    if text.is_empty() {
        return Err(Error::invalid(format!("`{name}` is empty: write the text")));
    }
    if text.len() > TEXT {
        return Err(Error::invalid(format!(
            "`{name}` has {} bytes, and a memory has at most {TEXT}: store the facts one by one",
            text.len()
        )));
    }
    Ok(text)
}

fn search(plugin: &mut Mem0, search: Search) -> Result<Output, Error> {
    if search.query.trim().is_empty() {
        return Err(Error::invalid("`query` is empty: say what to look for"));
    }
    let most = search.top_k.unwrap_or(10).clamp(1, 50);
    let found = plugin.store().search(&search.query, most, search.rerank.unwrap_or(plugin.rerank), SEARCH)?;
    if found.is_empty() {
        return Ok(answer(json!({ "result": "No relevant memories found." })));
    }
    let of = |memory: &Memory| {
        let score = (memory.score * 1_000.0).round() / 1_000.0;
        json!({ "id": memory.id, "memory": memory.text, "score": score })
    };
    Ok(answer(json!({ "results": found.iter().map(of).collect::<Vec<_>>(), "count": found.len() })))
}

fn add(plugin: &mut Mem0, add: Add) -> Result<Output, Error> {
    let fact = text("content", &add.content)?;
    let said = match plugin.store().add(&fact)? {
        Added::Stored(Some(id)) => json!({ "result": "Fact stored.", "id": id }),
        Added::Stored(None) => json!({ "result": "Fact stored." }),
        Added::Queued(event) => json!({ "result": "Fact queued for storage.", "event_id": event }),
        Added::Known => return Ok(answer(json!({ "result": "This fact is stored already." }))),
    };
    Ok(answer(said).memory_write("added", TARGET, &fact, None))
}

fn update(plugin: &mut Mem0, update: Update) -> Result<Output, Error> {
    let text = text("text", &update.text)?;
    let Some(before) = plugin.store().get(&update.memory_id)? else { return Ok(missing(&update.memory_id)) };
    match plugin.store().update(&before.id, &text) {
        Err(error) if error.code == "not-found" => return Ok(missing(&update.memory_id)),
        result => result?,
    }
    let said = json!({ "result": "Memory updated.", "memory_id": before.id, "previous": before.text });
    Ok(answer(said).memory_write("replaced", TARGET, &text, Some(&before.text)))
}

fn delete(plugin: &mut Mem0, delete: Delete) -> Result<Output, Error> {
    let Some(before) = plugin.store().get(&delete.memory_id)? else { return Ok(missing(&delete.memory_id)) };
    match plugin.store().delete(&before.id) {
        Err(error) if error.code == "not-found" => return Ok(missing(&delete.memory_id)),
        result => result?,
    }
    let said = json!({ "result": "Memory deleted.", "memory_id": before.id, "previous": before.text });
    Ok(answer(said).memory_write("removed", TARGET, "", Some(&before.text)))
}
