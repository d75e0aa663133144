//! The mode `server`: memories on a Honcho server, version 3 of its interface.
//!
//! Fields of an answer that are not needed are ignored, and missing ones count as empty: servers are older and newer than this code.

use std::collections::BTreeSet;

use hermes_guest_backend::{cut, to_rfc3339};
use hermes_plugin::{Error, Progress, clock};
use serde_json::{Map, Value, json};

use crate::client::{Answer, Client};
use crate::config::{Config, Level, Observes};
use crate::store::{Conclusion, Excerpt, Known, Pair, Said, Store};

/// The server's limits per call.
const MESSAGES: usize = 100;
const PAGE: u32 = 50;
/// Bytes of messages per call: the host sends at most 8 MiB.
const BATCH: usize = 4 << 20;
/// Pages that are read to the end.
const PAGES: u64 = 40;
/// Bytes of a text in an address, which the host limits to 8 KiB; a byte takes up to three in it.
const IN_ADDRESS: usize = 1_500;
/// Bytes of a query in a body.
const QUERY: usize = 8_000;
/// A turn that ended longer ago carries its time. Others get the time of the server: a message from before its writer joined the
/// session is not found from that peer's perspective.
const LATE: u64 = 60_000;

/// The keys of the metadata that say which turn a message belongs to.
const TURN: &str = "hermes_turn";
const PART: &str = "hermes_part";
const CONVERSATION: &str = "hermes_conversation";
const FIRST: &str = "hermes_first";
const REWOUND: &str = "hermes_rewound";

pub(crate) struct Server {
    client: Client,
    workspace: String,
    user: Observes,
    ai: Observes,
    has_workspace: bool,
    /// Sessions with the peers that are known to be in them.
    prepared: BTreeSet<(String, String)>,
}

