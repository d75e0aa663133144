//! The import `llm`: the user's models.

use hermes_bindings::imported;
use hermes_conversation::{Media, Role};
use imported::llm as wit;
use imported::types::{Error, Model};

use crate::context::Context;
use crate::convert::{fault, model, role_back, usage};
use crate::error::{Fault, FaultKind};
use crate::services::{Finish, ModelReply, ModelRequest, PromptMessage, PromptPart};

/// The most pictures of a request.
const MOST_IMAGES: usize = 16;

fn invalid(code: &str, why: impl Into<String>) -> Fault {
    Fault::new(FaultKind::InvalidInput, code, why)
}

/// Refuses a case of a later version of the contract.
fn later(what: &str, name: &str) -> Fault {
    let why = format!("this version of Hermes cannot send {what} of the kind `{}`", name.escape_debug());
    Fault::new(FaultKind::Unsupported, "unsupported", why)
}

impl Context {
    /// Checks a request, and reads the pictures that it names.
    pub(crate) async fn model_request(&mut self, request: wit::Request) -> Result<ModelRequest, Error> {
        if !self.services.may_ask {
            return Err(fault(Fault::denied("llm")));
        }
        self.read_request(request).await.map_err(fault)
    }

    async fn read_request(&mut self, request: wit::Request) -> Result<ModelRequest, Fault> {
        if request.messages.is_empty() {
            return Err(invalid("empty", "a prompt needs a message"));
        }
        let is_image = |part: &&wit::Content| matches!(part, wit::Content::Image(_));
        if request.messages.iter().flat_map(|message| &message.content).filter(is_image).count() > MOST_IMAGES {
            return Err(invalid("too-many", format!("a request has at most {MOST_IMAGES} pictures")));
        }
        let mut messages = Vec::new();
        for message in request.messages {
            let role = role_back(message.role)?;
            if role == Role::Tool {
                return Err(invalid("role", "a prompt has no messages of the role `tool`"));
            }
            if message.content.is_empty() {
                return Err(invalid("empty", "a message of a prompt needs a part"));
            }
            let mut content = Vec::new();
            for part in message.content {
                content.push(match part {
                    wit::Content::Text(text) => PromptPart::Text(text),
                    wit::Content::Image(_) if role != Role::User => {
                        return Err(invalid("role", "only messages of the role `user` have pictures"));
                    }
                    wit::Content::Image(image) => PromptPart::Image(self.picture(image).await?),
                    wit::Content::Other(name) => return Err(later("a part", &name)),
                });
            }
            messages.push(PromptMessage { role, content });
        }
        Ok(ModelRequest {
            task: request.task,
            messages,
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            schema: request.schema,
        })
    }

    async fn picture(&mut self, image: wit::Image) -> Result<Media, Fault> {
        let bytes = match image.source {
            wit::ImageSource::Bytes(bytes) => bytes,
            wit::ImageSource::Blob(_) if !self.services.may_read => return Err(Fault::denied("history")),
            wit::ImageSource::Blob(blob) => {
                let history = self.services.history.clone();
                let found = self.call.bounded(history.picture(&blob.hash)).await?;
                found.ok_or_else(|| {
                    let why = format!("no message of this conversation has the picture {}", blob.hash.escape_debug());
                    invalid("not-found", why)
                })?
            }
            wit::ImageSource::Other(name) => return Err(later("a picture", &name)),
        };
        let picture = Media::image(bytes, None).map_err(|error| invalid("image", format!("a picture: {error}")))?;
        if picture.media_type != image.media_type {
            let (found, given) = (&picture.media_type, image.media_type.escape_debug());
            return Err(invalid("media-type", format!("a picture has the type {found}, not `{given}`")));
        }
        Ok(picture)
    }
}

/// A reply as the plugin gets it.
pub(super) fn reply(reply: ModelReply) -> wit::Reply {
    wit::Reply {
        text: reply.text,
        finish: match reply.finish {
            Finish::Stop => wit::Finish::Stop,
            Finish::Length => wit::Finish::Length,
            Finish::Refused => wit::Finish::Refused,
        },
        model: reply.model,
        usage: usage(reply.usage),
        extra: Vec::new(),
    }
}

impl wit::Host for Context {
    async fn resolve(&mut self, task: String) -> Result<Model, Error> {
        if !self.services.may_ask {
            return Err(fault(Fault::denied("llm")));
        }
        self.services.models.resolve(&task).map(|found| model(&found)).map_err(fault)
    }

    async fn complete(&mut self, request: wit::Request) -> Result<wit::Reply, Error> {
        let request = self.model_request(request).await?;
        let models = self.services.models.clone();
        let answer = self.call.bounded(models.complete(request)).await.map_err(fault)?;
        self.tally.model_called(answer.usage.input.into(), answer.usage.output.into());
        Ok(reply(answer))
    }

    async fn count_tokens(&mut self, text: String) -> u32 {
        self.services.models.count_tokens(&text)
    }
}
