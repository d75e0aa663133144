//! A memory: lines of the user that begin with `remember` are kept, and come back when a later question shares a word with
//! them.
//!
//! The notes lie in a document of the plugin's own, `notes.md`, which needs no permission. An instance may be dropped at
//! any time, so nothing is kept in memory.

mod notes;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, MemoryProvider, Plugin, documents, llm};
use serde::Deserialize;

const NOTES: &str = "notes.md";

/// The plugin's section of the user's configuration; the same keys and defaults stand in plugin.yaml.
#[derive(Deserialize)]
#[serde(default)]
struct Config {
    keyword: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { keyword: "remember".to_owned() }
    }
}

struct Memory {
    config: Config,
}

impl Plugin for Memory {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Config = serde_json::from_str(config)?;
        if config.keyword.trim().is_empty() {
            return Err(Error::invalid("keyword is empty: give a word such as `remember`"));
        }
        Ok(Self { config })
    }
}

impl MemoryProvider for Memory {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let notes = documents::read(NOTES)?.map(|document| document.content).unwrap_or_default();
        let mut left = query.budget;
        let mut found = Vec::new();
        for note in notes::about(&notes, &query.text) {
            // Estimated as the host does it; needs no permission.
            let tokens = llm::count_tokens(note);
            if tokens <= left {
                left -= tokens;
                found.push(Recollection { key: note.to_owned(), text: note.to_owned() });
            }
        }
        Ok(found)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        let new = notes::in_text(&turn.user, &self.config.keyword);
        if new.is_empty() {
            return Ok(());
        }
        // Starts again where another session wrote meanwhile. A turn may come twice, and is kept once.
        documents::update(NOTES, |notes| Ok((notes::added(notes, &new), ())))
    }
}

hermes_plugin::export!(Memory: MemoryProvider);
