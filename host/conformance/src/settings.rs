//! The options of a test run.

use crate::script::{HttpFixtures, ModelFixtures};

/// The options of a test run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many conversations are generated for a context engine.
    pub conversations: u64,
    /// The seed of the first conversation; the others follow.
    pub seed: u64,
    /// Turns of each conversation; derived from its seed if absent.
    pub turns: Option<u32>,
    /// The plugin's section of the configuration, a JSON object; empty if absent.
    pub config: Option<String>,
    /// Answers to the plugin's requests to the web; without them, every request is answered with 503.
    pub http: Option<HttpFixtures>,
    /// Replies to the plugin's requests to models; without them, a stand-in writes by rule.
    pub model: Option<ModelFixtures>,
    /// How many threads run conversations.
    pub jobs: usize,
}
