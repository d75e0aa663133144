//! Chat completions: only keys that the official SDK's types have, in a fixed order.
//!
//! Without marks, contents are texts. On routes with marks they are lists with one part, also without a mark, so that
//! moving a mark changes no other bytes. Contents with pictures or files are lists of parts.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use hermes_conversation::{Part, Role, Shown, ToolCall, ToolSchema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    CallIds, Dialect, WireFormat, escape,
    frozen::{self, Written},
    history,
    media::{self, Content},
    quote, raw,
    schema::{self, SchemaDialect},
    system_list, write,
};
use crate::{
    Echo, Marks, Prefix, Rendered, Request, Style, ToolChoice, assembly,
    assembly::Assemble,
    prefix::{System, SystemMarks},
    providers::ProviderRow,
    reasoning::{
        CALLS_KEY,
        dial::{self, Dial},
    },
};

/// Prefixes of models that take the newer name of the cap on output, and refuse the older one.
const NEWER_CAP: &[&str] = &["gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4"];

/// Replaces a blank message of the user: many providers refuse a blank text.
pub(super) const NOTHING_SAID: &str = "(empty message)";
/// Replaces a reply without text and calls.
pub(super) const NOTHING_ANSWERED: &str = "(empty)";
/// Replaces a result without text.
pub(super) const NO_OUTPUT: &str = "(no output)";
/// Replaces the reasoning of a reply that has none, for providers that refuse a reply without: they also refuse an empty text.
const BLANK: &[u8] = br#","reasoning_content":" ""#;

/// OpenAI's chat completions, spoken by most endpoints.
#[derive(Debug)]
pub(crate) struct ChatCompletions;

