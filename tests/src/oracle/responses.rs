//! The rules of the Responses API for a provider that stores nothing.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::content::{check_words, is_detail};
use super::media::{check_address, check_document, check_picture, of_data_url};
use super::{is_name, object, only, text};

/// The parameters that the API documents for a request whose conversation is not stored.
const PARAMETERS: &[&str] = &[
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
];

/// The longest id of a call, and the longest key of a cache.
const LONGEST: usize = 64;
/// The smallest cap on output.
const LEAST_OUTPUT: u64 = 16;

/// Panics with the rule, the position and the items unless the API would accept the request.
#[track_caller]
pub fn assert_valid_responses_request(body: &Value) {
    if let Err(broken) = check_responses_request(body) {
        panic!("the Responses API would refuse this request: {broken}\n{}", super::outline(body));
    }
}

/// The reason why the Responses API would refuse the request, if any.
pub fn check_responses_request(body: &Value) -> Result<(), String> {
    let request = object(body, "the request")?;
    only(request, PARAMETERS, "the request")?;
    if text(request, "model", "the request")?.is_empty() {
        return Err("the request: no model".into());
    }
    if request.get("store") != Some(&Value::Bool(false)) {
        return Err("`store` is not false: the provider would keep the conversation".into());
    }
    check_settings(request)?;
    match request.get("tools") {
        Some(tools) => check_tools(tools)?,
        None if request.contains_key("tool_choice") || request.contains_key("parallel_tool_calls") => {
            return Err("tool_choice or parallel_tool_calls without tools".into());
        }
        None => {}
    }
    Conversation::default().check(request.get("input").and_then(Value::as_array).ok_or("there is no list of items")?)
}

fn check_settings(request: &Map<String, Value>) -> Result<(), String> {
    if request.contains_key("instructions") && text(request, "instructions", "the request")?.trim().is_empty() {
        return Err("the instructions are empty".into());
    }
    if request.contains_key("prompt_cache_key") {
        let key = text(request, "prompt_cache_key", "the request")?;
        if key.is_empty() || key.len() > LONGEST {
            return Err(format!("prompt_cache_key is empty or longer than {LONGEST} bytes"));
        }
    }
    if request.get("max_output_tokens").is_some_and(|cap| cap.as_u64().is_none_or(|cap| cap < LEAST_OUTPUT)) {
        return Err(format!("max_output_tokens is less than {LEAST_OUTPUT}, or no count"));
    }
    let within = |temperature: &Value| temperature.as_f64().is_some_and(|value| (0.0..=2.0).contains(&value));
    if request.get("temperature").is_some_and(|temperature| !within(temperature)) {
        return Err("the temperature is not between 0 and 2".into());
    }
    if let Some(include) = request.get("include")
        && *include != serde_json::json!(["reasoning.encrypted_content"])
    {
        return Err(format!("`include` asks for {include}"));
    }
    if let Some(reasoning) = request.get("reasoning") {
        let reasoning = object(reasoning, "reasoning")?;
        only(reasoning, &["effort", "summary"], "reasoning")?;
        check_choice(reasoning, "effort", &["none", "minimal", "low", "medium", "high", "xhigh", "max"])?;
        check_choice(reasoning, "summary", &["auto", "concise", "detailed"])?;
    }
    Ok(())
}

fn check_choice(settings: &Map<String, Value>, key: &str, known: &[&str]) -> Result<(), String> {
    match settings.get(key) {
        Some(value) if !known.iter().any(|known| value == known) => Err(format!("reasoning: `{key}` is {value}")),
        _ => Ok(()),
    }
}

fn check_tools(tools: &Value) -> Result<(), String> {
    let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or("tools is no list, or empty")?;
    let mut names = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let place = format!("tool {at}");
        let tool = object(tool, &place)?;
        if tool.get("type").is_some_and(|kind| kind == "tool_search") {
            only(tool, &["type", "execution", "description", "parameters"], &place)?;
            if text(tool, "execution", &place)? != "client" || !names.insert("") {
                return Err(format!("{place}: a search of the provider, or a second one"));
            }
            continue;
        }
        let name = check_function(tool, &["type", "name", "description", "parameters", "strict"], &place)?;
        if !names.insert(name) {
            return Err(format!("{place}: `{name}` is there twice"));
        }
    }
    Ok(())
}

