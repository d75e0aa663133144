//! The partner built into Hermes: it follows a few commands, and so drives the real loop with real tools where no
//! model is configured.
//!
//! It is a function of the request alone: the same conversation gives the same reply, so that tests and plugin authors
//! can script it. `docs/offline.md` lists its grammar for people.

mod grammar;

use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, Role, Shown, ToolCall, Usage, tokens};
use serde_json::Value;

use crate::{Delta, Finish, ModelError, OFFLINE, OnDelta, Provider, Reply, Request};
pub use grammar::GRAMMAR;
use grammar::{Command, Parsed};

/// Most characters of a result that are repeated.
const LONGEST_ECHO: usize = 200;
/// What a provider adds around each message.
const PER_MESSAGE: u32 = 5;

/// The built-in partner.
pub(crate) struct Offline {
    window: u32,
}

impl Offline {
    /// A partner with the window of a model.
    pub(crate) fn new(model: &Model) -> Self {
        Self { window: model.context_length }
    }
}

/// What it will say and call, and how fast.
struct Answer {
    text: String,
    calls: Vec<ToolCall>,
    pause: Option<Duration>,
}

#[async_trait]
impl Provider for Offline {
    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        let input = prompt_tokens(request);
        if input > self.window {
            let message = format!("the prompt has {input} tokens and the window {}", self.window);
            return Err(ModelError::TooLong { message });
        }
        let answer = answer(request);
        stream(&answer, on_delta).await;
        let output = tokens::of_text(&answer.text) + answer.calls.iter().map(call_tokens).sum::<u32>();
        Ok(Reply {
            text: answer.text,
            reasoning: None,
            finish: if answer.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
            tool_calls: answer.calls,
            usage: Some(Usage { input, output, ..Usage::default() }),
            model: OFFLINE.to_owned(),
        })
    }

    fn is_offline(&self) -> bool {
        true
    }
}

async fn stream(answer: &Answer, on_delta: OnDelta<'_>) {
    let mut first = true;
    for word in answer.text.split_inclusive(char::is_whitespace) {
        match answer.pause {
            Some(pause) if !first => tokio::time::sleep(pause).await,
            // A long reply can be dropped midway, like that of any other provider.
            _ => tokio::task::yield_now().await,
        }
        first = false;
        on_delta(Delta::Text(word));
    }
    for call in &answer.calls {
        on_delta(Delta::ToolName(&call.name));
    }
}

fn answer(request: &Request<'_>) -> Answer {
    let said = request.messages.iter().rposition(|message| message.role == Role::User);
    let Parsed { commands, prose, pause } = grammar::parse(said.map_or("", |at| &request.messages[at].content));
    let tools = tool_names(request.tools);
    let results = said.map_or(&[][..], |at| &request.messages[at + 1..]);
    let after_tools = results.last().is_some_and(|message| message.role == Role::Tool);

    let mut lines: Vec<String> = if after_tools { result_lines(results) } else { Vec::new() };
    let mut calls = Vec::new();
    for command in &commands {
        match command {
            Command::Say(text) => lines.push(text.clone()),
            Command::Call { name, .. } if !tools.contains(name) => {
                lines.push(format!("The tool `{name}` is missing in this session, so I do not call it."));
            }
            Command::Call { name, arguments } => calls.push(ToolCall {
                id: format!("offline_{}_{}", request.messages.len(), calls.len() + 1),
                name: name.clone(),
                arguments: arguments.clone(),
            }),
        }
    }
    if !calls.is_empty() && !after_tools {
        // What else there is to say follows the results.
        return Answer { text: String::new(), calls, pause };
    }
    if commands.is_empty() && !after_tools {
        lines.push(if pause.is_some() { grammar::filler(100) } else { grammar::help() });
    } else if prose > 0 {
        lines.push(format!("({prose} of the lines are none of my commands; `help` lists them.)"));
    }
    Answer { text: lines.join("\n"), calls: Vec::new(), pause }
}

/// A line for each result of the newest calls.
fn result_lines(messages: &[Shown]) -> Vec<String> {
    let Some(caller) = messages.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let calls = &messages[caller].tool_calls;
    let name_of = |id: Option<&str>| {
        calls.iter().find(|call| Some(call.id.as_str()) == id).map_or("tool", |call| call.name.as_str())
    };
    messages[caller + 1..]
        .iter()
        .map(|result| format!("`{}`: {}", name_of(result.tool_call_id.as_deref()), echo(&result.content)))
        .collect()
}

/// The beginning of a text, on one line.
fn echo(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_ECHO) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "(empty)".to_owned(),
        None => line,
    }
}

fn tool_names(tools: &str) -> Vec<String> {
    let tools: Vec<Value> = serde_json::from_str(tools).unwrap_or_default();
    tools.iter().filter_map(|tool| Some(tool.pointer("/function/name")?.as_str()?.to_owned())).collect()
}

/// By the same ruler as the host's estimates.
fn prompt_tokens(request: &Request<'_>) -> u32 {
    let messages = request.messages.iter().map(|message| {
        let calls: u32 = message.tool_calls.iter().map(call_tokens).sum();
        let linkage = message.tool_call_id.as_ref().map_or(0, |_| 8);
        tokens::of_text(&message.content).saturating_add(calls).saturating_add(linkage + PER_MESSAGE)
    });
    messages.fold(tokens::of_text(request.system), u32::saturating_add).saturating_add(tokens::of_text(request.tools))
}

fn call_tokens(call: &ToolCall) -> u32 {
    tokens::of_text(&call.name).saturating_add(tokens::of_text(&call.arguments)).saturating_add(12)
}

#[cfg(test)]
mod tests;
