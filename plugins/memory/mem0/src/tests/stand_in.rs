//! A mem0 service for unit tests, in both dialects, as the vendor documents them. It checks what a client may not mix up.

use std::cell::RefCell;
use std::rc::Rc;

use hermes_plugin::testing::{Answer, Host, Sent};
use serde_json::{Value, json};

use crate::service::Dialect;

pub(super) const KEY: &str = "m0-key-0123456789";

#[derive(Default)]
pub(super) struct State {
    pub(super) memories: Vec<Value>,
    pub(super) events: Vec<Value>,
    /// Answers before the service is asked, each once.
    pub(super) faults: Vec<Fault>,
}

pub(super) enum Fault {
    /// Before the request is carried out.
    Before(Answer),
    /// After it was carried out.
    After(Answer),
}

pub(super) type Shared = Rc<RefCell<State>>;

/// A host with a key whose web is the stand-in.
pub(super) fn served(dialect: Dialect) -> (Host, Shared) {
    let state = Shared::default();
    let service = Rc::clone(&state);
    let host = Host::new().database().secret("platform_key", KEY).secret("server_key", KEY);
    let host = host.serve(move |sent: &Sent| {
        let mut state = service.borrow_mut();
        let is_write = sent.method == "POST" && (sent.url.ends_with("/memories") || sent.url.ends_with("/add/"));
        let fault = if is_write && !state.faults.is_empty() { Some(state.faults.remove(0)) } else { None };
        match fault {
            Some(Fault::Before(answer)) => answer,
            Some(Fault::After(answer)) => {
                state.answer(dialect, sent);
                answer
            }
            None => state.answer(dialect, sent),
        }
    });
    (host, state)
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

impl State {
    fn answer(&mut self, dialect: Dialect, sent: &Sent) -> Answer {
        let url = sent.url.split('?').next().unwrap_or_default();
        let (path, is_open) = match dialect {
            Dialect::Platform => {
                assert!(url.ends_with('/'), "{url} has no `/` at its end");
                let path = url.strip_prefix("https://api.mem0.ai").expect("the platform").trim_end_matches('/');
                (path, sent.header("authorization") == Some(&format!("Token {KEY}")))
            }
            Dialect::Server => {
                let path = url.strip_prefix("http://nas.lan:8888").expect("the server");
                assert!(!path.ends_with('/'), "{url} ends with a `/`");
                (path, sent.header("x-api-key") == Some(KEY))
            }
        };
        if !is_open {
            return Answer::json(401, json!({ "detail": "Invalid API key" }));
        }
        let body: Value = sent.json().unwrap_or(Value::Null);
        match (sent.method.as_str(), path, dialect) {
            ("POST", "/v3/memories/add", Dialect::Platform) | ("POST", "/memories", Dialect::Server) => {
                self.add(dialect, &body)
            }
            ("POST", "/v3/memories/search", Dialect::Platform) | ("POST", "/search", Dialect::Server) => {
                assert!(body.get("user_id").is_none(), "ids belong into the filters");
                let most = body["top_k"].as_u64().unwrap_or(10) as usize;
                let words = body["query"].as_str().unwrap().to_lowercase();
                let fits = |memory: &Value| {
                    let text = memory["memory"].as_str().unwrap().to_lowercase();
                    body["threshold"] == 0.0 || text.split(' ').any(|word| words.contains(word))
                };
                let mut found = self.filtered(&body["filters"]);
                found.retain(fits);
                found.truncate(most);
                Answer::json(200, json!({ "results": found }))
            }
            ("POST", "/v3/memories", Dialect::Platform) => {
                let user = &body["filters"]["AND"][0];
                let mut filters = user.clone();
                filters["hermes_turn"] = body["filters"]["AND"][1]["metadata"]["hermes_turn"].clone();
                let found = self.filtered(&filters);
                Answer::json(200, json!({ "count": found.len(), "next": null, "previous": null, "results": found }))
            }
            ("GET", "/v1/events", Dialect::Platform) => {
                Answer::json(200, json!({ "count": self.events.len(), "next": null, "results": self.events }))
            }
            (method, path, _) => {
                if let Some(event) = path.strip_prefix("/v1/event/") {
                    let found = self.events.iter().find(|found| found["id"] == event);
                    return found.map_or(Answer::status(404), |event| event.clone().into());
                }
                let id = path.rsplit('/').next().unwrap_or_default();
                let expected = if dialect == Dialect::Platform { "/v1/memories/" } else { "/memories/" };
                assert!(path.starts_with(expected), "{method} {path}");
                self.single(dialect, method, id, &body)
            }
        }
    }

    fn add(&mut self, dialect: Dialect, body: &Value) -> Answer {
        assert!(body["user_id"].is_string() && body["agent_id"] == "hermes", "{body}");
        let is_queued = body["infer"] == true && dialect == Dialect::Platform;
        if is_queued {
            let event = format!("event-{}", self.events.len());
            self.events.push(json!({ "id": event, "status": "PENDING", "payload": body }));
            return Answer::json(200, json!({ "event_id": event, "status": "PENDING" }));
        }
        let id = id(self.memories.len());
        let text = body["messages"][0]["content"].as_str().unwrap();
        self.memories.push(json!({
            "id": id, "memory": text, "score": 0.5, "user_id": body["user_id"], "metadata": body["metadata"],
        }));
        let stored = match dialect {
            Dialect::Platform => {
                json!({ "message": "ok", "results": [{ "id": id, "data": { "memory": text }, "event": "ADD" }] })
            }
            Dialect::Server => json!({ "results": [{ "id": id, "memory": text, "event": "ADD" }] }),
        };
        stored.into()
    }

    /// Queued work is done.
    pub(super) fn finish(&mut self, status: &str) {
        for at in 0..self.events.len() {
            if self.events[at]["status"] != "PENDING" {
                continue;
            }
            self.events[at]["status"] = json!(status);
            if status == "SUCCEEDED" {
                let mut body = self.events[at]["payload"].clone();
                body["infer"] = json!(false);
                self.add(Dialect::Platform, &body);
            } else {
                self.events[at]["error"] = json!("the model refused");
            }
        }
    }

    fn filtered(&self, filters: &Value) -> Vec<Value> {
        let turn = &filters["hermes_turn"];
        let fits = |memory: &&Value| {
            memory["user_id"] == filters["user_id"] && (turn.is_null() || memory["metadata"]["hermes_turn"] == *turn)
        };
        self.memories.iter().filter(fits).cloned().collect()
    }

    fn single(&mut self, dialect: Dialect, method: &str, id: &str, body: &Value) -> Answer {
        if dialect == Dialect::Server && id.len() != 36 {
            return Answer::json(502, json!({ "detail": "Upstream error", "code": "unknown" }));
        }
        let Some(at) = self.memories.iter().position(|memory| memory["id"] == id) else {
            return match dialect {
                Dialect::Platform => Answer::json(404, json!({ "error": "Memory not found!" })),
                Dialect::Server if method == "GET" => Answer::json(200, Value::Null),
                Dialect::Server => Answer::json(404, json!({ "detail": "Memory not found" })),
            };
        };
        match method {
            "GET" => self.memories[at].clone().into(),
            "PUT" => {
                self.memories[at]["memory"] = body["text"].clone();
                json!({ "message": "Memory updated successfully!" }).into()
            }
            "DELETE" => {
                self.memories.remove(at);
                json!({ "message": "Memory deleted successfully!" }).into()
            }
            other => panic!("{other}"),
        }
    }
}
