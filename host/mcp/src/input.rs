//! Results that ask first: since the version 2026-07-28 a server that wants something of its client answers a request with its own
//! requests, and the client sends the request again with the answers. Earlier servers send requests of their own ([`crate::handler`]).

// The protocol calls sampling deprecated; servers use it.
#![allow(deprecated)]

use std::time::Duration;

use rmcp::model::{CreateMessageRequestParams, ElicitRequestParams, InputResponses};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::line;
use crate::handler::Handler;
use crate::limits;

/// The requests that a server wants answered before it carries out a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Each request by its key.
    requests: Vec<(String, Value)>,
    state: Option<String>,
}

/// The answers that the client adds when it repeats the call.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) responses: Option<InputResponses>,
    /// The state that the server sent, unchanged.
    pub(crate) state: Option<String>,
}

impl Wanted {
    /// `None` if the result is one.
    pub(crate) fn of(result: &mut Value) -> Option<Self> {
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return None;
        }
        let requests = match result.get_mut("inputRequests").map(Value::take) {
            Some(Value::Object(requests)) => requests.into_iter().collect(),
            _ => Vec::new(),
        };
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Some(Self { requests, state })
    }

    /// Answers each request in its turn. The error says why one has no answer, which ends the call.
    pub(crate) async fn given(self, handler: &Handler, round: u32) -> Result<Given, String> {
        if self.requests.len() > limits::INPUTS {
            return Err(format!("it asks for {} things at once; {} are answered", self.requests.len(), limits::INPUTS));
        }
        if self.state.as_ref().is_some_and(|state| state.len() > limits::STATE) {
            return Err(format!("its `requestState` is longer than {} bytes", limits::STATE));
        }
        if self.requests.is_empty() {
            if self.state.is_none() {
                return Err("it asks for input and does not say which".to_owned());
            }
            // It only wants to be asked again.
            tokio::time::sleep(Duration::from_millis(50 << round.min(3))).await;
            return Ok(Given { responses: None, state: self.state });
        }
        let mut responses = InputResponses::new();
        for (key, request) in self.requests {
            responses.insert(key, answer(handler, &request).await?);
        }
        Ok(Given { responses: Some(responses), state: self.state })
    }
}

async fn answer(handler: &Handler, request: &Value) -> Result<Value, String> {
    match request.get("method").and_then(Value::as_str).unwrap_or_default() {
        "elicitation/create" => written(&handler.elicit(read::<ElicitRequestParams>(request)?).await),
        "sampling/createMessage" => {
            let created = handler.create(read::<CreateMessageRequestParams>(request)?).await;
            written(&created.map_err(|why| format!("it asks for a model's words first, and {why}"))?)
        }
        "roots/list" => written(&handler.roots()),
        other => Err(format!("it asks for an input of the unknown kind `{}`", line(other))),
    }
}

fn read<T: DeserializeOwned>(request: &Value) -> Result<T, String> {
    let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(params).map_err(|error| line(&format!("it asks for an input that cannot be read: {error}")))
}

fn written(response: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(response).map_err(|error| error.to_string())
}
