//! `expand`: any message byte for byte, in pages, and stretches of messages as lists.

use hermes_guest_engine::parts;
use hermes_plugin::{Error, Message, MessageId, MessageRange, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clip::{ends, floor, line, time};
use crate::reference::Reference;
use crate::source::Source;

/// Default and largest number of bytes of a page.
pub(crate) const PAGE: usize = 4_000;
const LONGEST: usize = 12_000;
/// Most tokens of an answer with default length. The host shortens longer results, down to 1,500 tokens at worst.
pub(crate) const TOKENS: u32 = 1_350;
/// Of these, the tokens for all entries of a list, and for one entry.
const LIST: u32 = TOKENS - 50;
const ENTRY: u32 = 1_200;
/// Bytes of a user message in a list, and characters of any other message.
const SAID: usize = 3_000;
const OTHER: usize = 160;
/// Most calls listed per message.
const CALLS: usize = 6;

pub(crate) const DESCRIPTION: &str = "Show a message of this conversation exactly as it was, also one that was folded \
    into a summary. ref: #12 (its text), #12/1 (arguments of its first call), #12/reasoning, or #12-#80 (a list). Long \
    ones come in pages: pass the offset that the first line names; \
    length for longer pages.";

pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ref": { "type": "string", "description": "Such as #12." },
            "offset": { "type": "integer", "minimum": 0, "description": "Where the page begins; 0 unless given." },
            "length": { "type": "integer", "minimum": 1, "maximum": LONGEST, "description": "Bytes of the page; 4000 unless given." },
        },
        "required": ["ref"],
    })
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(rename = "ref")]
    reference: Value,
    #[serde(default)]
    offset: Option<Value>,
    #[serde(default)]
    length: Option<Value>,
}

/// Accepts a number or a string with a number: models write both.
fn number(name: &str, value: Option<&Value>) -> Result<Option<u64>, Error> {
    let wrong = || Error::invalid(format!("{name} is a whole number"));
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| wrong()),
        Some(value) => value.as_u64().map(Some).ok_or_else(wrong),
    }
}

pub(crate) fn run(arguments: &Arguments, source: &impl Source) -> Result<String, Error> {
    let text = match &arguments.reference {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let offset = number("offset", arguments.offset.as_ref())?.unwrap_or(0);
    let length = number("length", arguments.length.as_ref())?;
    let page = |reference: &str, about: &str, text: &str| page(reference, about, text, offset, length, source);
    match Reference::parse(&text)? {
        Reference::Text(id) => {
            let message = one(source, id)?;
            page(&format!("#{id}"), &about(&message), &message.content)
        }
        Reference::Call(id, n) => {
            let message = one(source, id)?;
            let call = message.tool_calls.get(n - 1).ok_or_else(|| {
                Error::invalid(format!("message #{id} makes {} calls: there is no #{id}/{n}", message.tool_calls.len()))
            })?;
            page(&format!("#{id}/{n}"), &format!("arguments of {}", line(&call.name, 64)), &call.arguments)
        }
        Reference::Reasoning(id) => {
            let message = one(source, id)?;
            page(&format!("#{id}/reasoning"), "reasoning", message.reasoning.as_deref().unwrap_or_default())
        }
        Reference::Stretch(range) => list(range, offset, source),
    }
}

/// The message with this number.
pub(crate) fn one(source: &impl Source, id: MessageId) -> Result<Message, Error> {
    let page = source.page(MessageRange::one(id))?;
    page.messages.into_iter().find(|message| message.id == id).ok_or_else(|| {
        Error::invalid(format!("there is no message #{id} in this conversation; outline lists what there is"))
    })
}

pub(crate) fn who(message: &Message) -> String {
    match &message.role {
        Role::User => "user".to_owned(),
        Role::Assistant => "assistant".to_owned(),
        Role::System => "system".to_owned(),
        Role::Other(role) => line(role, 64),
        Role::Tool => format!("result of {}", line(message.tool_name.as_deref().unwrap_or("a tool"), 64)),
    }
}

/// Role, time, and the other parts of the message.
fn about(message: &Message) -> String {
    let mut about = format!("{}, {} UTC", who(message), time(message.created_at));
    for (n, call) in (1..).zip(&message.tool_calls).take(CALLS) {
        let (id, name) = (message.id, line(&call.name, 64));
        about.push_str(&format!("; #{id}/{n} arguments of {name}, {} bytes", call.arguments.len()));
    }
    if message.tool_calls.len() > CALLS {
        about.push_str(&format!("; and so on to #{}/{}", message.id, message.tool_calls.len()));
    }
    for part in parts::descriptions(message).take(CALLS) {
        about.push_str(&format!("; {part}"));
    }
    if let Some(reasoning) = &message.reasoning {
        about.push_str(&format!("; #{}/reasoning, {} bytes", message.id, reasoning.len()));
    }
    about
}

/// One line about the page, followed by exactly its bytes.
fn page(
    reference: &str,
    about: &str,
    text: &str,
    offset: u64,
    length: Option<u64>,
    source: &impl Source,
) -> Result<String, Error> {
    let all = text.len();
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    if from > all || !text.is_char_boundary(from) {
        return Err(Error::invalid(format!(
            "{reference} has {all} bytes: {offset} is no place in it where a page begins"
        )));
    }
    let mut bytes = length.map_or(PAGE, |length| usize::try_from(length).unwrap_or(LONGEST).clamp(1, LONGEST));
    loop {
        let mut to = floor(text, from.saturating_add(bytes));
        if to == from {
            // Include at least one character, or the next page would start at the same offset.
            to += text[from..].chars().next().map_or(0, char::len_utf8);
        }
        let next = if to < all { format!("; next offset {to}") } else { String::new() };
        let page = format!("{reference} {about}; bytes {from}-{to} of {all}{next}\n{}", &text[from..to]);
        if length.is_some() || bytes < 16 || source.count(&page) <= TOKENS {
            return Ok(page);
        }
        bytes -= bytes / 8;
    }
}

/// A list of messages: the user's in full unless long, of others the beginning.
fn list(range: MessageRange, offset: u64, source: &impl Source) -> Result<String, Error> {
    let first = range.first.max(offset);
    let mut text = String::new();
    let mut tokens = 0;
    let mut next = None;
    let mut at = first;
    'pages: while at <= range.last {
        let page = source.page(MessageRange::new(at, range.last))?;
        for message in &page.messages {
            let entry = entry(message, source);
            tokens += source.count(&entry) + 1;
            if !text.is_empty() && tokens > LIST {
                next = Some(message.id);
                break 'pages;
            }
            text.push('\n');
            text.push_str(&entry);
        }
        match page.next {
            Some(next) if next > at => at = next,
            _ => break,
        }
    }
    if text.is_empty() {
        return Err(Error::invalid(format!(
            "there is no message from #{first} to #{} in this conversation",
            range.last
        )));
    }
    let next = next.map(|id| format!("; next offset {id}")).unwrap_or_default();
    Ok(format!("Messages from #{first} to #{}{next}{text}", range.last))
}

