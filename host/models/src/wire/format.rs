//! The trait of all wire formats. [`ApiMode`] is the stored name of a format; its registry is the only place that knows every
//! implementation.

use std::{fmt, ops::Range};

use hermes_conversation::{Role, Shown};

use super::{Dialect, frozen::Written, schema::SchemaDialect};
use crate::{
    ApiMode, CallIds, Echo, Effort, Marks, Prefix, Rendered, Request, Style,
    assembly::Assemble,
    prefix::{System, SystemMarks},
    providers::{KeyHeader, ProviderRow},
    reasoning::dial::Dial,
};

/// A wire format: messages to request, events to reply. Implementations hold no state.
pub(crate) trait WireFormat: fmt::Debug + Send + Sync {
    /// Its name in the configuration and in the store.
    fn name(&self) -> &'static str;

    /// The path of its endpoint below an API's base, such as `/chat/completions`.
    fn endpoint(&self) -> &'static str;

    /// The whole path of the endpoint for the path of a base, without a slash at its end. `row` is the provider whose
    /// host is asked.
    fn path(&self, base: &str, row: Option<&ProviderRow>) -> String;

    /// Headers of every request, apart from those that carry a key.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Which header carries the key, where the provider has no rule of its own.
    fn key_header(&self) -> KeyHeader {
        KeyHeader::Bearer
    }

    /// Where cache marks go. `marked` says whether the route is listed as one that understands marks.
    fn marks(&self, marked: bool) -> Marks;

    /// What of a provider's echo the format distinguishes.
    fn echo(&self, listed: Echo) -> Echo {
        listed
    }

    /// Which ids of calls a provider takes, where the format leaves that to its providers.
    fn ids(&self, _listed: CallIds) -> CallIds {
        CallIds::Any
    }

    /// How schemas of parameters are read, where the format leaves that to its providers.
    fn schemas(&self, listed: SchemaDialect) -> SchemaDialect {
        listed
    }

    /// Whether it has a form for tools that stay out of the context until a result loads them.
    fn can_defer(&self) -> bool {
        false
    }

    /// Appends the tool list, given in its frozen form, with schemas as the style has them. Nothing is appended if no tool is left.
    fn tools(&self, out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written>;

    /// Appends the system prompt.
    fn system(&self, out: &mut Vec<u8>, style: Style, system: &System<'_>) -> SystemMarks;

    /// Renders one message.
    fn render(&self, style: Style, message: &Shown) -> Rendered;

    /// The JSON object before tools, system prompt and messages: model, limits and options.
    fn head(&self, request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, String>;

    /// How the thinking of a model is switched; none if it is not known to think.
    fn dial(&self, model: &str, dialect: &Dialect) -> Option<Dial>;

    /// Whether a smaller cap on output leaves the rest of the request as it is. Where thinking has a budget, the budget must be below
    /// the cap, and its change makes the provider drop the messages from its cache.
    fn can_cap(&self, request: &Request<'_>, _dialect: &Dialect) -> bool {
        matches!(request.effort, None | Some(Effort::None))
    }

    /// The keys under which the prefix after its tools is sent, in order, each with its range in [`Prefix::bytes`].
    fn sections(&self, prefix: &Prefix) -> Vec<(&'static str, Range<usize>)>;

    /// The brackets that close the last section. `open` is the role whose message can still grow.
    fn closing(&self, open: Option<Role>) -> &'static str;

    /// Collects the reply to a request.
    fn assembly(&self, request: &Request<'_>) -> Box<dyn Assemble>;

    /// The largest possible cap on output, if the refusal of a request states it.
    fn output_room(&self, message: &str) -> Option<u32> {
        crate::failure::room::for_output(message)
    }
}

impl ApiMode {
    /// The implementation of the format: the registry of all formats.
    pub(crate) fn format(self) -> &'static dyn WireFormat {
        match self {
            ApiMode::ChatCompletions => &super::chat::ChatCompletions,
            ApiMode::Responses => &super::responses::Responses,
            ApiMode::AnthropicMessages => &super::messages::AnthropicMessages,
        }
    }
}
