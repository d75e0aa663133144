//! Maps the answers of servers to errors, and decides whether to try again.
//!
//! Structured codes have priority. Prose is read only where no code is reliable: for an overlong prompt.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use hermes_conversation::one_line_within;
use serde_json::Value;

use crate::ModelError;

/// Longest wait before a request is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Most characters of a server's message in an error.
const LONGEST_MESSAGE: usize = 500;

/// Phrases of providers for a prompt that is too long, in lower case.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context size",
    "context window",
    "context_window",
    "exceeds the context",
    "maximum model length",
    "model's max length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "input token count",
    "too many tokens",
    "reduce the length of the messages",
    "extra usage is required for long context",
    "tokens in your prompt exceed",
];

/// Statuses of the errors that Anthropic's wire names inside a stream, where HTTP has said 200.
const NAMED: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// A failure that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stated {
    /// The HTTP status, or the one that an error inside a stream names.
    pub(crate) status: u16,
    /// A word such as `context_length_exceeded`; may be empty.
    pub(crate) code: String,
    /// For people: one line, no control characters.
    pub(crate) message: String,
}

impl Stated {
    /// From the body of a reply with an error status.
    pub(crate) fn from_body(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => Self::from_value(status, &value),
            Err(_) if text.trim_start().starts_with('<') => {
                Self { status, code: String::new(), message: "a web page instead of an answer".to_owned() }
            }
            Err(_) => Self { status, code: String::new(), message: one_line(&text) },
        }
    }

    /// From JSON: `{"error": {...}}` and its many relatives. A status inside counts where HTTP said 200.
    pub(crate) fn from_value(status: u16, value: &Value) -> Self {
        // Some gateways wrap the object in a list.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let word = |key: &str| error.get(key).or_else(|| value.get(key)).and_then(as_text).unwrap_or_default();
        let own = ["/metadata/raw", "/message", "/detail", "/msg"]
            .iter()
            .filter_map(|place| error.pointer(place))
            .chain([error])
            .find_map(as_text)
            .or_else(|| value.get("message").and_then(as_text))
            .or_else(|| value.get("detail").map(Value::to_string));
        let code = [word("code"), word("type"), word("status")].join(" ");
        let inner: Option<u16> = word("code").parse().ok().or_else(|| word("status").parse().ok());
        let named = || NAMED.iter().find(|(name, _)| *name == word("type")).map(|(_, status)| *status);
        let status = match status {
            200 => inner.filter(|code| (400..600).contains(code)).or_else(named).unwrap_or(500),
            status => status,
        };
        let message = own.unwrap_or_default();
        // An aggregator quotes the JSON of the provider that it asked.
        let message = match serde_json::from_str::<Value>(&message) {
            Ok(quoted) if quoted.is_object() => Self::from_value(status, &quoted).message,
            _ => one_line(&message),
        };
        Self { status, code: code.trim().to_owned(), message }
    }

    fn is_overflow(&self) -> bool {
        let code = self.code.to_ascii_lowercase();
        let text = self.message.to_lowercase();
        // A complaint about the cap on output also names the window.
        let output_cap = text.contains("max_tokens is too large") || text.contains("completion tokens, whereas");
        let may = matches!(self.status, 400 | 413 | 422 | 429 | 500..600);
        let says = OVERFLOW.iter().any(|words| code.contains(words) || text.contains(words));
        self.status == 413 || (may && says && !output_cap)
    }

    fn is_quota(&self) -> bool {
        self.status == 402
            || (self.status == 429 && self.code.contains("insufficient_quota"))
            || (self.status == 400 && self.message.to_lowercase().contains("credit balance is too low"))
    }

    /// Whether the same request may succeed later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.status, 429 | 500 | 502 | 503 | 504 | 529) && !self.is_overflow() && !self.is_quota()
    }

    /// As an error of the endpoint that stated it.
    pub(crate) fn into_error(self, host: &str, url: &str, model: &str, key: &str) -> ModelError {
        let host = host.to_owned();
        let (overflow, quota) = (self.is_overflow(), self.is_quota());
        let Self { status, code, message } = self;
        let message = if message.is_empty() { reason(status).to_owned() } else { message };
        match status {
            _ if overflow => ModelError::TooLong { message },
            _ if quota => ModelError::Billing { host, status, message },
            401 | 403 => ModelError::Auth { host, status, message, remedy: key.to_owned() },
            404 | 405 => ModelError::NotFound { url: url.to_owned(), model: model.to_owned(), message },
            429 => ModelError::RateLimited { host, message },
            400..500 if code.contains("content_filter") || code.contains("content_policy") => {
                ModelError::Refused { host, message }
            }
            400..500 => ModelError::BadRequest { host, status, message },
            _ => ModelError::Server { host, status, message },
        }
    }
}

/// A status in words, for servers that send nothing else.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        400 => "bad request",
        401 => "not authorised",
        402 => "payment required",
        403 => "forbidden",
        404 => "not found",
        413 => "the request is too large",
        429 => "too many requests",
        502..=504 => "not available",
        529 => "overloaded",
        500..600 => "an error of the server",
        _ => "no reason given",
    }
}

