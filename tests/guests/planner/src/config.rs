//! The engine's behaviour and timing.

use serde::Deserialize;

/// The plugin's section of the configuration. By default the engine proposes nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Prefix of its summary keys.
    pub(crate) name: String,
    /// The answer of `assess`: `never`, `boundary` or `now`.
    pub(crate) timing: String,
    /// Number of last turns that stay in full.
    pub(crate) keep_turns: u32,
    /// Folds only this many first turns.
    pub(crate) fold_turns: Option<u32>,
    /// This many plans, counted over all instances, drop messages without covering them.
    pub(crate) bad: u64,
    /// Milliseconds that `propose` takes in the first `slow` calls, counted over all instances.
    pub(crate) slow_ms: u64,
    pub(crate) slow: u64,
    /// Whether `assess` requests preparation.
    pub(crate) prepare: bool,
    /// If a draft contains the word `recall`, `assist` quotes lines with this text.
    pub(crate) marker: Option<String>,
    /// Milliseconds that `assist` takes.
    pub(crate) assist_ms: u64,
    /// Whether `assist` fails.
    pub(crate) assist_fails: bool,
    /// The name of a tool to offer.
    pub(crate) tool: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "planner".to_owned(),
            timing: "never".to_owned(),
            keep_turns: 1,
            fold_turns: None,
            bad: 0,
            slow_ms: 0,
            slow: 0,
            prepare: false,
            marker: None,
            assist_ms: 0,
            assist_fails: false,
            tool: None,
        }
    }
}