impl Server {
    pub(crate) fn new(config: &Config, workspace: String) -> Self {
        let (user, ai) = config.observes();
        let client = Client::new(&config.base_url, config.timeout * 1_000);
        Self { client, workspace, user, ai, has_workspace: false, prepared: BTreeSet::new() }
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}{rest}", self.workspace)
    }

    fn get(&self, attempt: &str, path: &str) -> Result<Value, Error> {
        Ok(self.client.call(attempt, "GET", &self.path(path)).send()?.body)
    }

    fn post(&self, attempt: &str, path: &str, body: Value) -> Result<Answer, Error> {
        self.client.call(attempt, "POST", &self.path(path)).json(&body)?.send()
    }

    fn ensure_workspace(&mut self) -> Result<(), Error> {
        if self.has_workspace {
            return Ok(());
        }
        let call = self.client.call("opening the workspace", "POST", "/workspaces");
        match call.json(&json!({ "id": self.workspace }))?.send() {
            Ok(_) => {}
            // A key for this workspace alone may not open workspaces. Whether it may do the rest, the next call tells.
            Err(error) if error.code == "auth" => {}
            Err(error) => return Err(error),
        }
        self.has_workspace = true;
        Ok(())
    }

    /// Makes sure that the session exists, with both peers. A peer that the session already has keeps its observation there, even
    /// if the settings here differ.
    fn ensure_session(&mut self, session: &str, user: &str, ai: &str) -> Result<(), Error> {
        let key = |peer: &str| (session.to_owned(), peer.to_owned());
        if self.prepared.contains(&key(user)) && self.prepared.contains(&key(ai)) {
            return Ok(());
        }
        self.ensure_workspace()?;
        let opened = self.post("opening the session", "/sessions", json!({ "id": session }))?;
        let mut there = BTreeSet::new();
        if !opened.is_new {
            let listed = self.get("listing the peers of the session", &format!("/sessions/{session}/peers"))?;
            there.extend(items(&listed).filter_map(|peer| peer.get("id")?.as_str().map(str::to_owned)));
        }
        let observes = |observes: Observes| json!({ "observe_me": observes.me, "observe_others": observes.others });
        let missing: Map<String, Value> = [(user, self.user), (ai, self.ai)]
            .into_iter()
            .filter(|(peer, _)| !there.contains(*peer))
            .map(|(peer, sight)| (peer.to_owned(), observes(sight)))
            .collect();
        if !missing.is_empty() {
            self.post("adding peers to the session", &format!("/sessions/{session}/peers"), Value::Object(missing))?;
        }
        self.prepared.extend([key(user), key(ai)]);
        Ok(())
    }

    /// All items of a list that its filter selects.
    fn list(&self, attempt: &str, path: &str, filters: Value) -> Result<Vec<Value>, Error> {
        let mut found = Vec::new();
        for page in 1..=PAGES {
            let call = self.client.call(attempt, "POST", &self.path(path)).query("page", page).query("size", PAGE);
            let listed = call.json(&json!({ "filters": filters }))?.send()?.body;
            let before = found.len();
            found.extend(items(&listed).cloned());
            if found.len() == before || page >= listed.get("pages").and_then(Value::as_u64).unwrap_or(1) {
                return Ok(found);
            }
        }
        Ok(found)
    }

    /// The parts of a turn that the server has.
    fn stored(&self, said: &Said) -> Result<BTreeSet<u64>, Error> {
        let path = format!("/sessions/{}/messages/list", said.session);
        let key = said.key();
        let listed = match self.list("looking for the turn", &path, json!({ "metadata": { TURN: key } })) {
            Err(error) if error.code == "not-found" => return Ok(BTreeSet::new()),
            other => other?,
        };
        let of_turn = |message: &Value| {
            let metadata = message.get("metadata")?;
            // A server that ignores the filter lists messages of other turns too.
            let is_of_turn = metadata.get(TURN)?.as_str()? == key;
            is_of_turn.then(|| metadata.get(PART).and_then(Value::as_u64).unwrap_or(0))
        };
        Ok(listed.iter().filter_map(of_turn).collect())
    }

    /// A text from `/peers/P/…`, for a peer that may not exist yet.
    fn of_peer(&self, path: &str, pair: &Pair, attempt: &str, query: Option<&str>) -> Result<Value, Error> {
        let path = self.path(&format!("/peers/{}/{path}", pair.observer));
        let call = self.client.call(attempt, "GET", &path).optional("target", pair.target());
        match call.optional("search_query", query).send() {
            Err(error) if error.code == "not-found" => Ok(Value::Null),
            other => Ok(other?.body),
        }
    }
}

impl Store for Server {
    fn store(&mut self, said: &Said) -> Result<(), Error> {
        self.ensure_session(&said.session, &said.user, &said.ai)?;
        // An earlier delivery may have reached the server without its answer reaching the host.
        let stored = self.stored(said)?;
        let is_late = clock::now().saturating_sub(said.ended_at) > LATE;
        let message = |(part, (peer, text)): (usize, &(String, String))| {
            let metadata = json!({
                TURN: said.key(), PART: part, CONVERSATION: said.conversation, FIRST: said.first,
            });
            let mut message = json!({ "content": text, "peer_id": peer, "metadata": metadata });
            if is_late {
                message["created_at"] = json!(to_rfc3339(said.ended_at));
            }
            message
        };
        let missing = said.messages.iter().enumerate().filter(|(part, _)| !stored.contains(&(*part as u64)));
        let path = format!("/sessions/{}/messages", said.session);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (part, piece) in missing {
            if batch.len() == MESSAGES || (bytes + piece.1.len() > BATCH && !batch.is_empty()) {
                self.post("storing the turn", &path, json!({ "messages": std::mem::take(&mut batch) }))?;
                bytes = 0;
            }
            bytes += piece.1.len();
            batch.push(message((part, piece)));
        }
        if !batch.is_empty() {
            self.post("storing the turn", &path, json!({ "messages": batch }))?;
        }
        Ok(())
    }

