//! What it does, and when.

use serde::Deserialize;

/// The plugin's section of the configuration. With nothing set it never proposes anything by itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Keys of its summaries begin with it.
    pub(crate) name: String,
    /// What `assess` answers: `never`, `boundary` or `now`.
    pub(crate) timing: String,
    /// Turns at the end that stay as they are.
    pub(crate) keep_turns: u32,
    /// Folds so many turns at the beginning and no more.
    pub(crate) fold_turns: Option<u32>,
    /// So many plans, counted over all instances, cover nothing of what they drop.
    pub(crate) bad: u64,
    /// Milliseconds that `propose` takes, for as many calls as `slow` says, counted over all instances.
    pub(crate) slow_ms: u64,
    pub(crate) slow: u64,
    /// Whether `assess` wants slow work done.
    pub(crate) prepare: bool,
    /// Where a draft holds the word `recall`, lines with this text are brought back.
    pub(crate) marker: Option<String>,
    /// Milliseconds that this takes.
    pub(crate) assist_ms: u64,
    /// It fails.
    pub(crate) assist_fails: bool,
    /// The name of a tool that it offers.
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
