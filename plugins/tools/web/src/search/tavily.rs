//! Tavily, <https://docs.tavily.com/documentation/api-reference/endpoint/search>.

use hermes_plugin::Error;
use hermes_plugin::http::Request;
use serde_json::{Value, json};

use super::{Engine, Hit, below, objects};

pub(super) const KEY: &str = "tavily";

pub(super) struct Tavily<'a> {
    pub(super) base: &'a str,
}

impl Engine for Tavily<'_> {
    fn name(&self) -> &'static str {
        "Tavily"
    }

    fn key(&self) -> Option<(&'static str, &'static str)> {
        Some(("TAVILY_API_KEY", KEY))
    }

    fn request(&self, query: &str, limit: u64) -> Result<Request, Error> {
        let body = json!({ "query": query, "max_results": limit });
        Request::post(below(self.base, "search")).bearer_secret(KEY).json(&body)
    }

    fn hits(&self, answer: &Value) -> Vec<Hit> {
        objects(&answer["results"]).filter_map(|hit| Hit::of(hit, "url", "content")).collect()
    }
}
