//! The HTTP interfaces of mem0: its platform, and the server that people run themselves. They differ in the header of the key, the
//! `/` at the end of a path, the envelopes of answers, and the errors; every difference is here.

use hermes_guest_backend::{checked, cut};
use hermes_plugin::http::{self, Request, Response};
use hermes_plugin::{Error, ErrorKind, clock};
use serde_json::{Value, json};

use crate::memory::{Added, Memory, QUERY, Store, TEXT};

/// The key of a turn in the metadata of the memories that come from it.
pub(crate) const TURN: &str = "hermes_turn";
/// How long a tool waits.
const TOOL: u32 = 25_000;
const HOUR: u32 = 3_600_000;
/// The pages of events that are searched for a turn.
const PAGES: u32 = 3;

/// Which interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Platform,
    Server,
}

/// A mem0 service, as one user of it.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) dialect: Dialect,
    /// Without a `/` at the end.
    pub(crate) base: String,
    pub(crate) user: String,
    pub(crate) agent: String,
    pub(crate) platform: String,
}

/// What a look-up of a turn says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Yes,
    No,
    /// The service does not look turns up.
    CannotTell,
}

/// The state of queued work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    Done,
    Failed(String),
}

impl Service {
    /// A request to a path without a `/` at its end.
    fn request(&self, method: &str, path: &str, time: u32) -> Result<Request, Error> {
        let request = match self.dialect {
            Dialect::Platform if !http::has_secret("platform_key") => {
                let why = "the mem0 platform needs a key: set MEM0_API_KEY in the environment or in .env \
                           (keys are at https://app.mem0.ai)";
                return Err(Error::failed(why).with_code("unset"));
            }
            Dialect::Platform => Request::new(method, format!("{}{path}/", self.base)).secret_header(
                "authorization",
                "Token ",
                "platform_key",
            ),
            // A server can run without authentication.
            Dialect::Server if !http::has_secret("server_key") => Request::new(method, format!("{}{path}", self.base)),
            Dialect::Server => {
                Request::new(method, format!("{}{path}", self.base)).secret_header("x-api-key", "", "server_key")
            }
        };
        Ok(request.timeout_ms(time))
    }

    /// Sends a request and judges the status of its answer.
    fn send(&self, request: &Request, attempt: &str) -> Result<Response, Error> {
        self.judged(request.send().map_err(|error| error.context(attempt))?, attempt)
    }

    fn judged(&self, answer: Response, attempt: &str) -> Result<Response, Error> {
        let status = answer.status();
        let code = if status == 502 { failure_code(&answer) } else { None };
        let mut answer = checked(answer, attempt, clock::now());
        if let Err(error) = &mut answer {
            match (status, self.dialect, code.as_deref()) {
                // The plan of the account: it can be extended, and the turn waits.
                (402, _, _) | (413, Dialect::Platform, _) => {
                    error.kind = ErrorKind::Exhausted;
                    error.code = "quota".to_owned();
                    error.retry_after_ms.get_or_insert(HOUR);
                }
                (502, Dialect::Server, Some(code)) => {
                    error.kind = match code {
                        "provider_rate_limited" => ErrorKind::Exhausted,
                        "provider_timeout" => ErrorKind::Timeout,
                        "provider_bad_request" => ErrorKind::InvalidInput,
                        _ => ErrorKind::Unavailable,
                    };
                    error.message = format!("{} ({code})", error.message);
                    error.code = code.to_owned();
                }
                _ => {}
            }
        }
        answer
    }

    /// Lets mem0 extract facts from a turn.
    pub(crate) fn add_turn(
        &self,
        key: &str,
        user: &str,
        assistant: &str,
        ended: u64,
        time: u32,
    ) -> Result<Added, Error> {
        let mut messages = vec![json!({ "role": "user", "content": user })];
        if !assistant.is_empty() {
            messages.push(json!({ "role": "assistant", "content": assistant }));
        }
        let mut body = self.body(&messages, true);
        body["metadata"][TURN] = json!(key);
        if self.dialect == Dialect::Platform {
            // Relative dates refer to when they were said, which can be long ago.
            body["timestamp"] = json!(ended / 1_000);
        }
        self.post_memories(&body, "storing a turn in mem0", time)
    }

