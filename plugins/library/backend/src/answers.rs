//! Answers of servers with another status than 2xx.

use hermes_plugin::http::Response;
use hermes_plugin::{Error, ErrorKind, Timestamp};
use serde_json::Value;

use crate::{cut, from_http_date};

/// Bytes of a server's words in an error.
const WORDS: usize = 300;
/// How long to wait before a turn is tried again with a key that the server refused.
const REFUSED_KEY: u32 = 10 * 60 * 1_000;

/// The answer if its status is 2xx, else an error for what was attempted. The kind says what can help:
///
/// - 401 and 403: `denied`, code `auth`. The key is missing, wrong, or for something else.
/// - 404: `failed`, code `not-found`.
/// - 405 and 501: `unsupported`.
/// - 409: `conflict`. 408 and 504: `timeout`. 429: `exhausted`. Other 5xx: `unavailable`. All of these can pass.
/// - Everything else: `invalid-input`, because the same request will be refused again.
pub fn checked(answer: Response, attempt: &str, now: Timestamp) -> Result<Response, Error> {
    let status = answer.status();
    if (200..300).contains(&status) {
        return Ok(answer);
    }
    let (kind, code) = match status {
        401 | 403 => (ErrorKind::Denied, "auth".to_owned()),
        404 => (ErrorKind::Failed, "not-found".to_owned()),
        405 | 501 => (ErrorKind::Unsupported, format!("status-{status}")),
        408 | 504 => (ErrorKind::Timeout, format!("status-{status}")),
        409 => (ErrorKind::Conflict, "status-409".to_owned()),
        429 => (ErrorKind::Exhausted, "status-429".to_owned()),
        500.. => (ErrorKind::Unavailable, format!("status-{status}")),
        _ => (ErrorKind::InvalidInput, format!("status-{status}")),
    };
    let words = detail(answer.body()).map_or_else(String::new, |words| format!(": {words}"));
    let mut error = Error::new(kind, format!("{attempt}: the server answered {status}{words}")).with_code(code);
    error.retry_after_ms = answer.header("retry-after").and_then(|wait| retry_after(wait, now));
    Err(error)
}

/// Seconds, or a date.
fn retry_after(wait: &str, now: Timestamp) -> Option<u32> {
    let wait = wait.trim();
    let milliseconds = match wait.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => (seconds * 1_000.0) as u64,
        Ok(_) => return None,
        Err(_) => from_http_date(wait)?.saturating_sub(now),
    };
    Some(u32::try_from(milliseconds).unwrap_or(u32::MAX))
}

/// What a server says about a failure, in one line: `detail` as a text or as FastAPI's list of faults, `error`, `message`, or
/// `details.message`.
pub fn detail(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let inner = body.pointer("/details/message").or_else(|| body.pointer("/error/message"));
    let found = inner.or_else(|| ["detail", "error", "message"].into_iter().find_map(|key| body.get(key)));
    let words = match found? {
        Value::String(words) => words.clone(),
        Value::Array(faults) => faults.iter().take(3).filter_map(fault).collect::<Vec<_>>().join("; "),
        _ => return None,
    };
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut(&line, WORDS).to_owned())
}

/// `{"loc": ["body", "messages", 0], "msg": "Field required"}` as `body.messages.0: Field required`.
fn fault(fault: &Value) -> Option<String> {
    let why = fault.get("msg")?.as_str()?;
    let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
    let place: Vec<String> = fault.get("loc").and_then(Value::as_array).into_iter().flatten().map(part).collect();
    Some(if place.is_empty() { why.to_owned() } else { format!("{}: {why}", place.join(".")) })
}

/// The error for the delivery of a turn. A refused key is the user's to repair, and costs no turn: it waits instead of being set
/// aside.
pub fn for_turn(error: Error) -> Error {
    if error.code != "auth" && error.code != "unset" {
        return error;
    }
    Error { kind: ErrorKind::Unavailable, ..error }.with_retry_after(REFUSED_KEY)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::http::Request;
    use hermes_plugin::testing::{Answer, Host};
    use serde_json::json;

    use super::*;

    fn error(answer: Answer) -> Error {
        let _host = Host::new().reply(answer);
        let answer = Request::get("https://example.org/").send().unwrap();
        checked(answer, "storing", 1_767_225_600_000).unwrap_err()
    }

    #[test]
    fn the_kind_says_what_can_help() {
        let cases = [
            (400, ErrorKind::InvalidInput),
            (401, ErrorKind::Denied),
            (403, ErrorKind::Denied),
            (404, ErrorKind::Failed),
            (405, ErrorKind::Unsupported),
            (409, ErrorKind::Conflict),
            (413, ErrorKind::InvalidInput),
            (422, ErrorKind::InvalidInput),
            (429, ErrorKind::Exhausted),
            (500, ErrorKind::Unavailable),
            (504, ErrorKind::Timeout),
        ];
        for (status, kind) in cases {
            assert_eq!(error(Answer::status(status)).kind, kind, "{status}");
        }
    }

    #[test]
    fn a_server_says_how_long_to_wait() {
        let wait = |wait: &str| error(Answer::status(429).header("Retry-After", wait)).retry_after_ms;
        assert_eq!(wait("7"), Some(7_000));
        assert_eq!(wait("Thu, 01 Jan 2026 00:01:00 GMT"), Some(60_000));
        assert_eq!(wait("Wed, 31 Dec 2025 00:00:00 GMT"), Some(0));
        assert_eq!(wait("soon"), None);
    }

    #[test]
    fn the_servers_words_are_in_the_message_in_every_form() {
        let says = |body: Value| error(Answer::json(422, body)).message;
        let fault = json!({"type": "missing", "loc": ["body", "messages", 0, "peer_id"], "msg": "Field required"});
        for (body, words) in [
            (json!({"detail": "too narrow"}), "too narrow"),
            (json!({ "detail": [fault] }), "body.messages.0.peer_id: Field required"),
            (json!({"error": "no such memory"}), "no such memory"),
            (json!({"error": "bad", "details": {"message": "one id is needed"}}), "one id is needed"),
            (json!({"error": {"message": "in an object"}}), "in an object"),
        ] {
            assert_eq!(says(body), format!("storing: the server answered 422: {words}"));
        }
        let long = says(json!({"detail": "é".repeat(5_000)}));
        assert!(long.len() < 400, "{}", long.len());
        assert_eq!(error(Answer::bytes(502, "text/html", "<html>")).message, "storing: the server answered 502");
    }

    #[test]
    fn a_refused_key_costs_no_turn() {
        let waits = for_turn(error(Answer::status(401)));
        assert_eq!((waits.kind, waits.retry_after_ms), (ErrorKind::Unavailable, Some(REFUSED_KEY)));
        assert_eq!(for_turn(error(Answer::status(422))).kind, ErrorKind::InvalidInput);
    }
}
