//! One attempt of one model to answer a plugin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_conversation::{Part, Role};
use hermes_models::{Breakpoints, Delta, Finish, Persistence, Prefix, Reply, Request, System, ToolChoice};
use hermes_plugin_host::services::{ModelRequest, Piece, Pieces, PromptMessage, PromptPart};

use super::failure::Failure;
use super::route::Route;

/// Passes the pieces of a reply to the plugin, and remembers whether there were any.
pub(super) struct Shown<'a> {
    pieces: &'a Pieces,
    anything: AtomicBool,
}

impl<'a> Shown<'a> {
    pub(super) fn to(pieces: &'a Pieces) -> Self {
        Self { pieces, anything: AtomicBool::new(false) }
    }

    /// Whether a streaming plugin has a part of the reply.
    pub(super) fn anything(&self) -> bool {
        self.pieces.are_kept() && self.anything.load(Ordering::Relaxed)
    }

    fn push(&self, delta: Delta<'_>) {
        let piece = match delta {
            Delta::Text(text) => Piece::Text(text.to_owned()),
            Delta::Reasoning(text) => Piece::Reasoning(text.to_owned()),
            // Only a turn's own request is begun again.
            Delta::Call(_) | Delta::Notice(_) | Delta::Again => return,
        };
        self.anything.store(true, Ordering::Relaxed);
        self.pieces.push(piece);
    }
}

/// Makes one attempt. With `patient` the provider makes its own retries.
pub(super) async fn attempt(
    who: &Route,
    request: &ModelRequest,
    timeout: Duration,
    patient: bool,
    shown: &Shown<'_>,
) -> Result<Reply, Failure> {
    let (system, messages) = prompt(&request.messages);
    let prefix = Prefix::of(who.served.provider.style(), System::plain(&system), &messages);
    let prefix = prefix.map_err(|error| Failure::Model(error.into()))?;
    let sent = Request {
        model: &who.served.model.name,
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: request.max_tokens,
        temperature: request.temperature,
        schema: request.schema.as_deref(),
        tool_choice: ToolChoice::Auto,
        effort: who.effort,
    };
    let mut on_delta = |delta: Delta<'_>| shown.push(delta);
    let persistence = if patient { Persistence::Full } else { Persistence::Once };
    let answer = who.served.provider.complete_with(persistence, &sent, &mut on_delta);
    match tokio::time::timeout(timeout, answer).await {
        Err(_) => Err(Failure::TimedOut(timeout)),
        Ok(Err(error)) => Err(Failure::Model(error)),
        Ok(Ok(reply)) if reply.text.trim().is_empty() && reply.finish != Finish::Refused => {
            Err(if reply.finish == Finish::Length { Failure::CutBeforeText } else { Failure::Empty })
        }
        Ok(Ok(reply)) => Ok(reply),
    }
}

/// Splits a prompt into the system text and the conversation.
fn prompt(messages: &[PromptMessage]) -> (String, Vec<hermes_conversation::Shown>) {
    let (system, rest): (Vec<_>, Vec<_>) = messages.iter().partition(|message| message.role == Role::System);
    let system = system.into_iter().flat_map(PromptMessage::texts).collect::<Vec<_>>().join("\n\n");
    (system, rest.into_iter().map(message).collect())
}

fn message(message: &PromptMessage) -> hermes_conversation::Shown {
    let text = message.texts().collect::<Vec<_>>().join("\n\n");
    let mut shown = hermes_conversation::Shown::words(message.role, text);
    if message.images().next().is_some() {
        shown.parts = message.content.iter().map(part).collect();
    }
    shown
}

fn part(part: &PromptPart) -> Part {
    match part {
        PromptPart::Text(text) => Part::text(text.clone()),
        PromptPart::Image(image) => Part::Image(image.clone()),
    }
}