    /// The server cannot delete messages, so they are marked. Its conclusions from them remain.
    fn rewound(&mut self, session: &str, conversation: &str, first: u64) -> Result<(), Error> {
        let path = format!("/sessions/{session}/messages");
        let filter = json!({ "metadata": { CONVERSATION: conversation } });
        let listed = match self.list("looking for what was taken back", &format!("{path}/list"), filter) {
            Err(error) if error.code == "not-found" => return Ok(()),
            other => other?,
        };
        for message in &listed {
            let Some(metadata) = message.get("metadata").and_then(Value::as_object) else { continue };
            let is_of_it = metadata.get(CONVERSATION).and_then(Value::as_str) == Some(conversation);
            let is_gone = metadata.get(FIRST).and_then(Value::as_u64).is_some_and(|of_turn| of_turn >= first);
            let id = text(message, "id");
            if !is_of_it || !is_gone || metadata.contains_key(REWOUND) || !is_id(&id) {
                continue;
            }
            let mut metadata = metadata.clone();
            metadata.insert(REWOUND.to_owned(), json!(true));
            let call = self.client.call("marking what was taken back", "PUT", &self.path(&format!("{path}/{id}")));
            call.json(&json!({ "metadata": metadata }))?.send()?;
        }
        Ok(())
    }

    fn known(&mut self, pair: &Pair, session: &str, query: &str, tokens: u32) -> Result<Known, Error> {
        let query = Some(cut(query.trim(), IN_ADDRESS)).filter(|query| !query.is_empty());
        let call = self.client.call("recalling", "GET", &self.path(&format!("/sessions/{session}/context")));
        let call = call.query("tokens", tokens).query("summary", true).query("peer_target", &pair.observed);
        let call = call.query("peer_perspective", &pair.observer).optional("search_query", query);
        let context = match call.send() {
            Err(error) if error.code == "not-found" => Value::Null,
            other => other?.body,
        };
        let mut known = Known {
            card: card(&context),
            facts: facts(&text(&context, "peer_representation")),
            summary: context.get("summary").map(|summary| text(summary, "content")).unwrap_or_default(),
            recent: context.get("messages").map(excerpts).unwrap_or_default(),
        };
        if known.card.is_empty() && known.facts.is_empty() {
            // A session that does not exist yet has an empty context, but the peer may be known from others.
            let context = self.of_peer("context", pair, "recalling", query)?;
            known.card = card(&context);
            known.facts = facts(&text(&context, "representation"));
        }
        Ok(known)
    }

    fn card(&mut self, pair: &Pair) -> Result<Vec<String>, Error> {
        Ok(card(&self.of_peer("card", pair, "reading the card", None)?))
    }

    fn set_card(&mut self, pair: &Pair, card: &[String]) -> Result<(), Error> {
        self.ensure_workspace()?;
        self.post("opening the peer", "/peers", json!({ "id": pair.observer }))?;
        if let Some(target) = pair.target() {
            self.post("opening the peer", "/peers", json!({ "id": target }))?;
        }
        let path = self.path(&format!("/peers/{}/card", pair.observer));
        let call = self.client.call("writing the card", "PUT", &path).optional("target", pair.target());
        call.json(&json!({ "peer_card": card }))?.send().map(|_| ())
    }

