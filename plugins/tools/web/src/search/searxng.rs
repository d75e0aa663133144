//! SearXNG, <https://docs.searxng.org/dev/search_api.html>: a server that the user or somebody else runs.

use hermes_plugin::Error;
use hermes_plugin::http::Request;
use serde_json::Value;

use super::{Engine, Hit, below, objects};

pub(super) struct Searxng<'a> {
    /// Empty if the user has set none.
    pub(super) base: &'a str,
}

impl Engine for Searxng<'_> {
    fn name(&self) -> &'static str {
        "SearXNG"
    }

    fn key(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    fn request(&self, query: &str, _: u64) -> Result<Request, Error> {
        if self.base.is_empty() {
            return Err(Error::unavailable(
                "the search engine SearXNG has no address: the user can set `plugins.entries.web.searxng_url`",
            ));
        }
        let request = Request::get(below(self.base, "search")).header("accept", "application/json");
        Ok(request.query("q", query).query("format", "json"))
    }

    fn hits(&self, answer: &Value) -> Vec<Hit> {
        objects(&answer["results"]).filter_map(|hit| Hit::of(hit, "url", "content")).collect()
    }

    fn advice(&self, status: u16) -> Option<String> {
        (status == 403).then(|| "its settings must list `json` in `search.formats`".to_owned())
    }
}
