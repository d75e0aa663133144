//! Providers that are asked over HTTP: a wire format, and the endpoint that speaks it.

use async_trait::async_trait;

use crate::{
    ApiMode, Delta, Known, ModelError, OnDelta, Provider, Reply, Request, Route, Style, assembly,
    endpoint::{Endpoint, Patience, TRIES},
    wire::{self, Dialect},
};

/// A provider behind an endpoint.
pub(crate) struct Remote {
    style: Style,
    dialect: Dialect,
    endpoint: Endpoint,
}

impl Remote {
    /// A provider for a route that names an endpoint. Nothing is sent yet.
    pub(crate) fn new(route: &Route, patience: Patience) -> Result<Self, ModelError> {
        Ok(Self { style: route.style(), dialect: dialect(route), endpoint: Endpoint::new(route, patience)? })
    }
}

impl Remote {
    async fn chat(&self, request: &Request<'_>, on_delta: OnDelta<'_>, tries: u32) -> Result<Reply, ModelError> {
        let body = wire::body(request, &self.dialect)?;
        self.endpoint.complete(body, request.model, assembly::chat::Assembly::default, on_delta, tries).await
    }

    async fn messages(&self, request: &Request<'_>, on_delta: OnDelta<'_>, tries: u32) -> Result<Reply, ModelError> {
        let body = wire::body(request, &self.dialect)?;
        let formed = request.schema.is_some();
        let assembly = || assembly::messages::Assembly::new(formed);
        self.endpoint.complete(body, request.model, assembly, on_delta, tries).await
    }

    async fn ask(&self, request: &Request<'_>, on_delta: OnDelta<'_>, tries: u32) -> Result<Reply, ModelError> {
        request.fits(self.style)?;
        match self.style.mode {
            ApiMode::ChatCompletions => self.chat(request, on_delta, tries).await,
            ApiMode::AnthropicMessages => {
                let replied = self.messages(request, on_delta, tries).await;
                // The prompt fits and only the cap does not, which was set by an estimate.
                if let Err(ModelError::TooLong { message }) = &replied
                    && let Some(room) = wire::messages::output_room(message)
                {
                    return self.messages(&Request { max_tokens: Some(room), ..*request }, on_delta, tries).await;
                }
                replied
            }
        }
    }
}

fn dialect(route: &Route) -> Dialect {
    let known = route.base_url.as_ref().and_then(Known::by_host);
    let is = |id: &str| known.is_some_and(|known| known.id == id);
    Dialect {
        stream_options: known.is_none_or(|known| known.stream_options),
        newer_cap: is("openai"),
        vendor_names: is("anthropic") || route.model.provider == "anthropic",
        context_length: Some(route.model.context_length),
    }
}

#[async_trait]
impl Provider for Remote {
    fn style(&self) -> Style {
        self.style
    }

    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.ask(request, on_delta, TRIES).await
    }

    async fn attempt(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        self.ask(request, &mut |_| {}, 1).await
    }

    fn is_offline(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
