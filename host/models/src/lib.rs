//! Models: the choice of a session's model, requests to it, and its streamed replies.
//!
//! [`resolve`] chooses a route from flags, environment and configuration; [`resolve_auxiliary`] does so for tasks that other
//! models may serve. [`connect`] creates a [`Provider`] for a route. Providers are endpoints of chat completions, of the
//! Responses API or of Anthropic's messages, and the built-in `offline` partner, which needs no model. The loop, its tools and the store are
//! elsewhere. A provider runs no calls and keeps nothing between two requests.
//!
//! A session renders each message once, in the [`Style`] of its provider, and keeps the bytes in a [`Prefix`], which
//! only grows. A [`Request`] is that prefix and little else, so that the provider's cache can reuse it.
//!
//! ```
//! use hermes_conversation::{Part, Role, Shown};
//! use hermes_models::{Breakpoints, Dialect, Prefix, Request, Style, System, ToolChoice, body};
//!
//! let style = Style::PLAIN; // of a real provider: `provider.style()`
//! let hi = Shown::words(Role::User, "hi");
//! let mut prefix = Prefix::new(style, "[]", System::plain("be brief"))?;
//! prefix.push(&style.render(&hi));
//! let request = Request {
//!     model: "m",
//!     prefix: &prefix,
//!     breakpoints: Breakpoints::default(),
//!     max_tokens: None,
//!     temperature: None,
//!     schema: None,
//!     tool_choice: ToolChoice::Auto,
//!     effort: None,
//! };
//! let body = body(&request, &Dialect::PLAIN)?;
//! assert!(body.to_vec().ends_with(br#""messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}"#));
//! # Ok::<(), hermes_models::ModelError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod assembly;
mod auth;
mod breakpoints;
mod client;
mod cooldowns;
mod diagnosis;
mod embeddings;
mod endpoint;
mod error;
mod failure;
mod family;
#[doc(hidden)]
pub mod invariants;
mod json;
mod lifetime;
mod list;
mod offline;
mod prefix;
mod price;
mod providers;
mod reasoning;
mod remote;
mod route;
mod secret;
mod style;
mod trial;
mod usage;
#[cfg(test)]
mod vectors;
mod vision;
mod warming;
mod window;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Part, ToolCall, Usage};

pub use auth::{
    Flow, KnownClient, LoggedIn, LoggedOut, LoginClient, LoginError, LoginSettings, LoginState, LoginStep, Logins,
    OnStep, ReadKey, discover_login,
};
pub use breakpoints::{Breakpoints, Ttl, TtlChoice, UnknownTtl};
pub use cooldowns::{Cooldown, CooldownId, Cooldowns};
pub use diagnosis::codes;
pub use embeddings::{Embedded, EmbeddingEndpoint};
pub use endpoint::Persistence;
pub use error::ModelError;
pub use failure::limit::limit_below;
pub use lifetime::{Asked, Lifetimes};
pub use list::{ListedModel, list_models};
pub use prefix::{Place, Prefix, PrefixError, Rendered, System, left_out};
pub use price::{Price, PriceFlaw, PriceRow, Prices, cost, prices_as_of, saved};
pub use providers::{CustomFlaw, CustomProvider, KeyHeader, PROVIDERS, ProviderRow};
pub use reasoning::{Echo, Effort, Thinking};
pub use route::{
    AddressFlaw, Auxiliary, AuxiliaryError, Credential, ResolveError, Route, Source, Wanted, WindowSource, resolve,
    resolve_auxiliary, resolve_embeddings,
};
pub use secret::{Secret, redact};
pub use style::{ApiMode, Marks, Style};
pub use trial::{Trial, try_route};
pub use vision::sees_images;
pub use warming::{Pauses, Waiting, WarmingLimits, warming_cost, warming_saved};
pub use window::LEAST_WINDOW;
pub use wire::{
    Body, CallIds, Dialect, LeftOut, SchemaDialect, ToolNames, body,
    chat::{deferred_json, tools_json},
    shown_tools,
};

/// One request, borrowed from its sender.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model's name as the provider knows it.
    pub model: &'a str,
    /// Tools, system prompt and the conversation, the user's message first; in the provider's own style.
    pub prefix: &'a Prefix,
    /// Where cache marks go, for providers that use them.
    pub breakpoints: Breakpoints,
    /// The cap on tokens of the reply.
    pub max_tokens: Option<u32>,
    /// None for the provider's default.
    pub temperature: Option<f32>,
    /// A JSON Schema, as text, that the reply must match.
    pub schema: Option<&'a str>,
    /// Whether the model may call the tools of the prefix.
    pub tool_choice: ToolChoice,
    /// How much the model should think; none for the provider's default.
    pub effort: Option<Effort>,
}