fn entry(message: &Message, source: &impl Source) -> String {
    let (id, who) = (message.id, who(message));
    let mut most = SAID;
    loop {
        let entry = if message.role == Role::User {
            let said = ends(&message.content, most, &format!("#{id}"));
            format!("#{id} {who}: {}", parts::with_summary(&said, message, " "))
        } else {
            other(message, &who, most.min(OTHER))
        };
        if source.count(&entry) <= ENTRY || most < 16 {
            return entry;
        }
        most -= most / 4;
    }
}

fn other(message: &Message, who: &str, most: usize) -> String {
    let id = message.id;
    let said = line(&message.content, most);
    let mut entry = format!("#{id} {who}: {}", parts::with_summary(&said, message, " "));
    for (n, call) in (1..).zip(&message.tool_calls).take(CALLS) {
        entry.push_str(&format!("\n  #{id}/{n} {} {}", line(&call.name, 64), line(&call.arguments, most)));
    }
    if message.tool_calls.len() > CALLS {
        entry.push_str(&format!("\n  and so on to #{id}/{}", message.tool_calls.len()));
    }
    if message.content.len() > most {
        entry.push_str(&format!(" ({} bytes)", message.content.len()));
    }
    entry
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::history::MessageParts;
    use hermes_plugin::{Blob, Media, MediaSource, Part};

    use super::*;
    use crate::testing::{Log, assistant, calls, result, user};

    fn expand(log: &Log, reference: &str, offset: usize) -> Result<String, Error> {
        run(&serde_json::from_value(json!({ "ref": reference, "offset": offset })).unwrap(), log)
    }

    /// Reads a whole part by following the offsets in the first lines.
    fn whole(log: &Log, reference: &str) -> (String, usize) {
        let (mut text, mut pages) = (String::new(), 0);
        loop {
            let answer = expand(log, reference, text.len()).unwrap();
            let (head, body) = answer.split_once('\n').unwrap();
            let place = head.rsplit_once("bytes ").unwrap().1.split(';').next().unwrap();
            assert_eq!(place.split(' ').next().unwrap(), format!("{}-{}", text.len(), text.len() + body.len()));
            text.push_str(body);
            pages += 1;
            if !head.contains("next offset") {
                return (text, pages);
            }
        }
    }

    #[test]
    fn every_part_is_returned_byte_for_byte() {
        let large = "渡轮\r\n\u{0}x".repeat(1 << 16) + "end without a break";
        let odd = "bytes 0-5 of 9; next offset 3\n\n\n";
        let arguments = format!(r#"{{"content":"{}"}}"#, "a\\n".repeat(9_000));
        let mut spoken = calls(3, &[("a", "write", &arguments), ("b", "none", "{}")]);
        spoken.reasoning = Some("because\n".to_owned());
        let log = Log::new(vec![user(1, odd), assistant(2, ""), spoken, result(4, "a", "write", &large)]);
        for (reference, text) in [
            ("#1", odd),
            ("#2", ""),
            ("#3", ""),
            ("#3/1", arguments.as_str()),
            ("#3/2", "{}"),
            ("#3/reasoning", "because\n"),
            ("#4", large.as_str()),
        ] {
            let (found, pages) = whole(&log, reference);
            assert!(found == text, "{reference}");
            assert!(pages <= text.len().div_ceil(PAGE / 4).max(1), "{reference}: {pages} pages");
        }
        let head = expand(&log, "#3", 0).unwrap();
        assert!(head.contains("#3/1 arguments of write") && head.contains("#3/reasoning, 8 bytes"), "{head}");
    }

    #[test]
    fn pictures_are_named_beside_the_text_and_in_lists() {
        let mut messages = vec![user(1, "look"), assistant(2, "A boat.")];
        let picture = Part::Image(Media {
            source: MediaSource::Blob(Blob { hash: "ab12cd34ef56789".to_owned(), size: 34_000 }),
            media_type: "image/png".to_owned(),
            name: Some("boat.png".to_owned()),
            width: Some(640),
            height: Some(480),
            extra: Vec::new(),
        });
        parts::describe(&mut messages, &[MessageParts { id: 1, parts: vec![picture] }]);
        let log = Log::new(messages);
        let named = "[image boat.png, image/png, 640x480, 34 KB, blake3 ab12cd34ef56…]";
        let answer = expand(&log, "#1", 0).unwrap();
        assert!(answer.contains(&format!("UTC; {named}; bytes 0-4 of 4\nlook")), "{answer}");
        assert!(expand(&log, "#1-#2", 0).unwrap().contains(&format!("#1 user: look {named}\n#2 assistant: A boat.")));
    }

    #[test]
    fn no_answer_exceeds_the_hosts_limit() {
        let spoken: Vec<(String, String)> =
            (0..60).map(|n| (format!("c{n}"), format!(r#"{{"path":"{}"}}"#, "渡轮".repeat(400)))).collect();
        let spoken: Vec<(&str, &str, &str)> =
            spoken.iter().map(|(id, arguments)| (id.as_str(), "write", arguments.as_str())).collect();
        for text in ["渡轮晚点".repeat(4_000), "0 1\u{0}{".repeat(4_000), "word ".repeat(4_000)] {
            let log =
                Log::new(vec![user(1, &text), assistant(2, &text), calls(3, &spoken), result(4, "c0", "x", &text)]);
            for reference in ["#1", "#2", "#3", "#3/7", "#4", "#1-#4", "#3-#4"] {
                let answer = expand(&log, reference, 0).unwrap();
                assert!(log.count(&answer) <= TOKENS, "{reference}: {}", log.count(&answer));
            }
        }
        let log = Log::new(vec![user(1, &"word ".repeat(4_000))]);
        for (length, to) in [(json!(9_000), 9_000), (json!("10"), 10), (json!(99_999), 12_000), (json!(null), 4_000)] {
            let arguments = serde_json::from_value(json!({ "ref": "#1", "offset": 5, "length": length })).unwrap();
            let answer = run(&arguments, &log).unwrap();
            let (head, body) = answer.split_once('\n').unwrap();
            assert!(head.contains(&format!("bytes 5-{} of 20000; next offset", to + 5)), "{head}");
            assert_eq!(body.len(), to);
        }
    }

    #[test]
    fn a_missing_message_or_part_is_reported() {
        let log = Log::new(vec![user(1, "渡轮"), user(5, "b")]);
        for (reference, offset, why) in [
            ("#9", 0, "there is no message #9"),
            ("#1/1", 0, "makes 0 calls"),
            ("#1", 1, "no place"),
            ("#1", 7, "has 6 bytes"),
            ("#2-#4", 0, "no message from #2 to #4"),
            ("x", 0, "names no message"),
        ] {
            let error = expand(&log, reference, offset).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
    }

    #[test]
    fn a_stretch_is_listed_in_pages_with_user_messages_in_full() {
        let messages = (1..=60).map(|id| if id % 2 == 1 { user(id, &"wish ".repeat(90)) } else { assistant(id, "ok") });
        let log = Log::new(messages.collect());
        let (mut seen, mut offset) = (String::new(), 0);
        loop {
            let answer = expand(&log, "#1-#60", offset).unwrap();
            assert!(log.count(&answer) <= TOKENS, "{}", log.count(&answer));
            seen.push_str(&answer);
            match answer.lines().next().unwrap().rsplit_once("next offset ") {
                Some((_, next)) => offset = next.parse().unwrap(),
                None => break,
            }
        }
        assert!((1..=60).all(|id| seen.contains(&format!("\n#{id} "))));
        assert_eq!(seen.matches(&"wish ".repeat(90)).count(), 30);
    }
}