    fn body(&self, messages: &[Value], infer: bool) -> Value {
        json!({
            "messages": messages,
            "user_id": self.user,
            "agent_id": self.agent,
            "infer": infer,
            "metadata": { "channel": self.platform },
        })
    }

    fn post_memories(&self, body: &Value, attempt: &str, time: u32) -> Result<Added, Error> {
        let path = match self.dialect {
            Dialect::Platform => "/v3/memories/add",
            Dialect::Server => "/memories",
        };
        let answer = self.send(&self.request("POST", path, time)?.json(body)?, attempt)?;
        // The status says that it worked, so an answer in another form changes nothing.
        let answer: Value = answer.json().unwrap_or(Value::Null);
        let stored = results(&answer).first().and_then(|stored| stored["id"].as_str().map(str::to_owned));
        let is_queued = stored.is_none() && self.dialect == Dialect::Platform;
        match answer["event_id"].as_str().filter(|_| is_queued) {
            Some(event) => Ok(Added::Queued(event.to_owned())),
            None => Ok(Added::Stored(stored)),
        }
    }

    /// Whether the service has the turn.
    pub(crate) fn look_up(&self, key: &str, text: &str, time: u32) -> Result<Found, Error> {
        let found = match self.dialect {
            Dialect::Platform => self.look_up_on_platform(key, time),
            Dialect::Server => {
                let filters = json!({ "user_id": self.user, TURN: key });
                let body = json!({ "query": cut(text, QUERY), "filters": filters, "top_k": 5, "threshold": 0.0 });
                self.request("POST", "/search", time)
                    .and_then(|request| self.send(&request.json(&body)?, "looking a turn up in mem0"))
                    .and_then(|answer| answer.json::<Value>())
                    .map(|answer| among(&results(&answer), key))
            }
        };
        match found {
            Err(error) if is_unable(&error) => Ok(Found::CannotTell),
            other => other,
        }
    }

    /// Stored memories first, then work that is queued or running.
    fn look_up_on_platform(&self, key: &str, time: u32) -> Result<Found, Error> {
        let filters = json!({ "AND": [{ "user_id": self.user }, { "metadata": { TURN: key } }] });
        let request = self.request("POST", "/v3/memories", time)?.query("page", "1").query("page_size", "10");
        let answer: Value =
            self.send(&request.json(&json!({ "filters": filters }))?, "looking a turn up in mem0")?.json()?;
        let found = among(&results(&answer), key);
        if found != Found::No {
            return Ok(found);
        }
        for page in 1..=PAGES {
            let request = self.request("GET", "/v1/events", time)?.query("page", page.to_string());
            let answer: Value = self.send(&request, "looking a turn up in mem0")?.json()?;
            let has_turn = |event: &&Value| {
                event["status"] != "FAILED" && event["payload"].to_string().contains(&json!(key).to_string())
            };
            if results(&answer).iter().any(has_turn) {
                return Ok(Found::Yes);
            }
            if answer["next"].is_null() {
                break;
            }
        }
        Ok(Found::No)
    }

    /// What became of queued work.
    pub(crate) fn progress(&self, event: &str, time: u32) -> Result<Progress, Error> {
        if !is_plain(event) {
            return Ok(Progress::Done);
        }
        let request = self.request("GET", &format!("/v1/event/{event}"), time)?;
        let answer: Value = match self.send(&request, "asking mem0 for queued work") {
            Err(error) if error.code == "not-found" => return Ok(Progress::Done),
            answer => answer?.json()?,
        };
        Ok(match answer["status"].as_str() {
            Some("SUCCEEDED") => Progress::Done,
            Some("FAILED") => {
                let why = answer["error"].as_str().unwrap_or("mem0 gives no reason");
                Progress::Failed(cut(&why.split_whitespace().collect::<Vec<_>>().join(" "), 300).to_owned())
            }
            _ => Progress::Open,
        })
    }

    fn memory_path(&self, id: &str) -> String {
        match self.dialect {
            Dialect::Platform => format!("/v1/memories/{id}"),
            Dialect::Server => format!("/memories/{id}"),
        }
    }
}

