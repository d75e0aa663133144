//! A component of two kinds: a memory provider that recalls the notes which its tool stored.

use hermes_plugin::memory_provider::{Query, Recollection};
use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{Error, MemoryProvider, Plugin, Tools, documents};
use serde_json::json;

const NOTES: &str = "NOTES.md";

struct Notes;

impl Plugin for Notes {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl MemoryProvider for Notes {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let notes = documents::read(NOTES)?.map(|document| document.content).unwrap_or_default();
        Ok(notes
            .lines()
            .filter(|note| note.split_whitespace().any(|word| query.text.contains(word)))
            .map(|note| Recollection::new(note, note))
            .collect())
    }
}

impl Tools for Notes {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        });
        Ok(vec![Tool::new("note", "Takes down one line.", parameters).toolset("memory")])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: serde_json::Value = invocation.parse()?;
        let text = arguments["text"].as_str().ok_or_else(|| Error::invalid("text is missing"))?;
        documents::update(NOTES, |notes| Ok::<_, Error>((Some(format!("{notes}{text}\n")), ())))?;
        Ok(Output::text("noted"))
    }
}

hermes_plugin::export!(Notes: MemoryProvider, Tools);