/// The waits between so many tries: the first one at least `base`, each further one twice as long, and a random delay of
/// up to the same length again, so that many clients do not return at once.
pub(crate) fn waits(base: Duration, tries: u32) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(base)
        .with_factor(2.0)
        .with_max_delay(LONGEST_WAIT / 2)
        .with_max_times(tries.saturating_sub(1) as usize)
        .with_jitter()
        .build()
}

/// `Retry-After` in seconds, or the finer `retry-after-ms` that some send. Dates are ignored: the
/// clock may be wrong, and our own delay serves as well.
pub(crate) fn retry_after(header: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let number = |name: &str| {
        let number = header(name)?.trim().parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let seconds = match number("retry-after-ms") {
        Some(milliseconds) => milliseconds / 1000.0,
        None => number("retry-after")?,
    };
    Some(Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())))
}

/// A server's text on one line of bounded length, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    one_line_within(text, LONGEST_MESSAGE)
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> &'static str {
        let stated = Stated::from_body(status, body.as_bytes());
        let passes = stated.passes();
        match stated.into_error("host", "url", "model", "set a key") {
            ModelError::Auth { .. } => "auth",
            ModelError::Billing { .. } => "billing",
            ModelError::NotFound { .. } => "not found",
            ModelError::RateLimited { .. } if passes => "rate limit, again",
            ModelError::TooLong { .. } => "too long",
            ModelError::Refused { .. } => "refused",
            ModelError::BadRequest { .. } => "bad request",
            ModelError::Server { .. } if passes => "server, again",
            ModelError::Server { .. } => "server",
            _ => "other",
        }
    }

    #[test]
    fn what_servers_say_is_sorted_by_what_can_be_done() {
        for (status, body, expected) in [
            (400, "boom", "bad request"),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"Too big"}}"#, "too long"),
            (400, r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#, "too long"),
            (400, r#"{"object":"error","message":"prompt is too long: 9 tokens > 8 maximum","code":400}"#, "too long"),
            (500, r#"{"error":"context size exceeded: n_ctx_slot"}"#, "too long"),
            (413, "Request Entity Too Large", "too long"),
            (429, r#"{"error":{"message":"Extra usage is required for long context requests"}}"#, "too long"),
            (
                400,
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"context length exceeded\"}}"}}}"#,
                "too long",
            ),
            (400, r#"{"error":{"message":"max_tokens is too large: 9. The context window is fine"}}"#, "bad request"),
            (400, r#"{"error":{"code":"content_filter","message":"no"}}"#, "refused"),
            (401, r#"{"error":{"message":"Incorrect API key provided"}}"#, "auth"),
            (402, "{}", "billing"),
            (403, "<html>no</html>", "auth"),
            (404, r#"{"error":{"message":"model gpt-99 does not exist"}}"#, "not found"),
            (418, "", "bad request"),
            (429, r#"{"error":{"message":"slow down"}}"#, "rate limit, again"),
            (429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, "billing"),
            (500, "", "server, again"),
            (501, "", "server"),
            (
                503,
                r#"[{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}]"#,
                "server, again",
            ),
            (529, "{}", "server, again"),
            (200, r#"{"error":{"code":429,"message":"slow down"}}"#, "rate limit, again"),
            (200, r#"{"error":{"code":"502","message":"upstream"}}"#, "server, again"),
            (200, r#"{"error":"boom"}"#, "server, again"),
            (200, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "server, again"),
            (200, r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#, "rate limit, again"),
            (200, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#, "bad request"),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
                "too long",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
                "billing",
            ),
            (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, "auth"),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "server, again"),
        ] {
            assert_eq!(kind(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_words_of_a_server_are_found_and_made_harmless() {
        let message = |body: &str| Stated::from_body(400, body.as_bytes()).message;
        assert_eq!(message(r#"{"error":{"message":"a\u001b[31m\nb"}}"#), "a [31m b");
        assert_eq!(message(r#"{"detail":[{"msg":"field required"}]}"#), r#"[{"msg":"field required"}]"#);
        assert_eq!(
            message(r#"{"error":{"metadata":{"raw":"{\"error\":{\"message\":\"slow\"}}"},"message":"x"}}"#),
            "slow"
        );
        assert_eq!(message("<!doctype html><title>502</title>"), "a web page instead of an answer");
        assert!(message(&"ä".repeat(5000)).len() <= LONGEST_MESSAGE + 3);
    }

    #[test]
    fn waits_double_and_end_at_a_minute() {
        let base = Duration::from_secs(2);
        let all: Vec<f64> = waits(base, 12).map(|wait| wait.as_secs_f64()).collect();
        assert_eq!(all.len(), 11, "one less than tries");
        for (at, wait) in (0..).zip(&all) {
            let least = (2.0 * 2f64.powi(at)).min(30.0);
            assert!((least..=2.0 * least).contains(wait), "{at}: {wait}");
        }
        assert_eq!(waits(base, 1).count(), 0);
        assert_eq!(waits(base, 0).count(), 0);
    }

    #[test]
    fn a_server_may_say_when_to_come_back() {
        let asked = |name: &'static str, value: &'static str| {
            retry_after(move |header| (header == name).then(|| value.to_owned()))
        };
        assert_eq!(asked("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(asked("retry-after", "86400"), Some(LONGEST_WAIT));
        assert_eq!(asked("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(asked("retry-after", "-1"), None);
        assert_eq!(asked("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
