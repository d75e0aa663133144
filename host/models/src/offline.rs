//! The built-in partner: it follows a few commands, so that the loop and its tools work without a configured model.
//!
//! Its reply depends only on the request, so that tests and plugin authors can script it.
//! `docs/use/offline.md` lists its grammar.

mod grammar;

use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, Role, ToolCall, Usage, fence, tokens};
use serde::Deserialize;
use serde_json::Value;

use crate::route::OFFLINE;
use crate::{Delta, Finish, ModelError, OnDelta, Prefix, Provider, Reply, Request, Style, ToolChoice};
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

/// What it reads of a request: the bytes that any other provider would get.
struct Heard {
    tools: Vec<Value>,
    /// Estimate of the whole prompt.
    tokens: u32,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: Role,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Message {
    fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }
}

impl Heard {
    fn of(prefix: &Prefix) -> Result<Self, ModelError> {
        let unreadable = |error: serde_json::Error| {
            ModelError::unsendable(format!("the offline partner cannot read the request: {error}"))
        };
        let (tools, messages) = prefix.bytes().split_at(prefix.tools_len());
        let mut tokens = tokens::of_text(&String::from_utf8_lossy(tools));
        let tools = if tools.is_empty() { Vec::new() } else { serde_json::from_slice(tools).map_err(unreadable)? };
        let mut messages: Vec<Message> = serde_json::from_slice(&[messages, b"]"].concat()).map_err(unreadable)?;
        if messages.first().is_some_and(|first| first.role == Role::System) {
            tokens = tokens.saturating_add(tokens::of_text(messages.remove(0).text()));
        }
        let tokens = messages.iter().map(message_tokens).fold(tokens, u32::saturating_add);
        Ok(Self { tools, tokens, messages })
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.pointer("/function/name").and_then(Value::as_str) == Some(name))
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
    fn style(&self) -> Style {
        Style::PLAIN
    }

    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        request.fits(self.style())?;
        let mut heard = Heard::of(request.prefix)?;
        let input = heard.tokens;
        if input > self.window {
            let message = format!("the prompt has {input} tokens and the window {}", self.window);
            return Err(ModelError::TooLong { message, limit: Some(self.window) });
        }
        if request.tool_choice == ToolChoice::None {
            heard.tools.clear();
        }
        let answer = answer(&heard);
        stream(&answer, on_delta).await;
        let output = tokens::of_text(&answer.text)
            + answer.calls.iter().map(|call| call_tokens(&call.name, &call.arguments)).sum::<u32>();
        Ok(Reply {
            text: answer.text,
            reasoning: None,
            finish: if answer.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
            tool_calls: answer.calls,
            usage: Some(Usage { input, output, ..Usage::default() }),
            model: OFFLINE.to_owned(),
            parts: Vec::new(),
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
}

fn answer(heard: &Heard) -> Answer {
    let messages = &heard.messages;
    let said = messages.iter().rposition(|message| message.role == Role::User);
    let Parsed { commands, prose, pause } = grammar::parse(said.map_or("", |at| messages[at].text()));
    let results = said.map_or(&[][..], |at| &messages[at + 1..]);
    let after_tools = results.last().is_some_and(|message| message.role == Role::Tool);

    let mut lines: Vec<String> = if after_tools { result_lines(results) } else { Vec::new() };
    let mut calls = Vec::new();
    for command in &commands {
        match command {
            Command::Say(text) => lines.push(text.clone()),
            Command::Call { name, .. } if !heard.has_tool(name) => {
                lines.push(format!("The tool `{name}` is missing in this session, so I do not call it."));
            }
            Command::Call { name, arguments } => calls.push(ToolCall {
                id: format!("offline_{}_{}", messages.len(), calls.len() + 1),
                name: name.clone(),
                arguments: arguments.clone(),
            }),
        }
    }
    if !calls.is_empty() && !after_tools {
        // Other text follows the results.
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
fn result_lines(messages: &[Message]) -> Vec<String> {
    let Some(caller) = messages.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let calls = &messages[caller].tool_calls;
    let name_of = |id: Option<&str>| {
        calls.iter().find(|call| Some(call.id.as_str()) == id).map_or("tool", |call| call.function.name.as_str())
    };
    messages[caller + 1..]
        .iter()
        .map(|result| format!("`{}`: {}", name_of(result.tool_call_id.as_deref()), echo(result.text())))
        .collect()
}

/// The beginning of a text, on one line. Of a text of strangers, which is between marks, its own words.
fn echo(text: &str) -> String {
    let text = fence::block(text, fence::UNTRUSTED_TEXT).map_or(text, fence::inside);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_ECHO) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "(empty)".to_owned(),
        None => line,
    }
}

/// By the same ruler as the host's estimates.
fn message_tokens(message: &Message) -> u32 {
    let calls = message.tool_calls.iter().map(|call| call_tokens(&call.function.name, &call.function.arguments));
    let linkage = message.tool_call_id.as_ref().map_or(0, |_| 8);
    tokens::of_text(message.text()).saturating_add(calls.sum()).saturating_add(linkage + PER_MESSAGE)
}

fn call_tokens(name: &str, arguments: &str) -> u32 {
    tokens::of_text(name).saturating_add(tokens::of_text(arguments)).saturating_add(12)
}

#[cfg(test)]
mod tests;
