//! The tool `web_search`: one request to the engine that the user configured.

mod brave;
mod exa;
mod searxng;
mod tavily;

use hermes_plugin::Error;
use hermes_plugin::http::{self, Request, Response};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::config::{Backend, Config};
use crate::{beginning, one_line, visible, without_keys};

pub(crate) const DESCRIPTION: &str = "Searches the web. Returns numbered results with title, address and an excerpt; read the \
                                      pages that matter with web_extract.";

const LIMIT: u64 = 5;
const MOST: u64 = 20;
const QUERY: usize = 400;
/// Most characters of a title, an address and an excerpt, and most bytes of a whole result.
const TITLE: usize = 200;
const ADDRESS: usize = 500;
const EXCERPT: usize = 500;
const BYTES: usize = 16 << 10;
const TIME_MS: u32 = 20_000;

pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What to search for." },
            "limit": { "type": "integer", "description": "Most results (default 5, at most 20).", "minimum": 1, "maximum": MOST },
        },
        "required": ["query"],
    })
}

#[derive(Deserialize)]
pub(crate) struct Search {
    query: String,
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
}

/// Accepts a number as models write it: also as a string, or as null.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(None),
        Value::Number(number) if number.as_u64().is_some() => Ok(number.as_u64()),
        Value::Number(number) => Ok(number.as_f64().map(|number| number.max(0.0) as u64)),
        Value::String(text) => text.trim().parse().map(Some).map_err(|_| wrong(&value)),
        _ => Err(wrong(&value)),
    }
}

fn wrong<E: serde::de::Error>(value: &Value) -> E {
    E::custom(format!("{value} is not a number from 1"))
}

/// A search engine: how it is asked, and what its answer means.
pub(crate) trait Engine {
    fn name(&self) -> &'static str;

    /// The variable of its key, and the key's name in the manifest. None if it has no key.
    fn key(&self) -> Option<(&'static str, &'static str)>;

    fn request(&self, query: &str, limit: u64) -> Result<Request, Error>;

    /// The results in an answer, in order.
    fn hits(&self, answer: &Value) -> Vec<Hit>;

    /// What the user can do about a status of failure, if it says something particular.
    fn advice(&self, status: u16) -> Option<String> {
        match (status, self.key()) {
            (401 | 403, Some((variable, _))) => Some(format!("it does not accept {variable}")),
            (402 | 432 | 433, _) => Some("the account has no requests left".to_owned()),
            _ => None,
        }
    }
}

/// A result of a search.
pub(crate) struct Hit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) excerpt: String,
}

impl Hit {
    /// The members of a JSON object with these names.
    fn of(value: &Value, url: &str, excerpt: &str) -> Option<Self> {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let hit = Self { title: text("title"), url: text(url), excerpt: text(excerpt) };
        (!hit.url.is_empty()).then_some(hit)
    }
}

/// The engine of the configuration: the named one, or the first that has what it needs.
pub(crate) fn engine(config: &Config) -> Option<Box<dyn Engine + '_>> {
    let brave = || Box::new(brave::Brave { base: &config.brave_url });
    let tavily = || Box::new(tavily::Tavily { base: &config.tavily_url });
    let exa = || Box::new(exa::Exa { base: &config.exa_url });
    let address = config.searxng_url.as_deref().filter(|url| !url.is_empty() && !url.contains("${"));
    let searxng = || Box::new(searxng::Searxng { base: address.unwrap_or_default() });
    match config.backend {
        Some(Backend::Brave | Backend::BraveFree) => Some(brave()),
        Some(Backend::Tavily) => Some(tavily()),
        Some(Backend::Exa) => Some(exa()),
        Some(Backend::Searxng) => Some(searxng()),
        None if http::has_secret(brave::KEY) => Some(brave()),
        None if http::has_secret(tavily::KEY) => Some(tavily()),
        None if http::has_secret(exa::KEY) => Some(exa()),
        None => address.map(|_| searxng() as Box<dyn Engine>),
    }
}

pub(crate) fn run(config: &Config, search: &Search) -> Result<String, Error> {
    let query = one_line(&search.query);
    if query.is_empty() {
        return Err(Error::invalid("`query` is empty: write what to search for"));
    }
    if query.chars().count() > QUERY {
        return Err(Error::invalid(format!("`query` has more than {QUERY} characters: search for fewer words")));
    }
    without_keys("`query`", &query)?;
    let limit = search.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let engine = engine(config).ok_or_else(|| {
        Error::unavailable("no search engine is configured: set `plugins.entries.web.backend` and its key or address")
    })?;
    if let Some((variable, secret)) = engine.key()
        && !http::has_secret(secret)
    {
        return Err(Error::unavailable(format!(
            "the search engine {} has no key: the user can set {variable} in the environment or in .env",
            engine.name()
        )));
    }
    let attempt = || format!("the search with {} failed", engine.name());
    let answer = engine.request(&query, limit)?.timeout_ms(TIME_MS).send().map_err(|error| error.context(attempt()))?;
    let answer: Value = checked(answer, engine.as_ref()).map_err(|error| error.context(attempt()))?;
    Ok(listed(&query, &engine.hits(&answer), limit))
}

fn checked(answer: Response, engine: &dyn Engine) -> Result<Value, Error> {
    let status = answer.status();
    let answer = answer.ok().map_err(|error| match engine.advice(status) {
        Some(advice) => Error { message: format!("{}: {advice}", error.message), ..error },
        None if status == 429 => {
            Error { message: format!("{}: too many requests; wait before the next", error.message), ..error }
        }
        None => error,
    })?;
    answer.json()
}

/// The results as the model reads them.
fn listed(query: &str, hits: &[Hit], limit: u64) -> String {
    let mut text = String::new();
    for (number, hit) in (1..=limit).zip(hits) {
        let shown = |text: &str, most| beginning(&one_line(&visible::of(text)), most);
        let (title, url, excerpt) = (shown(&hit.title, TITLE), shown(&hit.url, ADDRESS), shown(&hit.excerpt, EXCERPT));
        // The host scans each passage, so that a hostile result does not take the others with it.
        let gap = if text.is_empty() { "" } else { "\n" };
        let mut entry = format!("{gap}{number}. {}\n   {url}\n", if title.is_empty() { "(no title)" } else { &title });
        if !excerpt.is_empty() {
            entry.push_str(&format!("   {excerpt}\n"));
        }
        if text.len() + entry.len() > BYTES {
            break;
        }
        text.push_str(&entry);
    }
    if text.is_empty() {
        return format!("No results for: {query}\nTry other or fewer words.");
    }
    text
}

/// The address of an interface below the address of a service.
fn below(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim_end_matches('/'))
}

/// The objects of a list in an answer.
fn objects(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