/// Checks a function and returns its name.
fn check_function<'t>(tool: &'t Map<String, Value>, keys: &[&str], place: &str) -> Result<&'t str, String> {
    only(tool, keys, place)?;
    if text(tool, "type", place)? != "function" {
        return Err(format!("{place}: the type is not `function`"));
    }
    let name = text(tool, "name", place)?;
    if !is_name(name, 64) {
        return Err(format!("{place}: `{name}` is no name for a function"));
    }
    if !tool.get("strict").is_some_and(Value::is_boolean) {
        return Err(format!("{place}: `strict` is missing: the API would read the schema as a strict one"));
    }
    let schema = object(tool.get("parameters").unwrap_or(&Value::Null), &format!("{place}, parameters"))?;
    if schema.get("type") != Some(&Value::String("object".into())) || !schema.contains_key("properties") {
        return Err(format!("{place}: the parameters of `{name}` are no object with properties"));
    }
    match ["anyOf", "oneOf", "allOf", "enum", "not"].iter().find(|key| schema.contains_key(**key)) {
        Some(key) => Err(format!("{place}: `{key}` at the root of the parameters of `{name}`")),
        None => Ok(name),
    }
}

/// What an item is, for the order of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    /// Words or a call of the model.
    Reply,
    Reasoning,
    Result,
}

/// Walks over the items and tracks what may come next.
#[derive(Default)]
struct Conversation {
    /// Ids of calls and of reasoning.
    ids: HashSet<String>,
    /// Calls without a result so far.
    open: Vec<String>,
    /// Calls that are searches.
    searches: Vec<String>,
    before: Option<Kind>,
}

impl Conversation {
    fn check(mut self, items: &[Value]) -> Result<(), String> {
        for (at, item) in items.iter().enumerate() {
            let place = format!("item {at}");
            let item = object(item, &place)?;
            let kind = self.check_item(item, &place)?;
            if self.before == Some(Kind::Reasoning) && kind != Kind::Reply && kind != Kind::Reasoning {
                return Err(format!("{place}: the reasoning before it has no item of the model behind it"));
            }
            if kind == Kind::User {
                if let Some(open) = self.open.first() {
                    return Err(format!("{place}: the call `{open}` has no result before the user speaks"));
                }
                if !matches!(self.before, None | Some(Kind::Reply)) {
                    return Err(format!("{place}: the user speaks before the model has replied"));
                }
            }
            self.before = Some(kind);
        }
        if let Some(open) = self.open.first() {
            return Err(format!("the call `{open}` has no result"));
        }
        match self.before {
            Some(Kind::User | Kind::Result) => Ok(()),
            Some(_) => Err("the last item is the model's: there is nothing to answer".into()),
            None => Err("there are no items".into()),
        }
    }

    fn check_item(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        match item.get("type").and_then(Value::as_str).unwrap_or("message") {
            "message" => check_message(item, place),
            "reasoning" => self.check_reasoning(item, place),
            "function_call" => self.check_call(item, place),
            "function_call_output" => self.check_result(item, place),
            "tool_search_call" => self.check_search(item, place),
            "tool_search_output" => self.check_found(item, place),
            other => Err(format!("{place}: an item of the type `{other}`")),
        }
    }

    fn check_reasoning(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        only(item, &["type", "id", "summary", "content", "encrypted_content"], place)?;
        if text(item, "encrypted_content", place)?.is_empty() {
            return Err(format!("{place}: reasoning that is not sealed, and that the provider has not stored"));
        }
        let id = text(item, "id", place)?;
        if id.is_empty() || !self.ids.insert(id.to_owned()) {
            return Err(format!("{place}: the id `{id}` is empty or was used before"));
        }
        let summary = item.get("summary").and_then(Value::as_array);
        for part in summary.ok_or_else(|| format!("{place}: the summary is missing or no list"))? {
            let part = object(part, place)?;
            only(part, &["type", "text"], place)?;
            if text(part, "type", place)? != "summary_text" {
                return Err(format!("{place}: a part of the summary that is no `summary_text`"));
            }
            text(part, "text", place)?;
        }
        Ok(Kind::Reasoning)
    }

