//! Providers over HTTP: a wire format and its endpoint.

use async_trait::async_trait;

use crate::{
    Delta, Effort, Logins, ModelError, OnDelta, Persistence, Provider, Reply, Request, Route, Style, Thinking,
    auth::ReadKey,
    endpoint::{Endpoint, Patience},
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
    pub(crate) fn new(route: &Route, logins: &Logins, patience: Patience) -> Result<Self, ModelError> {
        Ok(Self {
            style: route.style(),
            dialect: Dialect::of_route(route),
            endpoint: Endpoint::new(route, logins, patience)?,
        })
    }

    /// Reads the key again when the server refuses it.
    pub(crate) fn rereading(self, route: &Route, logins: &Logins, read: ReadKey) -> Result<Self, ModelError> {
        Ok(Self { endpoint: self.endpoint.rereading(route, logins, read)?, ..self })
    }
}

impl Remote {
    async fn send(
        &self,
        request: &Request<'_>,
        on_delta: OnDelta<'_>,
        persistence: Persistence,
    ) -> Result<Reply, ModelError> {
        let body = wire::body(request, &self.dialect)?;
        let format = self.style.mode.format();
        self.endpoint.complete(body, request.model, &|| format.assembly(request), on_delta, persistence).await
    }

    async fn ask(
        &self,
        request: &Request<'_>,
        on_delta: OnDelta<'_>,
        persistence: Persistence,
    ) -> Result<Reply, ModelError> {
        request.fits(self.style)?;
        let replied = self.send(request, on_delta, persistence).await;
        // The prompt fits; only the cap, which is an estimate, is too high.
        if let Err(ModelError::TooLong { message, .. } | ModelError::BadRequest { message, .. }) = &replied
            && let Some(room) = self.style.mode.format().output_room(message)
            && request.max_tokens.is_none_or(|cap| room < cap)
        {
            on_delta(Delta::Notice(&format!("the provider accepts a reply of at most {room} tokens; asking for that")));
            return self.send(&Request { max_tokens: Some(room), ..*request }, on_delta, persistence).await;
        }
        replied
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
        self.ask(request, on_delta, Persistence::Full).await
    }

    async fn complete_with(
        &self,
        persistence: Persistence,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.ask(request, on_delta, persistence).await
    }

    fn can_cap(&self, request: &Request<'_>) -> bool {
        self.style.mode.format().can_cap(request, &self.dialect)
    }

    fn thinking(&self, model: &str, effort: Effort) -> Thinking {
        let dial = self.style.mode.format().dial(model, &self.dialect);
        dial.map_or(Thinking::Unknown, |dial| dial.thinking(effort))
    }

    fn is_offline(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
