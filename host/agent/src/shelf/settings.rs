//! The user's settings for the shelf, and the room that they leave in a prompt.

use hermes_models::ProviderRow;

/// The user's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ShelfSettings {
    /// Whether tools go on the shelf at all.
    pub enabled: bool,
    /// The share of the window that the tools of servers and installed plugins may take in the prompt.
    pub share: f64,
    /// Tools, servers and plugins whose tools are always in the prompt.
    pub pinned: Vec<String>,
    /// Whether providers that have a form for deferred tools get it.
    pub deferred: bool,
}

impl Default for ShelfSettings {
    fn default() -> Self {
        Self { enabled: true, share: 0.1, pinned: Vec::new(), deferred: true }
    }
}

impl ShelfSettings {
    /// What a prompt has room for, with a window of so many tokens, and requests to these providers.
    pub fn room<'p>(&self, window: u32, providers: impl IntoIterator<Item = &'p str>) -> Room {
        let most = providers.into_iter().filter_map(|provider| ProviderRow::by_name(provider)?.most_tools).min();
        let tokens = if self.enabled { (f64::from(window) * self.share) as u32 } else { u32::MAX };
        Room { tokens, tools: most }
    }
}

/// What a prompt has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The most tokens of tools that are not bundled.
    pub tokens: u32,
    /// The most tools of a request, if a provider refuses more.
    pub tools: Option<usize>,
}

impl Room {
    /// Why a provider refuses a request with so many tools; `None` if it takes them.
    pub fn refuses(&self, tools: usize) -> Option<String> {
        let most = self.tools.filter(|most| tools > *most)?;
        Some(format!("a request has {tools} tools, and the provider takes at most {most}"))
    }
}
