//! The tools `web_search` and `web_extract`.
//!
//! The host decides which addresses are reached, inserts keys, and marks what the tools return as text of strangers. This plugin
//! knows the search engines, and turns pages and PDF files into text that a model can read.

mod charset;
mod config;
mod extract;
mod html;
mod link;
mod pdf;
mod search;
mod summary;
#[cfg(test)]
mod tests;
mod visible;

use std::borrow::Cow;

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Instance, Setup, Tools};

use crate::config::Config;

struct Web {
    config: Config,
}

impl Instance for Web {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config })
    }
}

impl Tools for Web {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        // Without an engine, the model would only learn that it cannot search.
        let search =
            search::engine(&self.config).map(|_| tool("web_search", search::DESCRIPTION, search::parameters()));
        let mut extract = tool("web_extract", extract::DESCRIPTION, extract::parameters());
        extract.extra.push(("time-limit-ms".to_owned(), extract::TIME_MS.to_string()));
        Ok(search.into_iter().chain([extract]).collect())
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        match invocation.name.as_str() {
            "web_search" => search::run(&self.config, &invocation.parse()?).map(Output::text),
            "web_extract" => extract::run(&self.config, &invocation.parse()?),
            _ => Err(invocation.unknown()),
        }
    }
}

hermes_plugin::export!(Web: Tools);

/// Both tools read what strangers write.
fn tool(name: &str, description: &str, parameters: serde_json::Value) -> Tool {
    let tool = Tool::new(name, description, parameters).toolset("web").effect(Effect::Reads);
    tool.parallel(true).idempotent(true).open_world(true)
}

/// Refuses a text that would carry a key of the user to a stranger.
fn without_keys(what: &str, text: &str) -> Result<(), Error> {
    match hermes_guest_secrets::redact(text) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(_) => Err(Error::invalid(format!(
            "{what} contains what looks like a key or a password, which must not be sent to a web server: leave it out"
        ))),
    }
}

/// The beginning of a text, with a mark if something is missing.
fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// A text in one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
