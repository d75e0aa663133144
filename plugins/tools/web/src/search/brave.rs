//! Brave Search, <https://api-dashboard.search.brave.com/app/documentation/web-search>.

use hermes_plugin::Error;
use hermes_plugin::http::Request;
use serde_json::Value;

use super::{Engine, Hit, below, objects};

pub(super) const KEY: &str = "brave";

pub(super) struct Brave<'a> {
    pub(super) base: &'a str,
}

impl Engine for Brave<'_> {
    fn name(&self) -> &'static str {
        "Brave"
    }

    fn key(&self) -> Option<(&'static str, &'static str)> {
        Some(("BRAVE_SEARCH_API_KEY", KEY))
    }

    fn request(&self, query: &str, limit: u64) -> Result<Request, Error> {
        let request = Request::get(below(self.base, "res/v1/web/search")).header("accept", "application/json");
        let request = request.secret_header("x-subscription-token", "", KEY).query("q", query);
        // Without decorations, excerpts have no tags.
        Ok(request.query("count", limit.to_string()).query("text_decorations", "false"))
    }

    fn hits(&self, answer: &Value) -> Vec<Hit> {
        objects(&answer["web"]["results"]).filter_map(|hit| Hit::of(hit, "url", "description")).collect()
    }
}