impl WireFormat for ChatCompletions {
    fn name(&self) -> &'static str {
        "chat_completions"
    }

    fn endpoint(&self) -> &'static str {
        "/chat/completions"
    }

    fn path(&self, base: &str, row: Option<&ProviderRow>) -> String {
        let version = row.and_then(|row| row.chat_version).filter(|_| base.is_empty()).unwrap_or_default();
        format!("{base}{version}{}", self.endpoint())
    }

    fn marks(&self, marked: bool) -> Marks {
        if marked { Marks::Envelope } else { Marks::None }
    }

    fn ids(&self, listed: CallIds) -> CallIds {
        listed
    }

    fn tools(&self, out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
        self::tools(out, style, tools)
    }

    fn system(&self, out: &mut Vec<u8>, style: Style, system: &System<'_>) -> SystemMarks {
        self::system(out, style, system)
    }

    fn render(&self, style: Style, message: &Shown) -> Rendered {
        self::render(style, message)
    }

    fn head(&self, request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, String> {
        self::head(request, dialect)
    }

    fn dial(&self, _model: &str, dialect: &Dialect) -> Option<Dial> {
        dialect.switch
    }

    fn sections(&self, prefix: &Prefix) -> Vec<(&'static str, Range<usize>)> {
        vec![("messages", prefix.tools_len()..prefix.bytes().len())]
    }

    fn closing(&self, _open: Option<Role>) -> &'static str {
        "]"
    }

    fn assembly(&self, request: &Request<'_>) -> Box<dyn Assemble> {
        Box::new(assembly::chat::Assembly::new(request.prefix.style().echo).renaming(request.prefix.renamed()))
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
    /// What the provider wants back with the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

impl<'a> WireCall<'a> {
    fn new(ids: CallIds, call: &'a ToolCall, extra_content: Option<Box<RawValue>>) -> Self {
        let function = WireFunction { name: history::name(&call.name), arguments: history::arguments(&call.arguments) };
        Self { id: ids.written(&call.id), r#type: "function", function, extra_content }
    }
}

/// The members before tools and messages.
fn head(request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, String> {
    let response_format = match request.schema {
        None => None,
        Some(schema) => Some(ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "reply", schema: raw("schema of the reply", schema)? },
        }),
    };
    let newer_cap = dialect.newer_cap || takes_newer_cap(request.model);
    let head = Head {
        model: request.model,
        stream: true,
        stream_options: dialect.stream_options.then_some(StreamOptions { include_usage: true }),
        max_tokens: request.max_tokens.filter(|_| !newer_cap),
        max_completion_tokens: request.max_tokens.filter(|_| newer_cap),
        temperature: request.temperature.filter(|temperature| temperature.is_finite()),
        response_format,
        tool_choice: (request.tool_choice == ToolChoice::None && request.prefix.tools_len() > 0).then_some("none"),
    };
    let mut head = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    if let (Some(effort), Some(dial)) = (request.effort, dialect.switch) {
        dial::append(&mut head, &dial.members(effort));
    }
    Ok(head)
}

/// Decides by the model's own name, without a vendor before the last slash.
fn takes_newer_cap(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    NEWER_CAP.iter().any(|prefix| name.starts_with(prefix))
}

/// The frozen tool list, checked to be JSON and otherwise unchanged, unless a schema in it would be refused, or tools in it are deferred: not
/// every server takes the form in which lists are frozen, and lists of earlier versions have other forms.
fn tools(out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
    let list: &RawValue = serde_json::from_str(tools)?;
    let read = frozen::tools(tools).unwrap_or_default();
    let is_strict = style.schemas == SchemaDialect::OpenAiStrict;
    let is_taken =
        |tool: &frozen::Function<'_>| !tool.is_deferred && schema::is_taken(tool.parameters(), style.schemas);
    if !is_strict && read.iter().all(is_taken) {
        out.extend_from_slice(list.get().as_bytes());
        return Ok(Written::default());
    }
    let (list, written) = frozen::sent(tools, style)?;
    write_tools(out, list.iter().map(|tool| (&*tool.name, &*tool.description, &*tool.schema)), is_strict);
    Ok(written)
}

/// A list of tools, each with its name, its description and its schema; nothing if there are none.
pub(super) fn write_tools<'t>(
    out: &mut Vec<u8>,
    tools: impl Iterator<Item = (&'t str, &'t str, &'t str)>,
    is_strict: bool,
) {
    let begin = out.len();
    for (name, description, schema) in tools {
        out.push(if out.len() == begin { b'[' } else { b',' });
        out.extend_from_slice(br#"{"type":"function","function":{"name":"#);
        quote(out, name);
        out.extend_from_slice(br#","description":"#);
        quote(out, description);
        if is_strict {
            out.extend_from_slice(br#","strict":true"#);
        }
        out.extend_from_slice(br#","parameters":"#);
        out.extend_from_slice(schema.as_bytes());
        out.extend_from_slice(b"}}");
    }
    if out.len() > begin {
        out.push(b']');
    }
}

/// Opens the list of messages, with the system prompt as the first one.
fn system(out: &mut Vec<u8>, style: Style, system: &System<'_>) -> SystemMarks {
    let begin = out.len();
    out.push(b'[');
    if system.is_empty() {
        return SystemMarks { stable_end: begin, ephemeral: usize::MAX, ..SystemMarks::default() };
    }
    out.extend_from_slice(br#"{"role":"system","content":"#);
    let marks = if style.marks == Marks::None { system_text(out, system) } else { system_list(out, system) };
    out.push(b'}');
    marks
}

/// Writes a system prompt as one text.
pub(super) fn system_text(out: &mut Vec<u8>, system: &System<'_>) -> SystemMarks {
    out.push(b'"');
    let [stable, rest, ephemeral] = system.pieces();
    escape(out, stable);
    let stable_end = out.len();
    escape(out, rest);
    let end = out.len();
    escape(out, system.joint());
    escape(out, ephemeral);
    out.push(b'"');
    // The closing quote belongs to the last layer.
    let ephemeral = if ephemeral.is_empty() { usize::MAX } else { end };
    SystemMarks { stable_end, ephemeral, ..SystemMarks::default() }
}

/// A message: role, content, calls, the call that it answers.
fn render(style: Style, message: &Shown) -> Rendered {
    let mut out = Vec::with_capacity(message.content.len() + 64);
    out.extend_from_slice(br#"{"role":"#);
    quote(&mut out, message.role.as_str());
    out.extend_from_slice(br#","content":"#);
    let mut mark = None;
    if message.role == Role::User && message.parts.iter().any(|part| part.media().is_some()) {
        mark = content_parts(&mut out, style, &message.parts);
    } else if message.content.trim().is_empty() && !message.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else if style.marks == Marks::None {
        quote(&mut out, said(message));
    } else {
        out.extend_from_slice(br#"[{"type":"text","text":"#);
        quote(&mut out, said(message));
        mark = Some(out.len());
        out.extend_from_slice(b"}]");
    }
    if !message.tool_calls.is_empty() {
        out.extend_from_slice(br#","tool_calls":"#);
        let extras = extras(message, style.echo);
        let of = |call: &ToolCall| extras.get(call.id.as_str()).cloned();
        let calls: Vec<WireCall<'_>> =
            message.tool_calls.iter().map(|call| WireCall::new(style.ids, call, of(call))).collect();
        write(&mut out, &calls);
    }
    if message.role == Role::Assistant {
        reasoning(&mut out, message, style.echo);
    }
    if let Some(id) = &message.tool_call_id {
        out.extend_from_slice(br#","tool_call_id":"#);
        quote(&mut out, &style.ids.written(id));
    }
    out.push(b'}');
    Rendered::message(style, out, mark)
}

/// The text of a message, or what replaces a blank one.
fn said(message: &Shown) -> &str {
    let placeholder = match message.role {
        Role::User | Role::System => NOTHING_SAID,
        Role::Assistant => NOTHING_ANSWERED,
        Role::Tool => NO_OUTPUT,
    };
    history::or(&message.content, placeholder)
}

/// Words, pictures and files as a list. A mark goes after the last text.
fn content_parts(out: &mut Vec<u8>, style: Style, parts: &[Part]) -> Option<usize> {
    let mut mark = None;
    let mut separator = b'[';
    for part in parts {
        let words = match part {
            Part::Text { text } | Part::Refusal { text } => Some(text.clone()),
            part => part.mention(),
        };
        let begin = out.len();
        out.push(separator);
        match (part, media::content(part)) {
            (Part::Image(_), Some(Content::Url(url))) => image_url(out, url),
            (Part::Image(image), Some(Content::Bytes(data))) => {
                image_url(out, &media::data_url(&image.media_type, &data));
            }
            (Part::File(file), Some(Content::Bytes(data))) => {
                out.extend_from_slice(br#"{"type":"file","file":{"filename":"#);
                quote(out, file.name.as_deref().unwrap_or("file"));
                out.extend_from_slice(br#","file_data":"#);
                quote(out, &media::data_url(&file.media_type, &data));
                out.extend_from_slice(b"}}");
            }
            (_, content) => {
                let mut words = words.unwrap_or_default();
                if let Some(Content::Words(text)) = content {
                    words = format!("{words}\n{text}");
                }
                if words.trim().is_empty() {
                    out.truncate(begin);
                    continue;
                }
                out.extend_from_slice(br#"{"type":"text","text":"#);
                quote(out, &words);
                if style.marks != Marks::None {
                    mark = Some(out.len());
                }
                out.push(b'}');
            }
        }
        separator = b',';
    }
    out.push(b']');
    mark
}

fn image_url(out: &mut Vec<u8>, address: &str) {
    out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":"#);
    quote(out, address);
    out.extend_from_slice(b"}}");
}

/// Appends the reasoning of a reply that goes back to its provider.
fn reasoning(out: &mut Vec<u8>, message: &Shown, echo: Echo) {
    let begin = out.len();
    for payload in message.parts.iter().filter_map(Part::payload) {
        members(out, &payload.data, echo);
    }
    if echo.demanded && out.len() == begin {
        out.extend_from_slice(BLANK);
    }
}

/// What the provider wants back with each call, by the ids of the calls.
fn extras(message: &Shown, echo: Echo) -> BTreeMap<Cow<'_, str>, Box<RawValue>> {
    #[derive(Deserialize)]
    struct OfCalls<'a> {
        #[serde(borrow)]
        extra_content: BTreeMap<Cow<'a, str>, &'a RawValue>,
    }
    let payloads = message.parts.iter().filter_map(Part::payload).filter(|_| echo.members.contains(&CALLS_KEY));
    let read = payloads.filter_map(|payload| serde_json::from_str::<OfCalls<'_>>(&payload.data).ok());
    let sent = |extra: &RawValue| RawValue::from_string(history::object(extra.get())?.into_owned()).ok();
    read.flat_map(|payload| payload.extra_content).filter_map(|(id, extra)| Some((id, sent(extra)?))).collect()
}

/// Appends the members of a payload that the provider takes, each as it came, to those of the message. A payload with other
/// members than those of reasoning is left out: it could replace what the message says, or make the body unreadable.
fn members(out: &mut Vec<u8>, payload: &str, echo: Echo) {
    let Ok(members) = serde_json::from_str::<BTreeMap<&str, &RawValue>>(payload) else { return };
    if !members.keys().all(|key| Echo::ALL.iter().any(|echo| echo.members.contains(key))) {
        return;
    }
    for (key, written) in members.iter().filter(|(key, _)| echo.members.contains(key) && **key != CALLS_KEY) {
        // Texts have no seal that a mended one would break.
        let Some(sent) = history::value(written.get()) else { continue };
        out.push(b',');
        quote(out, key);
        out.push(b':');
        out.extend_from_slice(sent.as_bytes());
    }
}

/// The tool list of a session as it is frozen, stored and sent: sorted by name, in the form of chat completions.
///
/// Parameters stay as they are written, but get the type `object` and `properties` if they lack them: otherwise OpenAI refuses
/// every request of the session. A tool whose parameters are not a JSON object takes none.
pub fn tools_json(schemas: &[ToolSchema]) -> String {
    json(schemas, false)
}

/// The same list with further tools behind it, which are deferred: a provider that has a form for them shows them only when the result of
/// a search names them, and no other provider gets them.
pub fn deferred_json(schemas: &[ToolSchema], deferred: &[ToolSchema]) -> String {
    let (mut list, more) = (tools_json(schemas), json(deferred, true));
    if schemas.is_empty() || deferred.is_empty() {
        return if deferred.is_empty() { list } else { more };
    }
    list.pop();
    list.push(',');
    list.push_str(&more[1..]);
    list
}

fn json(schemas: &[ToolSchema], defer_loading: bool) -> String {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Named<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        defer_loading: bool,
    }
    #[derive(Serialize)]
    struct Named<'a> {
        name: &'a str,
        description: &'a str,
        parameters: Box<RawValue>,
    }

    let sorted: BTreeMap<&str, &ToolSchema> = schemas.iter().map(|schema| (schema.name.as_str(), schema)).collect();
    let tools: Vec<Tool<'_>> = sorted
        .into_values()
        .filter_map(|schema| {
            let parameters = schema::complete(schema.parameters.trim()).into_owned();
            let parameters = RawValue::from_string(parameters).ok()?;
            let function = Named { name: &schema.name, description: &schema.description, parameters };
            Some(Tool { r#type: "function", function, defer_loading })
        })
        .collect();
    serde_json::to_string(&tools).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests;
