//! OpenAI's Responses API: the system prompt as `instructions`, the conversation as a list of items.
//!
//! The provider stores nothing (`store: false`). Reasoning goes back as the sealed items that the same model wrote, between the
//! same neighbours. From items of messages and calls, only the words, the phase and the id of the call are sent. Other ids would
//! refer to items that a provider has stored.

mod models;

use std::{borrow::Cow, ops::Range};

use hermes_conversation::{Part, Role, Shown, ToolCall, found};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    Dialect, WireFormat,
    chat::{NO_OUTPUT, system_text},
    frozen::{self, Sent, Written},
    history::{self, digest},
    media::{self, Content},
    quote, raw,
    schema::SchemaDialect,
};
use crate::{
    Echo, Marks, Prefix, Rendered, Request, Style, ToolChoice, assembly,
    assembly::Assemble,
    prefix::{Instead, Loading, System, SystemMarks},
    providers::ProviderRow,
    reasoning::dial::{self, Dial},
};

/// The longest id of a call that the API takes.
const LONGEST_ID: usize = 64;
/// The smallest cap on output that the API takes.
const LEAST_OUTPUT: u32 = 16;
/// The value of `include` that requests reasoning in a form that can be sent back.
const SEALED_REASONING: &str = "reasoning.encrypted_content";

/// OpenAI's Responses API.
#[derive(Debug)]
pub(crate) struct Responses;

impl WireFormat for Responses {
    fn name(&self) -> &'static str {
        "codex_responses"
    }

    fn endpoint(&self) -> &'static str {
        "/responses"
    }

    fn path(&self, base: &str, _row: Option<&ProviderRow>) -> String {
        format!("{base}{}", self.endpoint())
    }

    /// Providers cache by themselves; `prompt_cache_key` helps them to find the cache.
    fn marks(&self, _marked: bool) -> Marks {
        Marks::None
    }

    /// Each item says itself whether it goes back.
    fn echo(&self, _listed: Echo) -> Echo {
        Echo::RETURNED
    }

    /// A search that the client carries out: its output has the definitions.
    fn can_defer(&self) -> bool {
        true
    }

    fn tools(&self, out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
        self::tools(out, style, tools)
    }

    /// The instructions, where there are some, and the opening bracket of the items.
    fn system(&self, out: &mut Vec<u8>, _style: Style, system: &System<'_>) -> SystemMarks {
        let marks = if system.is_empty() {
            SystemMarks { stable_end: out.len(), ephemeral: usize::MAX, ..SystemMarks::default() }
        } else {
            system_text(out, system)
        };
        out.push(b'[');
        marks
    }

    fn render(&self, style: Style, message: &Shown) -> Rendered {
        self::render(style, message)
    }

    fn head(&self, request: &Request<'_>, _dialect: &Dialect) -> Result<Vec<u8>, String> {
        self::head(request)
    }

    fn dial(&self, model: &str, _dialect: &Dialect) -> Option<Dial> {
        models::thinker_of(model).map(|thinker| thinker.dial)
    }

    fn sections(&self, prefix: &Prefix) -> Vec<(&'static str, Range<usize>)> {
        let (instructions, end) = (instructions(prefix), prefix.bytes().len());
        let items = instructions.end..end;
        let mut sections = vec![("instructions", instructions), ("input", items)];
        sections.retain(|(_, range)| !range.is_empty());
        sections
    }

    fn closing(&self, _open: Option<Role>) -> &'static str {
        "]"
    }

    fn assembly(&self, request: &Request<'_>) -> Box<dyn Assemble> {
        Box::new(assembly::responses::Assembly::default().renaming(request.prefix.renamed()))
    }

    fn output_room(&self, message: &str) -> Option<u32> {
        self::output_room(message).or_else(|| crate::failure::room::for_output(message))
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a RawValue,
}

