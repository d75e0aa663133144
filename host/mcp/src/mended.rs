//! Mends the messages of a server as JSON, before they get types, so that an odd part costs only itself.
//!
//! The protocol's types are read as a whole: one odd field would lose the message, and a line that is not JSON would leave its
//! call waiting. This module turns a line into JSON if its meaning needs no guess. A result is passed on unchanged to the code
//! that knows the request ([`carried`]).

use rmcp::model::{ServerCapabilities, ServerResult};
use serde_json::{Map, Number, Value, json};

use crate::bounded::Scan;
use crate::error::line;
use crate::limits;
use crate::values::values;

/// The code of an error that says nothing of its own.
const INTERNAL: i64 = -32_603;
/// The version of the protocol of a server that names none: the first one.
const FIRST_VERSION: &str = "2024-11-05";

/// The messages in a line or a body, in their order. An answer that cannot be read becomes an error with its id, so that its call
/// ends at once.
pub(crate) fn messages(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    values(&text).into_iter().flat_map(of_value).collect()
}

/// The messages in the text of one value: none if it is no message, and several if it is a batch.
pub(crate) fn of_value(text: &str) -> Vec<Value> {
    let parts = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).take(limits::MESSAGE_PARTS + 1).count();
    if parts > limits::MESSAGE_PARTS {
        // Each takes many times its bytes in memory.
        let mut scan = Scan::default();
        scan.feed(text.as_bytes());
        let why = format!("it has more than {} values", limits::MESSAGE_PARTS);
        return scan.answered().map(|id| unreadable(&own_id(id), &why)).into_iter().collect();
    }
    let parsed = serde_json::from_str(text).or_else(|_| serde_json::from_str(&as_json(text)));
    match parsed {
        Ok(Value::Array(batch)) => batch.into_iter().filter_map(message).collect(),
        Ok(value) => message(value).into_iter().collect(),
        Err(error) => {
            let mut scan = Scan::default();
            scan.feed(text.as_bytes());
            scan.answered().map(|id| unreadable(&own_id(id), &error.to_string())).into_iter().collect()
        }
    }
}

/// An error in place of an answer that cannot be read.
pub(crate) fn unreadable(id: &Value, why: &str) -> Value {
    let message = line(&format!("its answer cannot be read: {why}"));
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL, "message": message } })
}

/// The original result, which [`messages`] wrapped.
pub(crate) fn carried(result: ServerResult) -> Option<Value> {
    match result {
        ServerResult::CallToolResult(result) => result.structured_content,
        _ => None,
    }
}

/// Wraps a result of any form, so that the protocol's types accept it.
fn carrying(result: Value) -> Value {
    json!({ "content": [], "structuredContent": result })
}

/// A message with parts that can be read; `None` if it is none. An answer that names no request has the id `null`.
fn message(value: Value) -> Option<Value> {
    let Value::Object(mut message) = value else { return None };
    let has_version = message.insert("jsonrpc".to_owned(), "2.0".into()).is_some();
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        return Some(match message.get("id") {
            Some(id) if is_of_client(method) => {
                unreadable(&own_id(id.clone()), "it is the request itself: the program repeats its input")
            }
            _ => Value::Object(message),
        });
    }
    let id = match message.remove("id") {
        Some(id) => own_id(id),
        // A line of a log can have an error, too.
        None if has_version => Value::Null,
        None => return None,
    };
    let has_result = message.get("result").is_some_and(|result| !result.is_null());
    let error = message.remove("error").filter(|error| !(error.is_null() || has_result && says_nothing(error)));
    Some(match (error, message.remove("result")) {
        (Some(error), _) => json!({ "jsonrpc": "2.0", "id": id, "error": mended_error(error) }),
        (None, Some(_)) if id.is_null() => unreadable(&id, "it does not say which request it answers"),
        (None, Some(result)) => {
            let result = match () {
                () if is_discovery(&result) => discovery(result),
                () if is_greeting(&result) => greeting(result),
                () => carrying(result),
            };
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        (None, None) => return None,
    })
}

/// Whether only a client sends such requests.
fn is_of_client(method: &str) -> bool {
    let kind = method.split_once('/').map_or(method, |(kind, _)| kind);
    matches!(kind, "initialize" | "tools" | "resources" | "prompts" | "completion" | "logging")
}

