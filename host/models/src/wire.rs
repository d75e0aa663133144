//! Requests as bytes: a head that is written for each request, followed by the unchanged prefix.
//!
//! Tools, system prompt and messages are in the [`Prefix`]: they are expensive to write, and a provider's cache compares them.
//! This module adds the head before it and inserts cache marks, which change no other byte.

mod body;
pub(crate) mod chat;
mod format;
mod frozen;
pub(crate) mod history;
mod media;
pub(crate) mod messages;
pub(crate) mod responses;
pub(crate) mod schema;

use serde::Serialize;
use serde_json::value::RawValue;

pub use body::Body;
pub(crate) use format::WireFormat;
pub(crate) use frozen::{Deferred, Written};
pub use frozen::{LeftOut, ToolNames, shown_tools};
pub use history::CallIds;
pub use schema::SchemaDialect;

use self::body::Splice;
use crate::{
    Breakpoints, ModelError, ProviderRow, Request, Route,
    prefix::{System, SystemMarks},
    reasoning::{dial::Dial, switch},
};

/// The properties of an endpoint, apart from its [`Style`](crate::Style).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Chat completions: whether `stream_options` is accepted.
    pub stream_options: bool,
    /// Chat completions: whether the cap on output has its newer name whatever the model.
    pub newer_cap: bool,
    /// Anthropic's messages: whether models have the vendor's own names, so that `anthropic/claude-sonnet-4.5` is
    /// sent as `claude-sonnet-4-5`. A gateway may have names of its own.
    pub vendor_names: bool,
    /// Chat completions: how the thinking of the route's model is switched; none if it is not known to think.
    pub(crate) switch: Option<Dial>,
    /// Anthropic's messages: the model's window, which prompt and cap on output have to fit together.
    pub context_length: Option<u32>,
}

impl Dialect {
    /// The dialect of a route. The server at a host decides what it accepts; a provider's names for models also apply behind
    /// a proxy.
    pub(crate) fn of_route(route: &Route) -> Self {
        let host = route.base_url.as_ref().and_then(ProviderRow::by_host);
        let named = ProviderRow::by_name(&route.model.provider);
        Self {
            stream_options: host.is_none_or(|row| row.stream_options),
            newer_cap: host.is_some_and(|row| row.newer_cap),
            switch: route.base_url.as_ref().and_then(|url| switch::of(&route.model.provider, url, &route.model.name)),
            vendor_names: [host, named].into_iter().flatten().any(|row| row.vendor_names),
            context_length: Some(route.model.context_length),
        }
    }

    /// An unknown endpoint.
    pub const PLAIN: Dialect =
        Dialect { stream_options: true, newer_cap: false, switch: None, vendor_names: false, context_length: None };
}

/// The body of a request: the prefix with its marks, between head and end. It shares the bytes of the prefix: the next
/// [`Prefix::push`](crate::Prefix::push) copies them if the body still exists then.
///
/// # Errors
///
/// [`ModelError::BadRequest`] if the schema of the reply is not valid JSON, or if there are tools and the format does not allow both.
pub fn body(request: &Request<'_>, dialect: &Dialect) -> Result<Body, ModelError> {
    let prefix = request.prefix;
    let format = prefix.style().mode.format();
    let head = format.head(request, dialect).map_err(ModelError::unsendable)?;
    let Breakpoints { ttl, .. } = request.breakpoints;
    let mut body = Splice::begin(head, prefix.shared(), prefix.marks(request.breakpoints), ttl.mark());
    if prefix.tools_len() > 0 {
        body.key("tools", 0..prefix.tools_len());
    }
    for (key, range) in format.sections(prefix) {
        body.key(key, range);
    }
    Ok(body.end(format.closing(prefix.open())))
}

/// A text as JSON, without its quotes.
pub(crate) fn escape(out: &mut Vec<u8>, text: &str) {
    let begin = out.len();
    quote(out, text);
    out.pop();
    out.remove(begin);
}

/// A text as JSON.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    // Some servers cannot store U+0000, and refuse the request.
    match text.contains('\0') {
        true => write(out, &text.replace('\0', "\u{fffd}")),
        false => write(out, text),
    }
}

/// Texts, and lists and objects of them, as JSON.
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("memory takes every byte, and texts are never refused");
}

/// Writes a system prompt as a list of text parts. Every part can carry a cache mark, except the ephemeral one.
pub(crate) fn system_list(out: &mut Vec<u8>, system: &System<'_>) -> SystemMarks {
    let mut marks = SystemMarks { stable_end: out.len(), ..SystemMarks::default() };
    let mut begin = b'[';
    let mut part = |out: &mut Vec<u8>, joint: &str, text: &str| {
        out.push(std::mem::replace(&mut begin, b','));
        out.extend_from_slice(br#"{"type":"text","text":""#);
        escape(out, joint);
        escape(out, text);
        let end = out.len();
        out.extend_from_slice(b"\"}");
        end
    };
    let [stable, rest, ephemeral] = system.pieces();
    if !stable.is_empty() {
        marks.stable_end = part(out, "", stable);
        marks.stable = Some(out.len() - 1);
        marks.whole = marks.stable;
    }
    if !rest.is_empty() {
        part(out, "", rest);
        marks.whole = Some(out.len() - 1);
    }
    marks.ephemeral = out.len();
    if !ephemeral.is_empty() {
        part(out, system.joint(), ephemeral);
    }
    out.push(b']');
    if ephemeral.is_empty() {
        // The closing bracket belongs to the last layer.
        marks.ephemeral = usize::MAX;
    }
    marks
}

/// A JSON text, checked and otherwise unchanged.
pub(crate) fn raw<'a>(what: &str, text: &'a str) -> Result<&'a RawValue, String> {
    serde_json::from_str(text).map_err(|error| format!("the {what} is not valid JSON: {error}"))
}

/// Whether a text is one JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
pub(crate) mod tests;
