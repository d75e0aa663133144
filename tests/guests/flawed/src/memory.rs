//! A memory provider that stores the user's messages, one per line, with possible flaws.

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, MemoryEvents, MemoryProvider, MessageRange, documents, llm};

use crate::Flawed;

const NOTES: &str = "notes.md";

fn notes() -> Result<String, Error> {
    Ok(documents::read(NOTES)?.map(|document| document.content).unwrap_or_default())
}

impl MemoryProvider for Flawed {
    fn system_prompt(&mut self) -> Result<String, Error> {
        self.asked += 1;
        Ok(if self.has("prompt-counts") { format!("Asked {} times.", self.asked) } else { "I remember.".to_owned() })
    }

    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let mut left = query.budget;
        let mut found = Vec::new();
        for note in notes()?.lines() {
            let tokens = llm::count_tokens(note);
            if tokens <= left || self.has("over-budget") {
                left = left.saturating_sub(tokens);
                let key = if self.has("one-key") { "note" } else { note };
                found.push(Recollection::new(key, note));
            }
        }
        Ok(found)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        let note = format!("{}: {}", turn.number, turn.user.chars().take(200).collect::<String>().replace('\n', " "));
        documents::update(NOTES, |notes| {
            if notes.lines().any(|known| known == note) && !self.has("takes-twice") {
                return Ok((None, ()));
            }
            Ok::<_, Error>((Some(format!("{notes}{note}\n")), ()))
        })
    }
}

impl MemoryEvents for Flawed {
    fn before_compact(&mut self, _: MessageRange) -> Result<String, Error> {
        notes()
    }
}
