//! A memory provider that says what a summary should keep: the text `keep` of its configuration, with the messages it was asked
//! about.

use hermes_plugin::memory_provider::Turn;
use hermes_plugin::{Error, MemoryEvents, MemoryProvider, MessageRange, Plugin};
use serde_json::Value;

/// The plugin.
pub struct Keeper {
    keep: String,
}

impl Plugin for Keeper {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Value = serde_json::from_str(config)?;
        Ok(Self { keep: config["keep"].as_str().unwrap_or_default().to_owned() })
    }
}

impl MemoryProvider for Keeper {
    fn sync_turn(&mut self, _: &Turn) -> Result<(), Error> {
        Ok(())
    }
}

impl MemoryEvents for Keeper {
    fn before_compact(&mut self, messages: MessageRange) -> Result<String, Error> {
        Ok(format!("{} (of {} to {})", self.keep, messages.first, messages.last))
    }
}

hermes_plugin::export!(Keeper: MemoryProvider, MemoryEvents);
