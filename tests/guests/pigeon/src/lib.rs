//! A memory provider and a tool over a server, as an author would write them, except for the one flaw that the configuration
//! names.

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, MemoryProvider, Plugin, Role, Tools, http, llm, log};
use serde_json::{Value, json};

const LOFT: &str = "https://loft.example.org/v1";

/// The plugin.
pub struct Pigeon {
    flaw: String,
    /// The flaw `gives-up`: after one failure, no request is sent any more.
    gave_up: bool,
    /// The flaw `sends-later`: what the user said in the turns that were not sent yet.
    waiting: Vec<String>,
}

impl Plugin for Pigeon {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Value = serde_json::from_str(config)?;
        Ok(Self { flaw: config["flaw"].as_str().unwrap_or_default().to_owned(), gave_up: false, waiting: Vec::new() })
    }
}

impl Pigeon {
    fn has(&self, flaw: &str) -> bool {
        self.flaw == flaw
    }

    /// The texts that the server finds.
    fn search(&mut self, text: &str) -> Result<Vec<(String, String)>, Error> {
        if self.gave_up {
            return Err(Error::unavailable("the loft was down before"));
        }
        let answer = self.ask(text);
        self.gave_up = answer.is_err() && self.has("gives-up");
        match answer {
            Err(error) if self.has("wrong-kind") => Err(Error::failed(error.message)),
            Err(_) if self.has("hides-errors") => Ok(Vec::new()),
            answer => answer,
        }
    }

    fn ask(&self, text: &str) -> Result<Vec<(String, String)>, Error> {
        let request = http::Request::get(format!("{LOFT}/search?words={}", text.split_whitespace().count()));
        let answer = request.bearer_secret("token").send()?;
        if self.has("unwraps-answers") {
            let _: Value = serde_json::from_slice(answer.body()).expect("the loft answers JSON");
        }
        // A secret in an answer never arrives here.
        log::info(answer.text());
        let found: Value = answer.ok()?.json()?;
        if self.has("other-field") {
            return Ok(Vec::new());
        }
        let memories = found["memories"].as_array().ok_or_else(|| Error::failed("the loft answers no list"))?;
        let text = |memory: &Value, key: &str| memory[key].as_str().unwrap_or_default().to_owned();
        Ok(memories.iter().map(|memory| (text(memory, "id"), text(memory, "text"))).collect())
    }
}

impl MemoryProvider for Pigeon {
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let mut left = query.budget;
        let mut found = Vec::new();
        for (key, text) in self.search(&query.text)? {
            let tokens = llm::count_tokens(&text);
            if tokens > left {
                break;
            }
            left -= tokens;
            found.push(Recollection::new(key, text));
        }
        Ok(found)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        if self.has("never-sends") {
            return Ok(());
        }
        if self.has("sends-later") {
            self.waiting.push(turn.user.clone());
            if self.waiting.len() < 3 {
                return Ok(());
            }
        }
        let user =
            if self.waiting.is_empty() { turn.user.clone() } else { std::mem::take(&mut self.waiting).join("\n") };
        let body =
            if self.has("nameless") { json!({ "user": user }) } else { json!({ "number": turn.number, "user": user }) };
        let sent = http::Request::post(format!("{LOFT}/turns")).bearer_secret("token").json(&body)?.send();
        let sent = sent.and_then(http::Response::ok);
        match sent {
            Err(_) if self.has("loses-turns") => Ok(()),
            Err(error) if error.code == "auth" && self.has("loses-keys") => Err(Error::failed(error.message)),
            Err(error) if error.code == "unset" && self.has("loses-unset") => Err(Error::failed(error.message)),
            Err(error) if error.code == "grant" && self.has("loses-ungranted") => Ok(()),
            sent => sent.map(drop),
        }
    }
}

impl Tools for Pigeon {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let parameters =
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        Ok(vec![
            Tool::new("loft_search", "Searches the memories.", parameters.clone()).effect(Effect::Reads),
            Tool::new("loft_summary", "Sums up the memories.", parameters).effect(Effect::Reads),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let text =
            arguments["text"].as_str().ok_or_else(|| Error::invalid("`text` is missing: give a text"))?.to_owned();
        match invocation.name.as_str() {
            "loft_search" => {
                let found = self.search(&text)?;
                Ok(Output::text(found.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")))
            }
            "loft_summary" => {
                let reply = llm::complete(&llm::Request::new("memory").message(Role::User, text))?;
                Ok(Output::text(reply.text))
            }
            _ => Err(invocation.unknown()),
        }
    }
}

hermes_plugin::export!(Pigeon: MemoryProvider, Tools);
