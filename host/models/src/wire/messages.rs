//! Anthropic's messages: system prompt and messages as lists of blocks, roles strictly in turn.
//!
//! Every text is a block of a list, so that a mark is an insertion. Reasoning is sent back
//! only as the signed blocks that the same model wrote. What the models of a family take is in `family`.

mod thinking;

use std::{borrow::Cow, ops::Range};

use hermes_conversation::{Media, Part, Role, Shown, ToolCall, found};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    Dialect, WireFormat,
    chat::{NO_OUTPUT, NOTHING_ANSWERED, NOTHING_SAID},
    frozen::{self, Written},
    history::{self, digest, or},
    media::{self, Content},
    quote, raw,
    schema::SchemaDialect,
    system_list,
};
use crate::{
    Echo, Effort, Marks, Prefix, Rendered, Request, Style, assembly,
    assembly::Assemble,
    family,
    prefix::{Instead, Loading, Step, System, SystemMarks},
    providers::{KeyHeader, ProviderRow},
    reasoning::dial::{self, Dial},
};

/// Replaces the reasoning of a reply that has none, for providers that refuse a reply without.
const BLANK_THINKING: &[u8] = br#"{"type":"thinking","thinking":" "}"#;
/// The tool that requests a reply with a schema.
pub(crate) const REPLY_TOOL: &str = "reply";
/// The longest id of a call that every service with this format takes.
const LONGEST_ID: usize = 64;
/// A cautious number of prompt bytes per token. Some scripts have one token for each character of three bytes.
const BYTES_PER_TOKEN: usize = 3;
/// The smallest cap on output, used when the prompt seems to fill the window.
const LEAST_OUTPUT: u32 = 1_024;

/// Anthropic's messages.
#[derive(Debug)]
pub(crate) struct AnthropicMessages;

impl WireFormat for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic_messages"
    }

    fn endpoint(&self) -> &'static str {
        "/v1/messages"
    }

    fn path(&self, base: &str, _row: Option<&ProviderRow>) -> String {
        // A whole address is understood as well, and so is a base with its version.
        let without = |end: &str| {
            let (before, after) = base.split_at_checked(base.len().checked_sub(end.len())?)?;
            after.eq_ignore_ascii_case(end).then_some(before)
        };
        let base = without(self.endpoint()).or_else(|| without("/v1")).unwrap_or(base);
        format!("{base}{}", self.endpoint())
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    /// Some gateways want one header, some the other.
    fn key_header(&self) -> KeyHeader {
        KeyHeader::Both
    }

    /// Marks belong to the format itself.
    fn marks(&self, _marked: bool) -> Marks {
        Marks::Native
    }

    /// Signed blocks always go back; a provider differs only by demanding others as well.
    fn echo(&self, listed: Echo) -> Echo {
        if listed.demanded { listed } else { Echo::RETURNED }
    }

    fn schemas(&self, _listed: SchemaDialect) -> SchemaDialect {
        SchemaDialect::Anthropic
    }

    /// A result loads tools with `tool_reference` blocks.
    fn can_defer(&self) -> bool {
        true
    }

    fn tools(&self, out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
        self::tools(out, style, tools)
    }

    fn system(&self, out: &mut Vec<u8>, _style: Style, system: &System<'_>) -> SystemMarks {
        self::system(out, system)
    }

    fn render(&self, style: Style, message: &Shown) -> Rendered {
        self::render(style, message)
    }

    fn head(&self, request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, String> {
        self::head(request, dialect)
    }

    fn dial(&self, model: &str, _dialect: &Dialect) -> Option<Dial> {
        family::of(model).dial
    }

    fn can_cap(&self, request: &Request<'_>, dialect: &Dialect) -> bool {
        let model = name(request.model, dialect);
        let family = family::of(&model);
        let thinking = |cap| thinking::members(request, family, cap);
        thinking(max_tokens(request, dialect, family.output)) == thinking(1)
    }

    fn sections(&self, prefix: &Prefix) -> Vec<(&'static str, Range<usize>)> {
        let (tools, system, end) = (prefix.tools_len(), prefix.system_end(), prefix.bytes().len());
        let mut sections = vec![("system", tools..system), ("messages", system..end)];
        sections.retain(|(key, range)| *key == "messages" || !range.is_empty());
        sections
    }

    fn closing(&self, open: Option<Role>) -> &'static str {
        if open.is_some() { "]}]" } else { "[]" }
    }

    fn assembly(&self, request: &Request<'_>) -> Box<dyn Assemble> {
        let (echo, renamed) = (request.prefix.style().echo, request.prefix.renamed());
        Box::new(assembly::messages::Assembly::new(request.schema.is_some()).echoing(echo).renaming(renamed))
    }

    fn output_room(&self, message: &str) -> Option<u32> {
        self::output_room(message)
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[ReplyTool<'a>; 1]>,
}

#[derive(Serialize)]
struct ToolChoice {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Serialize)]
struct ReplyTool<'a> {
    name: &'static str,
    description: &'static str,
    input_schema: &'a RawValue,
}