/// The id of an answer. The ids of Hermes are whole numbers, but some servers send them back as a text or a fraction. Any other
/// value becomes `null`.
fn own_id(id: Value) -> Value {
    let number = match &id {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        Value::Number(number) => number.as_f64(),
        _ => return Value::Null,
    };
    let whole = number.filter(|it| it.fract() == 0.0 && it.abs() < 1e15).map(|it| Value::from(it as i64));
    whole.unwrap_or(if id.is_string() { id } else { Value::Null })
}

/// Whether an error beside a result is none, as some languages write it.
fn says_nothing(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Object(members) => members.values().all(says_nothing),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(true) => false,
    }
}

fn mended_error(error: Value) -> Value {
    let Value::Object(mut error) = error else {
        return json!({ "code": INTERNAL, "message": words(&error) });
    };
    let code = error.remove("code").unwrap_or_default();
    let number = code.as_i64().or_else(|| code.as_str()?.trim().parse().ok());
    let number = number.filter(|code| i32::try_from(*code).is_ok());
    let data = error.remove("data").filter(|data| !data.is_null());
    let said = match error.remove("message") {
        Some(Value::String(message)) if !message.trim().is_empty() => message,
        None | Some(Value::Null | Value::String(_)) => match &data {
            Some(data) => words(data),
            None => format!("the server answered with the error {} and no message", words(&code)),
        },
        Some(other) => words(&other),
    };
    // A code that is a text may be all that says what is wrong.
    let message = if number.is_none() && code.is_string() { format!("{said} ({})", words(&code)) } else { said };
    let mut mended = json!({ "code": number.unwrap_or(INTERNAL), "message": message });
    if let Some(data) = data {
        mended["data"] = data;
    }
    mended
}

/// A value in words: a text as it is, and anything else as JSON.
pub(crate) fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a result is the answer to `server/discover`, whose type the SDK needs, too.
fn is_discovery(result: &Value) -> bool {
    result.get("supportedVersions").is_some_and(Value::is_array) && result.get("protocolVersion").is_none()
}

fn discovery(result: Value) -> Value {
    const SOFTWARE: &str = "io.modelcontextprotocol/serverInfo";
    let versions = result.get("supportedVersions").and_then(Value::as_array).into_iter().flatten();
    let about = result.get("_meta").and_then(|meta| meta.get(SOFTWARE)).or_else(|| result.get("serverInfo"));
    json!({
        "resultType": "complete",
        "supportedVersions": versions.filter(|version| version.is_string()).collect::<Vec<_>>(),
        "capabilities": capabilities(result.get("capabilities")),
        "instructions": result.get("instructions").filter(|value| value.is_string()),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { SOFTWARE: software(about) },
    })
}

/// The name and the version of a server.
fn software(about: Option<&Value>) -> Value {
    let text =
        |name: &str| about.and_then(|about| about.get(name)).filter(|value| value.is_string() || value.is_number());
    let text = |name: &str| text(name).map(words).unwrap_or_default();
    json!({ "name": text("name"), "version": text("version") })
}

/// Whether a result is the answer to `initialize`, the only one of its versions whose type the SDK needs.
fn is_greeting(result: &Value) -> bool {
    let has = |name| result.get(name).is_some();
    has("protocolVersion") && (has("capabilities") || has("serverInfo")) || has("serverInfo") && has("capabilities")
}

fn greeting(result: Value) -> Value {
    let text = |value: Option<&Value>| value.filter(|value| value.is_string() || value.is_number()).map(words);
    json!({
        "protocolVersion": text(result.get("protocolVersion")).unwrap_or_else(|| FIRST_VERSION.to_owned()),
        "capabilities": capabilities(result.get("capabilities")),
        "serverInfo": software(result.get("serverInfo")),
        "instructions": result.get("instructions").filter(|value| value.is_string()),
    })
}

/// The capabilities that can be read. A capability that is neither an object nor `true` is left out.
fn capabilities(offered: Option<&Value>) -> Value {
    let mut read = Map::new();
    for (name, value) in offered.and_then(Value::as_object).into_iter().flatten() {
        let whole = Map::from_iter([(name.clone(), value.clone())]);
        let is_readable = serde_json::from_value::<ServerCapabilities>(Value::Object(whole)).is_ok();
        match value {
            Value::Object(_) if is_readable => _ = read.insert(name.clone(), value.clone()),
            // The capability exists, but its details cannot be read.
            Value::Object(_) | Value::Bool(true) => _ = read.insert(name.clone(), json!({})),
            _ => {}
        }
    }
    Value::Object(read)
}