    fn check_call(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        only(item, &["type", "call_id", "name", "arguments"], place)?;
        if !is_name(text(item, "name", place)?, 64) {
            return Err(format!("{place}: no name of a function"));
        }
        let arguments = text(item, "arguments", place)?;
        if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
            return Err(format!("{place}: the arguments are no JSON object: {arguments}"));
        }
        let id = text(item, "call_id", place)?;
        if id.is_empty() || id.len() > LONGEST || !self.ids.insert(id.to_owned()) {
            return Err(format!("{place}: the id `{id}` is empty, too long or was used before"));
        }
        self.open.push(id.to_owned());
        Ok(Kind::Reply)
    }

    fn check_search(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        only(item, &["type", "call_id", "execution", "status", "arguments"], place)?;
        if text(item, "execution", place)? != "client" {
            return Err(format!("{place}: a search of the provider"));
        }
        object(item.get("arguments").unwrap_or(&Value::Null), &format!("{place}, arguments"))?;
        let id = text(item, "call_id", place)?;
        if id.is_empty() || id.len() > LONGEST || !self.ids.insert(id.to_owned()) {
            return Err(format!("{place}: the id `{id}` is empty, too long or was used before"));
        }
        self.searches.push(id.to_owned());
        self.open.push(id.to_owned());
        Ok(Kind::Reply)
    }

    fn check_found(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        only(item, &["type", "call_id", "execution", "status", "tools"], place)?;
        for tool in item.get("tools").and_then(Value::as_array).ok_or_else(|| format!("{place}: no list of tools"))? {
            let tool = object(tool, place)?;
            check_function(tool, &["type", "name", "description", "parameters", "strict", "defer_loading"], place)?;
        }
        let id = text(item, "call_id", place)?;
        if !self.searches.iter().any(|search| search == id) {
            return Err(format!("{place}: found for `{id}`, which is no search"));
        }
        self.close(id, place)
    }

    /// Results may have any order.
    fn check_result(&mut self, item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
        only(item, &["type", "call_id", "output"], place)?;
        let output = item.get("output").unwrap_or(&Value::Null);
        if !output.is_string() {
            check_parts(output, place)?;
        }
        let id = text(item, "call_id", place)?;
        if self.searches.iter().any(|search| search == id) {
            return Err(format!("{place}: a usual result for the search `{id}`"));
        }
        self.close(id, place)
    }

    fn close(&mut self, id: &str, place: &str) -> Result<Kind, String> {
        let Some(called) = self.open.iter().position(|open| open == id) else {
            return Err(format!("{place}: a result for `{id}`, which no call waits for"));
        };
        self.open.remove(called);
        Ok(Kind::Result)
    }
}

/// Checks what the user or the model said. The model's words may be empty: they then close its reasoning.
fn check_message(item: &Map<String, Value>, place: &str) -> Result<Kind, String> {
    let content = item.get("content").unwrap_or(&Value::Null);
    match text(item, "role", place)? {
        "user" => {
            only(item, &["type", "role", "content"], place)?;
            match content {
                Value::String(words) if !words.trim().is_empty() => {}
                Value::String(_) => return Err(format!("{place}: the content is empty")),
                parts => check_parts(parts, place)?,
            }
            Ok(Kind::User)
        }
        "assistant" => {
            only(item, &["type", "role", "content", "phase"], place)?;
            text(item, "content", place)?;
            if item.get("phase").is_some_and(|phase| phase != "commentary" && phase != "final_answer") {
                return Err(format!("{place}: `phase` is neither commentary nor final_answer"));
            }
            Ok(Kind::Reply)
        }
        // What belongs to results.
        "developer" => {
            only(item, &["type", "role", "content"], place)?;
            match text(item, "content", place)?.trim() {
                "" => Err(format!("{place}: the content is empty")),
                _ => Ok(Kind::Result),
            }
        }
        role => Err(format!("{place}: a message of the role {role}")),
    }
}

/// Checks texts, pictures and documents.
fn check_parts(parts: &Value, place: &str) -> Result<(), String> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty());
    for (number, part) in parts.ok_or_else(|| format!("{place}: no text and no list of parts"))?.iter().enumerate() {
        let place = format!("{place}, part {number}");
        let part = object(part, &place)?;
        match text(part, "type", &place)? {
            "input_text" => check_words(part, "text", &place)?,
            "input_image" => check_image(part, &place)?,
            "input_file" => check_file(part, &place)?,
            other => return Err(format!("{place}: a part of the type `{other}`")),
        }
    }
    Ok(())
}

fn check_image(part: &Map<String, Value>, place: &str) -> Result<(), String> {
    only(part, &["type", "image_url", "detail"], place)?;
    if !part.get("detail").is_some_and(is_detail) {
        return Err(format!("{place}: `detail` is neither auto, low nor high"));
    }
    let url = text(part, "image_url", place)?;
    if !url.starts_with("data:") {
        return check_address(url, place);
    }
    let (media_type, data) = of_data_url(url, place)?;
    check_picture(media_type, data, place)
}

fn check_file(part: &Map<String, Value>, place: &str) -> Result<(), String> {
    only(part, &["type", "filename", "file_data"], place)?;
    if text(part, "filename", place)?.is_empty() {
        return Err(format!("{place}: the file has no name"));
    }
    let (media_type, data) = of_data_url(text(part, "file_data", place)?, place)?;
    check_document(media_type, data, place)
}

#[cfg(test)]
mod tests;
