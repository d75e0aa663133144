//! Keeps what the user said in a document, and recalls what shares words with a new message.

use std::cmp::Reverse;
use std::collections::HashSet;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, Instance, MemoryProvider, MessageId, Setup, config, documents, llm};
use serde::{Deserialize, Serialize};

/// A document of the plugin's own, which needs no permission. All sessions share it.
const DIARY: &str = "diary.jsonl";

/// The section `config` in plugin.yaml describes the same key and default.
#[config]
struct Config {
    /// The number of words that a memory must share with a message.
    #[schemars(range(min = 1))]
    #[serde(default = "two")]
    shared: usize,
}

fn two() -> usize {
    2
}

struct Diary {
    config: Config,
}

/// A line of the document. Session and first message name the turn.
#[derive(Serialize, Deserialize)]
struct Entry {
    session: String,
    first: MessageId,
    text: String,
}

fn entries(diary: &str) -> Vec<Entry> {
    diary.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase).collect()
}

impl Instance for Diary {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config })
    }
}

impl MemoryProvider for Diary {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let asked = words(&query.text);
        let diary = documents::read(DIARY)?.map(|document| document.content).unwrap_or_default();
        let shared = |entry: Entry| (words(&entry.text).intersection(&asked).count(), entry);
        let mut found: Vec<_> = entries(&diary).into_iter().map(shared).collect();
        found.retain(|(shared, _)| *shared >= self.config.shared);
        found.sort_by_key(|(shared, _)| Reverse(*shared));
        let mut left = query.budget;
        found.retain(|(_, entry)| {
            let tokens = llm::count_tokens(&entry.text);
            let fits = tokens <= left;
            left -= if fits { tokens } else { 0 };
            fits
        });
        let recollection = |entry: Entry| Recollection::new(format!("{}:{}", entry.session, entry.first), entry.text);
        Ok(found.into_iter().map(|(_, entry)| recollection(entry)).collect())
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        // The function runs again if another session wrote in between.
        documents::update(DIARY, |diary| {
            let mut entries = entries(diary);
            let is_turn = |entry: &Entry| entry.session == turn.session_id && entry.first == turn.messages.first;
            if turn.user.is_empty() || entries.iter().any(is_turn) {
                return Ok((None, ()));
            }
            let text = turn.user.chars().take(500).collect();
            entries.push(Entry { session: turn.session_id.clone(), first: turn.messages.first, text });
            let newest = &entries[entries.len().saturating_sub(1_000)..];
            let lines = newest.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            Ok((Some(lines.join("\n")), ()))
        })
    }
}

hermes_plugin::export!(Diary: MemoryProvider);
