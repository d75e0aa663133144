//! A received request with its raw bytes.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::billing::Bill;
use crate::wire::{self, SentMessage, Wire};

/// A request of the client, and its bill.
#[derive(Debug, Clone)]
pub struct Request {
    /// The API that was used.
    pub wire: Wire,
    /// The parsed body.
    pub body: Value,
    /// The raw body.
    pub raw: Bytes,
    /// Headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The cost, if the server has a cache and sent a reply.
    pub bill: Option<Bill>,
}

impl Request {
    /// See [`wire::messages`].
    pub fn messages(&self) -> &[Value] {
        wire::messages(&self.body)
    }

    /// See [`wire::conversation`].
    pub fn conversation(&self) -> Vec<SentMessage> {
        wire::conversation(&self.body)
    }

    /// See [`wire::system_text`].
    pub fn system_text(&self) -> String {
        wire::system_text(&self.body)
    }

    /// See [`wire::last_user_text`].
    pub fn last_user_text(&self) -> &str {
        wire::last_user_text(&self.body)
    }

    /// See [`wire::trailing_results`].
    pub fn trailing_results(&self) -> Vec<(&str, &str)> {
        wire::trailing_results(&self.body)
    }

    /// See [`wire::trailing_results_as_sent`].
    pub fn trailing_results_as_sent(&self) -> Vec<(&str, &str)> {
        wire::trailing_results_as_sent(&self.body)
    }

    /// See [`wire::tool_names`].
    pub fn tool_names(&self) -> Vec<&str> {
        wire::tool_names(&self.body)
    }

    /// See [`wire::is_auxiliary`].
    pub fn is_auxiliary(&self) -> bool {
        wire::is_auxiliary(&self.body)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A member of the body as written, including spaces and key order; empty if it is missing.
    pub fn raw_member(&self, name: &str) -> &str {
        raw_member(&self.raw, name)
    }

    /// The bill of the request.
    #[track_caller]
    pub fn billed(&self) -> &Bill {
        self.bill.as_ref().expect("the server has a cache, and replied")
    }
}

/// A member of a JSON object as written; empty if it is missing.
pub(crate) fn raw_member<'a>(object: &'a [u8], name: &str) -> &'a str {
    let members: HashMap<String, &RawValue> = serde_json::from_slice(object).unwrap_or_default();
    members.get(name).map_or("", |value| value.get())
}

/// The text of a request without its cache marks. It must not depend on the positions of the marks.
///
/// Quotation marks inside a text are escaped, so no message can imitate a mark.
pub fn unmarked(raw: &str) -> String {
    const MARK: &str = r#","cache_control":{"type":"ephemeral""#;
    let mut pieces = raw.split(MARK);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let piece = [r#","ttl":"1h"}"#, r#","ttl":"5m"}"#, "}"].iter().find_map(|end| piece.strip_prefix(end));
        text.push_str(piece.expect("a mark has a type and perhaps a ttl"));
    }
    assert!(!text.contains(r#""cache_control":"#), "a mark that is no insertion behind another member");
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn members_are_returned_as_written() {
        let body = br#"{"model": "m", "tools":[ {"b":1.0, "a":"\u0041"} ],"messages":[]}"#;
        assert_eq!(raw_member(body, "tools"), r#"[ {"b":1.0, "a":"\u0041"} ]"#);
        assert_eq!((raw_member(body, "messages"), raw_member(body, "system")), ("[]", ""));
    }

    #[test]
    fn only_marks_are_removed() {
        let plain = r#"{"text":"a \",\"cache_control\":{\"type\":\"ephemeral\"}","n":1}"#;
        let marked = plain.replace(
            r#","n":1"#,
            r#","cache_control":{"type":"ephemeral"},"n":1,"cache_control":{"type":"ephemeral","ttl":"1h"}"#,
        );
        assert_eq!(unmarked(&marked), plain);
        assert!(std::panic::catch_unwind(|| unmarked(r#"{"cache_control":null,"n":1}"#)).is_err());
    }
}