    fn search(&mut self, peer: &str, query: &str, limit: u32) -> Result<Vec<Excerpt>, Error> {
        let query = cut(query, QUERY);
        let body = json!({ "query": query, "limit": limit, "filters": { "peer_perspective": peer } });
        // A server that does not know the filter refuses it, and messages from before a peer joined are not in its perspective.
        let found = match self.post("searching", "/search", body) {
            Err(error) if error.code == "not-found" || error.code == "status-422" => Vec::new(),
            other => excerpts(&other?.body),
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let body = json!({ "query": query, "limit": limit });
        match self.post("searching", &format!("/peers/{peer}/search"), body) {
            Err(error) if error.code == "not-found" => Ok(Vec::new()),
            other => Ok(excerpts(&other?.body)),
        }
    }

    fn ask(
        &mut self,
        pair: &Pair,
        session: &str,
        question: &str,
        level: Level,
        timeout_ms: u32,
    ) -> Result<Option<String>, Error> {
        let mut body = json!({
            "query": question, "session_id": session, "stream": false, "reasoning_level": level.name(),
        });
        if let Some(target) = pair.target() {
            body["target"] = json!(target);
        }
        let path = self.path(&format!("/peers/{}/chat", pair.observer));
        let call = self.client.call("asking the dialectic", "POST", &path).within(timeout_ms);
        let answer = match call.json(&body)?.send() {
            // Neither the peer nor the session has said anything yet.
            Err(error) if error.code == "not-found" => return Ok(None),
            other => text(&other?.body, "content"),
        };
        Ok(Some(answer).filter(|answer| !answer.trim().is_empty()))
    }

    fn conclude(&mut self, pair: &Pair, session: &str, content: &str) -> Result<String, Error> {
        self.ensure_session(session, &pair.observed, &pair.observer)?;
        let conclusion = json!({
            "content": content, "observer_id": pair.observer, "observed_id": pair.observed, "session_id": session,
        });
        let kept = self.post("keeping the conclusion", "/conclusions", json!({ "conclusions": [conclusion] }))?.body;
        Ok(kept.get(0).map(|kept| text(kept, "id")).unwrap_or_default())
    }

    fn conclusions(&mut self, pair: &Pair, query: Option<&str>, limit: u32) -> Result<Vec<Conclusion>, Error> {
        let filters = json!({ "observer_id": pair.observer, "observed_id": pair.observed });
        let listed = match query {
            Some(query) => {
                let body = json!({ "query": cut(query, QUERY), "top_k": limit, "filters": filters });
                self.post("searching conclusions", "/conclusions/query", body)
            }
            None => {
                let path = self.path("/conclusions/list");
                let call = self.client.call("listing conclusions", "POST", &path).query("page", 1).query("size", limit);
                call.json(&json!({ "filters": filters }))?.send()
            }
        };
        let listed = match listed {
            Err(error) if error.code == "not-found" => return Ok(Vec::new()),
            other => other?.body,
        };
        let conclusion = |item: &Value| Conclusion {
            id: text(item, "id"),
            content: text(item, "content"),
            at: text(item, "created_at"),
        };
        Ok(items(&listed).map(conclusion).collect())
    }

    fn forget(&mut self, id: &str) -> Result<(), Error> {
        if !is_id(id) {
            return Err(Error::invalid("delete_id is not an id of a conclusion: list them first"));
        }
        let path = self.path(&format!("/conclusions/{id}"));
        self.client.call("deleting the conclusion", "DELETE", &path).send().map(|_| ())
    }

    /// The server has its own workers.
    fn upkeep(&mut self) -> Result<Progress, Error> {
        Ok(Progress::Done)
    }
}

/// Whether a text can be a part of an address.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 512 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The items of a page, or of a bare list.
fn items(listed: &Value) -> impl Iterator<Item = &Value> {
    listed.get("items").unwrap_or(listed).as_array().into_iter().flatten()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn card(context: &Value) -> Vec<String> {
    let lines = context.get("peer_card").and_then(Value::as_array).into_iter().flatten();
    lines.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The lines of a representation, which is Markdown, without its headings.
fn facts(representation: &str) -> Vec<String> {
    let lines = representation.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.strip_prefix("- ").unwrap_or(line).to_owned()).collect()
}

fn excerpts(found: &Value) -> Vec<Excerpt> {
    let is_there = |message: &&Value| message.pointer(&format!("/metadata/{REWOUND}")).is_none();
    let excerpt = |message: &Value| Excerpt {
        peer: text(message, "peer_id"),
        session: text(message, "session_id"),
        at: text(message, "created_at"),
        text: text(message, "content"),
    };
    items(found).filter(is_there).map(excerpt).collect()
}
