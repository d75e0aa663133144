//! The configuration, with the names of the backends that users of other agents know.

use hermes_plugin::config;

/// Settings in `plugins.entries.web`.
#[config]
#[derive(Debug)]
pub(crate) struct Config {
    /// The search engine: `brave` (also `brave-free`), `tavily`, `exa` or `searxng`. Without a value, the first of these that has
    /// its key or its address.
    pub(crate) backend: Option<Backend>,
    /// The address of a SearXNG server whose settings allow the format `json`, such as http://localhost:8888.
    pub(crate) searxng_url: Option<String>,
    /// The address of Brave Search.
    #[serde(default = "brave_url")]
    pub(crate) brave_url: String,
    /// The address of Tavily.
    #[serde(default = "tavily_url")]
    pub(crate) tavily_url: String,
    /// The address of Exa.
    #[serde(default = "exa_url")]
    pub(crate) exa_url: String,
    /// An address of your own network whose pages `web_extract` may read, such as http://wiki.lan.
    pub(crate) intranet: Option<String>,
    /// Most characters of a page that the model gets whole. A longer page is summarised by `auxiliary.web_extract`.
    #[schemars(range(min = 2000, max = 400000))]
    #[serde(default = "summarise_over")]
    pub(crate) summarise_over: usize,
}

/// A search engine.
#[config]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Backend {
    Brave,
    BraveFree,
    Tavily,
    Exa,
    Searxng,
}

fn brave_url() -> String {
    "https://api.search.brave.com".to_owned()
}

fn tavily_url() -> String {
    "https://api.tavily.com".to_owned()
}

fn exa_url() -> String {
    "https://api.exa.ai".to_owned()
}

fn summarise_over() -> usize {
    24_000
}
