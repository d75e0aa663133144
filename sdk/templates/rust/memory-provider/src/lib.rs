//! A memory provider that stores lines of the user beginning with `remember`, and recalls those that share a word with a later
//! question.
//!
//! The notes are stored in the plugin's own document `notes.md`, which needs no permission. An instance can be dropped at any
//! time, so it keeps no notes in memory.

mod notes;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, Instance, MemoryProvider, Setup, config, documents, llm};

const NOTES: &str = "notes.md";

/// The plugin's configuration section. A test compares it with plugin.yaml.
#[config]
struct Config {
    /// A line of the user's message that begins with this word is remembered.
    #[schemars(length(min = 1))]
    #[serde(default = "keyword")]
    keyword: String,
}

fn keyword() -> String {
    "remember".to_owned()
}

struct Memory {
    config: Config,
}

impl Instance for Memory {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        if config.keyword.trim().is_empty() {
            return Err(Error::invalid("keyword is empty: give a word such as `remember`"));
        }
        Ok(())
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config })
    }
}

impl MemoryProvider for Memory {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let notes = documents::read(NOTES)?.map(|document| document.content).unwrap_or_default();
        let mut left = query.budget;
        let mut found = Vec::new();
        for note in notes::about(&notes, &query.text) {
            // The host's own estimate; needs no permission.
            let tokens = llm::count_tokens(note);
            if tokens <= left {
                left -= tokens;
                found.push(Recollection::new(note, note));
            }
        }
        Ok(found)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        let new = notes::in_text(&turn.user, &self.config.keyword);
        if new.is_empty() {
            return Ok(());
        }
        // Runs again if another session wrote in between. A turn can arrive twice, but each note is stored once.
        documents::update(NOTES, |notes| Ok((notes::added(notes, &new), ())))
    }
}

hermes_plugin::export!(Memory: MemoryProvider);

#[cfg(test)]
mod tests {
    use hermes_plugin::testing::{Host, check_manifest};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifest_describes_the_configuration() {
        // `HERMES_WRITE_CONFIG=1 cargo test` writes the section.
        check_manifest::<Memory>();
    }

    #[test]
    fn a_noted_line_is_recalled_within_the_budget() -> Result<(), Error> {
        let host = Host::new().document(NOTES, "tea at four\n");
        let mut memory: Memory = host.start(json!({ "keyword": "note" }))?;
        memory.sync_turn(&Turn::new(1, "Note: the ferry leaves at 07:45", "Noted."))?;
        let note = "the ferry leaves at 07:45";
        assert_eq!(host.document_text(NOTES), Some(format!("tea at four\n{note}\n")));
        assert_eq!(memory.recall(&Query::new("When does the ferry leave?", 100))?, [Recollection::new(note, note)]);
        assert!(memory.recall(&Query::new("When does the ferry leave?", 1))?.is_empty());
        Ok(())
    }

    #[test]
    fn an_empty_keyword_is_refused() {
        assert!(
            Host::new()
                .start::<Memory>(json!({ "keyword": " " }))
                .is_err_and(|error| error.message.contains("keyword"))
        );
    }
}
