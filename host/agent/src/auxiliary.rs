//! The user's models, as plugins may ask them.

use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::{Model, Role, Shown, tokens};
use hermes_models::{Breakpoints, Finish, ModelError, Prefix, Provider, Request, System};
use hermes_plugins::services::{self, ModelReply, ModelRequest, Models};
use hermes_plugins::{Fault, FaultKind};

/// Serves plugins from the session's provider.
pub(crate) struct Auxiliary {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: Model,
    /// `auxiliary.<task>.model`: the name to use instead, by task.
    pub(crate) names: std::collections::HashMap<String, String>,
}

impl Auxiliary {
    fn name_for(&self, task: &str) -> &str {
        self.names.get(task).unwrap_or(&self.model.name)
    }
}

#[async_trait]
impl Models for Auxiliary {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        if self.provider.is_offline() {
            return Err(Fault::new(FaultKind::Unavailable, "no-model", "no model is configured"));
        }
        Ok(Model { name: self.name_for(task).to_owned(), ..self.model.clone() })
    }

    async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault> {
        let model = self.resolve(&request.task)?;
        let (system, messages) = prompt(request.messages);
        let prefix = Prefix::of(self.provider.style(), System::plain(&system), &messages);
        let prefix = prefix.map_err(|error| fault(error.into()))?;
        let asked = Request {
            model: &model.name,
            prefix: &prefix,
            breakpoints: Breakpoints::default(),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            schema: request.schema.as_deref(),
        };
        let reply = self.provider.complete(&asked, &mut |_| {}).await.map_err(fault)?;
        let finish = match reply.finish {
            Finish::Length => services::Finish::Length,
            Finish::Refused => services::Finish::Refused,
            Finish::Stop | Finish::ToolCalls => services::Finish::Stop,
        };
        Ok(ModelReply { text: reply.text, finish, model: reply.model, usage: reply.usage.unwrap_or_default() })
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// System texts in front, the rest as a conversation.
fn prompt(messages: Vec<(Role, String)>) -> (String, Vec<Shown>) {
    let (system, said): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(role, _)| *role == Role::System);
    let system = system.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n\n");
    let said = said
        .into_iter()
        .map(|(role, content)| Shown {
            role,
            content,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            id: None,
        })
        .collect();
    (system, said)
}

fn fault(error: ModelError) -> Fault {
    let (kind, code) = match &error {
        ModelError::Auth { .. } | ModelError::Billing { .. } => (FaultKind::Unavailable, "auth"),
        ModelError::NotFound { .. } => (FaultKind::Unavailable, "no-model"),
        ModelError::TooLong { .. } => (FaultKind::InvalidInput, "too-long"),
        ModelError::RateLimited { .. } => (FaultKind::Exhausted, "rate-limit"),
        ModelError::Refused { .. } => (FaultKind::Failed, "refused"),
        ModelError::BadRequest { .. } => (FaultKind::InvalidInput, "bad-request"),
        _ => (FaultKind::Unavailable, ""),
    };
    Fault::new(kind, code, error.to_string())
}