/// A text that is nearly JSON, as JSON: words that JSON does not know are `null`, such as the `NaN` of Python; numbers have its form;
/// halves of surrogate pairs become U+FFFD; control characters in texts are escaped; a comma before an end is left out.
fn as_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => push_text(rest, &mut json),
            _ if first.is_ascii_alphanumeric() || "+-._".contains(first) => {
                let is_part = |c: char| c.is_alphanumeric() || "+-._".contains(c);
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                push_word(&rest[..length], &mut json);
                length
            }
            '}' | ']' => {
                let kept = json.trim_end();
                if kept.ends_with(',') {
                    json.truncate(kept.len() - 1);
                }
                json.push(first);
                1
            }
            // Between values, a control character means nothing.
            _ => {
                if !first.is_control() || first.is_ascii_whitespace() {
                    json.push(first);
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    json
}

/// A word or a number outside of texts.
fn push_word(word: &str, json: &mut String) {
    let number = || word.parse::<f64>().ok().and_then(Number::from_f64).map(|number| number.to_string());
    let is_json = serde_json::from_str::<Value>(word).is_ok();
    json.push_str(&if is_json { word.to_owned() } else { number().unwrap_or_else(|| "null".to_owned()) });
}

/// A text with its quotes. Returns how many bytes were read.
fn push_text(text: &str, json: &mut String) -> usize {
    json.push('"');
    let mut at = 1;
    while let Some(character) = text[at..].chars().next() {
        at += character.len_utf8();
        match character {
            '"' => {
                json.push('"');
                return at;
            }
            '\\' => at += push_escape(&text[at..], json),
            control if control.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => json.push(plain),
        }
    }
    at
}

/// What follows a backslash. Returns how many bytes were read.
fn push_escape(text: &str, json: &mut String) -> usize {
    let unit = |text: &str| text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    match text.chars().next() {
        Some(plain @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
            json.extend(['\\', plain]);
            1
        }
        Some('u') => {
            let Some(first) = unit(&text[1..]) else {
                json.push('u');
                return 1;
            };
            let second = text[5..].strip_prefix("\\u").and_then(unit);
            match (first, second) {
                (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => {
                    json.push('\\');
                    json.push_str(&text[..11]);
                    11
                }
                (0xd800..=0xdfff, _) => {
                    json.push('\u{fffd}');
                    5
                }
                _ => {
                    json.push('\\');
                    json.push_str(&text[..5]);
                    5
                }
            }
        }
        // An escape that JSON does not know means its character.
        Some(_) | None => 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::ServerJsonRpcMessage;

    use super::*;

    /// What the protocol's types read of a line.
    fn read(text: &str) -> Vec<ServerJsonRpcMessage> {
        messages(text.as_bytes()).into_iter().map(|message| serde_json::from_value(message).unwrap()).collect()
    }

    /// The result of an answer to the call 7.
    fn result(text: &str) -> Value {
        let [ServerJsonRpcMessage::Response(response)] = &read(text)[..] else { panic!("{text}: {:?}", read(text)) };
        assert_eq!(response.id, rmcp::model::RequestId::Number(7), "{text}");
        carried(response.result.clone()).unwrap_or_else(|| panic!("{text}: {:?}", response.result))
    }

    fn error(text: &str) -> (i32, String) {
        let [ServerJsonRpcMessage::Error(error)] = &read(text)[..] else { panic!("{text}: {:?}", read(text)) };
        assert_eq!(error.id, Some(rmcp::model::RequestId::Number(7)), "{text}");
        (error.error.code.0, error.error.message.to_string())
    }

    #[test]
    fn a_result_of_any_form_reaches_those_who_asked() {
        for odd in [
            r#"{"tools":[{"name":1}]}"#,
            r#"{"content":"a text"}"#,
            r#"{"content":[{"type":"video"}],"isError":"yes"}"#,
            r#"{"messages":[],"contents":[],"resources":[]}"#,
            r#"{"resultType":"task","taskId":"1"}"#,
            r#"{"action":"accept"}"#,
            r#""bare""#,
            "null",
            "[1,{}]",
            "{}",
            "false",
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#);
            assert_eq!(result(&text), serde_json::from_str::<Value>(odd).unwrap(), "{odd}");
        }
        // A server that forgets the version, or writes the id in another way.
        for id in ["7", "7.0", "\"7\"", "\"7.0\"", "\" 7 \""] {
            assert_eq!(result(&format!(r#"{{"id":{id},"result":1,"error":null}}"#)), json!(1), "{id}");
        }
        for nothing in ["null", "{}", "[]", "\"\"", "false", "0", r#"{"code":0,"message":""}"#] {
            assert_eq!(result(&format!(r#"{{"id":7,"result":1,"error":{nothing}}}"#)), json!(1), "{nothing}");
        }
    }

    #[test]
    fn a_line_that_is_nearly_json_is_read_without_a_guess() {
        for (odd, expected) in [
            (r#"{"v":NaN,"w":-Infinity,"x":[undefined]}"#, json!({"v": null, "w": null, "x": [null]})),
            (r#"{"v":.5,"w":+1,"x":01,"y":1e999,"z":-2}"#, json!({"v": 0.5, "w": 1.0, "x": 1.0, "y": null, "z": -2})),
            (r#""half \ud83d and \ude80 of \ud83d\ude80""#, json!("half \u{fffd} and \u{fffd} of \u{1f680}")),
            (r#""\ud83dx \ud83d\n \u00e9 \ud83d\ud83d\ude80""#, json!("\u{fffd}x \u{fffd}\n é \u{fffd}\u{1f680}")),
            ("\"a\ttab \u{1b}[31m NaN\"", json!("a\ttab \u{1b}[31m NaN")),
            (r#""it\'s \x \u12 é""#, json!("it's x u12 é")),
            (r#"[1, {"a": 2,}, ]"#, json!([1, {"a": 2}])),
        ] {
            assert_eq!(result(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#)), expected, "{odd}");
        }
        let latin = messages(b"\xef\xbb\xbf{\"id\":7,\"result\":\"caf\xe9\"}\r\n");
        assert_eq!(latin[0]["result"]["structuredContent"], "caf\u{fffd}");
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_error_of_its_call() {
        let deep = format!(r#"{{"id":7,"result":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for text in [deep.as_str(), r#"{"id":7,"result":{"a" "b"}}"#, r#"{"result":{'a':1},"id":"7"}"#] {
            let (code, message) = error(text);
            assert!(code == -32_603 && message.starts_with("its answer cannot be read: "), "{text}: {message}");
        }
        // Such as `cat` in place of a server.
        for method in ["initialize", "tools/list", "tools/call", "resources/read"] {
            let (_, message) = error(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#));
            assert!(message.contains("it is the request itself"), "{message}");
        }
        assert!(matches!(&read(r#"{"id":7,"method":"roots/list"}"#)[..], [ServerJsonRpcMessage::Request(_)]));
        // Neither a request nor something else is an answer.
        for text in
            ["{\"id\":7,\"method\":\"x\",\"params\":{'a'}}", "{oops", "[7, \"x\"]", "{\"level\":\"info\",\"id\":7}"]
        {
            assert_eq!(messages(text.as_bytes()), Vec::<Value>::new(), "{text}");
        }
    }

    #[test]
    fn an_error_in_any_form_keeps_its_words() {
        for (odd, code, message) in [
            (r#"{"code":-32602,"message":"who is required"}"#, -32_602, "who is required"),
            (r#"{"code":"E1","message":"who is required"}"#, -32_603, "who is required (E1)"),
            (r#"{"code":"-32001","message":"slow"}"#, -32_001, "slow"),
            (r#"{"code":-32000,"message":null}"#, -32_000, "the server answered with the error -32000 and no message"),
            (r#"{"code":-32000,"data":{"why":"full"}}"#, -32_000, r#"{"why":"full"}"#),
            (r#"{"code":1e40,"message":{"text":"odd"}}"#, -32_603, r#"{"text":"odd"}"#),
            (r#""just a text""#, -32_603, "just a text"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{odd},"result":null}}"#);
            assert_eq!(error(&text), (code, message.to_owned()), "{odd}");
        }
    }

    #[test]
    fn a_greeting_is_read_by_its_parts() {
        for (odd, name, version) in [
            (r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a"}}"#, "a", ""),
            (
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":true,"logging":"x"},"serverInfo":{"name":"a","version":2}}"#,
                "a",
                "2",
            ),
            (
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":"yes"}},"instructions":{}}"#,
                "",
                "",
            ),
            (r#"{"capabilities":{"tools":{}},"serverInfo":null}"#, "", ""),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#);
            let [ServerJsonRpcMessage::Response(response)] = &read(&text)[..] else { panic!("{odd}") };
            let ServerResult::InitializeResult(greeting) = &response.result else { panic!("{odd}: {response:?}") };
            assert_eq!((greeting.server_info.name.as_str(), greeting.server_info.version.as_str()), (name, version));
            assert!(greeting.capabilities.tools.is_some() && greeting.capabilities.logging.is_none(), "{odd}");
        }
    }

    #[test]
    fn what_is_no_message_is_left_out_and_a_batch_is_several() {
        for noise in
            ["", "Server v1.0 starting...", "\u{1b}[32mINFO\u{1b}[0m ready", r#"{"level":"info","msg":"x"}"#, "[]"]
        {
            assert_eq!(messages(noise.as_bytes()), Vec::<Value>::new(), "{noise}");
        }
        let batch = r#"[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"id":7,"result":1},"x"]"#;
        assert!(matches!(&read(batch)[..], [ServerJsonRpcMessage::Notification(_), ServerJsonRpcMessage::Response(_)]));
    }

    #[test]
    fn each_message_of_a_line_counts() {
        let ids = |text: &str| messages(text.as_bytes()).iter().map(|it| it["id"].clone()).collect::<Vec<_>>();
        let (seven, eight) = (r#"{"id":7,"result":"} {"}"#, r#"{"id":"8.0","error":{"message":"no"}}"#);
        for between in ["", " ", ",", ";", "\0", "\r", "\u{1e}", "\u{feff}", "\t\0 "] {
            assert_eq!(ids(&format!("{seven}{between}{eight}")), [json!(7), json!(8)], "{between:?}");
        }
        for before in ["\0", "\0\0\0", "\u{feff}\0", "\u{1e}", "\u{1b}[2K\u{1b}[0;1m", " \u{7}\r"] {
            assert_eq!(ids(&format!("{before}{seven}")), [json!(7)], "{before:?}");
            assert_eq!(ids(&format!("{seven}{before}")), [json!(7)], "{before:?}");
        }
        // One that cannot be read costs itself alone.
        assert_eq!(ids(&format!(r#"{{"id":6,"result":{{"a" "b"}}}}{seven}"#)), [json!(6), json!(7)]);
        assert_eq!(ids(&format!(r#"{seven}{{"id":8,"result":"cut"#)), [json!(7), json!(8)]);
        assert_eq!(result("{\"id\":7,\0\"result\":[1,\u{2}2]}"), json!([1, 2]));
        // A log that quotes a message is none.
        for log in [format!("sent {seven}"), format!("INFO: {seven}"), format!("{seven} was sent, then {eight}")] {
            assert!(ids(&log).len() < 2, "{log}");
        }
        assert_eq!(ids(&format!("received {seven}")), Vec::<Value>::new());
    }

    #[test]
    fn an_answer_that_names_no_request_is_an_error_without_one() {
        for (text, words) in [
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#, "Parse error"),
            (r#"{"jsonrpc":"2.0","error":{"message":"no id"}}"#, "no id"),
            (r#"{"id":null,"error":"a text"}"#, "a text"),
            (r#"{"id":true,"error":"a text"}"#, "a text"),
            (r#"{"id":1.5,"error":"a text"}"#, "a text"),
            (r#"{"id":null,"result":{}}"#, "it does not say which request it answers"),
        ] {
            let [ServerJsonRpcMessage::Error(error)] = &read(text)[..] else { panic!("{text}: {:?}", read(text)) };
            assert!(error.id.is_none() && error.error.message.contains(words), "{text}: {error:?}");
        }
        assert_eq!(messages(br#"{"level":"error","error":"of a log"}"#), Vec::<Value>::new());
    }
}