/// The members before tools, instructions and items.
fn head(request: &Request<'_>) -> Result<Vec<u8>, String> {
    let text = match request.schema {
        None => None,
        Some(schema) => {
            let schema = raw("schema of the reply", schema)?;
            Some(Text { format: Format { r#type: "json_schema", name: "reply", schema } })
        }
    };
    let thinker = models::thinker_of(request.model);
    let effort = request.effort.unwrap_or(models::USUAL);
    let has_tools = request.prefix.tools_len() > 0;
    let head = Head {
        model: request.model,
        stream: true,
        store: false,
        include: thinker.is_some_and(|thinker| thinker.thinks(effort)).then_some([SEALED_REASONING]),
        max_output_tokens: request.max_tokens.map(|cap| cap.max(LEAST_OUTPUT)),
        // Models that think refuse it.
        temperature: request.temperature.filter(|temperature| thinker.is_none() && temperature.is_finite()),
        text,
        tool_choice: has_tools.then_some(match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
        }),
        parallel_tool_calls: has_tools.then_some(true),
        prompt_cache_key: cache_key(request.prefix),
    };
    let mut head = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    if let Some(thinker) = thinker {
        dial::append(&mut head, &thinker.dial.members(effort));
    }
    Ok(head)
}

/// Where the instructions are in a prefix, with their quotes; empty where there are none.
fn instructions(prefix: &Prefix) -> Range<usize> {
    // The last byte opens the list of items.
    prefix.tools_len()..prefix.system_end() - 1
}

/// Names what the requests of a session, and of others like it, begin with, so that a provider sends them to the machine that
/// has it in its cache. The layer of a single call does not count.
fn cache_key(prefix: &Prefix) -> Option<String> {
    let (tools, text) = (&prefix.bytes()[..prefix.tools_len()], instructions(prefix));
    let text = if text.is_empty() {
        &[][..]
    } else {
        &prefix.bytes()[text.start + 1..prefix.ephemeral_start().min(text.end - 1)]
    };
    (!text.is_empty() || !tools.is_empty()).then(|| format!("pck_{}", digest(&[text, b"\0", tools])))
}

/// The largest cap on output, from an error that names it: `Expected a value <= 16384, but got 100000 instead.`
fn output_room(message: &str) -> Option<u32> {
    let (_, limit) = message.split_once("'max_output_tokens'")?.1.split_once("<= ")?;
    let digits = limit.find(|character: char| !character.is_ascii_digit()).unwrap_or(limit.len());
    limit[..digits].parse().ok()
}

/// The frozen tool list in this format, in the same order. If several tools have one name, the first is kept.
///
/// Deferred tools are not in it: the output of a search has their definitions. With them, the search is a tool of its own type.
fn tools(out: &mut Vec<u8>, style: Style, tools: &str) -> serde_json::Result<Written> {
    let begin = out.len();
    let (list, mut written) = frozen::sent(tools, style)?;
    let defers = list.iter().any(|tool| tool.is_deferred);
    // The strict form needs schemas in which every member is required.
    let strict: &[u8] = match style.schemas {
        SchemaDialect::OpenAiStrict => br#","strict":true"#,
        _ => br#","strict":false"#,
    };
    for tool in &list {
        if tool.is_deferred {
            let mut loads = Vec::new();
            function(&mut loads, tool, &[strict, br#","defer_loading":true"#].concat());
            written.deferred.add(&tool.name, loads, 0);
            continue;
        }
        out.push(if out.len() == begin { b'[' } else { b',' });
        match defers && tool.name == found::SEARCH {
            true => {
                out.extend_from_slice(br#"{"type":"tool_search","execution":"client""#);
                describe(out, tool, b"");
            }
            false => function(out, tool, strict),
        }
    }
    if out.len() > begin {
        out.push(b']');
    }
    Ok(written)
}

/// A function, with further members before its parameters.
fn function(out: &mut Vec<u8>, tool: &Sent<'_>, more: &[u8]) {
    out.extend_from_slice(br#"{"type":"function","name":"#);
    quote(out, &tool.name);
    describe(out, tool, more);
}

/// The description and the parameters of a tool, and its end.
fn describe(out: &mut Vec<u8>, tool: &Sent<'_>, more: &[u8]) {
    out.extend_from_slice(br#","description":"#);
    quote(out, &tool.description);
    out.extend_from_slice(more);
    out.extend_from_slice(br#","parameters":"#);
    out.extend_from_slice(tool.schema.as_bytes());
    out.push(b'}');
}

/// A message as items, separated by commas.
fn render(style: Style, message: &Shown) -> Rendered {
    let mut out = Vec::with_capacity(message.content.len() + 64);
    let mut instead = None;
    match message.role {
        Role::Assistant => {
            reply(&mut out, message, function_call);
            instead = searching(message).filter(|_| style.defers);
        }
        Role::Tool => {
            result(&mut out, message);
            instead = style.defers.then(|| search_output(message));
        }
        Role::User | Role::System => {
            out.extend_from_slice(br#"{"role":"user","content":"#);
            if !content(&mut out, &message.parts) {
                quote(&mut out, &message.content);
            }
            out.push(b'}');
        }
    }
    Rendered::message(style, out, None).or_instead(instead)
}

/// A reply whose searches are items of their own type; none if it has no search.
fn searching(message: &Shown) -> Option<Instead> {
    let searches = message.tool_calls.iter().filter(|call| call.name == found::SEARCH);
    let searches: Vec<String> =
        searches.map(|call| call_id(&call.id, message.repeats(&call.id)).into_owned()).collect();
    if searches.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    reply(&mut bytes, message, |out, call, repeats| match call.name == found::SEARCH {
        true => search_call(out, call, repeats),
        false => function_call(out, call, repeats),
    });
    Some(Instead { searches, bytes: Some(bytes), ..Instead::default() })
}

fn search_call(out: &mut Vec<u8>, call: &ToolCall, repeats: u32) {
    separate(out);
    out.extend_from_slice(br#"{"type":"tool_search_call","call_id":"#);
    quote(out, &call_id(&call.id, repeats));
    out.extend_from_slice(br#","execution":"client","status":"completed","arguments":"#);
    out.extend_from_slice(history::arguments(&call.arguments).trim().as_bytes());
    out.push(b'}');
}

/// A result as the output of a search. The output has room for definitions alone, so that words follow it as a message.
fn search_output(message: &Shown) -> Instead {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let id = call_id(id, message.repeats(id)).into_owned();
    let mut before = br#"{"type":"tool_search_output","call_id":"#.to_vec();
    quote(&mut before, &id);
    before.extend_from_slice(br#","execution":"client","status":"completed","tools":["#);
    let mut bytes = before.clone();
    bytes.extend_from_slice(br#"]},{"role":"developer","content":"#);
    quote(&mut bytes, history::or(&message.content, NO_OUTPUT));
    bytes.push(b'}');
    let loading = Loading { tools: found::in_message(message), before, after: b"]}" };
    Instead { answers: Some(id), loading: Some(loading), bytes: Some(bytes), ..Instead::default() }
}

/// The items of a reply. The API refuses reasoning that nothing follows.
fn reply(out: &mut Vec<u8>, message: &Shown, write_call: impl Fn(&mut Vec<u8>, &ToolCall, u32)) {
    // A message without parts is its text and its calls.
    if message.parts.is_empty() {
        if !message.content.trim().is_empty() {
            words(out, &message.content, None);
        }
        message.tool_calls.iter().for_each(|call| write_call(out, call, message.repeats(&call.id)));
    }
    let mut ends_with_reasoning = false;
    let mut phase = None;
    for part in &message.parts {
        let before = out.len();
        match part {
            Part::Text { text } | Part::Refusal { text } if !text.trim().is_empty() => {
                words(out, text, phase.take().as_deref());
            }
            Part::ToolCall(call) => write_call(out, call, message.repeats(&call.id)),
            Part::Reasoning { payload: Some(payload), .. } => {
                if let Some(known) = Item::read(&payload.data).filter(Item::is_whole) {
                    separate(out);
                    out.extend_from_slice(payload.data.trim().as_bytes());
                    ends_with_reasoning = known.r#type == "reasoning";
                    continue;
                }
            }
            Part::Provider(payload) => phase = Item::read(&payload.data).and_then(|known| known.phase),
            _ => {}
        }
        ends_with_reasoning &= out.len() == before;
    }
    if ends_with_reasoning || out.is_empty() {
        words(out, "", None);
    }
}

/// Adds a comma if an item precedes.
fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

/// An item of a payload, as the reply to a request leaves it in the log.
#[derive(Deserialize)]
struct Item {
    r#type: String,
    role: Option<String>,
    content: Option<serde_json::Value>,
    encrypted_content: Option<String>,
    summary: Option<serde_json::Value>,
    phase: Option<String>,
}

impl Item {
    fn read(payload: &str) -> Option<Self> {
        // Mending an item would break its seal, so a flawed item is left out.
        let Some(Cow::Borrowed(payload)) = history::object(payload) else { return None };
        serde_json::from_str(payload).ok()
    }

    /// Whether it can be sent as it is. Any other one is left out: it could be a call without a result.
    fn is_whole(&self) -> bool {
        match self.r#type.as_str() {
            "reasoning" => {
                self.encrypted_content.as_ref().is_some_and(|sealed| !sealed.trim().is_empty())
                    && self.summary.as_ref().is_none_or(serde_json::Value::is_array)
            }
            "message" => {
                self.role.as_deref() == Some("assistant")
                    && self.content.as_ref().is_some_and(serde_json::Value::is_string)
            }
            _ => false,
        }
    }
}

/// What the model said. Newer models mark comments on their work with a phase, and want it back.
fn words(out: &mut Vec<u8>, text: &str, phase: Option<&str>) {
    separate(out);
    out.extend_from_slice(br#"{"role":"assistant","content":"#);
    quote(out, text);
    if let Some(phase) = phase {
        out.extend_from_slice(br#","phase":"#);
        quote(out, phase);
    }
    out.push(b'}');
}

fn function_call(out: &mut Vec<u8>, call: &ToolCall, repeats: u32) {
    separate(out);
    out.extend_from_slice(br#"{"type":"function_call","call_id":"#);
    quote(out, &call_id(&call.id, repeats));
    out.extend_from_slice(br#","name":"#);
    quote(out, &history::name(&call.name));
    out.extend_from_slice(br#","arguments":"#);
    quote(out, &history::arguments(&call.arguments));
    out.push(b'}');
}

fn result(out: &mut Vec<u8>, message: &Shown) {
    out.extend_from_slice(br#"{"type":"function_call_output","call_id":"#);
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    quote(out, &call_id(id, message.repeats(id)));
    out.extend_from_slice(br#","output":"#);
    let inner = message.parts.iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(result.parts.as_slice()),
        _ => None,
    });
    let media = inner.filter(|parts| parts.iter().any(|part| part.media().is_some()));
    if !media.is_some_and(|parts| content(out, parts)) {
        quote(out, &message.content);
    }
    out.push(b'}');
}

/// The id of a call as the API takes it, used once in a request. A stored id may hold the id of the item as well, as
/// `call_1|fc_1`.
fn call_id(id: &str, repeats: u32) -> Cow<'_, str> {
    if repeats > 0 {
        return Cow::Owned(format!("call_{}", digest(&[id.as_bytes(), b"\0", &repeats.to_le_bytes()])));
    }
    let call = split_id(id);
    let is_sound = call.len() <= LONGEST_ID && !call.trim().is_empty() && !call.contains(char::is_control);
    if is_sound { call } else { Cow::Owned(format!("call_{}", digest(&[call.as_bytes()]))) }
}

/// The id of a call without that of its item.
pub(crate) fn split_id(id: &str) -> Cow<'_, str> {
    let (call, item) = id.split_once('|').unwrap_or((id, ""));
    match (call, item.strip_prefix("fc_")) {
        ("", Some(rest)) => Cow::Owned(format!("call_{rest}")),
        ("", None) => Cow::Borrowed(item),
        (call, _) => Cow::Borrowed(call),
    }
}

/// Words, pictures and files as a list; false, and nothing, where there are none.
fn content(out: &mut Vec<u8>, parts: &[Part]) -> bool {
    let begin = out.len();
    for part in parts {
        let mut words = match part {
            Part::Text { text } | Part::Refusal { text } => Some(text.clone()),
            part => part.mention(),
        }
        .unwrap_or_default();
        let before = out.len();
        out.push(if before == begin { b'[' } else { b',' });
        match (part, media::content(part)) {
            (Part::Image(_), Some(Content::Url(url))) => input_image(out, url),
            (Part::Image(image), Some(Content::Bytes(data))) => {
                input_image(out, &media::data_url(&image.media_type, &data));
            }
            (Part::File(file), Some(Content::Bytes(data))) => {
                out.extend_from_slice(br#"{"type":"input_file","filename":"#);
                quote(out, file.name.as_deref().unwrap_or("file"));
                out.extend_from_slice(br#","file_data":"#);
                quote(out, &media::data_url(&file.media_type, &data));
                out.push(b'}');
            }
            (_, content) => {
                if let Some(Content::Words(text)) = content {
                    words = format!("{words}\n{text}");
                }
                if words.trim().is_empty() {
                    out.truncate(before);
                    continue;
                }
                out.extend_from_slice(br#"{"type":"input_text","text":"#);
                quote(out, &words);
                out.push(b'}');
            }
        }
    }
    if out.len() > begin {
        out.push(b']');
    }
    out.len() > begin
}

fn input_image(out: &mut Vec<u8>, address: &str) {
    out.extend_from_slice(br#"{"type":"input_image","image_url":"#);
    quote(out, address);
    out.extend_from_slice(br#","detail":"auto"}"#);
}

#[cfg(test)]
mod tests;