impl Store for Service {
    fn search(&self, query: &str, most: u32, rerank: bool, time: u32) -> Result<Vec<Memory>, Error> {
        let mut body = json!({ "query": cut(query, QUERY), "filters": { "user_id": self.user }, "top_k": most });
        let path = match self.dialect {
            Dialect::Platform => {
                body["rerank"] = json!(rerank);
                "/v3/memories/search"
            }
            Dialect::Server => "/search",
        };
        let answer = self.send(&self.request("POST", path, time)?.json(&body)?, "searching mem0")?;
        let answer: Value = answer.json()?;
        let found = results(&answer).into_iter().filter_map(memory);
        Ok(found.take(most as usize).collect())
    }

    fn add(&self, fact: &str) -> Result<Added, Error> {
        let message = json!({ "role": "user", "content": fact });
        self.post_memories(&self.body(&[message], false), "storing a fact in mem0", TOOL).map_err(|error| {
            if is_refusal(&error) {
                return error;
            }
            let message =
                format!("{}. The fact may be stored nevertheless: search before you add it again", error.message);
            Error { message, ..error }
        })
    }

    fn get(&self, id: &str) -> Result<Option<Memory>, Error> {
        // A server answers an id of another form with 502.
        if !is_plain(id) || (self.dialect == Dialect::Server && !is_uuid(id)) {
            return Ok(None);
        }
        let request = self.request("GET", &self.memory_path(id), TOOL)?;
        let answer: Value = match self.send(&request, "reading a memory of mem0") {
            Err(error) if error.code == "not-found" => return Ok(None),
            answer => answer?.json()?,
        };
        // A key can reach memories of other users.
        if answer["user_id"].as_str().is_some_and(|user| user != self.user) {
            return Ok(None);
        }
        Ok(memory(&answer))
    }

    fn update(&self, id: &str, text: &str) -> Result<(), Error> {
        let request = self.request("PUT", &self.memory_path(id), TOOL)?.json(&json!({ "text": text }))?;
        self.send(&request, "changing a memory of mem0").map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        let request = self.request("DELETE", &self.memory_path(id), TOOL)?;
        self.send(&request, "deleting a memory of mem0").map(drop)
    }
}

/// Whether the service has certainly not carried out what failed with this error.
pub(crate) fn is_refusal(error: &Error) -> bool {
    let by_host = ["grant", "address", "secret", "url", "method", "header", "query", "body", "unset"];
    let is_status = error.code.strip_prefix("status-4").is_some_and(|rest| rest != "08");
    is_status || ["auth", "not-found", "quota"].contains(&error.code.as_str()) || by_host.contains(&error.code.as_str())
}

/// Whether a look-up failed because the service has none.
fn is_unable(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::Failed) && error.code != "unset"
}

/// The code of a server's 502, of which it has a fixed list.
fn failure_code(answer: &Response) -> Option<String> {
    let body: Value = answer.json().ok()?;
    let code = body["code"].as_str()?;
    let is_word = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_word.then(|| code.to_owned())
}

/// The list of an answer: an envelope, or in older versions the list alone.
fn results(answer: &Value) -> Vec<&Value> {
    let list = answer.get("results").unwrap_or(answer).as_array();
    list.map(|list| list.iter().collect()).unwrap_or_default()
}

fn among(found: &[&Value], key: &str) -> Found {
    if found.iter().any(|memory| memory["metadata"][TURN] == key) {
        Found::Yes
    } else if found.is_empty() {
        Found::No
    } else {
        // It ignored the filter.
        Found::CannotTell
    }
}

fn memory(value: &Value) -> Option<Memory> {
    let text = value["memory"].as_str().filter(|text| !text.trim().is_empty())?;
    let turn = value["metadata"][TURN].as_str();
    Some(Memory {
        id: value["id"].as_str()?.to_owned(),
        text: cut(text, TEXT).to_owned(),
        score: value["score"].as_f64().unwrap_or(0.0),
        session: turn.and_then(|turn| turn.rsplit_once(':')).map(|(session, _)| session.to_owned()),
    })
}

/// Whether an id can stand in a path.
fn is_plain(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_uuid(id: &str) -> bool {
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
