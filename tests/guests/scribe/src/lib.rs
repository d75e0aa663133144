//! A memory provider that writes each turn on a line of the document `turns.md`, and fails on demand.
//!
//! `sync` of its configuration says what `sync-turn` does: `ok`; an error kind such as `unavailable`; `panic`; `slow`, which takes
//! a minute. With `only`, it does so for turns whose user says that word, and stores all others. `recall` takes `recall_ms`
//! milliseconds and returns what `memories` of the configuration lists, with the text as the key unless `key` is given.
//! `prefetch` takes `ahead_ms` milliseconds and returns `ahead` with the user's text, if it is given. What other providers write
//! and what the user takes back goes into `writes.md` and `rewinds.md`; `upkeep` takes three steps and counts them in `upkeep.md`.

use std::time::Duration;

use hermes_plugin::memory_extras::Write;
use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{
    Error, ErrorKind, MemoryMirror, MemoryPrefetch, MemoryProvider, MemoryRewind, MemoryUpkeep, MessageId, Plugin,
    Progress, Session, Start, documents,
};
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
    #[serde(default)]
    ahead: Option<String>,
    #[serde(default)]
    ahead_ms: u64,
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

impl MemoryPrefetch for Scribe {
    fn prefetch(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        std::thread::sleep(Duration::from_millis(self.config.ahead_ms));
        let recollection = |ahead: &String| Recollection::new("ahead", format!("{ahead} after {}", query.text));
        Ok(self.config.ahead.iter().map(recollection).collect())
    }
}

impl MemoryMirror for Scribe {
    fn written(&mut self, write: &Write) -> Result<(), Error> {
        let Write { provider, action, target, text, previous, .. } = write;
        append("writes.md", &format!("{provider} {action:?} {target}: {text} (was {previous:?})"))
    }
}

impl MemoryRewind for Scribe {
    fn rewound(&mut self, session: &str, first: MessageId) -> Result<(), Error> {
        append("rewinds.md", &format!("{session} {first}"))
    }
}

impl MemoryUpkeep for Scribe {
    fn upkeep(&mut self) -> Result<Progress, Error> {
        let steps = documents::update("upkeep.md", |steps| {
            let steps = steps.lines().count() + 1;
            Ok::<_, Error>((Some("step\n".repeat(steps)), steps))
        })?;
        Ok(if steps % 3 == 0 { Progress::Done } else { Progress::More })
    }
}

fn append(document: &str, line: &str) -> Result<(), Error> {
    documents::update(document, |text| Ok::<_, Error>((Some(format!("{text}{line}\n")), ())))
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

hermes_plugin::export!(Scribe: MemoryProvider, MemoryPrefetch, MemoryMirror, MemoryRewind, MemoryUpkeep);
