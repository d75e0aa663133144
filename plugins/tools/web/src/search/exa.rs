//! Exa, <https://docs.exa.ai/reference/search>.

use hermes_plugin::Error;
use hermes_plugin::http::Request;
use serde_json::{Value, json};

use super::{Engine, Hit, below, objects};

pub(super) const KEY: &str = "exa";
/// Characters of a page that are asked for, for the excerpt.
const EXCERPT: u32 = 500;

pub(super) struct Exa<'a> {
    pub(super) base: &'a str,
}

impl Engine for Exa<'_> {
    fn name(&self) -> &'static str {
        "Exa"
    }

    fn key(&self) -> Option<(&'static str, &'static str)> {
        Some(("EXA_API_KEY", KEY))
    }

    fn request(&self, query: &str, limit: u64) -> Result<Request, Error> {
        let contents = json!({ "text": { "maxCharacters": EXCERPT } });
        let body = json!({ "query": query, "numResults": limit, "contents": contents });
        Request::post(below(self.base, "search")).secret_header("x-api-key", "", KEY).json(&body)
    }

    fn hits(&self, answer: &Value) -> Vec<Hit> {
        objects(&answer["results"]).filter_map(|hit| Hit::of(hit, "url", "text")).collect()
    }
}
