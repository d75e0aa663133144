//! The recorded cases of the peer's tool. Compared are the conversations, their order, the message that matches in each, and
//! the messages of a conversation. An answer of Hermes is a text of limited size: its excerpts and the messages around a hit
//! are fewer on purpose, and its limit counts messages.

use std::collections::BTreeMap;

use hermes_agent::session_search::Discover;
use hermes_conversation::{Draft, MessageId, SessionId, ToolCall};
use hermes_session_store::{ParentKind, RecallOrder, Session};
use serde_json::{Value, json};

use crate::fixture::Archive;

struct Corpus {
    archive: Archive,
    sessions: BTreeMap<String, Session>,
    messages: BTreeMap<MessageId, Value>,
}

impl Corpus {
    async fn of(suite: &Value) -> Self {
        let mut corpus = Self { archive: Archive::new(), sessions: BTreeMap::new(), messages: BTreeMap::new() };
        let mut time = crate::fixture::BEGUN;
        for given in suite["corpus"].as_array().unwrap() {
            let name = given["id"].as_str().unwrap();
            let parent = given["parent"].as_str().map(|parent| corpus.sessions[parent].clone());
            let parent = parent.as_ref().map(|parent| (parent, ParentKind::Continuation));
            let session = corpus.archive.session(given["source"].as_str().unwrap(), parent).await;
            if let Some(title) = given["title"].as_str() {
                corpus.archive.store.set_title(&session.id, title).await.unwrap();
            }
            for (at, message) in given["messages"].as_array().unwrap().iter().enumerate() {
                time += 1_000;
                let text = message[1].as_str().unwrap();
                let draft = match message[0].as_str().unwrap() {
                    "user" => Draft::user(text, time),
                    "assistant" => Draft::assistant(text, Vec::new(), time),
                    _ => {
                        let call = |key: &str| message[2][key].as_str().unwrap().to_owned();
                        let call =
                            ToolCall { id: call("tool_call_id"), name: call("tool_name"), arguments: "{}".into() };
                        Draft::result(&call, text, time)
                    }
                };
                let stored = corpus.archive.store.append(&session.id, &[draft]).await.unwrap();
                corpus.messages.insert(stored[0].id, json!([name, at]));
            }
            corpus.sessions.insert(name.to_owned(), session);
        }
        corpus
    }

    fn name(&self, id: &str) -> Option<&str> {
        self.sessions.iter().find(|(_, session)| session.id.as_str() == id).map(|(name, _)| name.as_str())
    }

    fn message(&self, place: &Value) -> MessageId {
        *self.messages.iter().find(|(_, known)| *known == place).unwrap().0
    }

    async fn run(&self, input: &Value) -> Value {
        let asking: Option<SessionId> = input["current_session_id"].as_str().map(|name| self.sessions[name].id.clone());
        let search = self.archive.search(asking.as_ref());
        let mut arguments = input.clone();
        if let Some(name) = input["session_id"].as_str() {
            arguments["session_id"] = json!(self.sessions[name].id.as_str());
        }
        if !input["around_message_id"].is_null() {
            arguments["around_message_id"] = json!(self.message(&input["around_message_id"]).0);
        }
        let Ok(answer) = search.call(&arguments.to_string()).await else { return json!({"success": false}) };
        let Some(query) = input["query"].as_str().filter(|query| !query.trim().is_empty()) else {
            if input["session_id"].is_null() {
                let listed = answer.text.lines().filter_map(|line| self.name(line.split(' ').next()?));
                return json!({"success": true, "results": listed.collect::<Vec<_>>()});
            }
            let shown: Vec<&Value> = answer.shown.iter().map(|id| &self.messages[id]).collect();
            return json!({"success": true, "messages": shown});
        };
        let wanted = Discover {
            order: if input["sort"] == "oldest" { RecallOrder::Oldest } else { RecallOrder::Best },
            ..Discover::new(query)
        };
        let found = search.discover(&wanted).await.unwrap();
        let shown = search.answer(&found, &wanted).shown;
        let results: Vec<Value> = found
            .conversations
            .iter()
            .map(|conversation| {
                let hit = &conversation.hits[0];
                let role = if conversation.by_title { "session_title" } else { hit.role.as_str() };
                assert!(shown.contains(&hit.message));
                json!([self.name(hit.session.as_str()), hit.source, role, self.messages[&hit.message]])
            })
            .collect();
        json!({"success": true, "results": results})
    }
}

/// The compared part of a recorded answer.
fn expected(recorded: &Value) -> Value {
    if recorded["success"] == false {
        return json!({"success": false});
    }
    if let Some(results) = recorded["results"].as_array() {
        let result = |result: &Value| match recorded["mode"].as_str() {
            Some("browse") => result["session_id"].clone(),
            _ => json!([result["session_id"], result["source"], result["matched_role"], result["match_message_id"]]),
        };
        return json!({"success": true, "results": results.iter().map(result).collect::<Vec<_>>()});
    }
    let message = |message: &Value| json!([message[0], message[1]]);
    let messages: Vec<Value> = recorded["messages"].as_array().unwrap().iter().map(message).collect();
    json!({"success": true, "messages": messages})
}

#[tokio::test]
async fn session_search() {
    let Some(path) = hermes_test_data::recorded("vectors/session_search.json") else { return };
    let suite: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = suite["cases"].as_array().unwrap();
    assert_eq!(cases.len() as u64, suite["count"].as_u64().unwrap());
    let corpus = Corpus::of(&suite).await;
    let mut otherwise = 0;
    for case in cases {
        let ours = corpus.run(&case["input"]).await;
        let mut expected = expected(&case["expected"]);
        if case["name"] == "discover/ranked" {
            // Matching messages beside each other count more, and of equal ones the newer one comes first.
            let results = expected["results"].as_array_mut().unwrap();
            assert_eq!(results[1], json!(["old", "cli", "user", ["old", 14]]));
            results[1] = json!(["old", "cli", "assistant", ["old", 15]]);
            results.swap(0, 1);
            otherwise += 1;
        }
        assert_eq!(ours, expected, "{}", case["name"]);
    }
    eprintln!("session_search: {} cases, {} as recorded, {otherwise} otherwise", cases.len(), cases.len() - otherwise);
}
