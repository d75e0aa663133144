//! A memory provider that writes each turn on a line of the document `turns.md`, and fails on demand.
//!
//! `sync` of its configuration says what `sync-turn` does: `ok`; an error kind such as `unavailable`; `panic`; `slow`, which takes
//! a minute. With `only`, it does so for turns whose user says that word, and stores all others. `recall` takes `recall_ms`
//! milliseconds and returns what `memories` of the configuration lists, with the text as the key unless `key` is given.

use std::time::Duration;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, ErrorKind, MemoryProvider, Plugin, Session, Start, documents};
use serde::Deserialize;

const TURNS: &str = "turns.md";
const MINUTE: Duration = Duration::from_secs(60);

/// The plugin.
pub struct Scribe {
    config: Config,
    session: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    sync: String,
    #[serde(default)]
    only: Option<String>,
    #[serde(default)]
    recall_ms: u64,
    #[serde(default)]
    memories: Vec<String>,
    #[serde(default)]
    key: Option<String>,
}

impl Plugin for Scribe {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self { config: serde_json::from_str(config)?, session: String::new() })
    }

    fn session_start(&mut self, session: &Session, _: &Start) -> Result<(), Error> {
        self.session.clone_from(&session.id);
        Ok(())
    }
}

impl MemoryProvider for Scribe {
    fn recall(&mut self, _: &Query) -> Result<Vec<Recollection>, Error> {
        std::thread::sleep(Duration::from_millis(self.config.recall_ms));
        let recollection =
            |text: &String| Recollection::new(self.config.key.clone().unwrap_or_else(|| text.clone()), text.clone());
        Ok(self.config.memories.iter().map(recollection).collect())
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        if self.config.only.as_ref().is_none_or(|word| turn.user.contains(word.as_str())) {
            self.misbehave()?;
        }
        let line = format!("{} {}: {} => {}\n", self.session, turn.number, turn.user, turn.assistant);
        documents::update(TURNS, |turns| Ok::<_, Error>((Some(format!("{turns}{line}")), ())))
    }
}

impl Scribe {
    fn misbehave(&self) -> Result<(), Error> {
        let kind = match self.config.sync.as_str() {
            "" | "ok" => return Ok(()),
            "panic" => panic!("the ink is dry"),
            "slow" => {
                std::thread::sleep(MINUTE);
                return Ok(());
            }
            "unavailable" => ErrorKind::Unavailable,
            "denied" => ErrorKind::Denied,
            "invalid-input" => ErrorKind::InvalidInput,
            _ => ErrorKind::Failed,
        };
        Err(Error::new(kind, "the archive is closed"))
    }
}

hermes_plugin::export!(Scribe: MemoryProvider);
