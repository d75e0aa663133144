//! The stand-in as the model that plugins call.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_conversation::{Model, Role, Usage, tokens};
use hermes_plugin_host::services::{Finish, ModelReply, ModelRequest, Models, Pieces, PromptMessage};
use hermes_plugin_host::{Fault, FaultKind};
use hermes_testkit::{StandIn, Written};

use crate::gate::Gate;

/// The time after which the host gives up on a summary, in milliseconds.
const TIMEOUT_MS: u64 = 120_000;

/// Writes summaries in simulated time, and records their cost.
pub(crate) struct StandInModels {
    pub(crate) stand_in: StandIn,
    pub(crate) window: u32,
    pub(crate) gate: Arc<Gate>,
    pub(crate) written: Arc<Mutex<Vec<Written>>>,
}

#[async_trait]
impl Models for StandInModels {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        if !self.stand_in.exists() {
            return Err(Fault::new(FaultKind::Unavailable, "no-model", "the laboratory was told to have no model"));
        }
        Ok(Model { provider: "lab".to_owned(), name: "stand-in".to_owned(), context_length: self.window })
    }

    async fn stream(&self, request: ModelRequest, _: &Pieces) -> Result<ModelReply, Fault> {
        let model = self.resolve(&request.task)?;
        let prompts = request.messages.iter().filter(|message| message.role != Role::System);
        let source = prompts.flat_map(PromptMessage::texts).collect::<Vec<_>>().join("\n");
        let mut written = self.stand_in.write_within(&source, request.max_tokens);
        let in_time = written.took_ms <= TIMEOUT_MS;
        self.gate.pass(written.took_ms.min(TIMEOUT_MS)).await;
        let text = written.text.take();
        let (input, output) = (written.input as u32, written.output as u32);
        if text.is_some() {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).push(written);
        }
        match text {
            _ if !in_time => Err(Fault::new(FaultKind::Timeout, "", "the stand-in did not answer in time")),
            None => Err(Fault::new(FaultKind::Unavailable, "", "the stand-in is down")),
            Some(text) => Ok(ModelReply {
                text,
                finish: Finish::Stop,
                model: model.name,
                usage: Usage { input, output, ..Usage::default() },
            }),
        }
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}
