//! A memory that needs nothing: it indexes every message of every conversation in a database of its own, with its time and the
//! messages beside it, and finds them by words, times and names, and by meaning if the host has a model of embeddings.
//!
//! No turn waits for a model. While nobody waits, a model collects facts, each with the messages that it comes from.

mod facts;
mod search;
mod show;
mod store;
#[cfg(test)]
mod tests;
mod vectors;
mod when;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::{Error, Instance, MemoryProvider, MemoryRewind, MemoryUpkeep, Progress, Setup, config};

#[config]
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Most passages that are recalled for a message.
    #[schemars(range(min = 1, max = 40))]
    #[serde(default = "results")]
    pub(crate) results: usize,
    /// Whether a model collects facts from conversations while nobody waits. It needs `auxiliary.memory` or the session's model.
    #[serde(default = "yes")]
    pub(crate) facts: bool,
}

fn results() -> usize {
    10
}

fn yes() -> bool {
    true
}

pub(crate) struct Chronicle {
    config: Config,
    /// Conversations whose messages the model sees already.
    present: Vec<String>,
}

impl Instance for Chronicle {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        let Setup { config, session, .. } = setup;
        store::create()?;
        let present = std::iter::once(session.id).chain(session.parent_id).collect();
        Ok(Self { config, present })
    }
}

impl MemoryProvider for Chronicle {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        search::recall(&query.text, &self.present, self.config.results, query.budget)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        store::keep(turn)
    }
}

impl MemoryRewind for Chronicle {
    fn rewound(&mut self, conversation: &str, first: u64) -> Result<(), Error> {
        store::forget(conversation, first)
    }
}

impl MemoryUpkeep for Chronicle {
    fn upkeep(&mut self) -> Result<Progress, Error> {
        if vectors::step()? || (self.config.facts && facts::step()?) {
            return Ok(Progress::More);
        }
        Ok(Progress::Done)
    }
}

hermes_plugin::export!(Chronicle: MemoryProvider, MemoryRewind, MemoryUpkeep);