/// The model's name in the body.
fn name<'a>(model: &'a str, dialect: &Dialect) -> Cow<'a, str> {
    if dialect.vendor_names { family::vendor_name(model) } else { Cow::Borrowed(model) }
}

/// The members before tools, system prompt and messages.
fn head(request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, String> {
    let model = name(request.model, dialect);
    let family = family::of(&model);
    let has_tools = request.prefix.tools_len() > 0;
    let tools = match request.schema {
        None => None,
        Some(_) if has_tools => {
            return Err("a schema of the reply cannot be asked for beside tools in anthropic_messages; leave out \
                        either"
                .to_owned());
        }
        Some(schema) => Some([ReplyTool {
            name: REPLY_TOOL,
            description: "Gives the reply. Call it once; what is written outside of it is lost.",
            input_schema: raw("schema of the reply", schema)?,
        }]),
    };
    let tool_choice = match (&tools, has_tools) {
        (Some(_), _) if family.forced_calls => {
            Some(ToolChoice { r#type: "tool", name: Some(REPLY_TOOL), disable_parallel_tool_use: Some(true) })
        }
        // Also for `ToolChoice::None`: another choice would make the provider drop all messages from its cache.
        (Some(_), _) | (None, true) => Some(ToolChoice { r#type: "auto", name: None, disable_parallel_tool_use: None }),
        (None, false) => None,
    };
    let max_tokens = max_tokens(request, dialect, family.output);
    let thinking = thinking::members(request, family, max_tokens);
    let thinks = !thinking.is_empty() && request.effort != Some(Effort::None);
    let sampling = family.sampling && !thinks;
    // Chat completions allow up to 2.
    let temperature = request.temperature.filter(|temperature| sampling && temperature.is_finite());
    let head = Head {
        model: &model,
        max_tokens,
        stream: true,
        temperature: temperature.map(|temperature| temperature.clamp(0.0, 1.0)),
        tool_choice,
        tools,
    };
    let mut head = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    dial::append(&mut head, &thinking);
    Ok(head)
}

/// The cap on output, which this format requires: the requested cap, else the family's limit; and at most what the prompt leaves
/// of the window, because otherwise the whole request is refused.
fn max_tokens(request: &Request<'_>, dialect: &Dialect, family: u32) -> u32 {
    let wanted = request.max_tokens.filter(|wanted| *wanted > 0).unwrap_or(family);
    let Some(window) = dialect.context_length else { return wanted };
    let read = request.prefix.bytes().len() - request.prefix.hidden_len();
    let prompt = u32::try_from(read / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
    let room = window.saturating_sub(prompt).max(LEAST_OUTPUT);
    wanted.min(room).min(window.saturating_sub(1)).max(1)
}

/// The room for a reply, from an error that says that prompt and cap do not fit: `188240 + 21333 > 200000`.
fn output_room(message: &str) -> Option<u32> {
    let (_, sum) = message.split_once("exceed context limit:")?;
    let mut numbers = sum
        .split(|character: char| !character.is_ascii_digit())
        .filter(|number| !number.is_empty())
        .map(|number| number.parse::<u32>().ok());
    let (prompt, _cap, window) = (numbers.next()??, numbers.next()??, numbers.next()??);
    window.checked_sub(prompt).filter(|room| *room >= LEAST_OUTPUT)
}

/// The frozen tool list in this format, in the same order. If several tools have one name, the first is kept.
///
/// The API refuses a cache mark in a deferred tool, and a list with no other tools. Marks go behind the system prompt, and a list with
/// deferred tools has `tool_search`.
fn tools(out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
    let (list, mut written) = frozen::sent(tools, style)?;
    let mut begin: &[u8] = b"[{\"name\":";
    for tool in &list {
        let start = out.len();
        out.extend_from_slice(std::mem::replace(&mut begin, b",{\"name\":"));
        quote(out, &tool.name);
        out.extend_from_slice(br#","description":"#);
        quote(out, &tool.description);
        out.extend_from_slice(br#","input_schema":"#);
        out.extend_from_slice(tool.schema.as_bytes());
        if tool.is_deferred {
            out.extend_from_slice(br#","defer_loading":true"#);
            written.deferred.add(&tool.name, reference(&tool.name), out.len() + 1 - start);
        }
        out.push(b'}');
    }
    if begin.starts_with(b",") {
        out.push(b']');
    }
    Ok(written)
}

/// The block in a result that loads a deferred tool.
fn reference(tool: &str) -> Vec<u8> {
    let mut out = br#"{"type":"tool_reference","tool_name":"#.to_vec();
    quote(&mut out, tool);
    out.push(b'}');
    out
}

/// The system prompt as a list of blocks; nothing where there is none.
fn system(out: &mut Vec<u8>, system: &System<'_>) -> SystemMarks {
    if system.is_empty() {
        return SystemMarks { stable_end: out.len(), ephemeral: usize::MAX, ..SystemMarks::default() };
    }
    system_list(out, system)
}

/// A message as blocks of its role. Every one ends with a block that can be marked.
fn render(style: Style, message: &Shown) -> Rendered {
    let mut out = Vec::with_capacity(message.content.len() + 64);
    let side = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
    let mut step = Step::Other;
    let mut instead = None;
    let mark = match message.role {
        Role::Assistant => {
            let reasoned = reply(&mut out, message, style.echo);
            if !message.tool_calls.is_empty() {
                step = Step::Calls { reasoned };
            }
            out.len() - 1
        }
        Role::Tool => {
            step = Step::Result;
            result(&mut out, message);
            instead = loading_result(message).map(|loading| Instead { loading: Some(loading), ..Instead::default() });
            out.len() - 1
        }
        Role::User | Role::System => {
            if !blocks(&mut out, &message.parts) {
                text_block(&mut out, or(&message.content, NOTHING_SAID));
            }
            out.len() - 1
        }
    };
    Rendered::blocks(style, out, Some(mark), side, step).or_instead(instead)
}

/// The blocks of a reply, and whether it begins with reasoning. The API refuses a mark in reasoning, and a message that ends
/// with reasoning.
fn reply(out: &mut Vec<u8>, message: &Shown, echo: Echo) -> bool {
    let mut ends_with_reasoning = true;
    let sent = |part: &Part| part.payload().filter(|payload| is_reasoning(&payload.data, echo)).is_some();
    let mut begins_with_reasoning = message.parts.first().is_some_and(sent);
    if echo.demanded && !message.parts.iter().any(sent) {
        out.extend_from_slice(BLANK_THINKING);
        begins_with_reasoning = true;
    }
    // A message without parts is its text and its calls.
    if message.parts.is_empty() {
        if !message.content.trim().is_empty() {
            separate(out);
            text_block(out, &message.content);
            ends_with_reasoning = false;
        }
        for call in &message.tool_calls {
            separate(out);
            tool_use(out, call, message.repeats(&call.id));
            ends_with_reasoning = false;
        }
    }
    for part in &message.parts {
        let before = out.len();
        separate(out);
        let begin = out.len();
        match part {
            Part::Text { text } | Part::Refusal { text } if !text.trim().is_empty() => text_block(out, text),
            Part::ToolCall(call) => tool_use(out, call, message.repeats(&call.id)),
            part => {
                if let Some(payload) = part.payload().filter(|payload| is_reasoning(&payload.data, echo)) {
                    out.extend_from_slice(payload.data.trim().as_bytes());
                } else if let Some(mention) = part.mention() {
                    text_block(out, &mention);
                }
            }
        }
        if out.len() == begin {
            out.truncate(before);
        } else {
            ends_with_reasoning = part.payload().is_some();
        }
    }
    if ends_with_reasoning {
        separate(out);
        text_block(out, NOTHING_ANSWERED);
    }
    begins_with_reasoning
}

/// Adds a comma if a block precedes.
fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

/// Whether a payload is a block of reasoning that the provider takes. Any other one is left out: it could make the body
/// unreadable, or a call without a result.
fn is_reasoning(payload: &str, echo: Echo) -> bool {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
        #[serde(borrow)]
        signature: Option<Cow<'a, str>>,
        #[serde(borrow)]
        thinking: Option<Cow<'a, str>>,
        #[serde(borrow)]
        data: Option<Cow<'a, str>>,
    }
    // Mending a block would break its signature, so a flawed block is left out.
    let Some(Cow::Borrowed(block)) = history::object(payload) else { return false };
    let Ok(block) = serde_json::from_str::<Block<'_>>(block) else { return false };
    let is_signed = || echo.demanded || block.signature.as_ref().is_some_and(|signature| !signature.is_empty());
    match &*block.r#type {
        "thinking" => block.thinking.is_some() && is_signed(),
        "redacted_thinking" => block.data.is_some(),
        _ => false,
    }
}

fn tool_use(out: &mut Vec<u8>, call: &ToolCall, repeats: u32) {
    out.extend_from_slice(br#"{"type":"tool_use","id":"#);
    quote(out, &sanitised(&call.id, repeats));
    out.extend_from_slice(br#","name":"#);
    quote(out, &history::name(&call.name));
    out.extend_from_slice(br#","input":"#);
    // It becomes part of the body itself, which is refused as a whole over anything in it that is not valid JSON.
    out.extend_from_slice(input(&call.arguments).trim().as_bytes());
    out.push(b'}');
}

/// Opens the result of a call, up to its content.
fn open_result(out: &mut Vec<u8>, message: &Shown) {
    out.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    quote(out, &sanitised(id, message.repeats(id)));
    out.extend_from_slice(br#","content":"#);
}

/// The form of a search's result in a request that contains the found tools. References have to be the whole content: the API
/// refuses other blocks beside them.
fn loading_result(message: &Shown) -> Option<Loading> {
    let tools = found::in_message(message);
    if tools.is_empty() {
        return None;
    }
    let mut before = Vec::new();
    open_result(&mut before, message);
    before.push(b'[');
    Some(Loading { tools, before, after: b"]}" })
}

fn result(out: &mut Vec<u8>, message: &Shown) {
    open_result(out, message);
    let whole = message.parts.iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    let inner = whole.map_or(&[][..], |result| &result.parts);
    let has_media = inner.iter().any(|part| part.media().is_some());
    if has_media {
        let begin = out.len();
        out.push(b'[');
        blocks(out, inner);
        if out.len() == begin + 1 {
            text_block(out, NO_OUTPUT);
        }
        out.push(b']');
    } else {
        quote(out, or(&message.content, NO_OUTPUT));
    }
    // The API takes only text in a result with `is_error`. The text says that the tool failed.
    if whole.is_some_and(|result| result.failed && !has_media) {
        out.extend_from_slice(br#","is_error":true"#);
    }
    out.push(b'}');
}

/// Text, pictures and files as blocks, separated by commas. False if there is nothing to write.
fn blocks(out: &mut Vec<u8>, parts: &[Part]) -> bool {
    let begin = out.len();
    for part in parts {
        let words = match part {
            Part::Text { text } | Part::Refusal { text } => Some(text.clone()),
            part => part.mention(),
        };
        let source = part.media().and_then(|media| source(part, media));
        let words = words.filter(|words| source.is_none() && !words.trim().is_empty());
        if out.len() > begin && (source.is_some() || words.is_some()) {
            out.push(b',');
        }
        match (source, words) {
            (Some(source), _) => {
                let kind = if matches!(part, Part::File(_)) { "document" } else { "image" };
                out.extend_from_slice(br#"{"type":"#);
                quote(out, kind);
                out.extend_from_slice(br#","source":"#);
                out.extend_from_slice(&source);
                out.push(b'}');
            }
            (None, Some(words)) => text_block(out, &words),
            (None, None) => {}
        }
    }
    out.len() > begin
}

/// The source of a picture or file; none if its bytes are lost or the API refuses its type.
fn source(part: &Part, media: &Media) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match media::content(part)? {
        Content::Url(url) => {
            out.extend_from_slice(br#"{"type":"url","url":"#);
            quote(&mut out, url);
        }
        Content::Bytes(data) => {
            out.extend_from_slice(br#"{"type":"base64","media_type":"#);
            quote(&mut out, &media.media_type);
            out.extend_from_slice(br#","data":"#);
            quote(&mut out, &data);
        }
        Content::Words(text) => {
            out.extend_from_slice(br#"{"type":"text","media_type":"text/plain","data":"#);
            quote(&mut out, text);
        }
    }
    out.push(b'}');
    Some(out)
}

fn text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    quote(out, text);
    out.push(b'}');
}

/// Arguments that cannot be read were always an empty object here, and sessions that sent them so go on with the same bytes.
fn input(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Value>(arguments) {
        Ok(_) => history::arguments(arguments),
        Err(_) => Cow::Borrowed(history::NO_ARGUMENTS),
    }
}

/// An id as the API takes it, which is used once in a request. Other providers put colons and dots into theirs, and begin to
/// count anew in each reply.
fn sanitised(id: &str, repeats: u32) -> Cow<'_, str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    match id {
        _ if repeats > 0 || id.chars().count() > LONGEST_ID => {
            Cow::Owned(format!("toolu_{}", digest(&[id.as_bytes(), b"\0", &repeats.to_le_bytes()])))
        }
        "" => Cow::Borrowed("tool_0"),
        _ if id.chars().all(fits) => Cow::Borrowed(id),
        _ => Cow::Owned(id.chars().map(|character| if fits(character) { character } else { '_' }).collect()),
    }
}

#[cfg(test)]
mod tests;
