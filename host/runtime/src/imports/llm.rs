//! The import `llm`: the user's models.

use hermes_bindings::imported;
use hermes_conversation::Role;
use imported::llm as wit;
use imported::types::{Error, Model};

use crate::context::Context;
use crate::convert::{fault, model, role_back, usage};
use crate::error::{Fault, FaultKind};
use crate::services::{Finish, ModelRequest};

impl wit::Host for Context {
    async fn resolve(&mut self, task: String) -> Result<Model, Error> {
        if !self.services.may_ask {
            return Err(fault(Fault::denied("llm")));
        }
        self.services.models.resolve(&task).map(|found| model(&found)).map_err(fault)
    }

    async fn complete(&mut self, request: wit::Request) -> Result<wit::Reply, Error> {
        if !self.services.may_ask {
            return Err(fault(Fault::denied("llm")));
        }
        let messages: Vec<(Role, String)> = request
            .messages
            .into_iter()
            .map(|message| Ok((role_back(message.role)?, message.content)))
            .collect::<Result<_, _>>()
            .map_err(fault)?;
        if messages.iter().any(|(role, _)| *role == Role::Tool) {
            return Err(fault(Fault::new(
                FaultKind::InvalidInput,
                "role",
                "a prompt has no messages of the role `tool`",
            )));
        }
        if messages.is_empty() {
            return Err(fault(Fault::new(FaultKind::InvalidInput, "empty", "a prompt needs a message")));
        }
        let model_request = ModelRequest {
            task: request.task,
            messages,
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            schema: request.schema,
        };
        let models = self.services.models.clone();
        let reply = self.call.bounded(models.complete(model_request)).await.map_err(fault)?;
        self.tally.model_called(reply.usage.input.into(), reply.usage.output.into());
        Ok(wit::Reply {
            text: reply.text,
            finish: match reply.finish {
                Finish::Stop => wit::Finish::Stop,
                Finish::Length => wit::Finish::Length,
                Finish::Refused => wit::Finish::Refused,
            },
            model: reply.model,
            usage: usage(reply.usage),
            extra: Vec::new(),
        })
    }

    async fn count_tokens(&mut self, text: String) -> u32 {
        self.services.models.count_tokens(&text)
    }
}