/// Whether the model may call the tools of the prefix, which are sent in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model should answer in text. Not every model obeys, and not every wire format can say so without a loss of the
    /// provider's cache: a call can come nevertheless.
    None,
}

impl Request<'_> {
    /// Checks that the prefix has the provider's style.
    fn fits(&self, style: Style) -> Result<(), ModelError> {
        if self.prefix.style() == style {
            return Ok(());
        }
        let (given, wanted) = (self.prefix.style(), style);
        Err(ModelError::unsendable(format!("the prefix is written as {given:?} and the provider reads {wanted:?}")))
    }
}

/// What can be shown while a reply arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of the text.
    Text(&'a str),
    /// More of the reasoning.
    Reasoning(&'a str),
    /// The model begins to write a call of the tool with this name; the arguments follow.
    Call(&'a str),
    /// Not from the model: a message of the host, for example about a delay before another try.
    Notice(&'a str),
    /// The reply broke off and begins again. Drop what came so far.
    Again,
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text, a refusal included; may be empty if there are calls.
    pub text: String,
    /// The reasoning, if the provider returns it.
    pub reasoning: Option<String>,
    /// Calls in the order in which the model made them, each id once.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// The tokens, if the provider reports them.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The whole reply in order, if it has more than text, calls and plain reasoning: payloads of reasoning, or a refusal.
    /// The payloads have no tags yet.
    pub parts: Vec<Part>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The cap on output was reached. Arguments of the last call may be cut off: arguments that are not a JSON object must not
    /// be run.
    Length,
    /// The model or the provider declined. The text has its words, if any; calls are dropped.
    Refused,
}

/// Receives what can be shown of a reply while it arrives.
pub type OnDelta<'a> = &'a mut (dyn for<'d> FnMut(Delta<'d>) + Send);

/// Something that completes conversations.
#[async_trait]
pub trait Provider: Send + Sync {
    /// How messages for it are rendered.
    fn style(&self) -> Style;

    /// Asks for one reply. Dropping the future drops the connection.
    ///
    /// # Errors
    ///
    /// Every [`ModelError`]. What was streamed before an error does not count as said.
    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError>;

    /// Like [`Provider::complete`] with other tries.
    ///
    /// # Errors
    ///
    /// Every [`ModelError`].
    async fn complete_with(
        &self,
        _persistence: Persistence,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.complete(request, on_delta).await
    }

    /// Whether the same request with a smaller cap on output reads the same from the provider's cache.
    fn can_cap(&self, _request: &Request<'_>) -> bool {
        true
    }

    /// What a model can do with an effort.
    fn thinking(&self, _model: &str, _effort: Effort) -> Thinking {
        Thinking::Unknown
    }

    /// Whether this is the built-in partner, which cannot think.
    fn is_offline(&self) -> bool;
}

/// A provider for a route. Nothing is sent before the first request. `logins` gives the tokens of a route whose
/// credential is a login.
///
/// # Errors
///
/// [`ModelError::BadRequest`] if the route names no endpoint, or if its key has characters that a header cannot carry.
pub fn connect(route: &Route, logins: &Logins) -> Result<Arc<dyn Provider>, ModelError> {
    connect_patiently(route, logins, Waits::default(), None)
}

/// How long a provider is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// How long [`Provider::complete`] tries again after the three tries that every request gets.
    pub keep_trying: Duration,
    /// How long the server may send nothing. None for the default: three minutes, fifteen for a server on this machine, and
    /// up to ten for models that are known to think for minutes.
    pub silence: Option<Duration>,
}

/// Like [`connect`], with waits of the caller's choice. A request is sent once more with the key that `read_key` gives after
/// the server refused the key with 401.
///
/// # Errors
///
/// Those of [`connect`].
pub fn connect_patiently(
    route: &Route,
    logins: &Logins,
    waits: Waits,
    read_key: Option<ReadKey>,
) -> Result<Arc<dyn Provider>, ModelError> {
    if route.is_offline() {
        return Ok(Arc::new(offline::Offline::new(&route.model)));
    }
    let remote = remote::Remote::new(route, logins, endpoint::Patience::chosen(route, waits))?;
    Ok(match read_key {
        Some(read) => Arc::new(remote.rereading(route, logins, read)?),
        None => Arc::new(remote),
    })
}
