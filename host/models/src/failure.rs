//! Maps the answers of servers to errors, and decides whether to try again.
//!
//! [`class`] sorts a failure; structured codes have priority over prose. [`wait`] says when to send a request again.

pub(crate) mod class;
pub(crate) mod complaint;
pub(crate) mod limit;
pub(crate) mod room;
pub(crate) mod silence;
mod size;
mod stems;
pub(crate) mod wait;
mod wordless;

use std::time::Duration;

use hermes_conversation::one_line_within;
use serde_json::Value;

use self::class::{Class, classify};
use crate::ModelError;

/// Most characters of a server's message in an error.
const LONGEST_MESSAGE: usize = 500;

/// How deep an error may be in errors: gateways wrap what they got.
const MOST_NESTED: usize = 3;

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
    /// The model's window in tokens, from a member of its own.
    pub(crate) window: Option<u32>,
}

impl Stated {
    /// From the body of a reply with an error status.
    pub(crate) fn from_body(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match crate::json::parse(text.as_bytes()) {
            Ok(value) => Self::from_value(status, &value),
            Err(_) if text.trim_start().starts_with('<') => Self {
                status,
                code: String::new(),
                message: "a web page instead of an answer".to_owned(),
                window: None,
            },
            Err(_) => Self { status, code: String::new(), message: one_line(&text), window: None },
        }
    }

    /// From JSON: `{"error": {...}}` and its many relatives. A status inside counts where HTTP said 200.
    pub(crate) fn from_value(status: u16, value: &Value) -> Self {
        // Some gateways wrap the object in a list.
        let value = value.get(0).unwrap_or(value);
        if let Some(stated) = base(value) {
            return stated;
        }
        let error = error_of(value);
        let word = |key: &str| error.get(key).or_else(|| value.get(key)).and_then(as_text).unwrap_or_default();
        let own = ["/metadata/raw", "/message", "/detail", "/msg", "/error_description"]
            .iter()
            .filter_map(|place| error.pointer(place))
            .chain(value.get("error_description"))
            .chain([error])
            .find_map(as_text)
            .or_else(|| value.get("message").and_then(as_text))
            .or_else(|| value.get("detail").map(Value::to_string))
            .or_else(|| error.get("reason").or_else(|| value.get("reason")).and_then(as_text));
        let mut code = class::codes(error, value);
        // `{"error": "invalid_request", "error_description": "..."}`
        if let Some(word) = error.as_str().filter(|_| value.get("error_description").is_some()) {
            code = format!("{word} {code}");
        }
        let inner: Option<u16> = word("code").parse().ok().or_else(|| word("status").parse().ok());
        let named = || NAMED.iter().find(|(name, _)| *name == word("type")).map(|(_, status)| *status);
        let status = match status {
            200 => inner.filter(|code| (400..600).contains(code)).or_else(named).unwrap_or(500),
            status => status,
        };
        let message = own.unwrap_or_default();
        // Servers of llama.cpp say it with a member.
        let mut window = error.get("n_ctx").and_then(Value::as_u64).and_then(|window| u32::try_from(window).ok());
        // An aggregator quotes the JSON of the provider that it asked.
        let message = match serde_json::from_str::<Value>(&message) {
            Ok(quoted) if quoted.is_object() => {
                let quoted = Self::from_value(status, &quoted);
                // The provider knows more than the aggregator.
                code = format!("{} {code}", quoted.code);
                window = window.or(quoted.window);
                quoted.message
            }
            _ => one_line(&message),
        };
        Self { status, code: code.trim().to_owned(), message, window }
    }

    fn class(&self) -> Class {
        classify(self.status, &self.code, &self.message)
    }

    /// Whether the same request may succeed later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.class(), Class::RateLimited | Class::Overloaded | Class::Server | Class::TimedOut)
    }

    /// The wait that the message names.
    pub(crate) fn named_wait(&self) -> Option<Duration> {
        wait::named(&self.message)
    }

    /// As an error of the endpoint that stated it.
    pub(crate) fn into_error(self, host: &str, url: &str, model: &str, key: &str) -> ModelError {
        let host = host.to_owned();
        let class = self.class();
        let Self { status, message, window, .. } = self;
        let message = if message.is_empty() { reason(status).to_owned() } else { message };
        match class {
            Class::TooLong => {
                let limit = window.filter(|window| limit::is_plausible(*window)).or_else(|| limit::stated(&message));
                ModelError::TooLong { message, limit }
            }
            Class::Billing => ModelError::Billing { host, status, message },
            Class::Auth => ModelError::Auth { host, status, message, remedy: key.to_owned() },
            Class::NotFound => ModelError::NotFound { url: url.to_owned(), model: model.to_owned(), message },
            Class::RateLimited => ModelError::RateLimited { host, message, wait: None },
            Class::Refused => ModelError::Refused { host, message },
            Class::Region => ModelError::Region { host, message },
            Class::BadRequest => ModelError::BadRequest { host, status, message },
            Class::Server | Class::Overloaded | Class::TimedOut => ModelError::Server { host, status, message },
        }
    }
}

/// The object with the words of an error: under `error`, also twice, or the first of `errors`.
fn error_of(value: &Value) -> &Value {
    let is_error = |error: &&Value| !matches!(error, Value::Null | Value::Bool(_));
    let mut found = value;
    for _ in 0..MOST_NESTED {
        let listed = || found.get("errors").and_then(|errors| errors.get(0).or(Some(errors)));
        let Some(inner) = found.get("error").filter(is_error).or_else(listed).filter(is_error) else { break };
        found = inner.get(0).unwrap_or(inner);
    }
    found
}

/// What MiniMax says beside a reply, or in its place: `{"base_resp": {"status_code": 1002, "status_msg": "..."}}`. 0 is no error.
fn base(value: &Value) -> Option<Stated> {
    let base = value.get("base_resp")?;
    let code = base.get("status_code").and_then(|code| code.as_i64().or_else(|| code.as_str()?.trim().parse().ok()))?;
    let status = match code {
        0 => return None,
        1002 | 1041 => 429,
        1004 | 2049 => 401,
        1008 => 402,
        1026 | 1027 | 1042 | 2013 => 400,
        _ => 500,
    };
    let message = base.get("status_msg").and_then(as_text).unwrap_or_else(|| format!("status code {code}"));
    Some(Stated { status, code: code.to_string(), message: one_line(&message), window: None })
}

/// A status in words, for servers that send nothing else.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        400 => "bad request",
        401 => "not authorised",
        402 => "payment required",
        403 => "forbidden",
        404 => "not found",
        408 => "the request took too long",
        413 => "the request is too large",
        429 => "too many requests",
        451 => "not available for legal reasons",
        502..=504 => "not available",
        529 => "overloaded",
        500..600 => "an error of the server",
        _ => "no reason given",
    }
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
            ModelError::Region { .. } => "region",
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
            (501, "", "server, again"),
            (408, "", "server, again"),
            (520, "<html>", "server, again"),
            (400, r#"{"error":{"message":"请求超过最大长度"}}"#, "too long"),
            (400, r#"{"error":{"message":"入力がモデルのコンテキスト長を超えています"}}"#, "too long"),
            (400, r#"{"error":{"message":"Die Anfrage überschreitet das Kontextfenster"}}"#, "too long"),
            (402, r#"{"error":{"message":"Usage limit reached, try again in 5 minutes"}}"#, "rate limit, again"),
            (400, r#"{"error":{"message":"Rate limit exceeded"}}"#, "rate limit, again"),
            (400, r#"{"error":{"message":"请求过于频繁"}}"#, "rate limit, again"),
            (403, r#"{"error":{"message":"Insufficient credits"}}"#, "billing"),
            (403, r#"{"error":{"message":"账户余额不足"}}"#, "billing"),
            (403, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, "billing"),
            (403, r#"{"error":{"code":"unsupported_country_region_territory","message":"no"}}"#, "region"),
            (451, "", "region"),
            // Words of servers that are known, and words that no server is known to say.
            (
                413,
                r#"{"error":{"message":"Request too large for model `x`","type":"tokens","code":"rate_limit_exceeded"}}"#,
                "too long",
            ),
            (
                429,
                r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for x on tokens per min (TPM): Limit 30000, Requested 45000."}}"#,
                "too long",
            ),
            (500, r#"{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}"#, "too long"),
            (
                422,
                r#"{"error":"Input validation error: `inputs` must have less than 16384 tokens. Given: 18000"}"#,
                "too long",
            ),
            (400, r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#, "too long"),
            (
                400,
                r#"{"code":"invalid","error":"This model's maximum prompt length is 16384 but the request contains 18000 tokens."}"#,
                "too long",
            ),
            (400, r#"{"error":{"message":"The dialogue of 18000 tokens goes beyond our 16384"}}"#, "too long"),
            (422, r#"{"detail":"Die Eingabe ist zu lang"}"#, "too long"),
            (200, r#"{"error":{"message":"O prompt ultrapassa o permitido","code":400}}"#, "too long"),
            (400, r#"{"error":{"message":"`max_output_tokens` exceeds the limit of 65536"}}"#, "bad request"),
            (400, r#"{"error":{"message":"Unknown parameter: 'context_length'"}}"#, "bad request"),
            (400, r#"{"error":{"message":"Invalid 'tools[0].function.name': string too long"}}"#, "bad request"),
            (
                400,
                r#"{"error":{"message":"messages.3.content.1.image: image exceeds 5 MB maximum: 6291456 bytes"}}"#,
                "bad request",
            ),
            // MiniMax.
            (200, r#"{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#, "rate limit, again"),
            (200, r#"{"base_resp":{"status_code":1004,"status_msg":"login fail"}}"#, "auth"),
            (200, r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#, "billing"),
            (200, r#"{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}"#, "server, again"),
            (
                200,
                r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}"#,
                "too long",
            ),
            // A timeout of a Go server, and other words of time, memory and policies.
            (504, r#"{"error":{"message":"context deadline exceeded"}}"#, "server, again"),
            (500, "context deadline exceeded", "server, again"),
            (400, r#"{"error":{"message":"context deadline exceeded"}}"#, "bad request"),
            (200, r#"{"error":{"message":"context deadline exceeded"}}"#, "server, again"),
            (500, r#"{"error":"timed out while the context window was filled"}"#, "server, again"),
            (503, r#"{"error":"request queue is too long, try again later"}"#, "server, again"),
            (500, r#"{"error":"execution context exceeded memory limit"}"#, "server, again"),
            (500, r#"{"error":"the worker context exceeded its share"}"#, "server, again"),
            (500, r#"{"error":"The dialogue of 18000 tokens goes beyond our 16384"}"#, "too long"),
            (400, r#"{"error":"prompt_cache_retention: '24h' is too long; at most '1h'"}"#, "bad request"),
            (400, r#"{"error":"prompt id is longer than 64 characters"}"#, "bad request"),
            (
                400,
                r#"{"error":"Your prompt was flagged as potentially violating our usage policy. It exceeds severity level 4."}"#,
                "refused",
            ),
            (400, r#"{"error":"The prompt was rejected because it exceeds our content safety threshold"}"#, "refused"),
            // A limit on tokens a minute is not a prompt that is too long.
            (429, r#"{"error":{"code":"rate_limit_exceeded","message":"Too many tokens"}}"#, "rate limit, again"),
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
    fn a_refusal_without_known_words_may_be_about_size_only_if_the_request_is_large() {
        let refused = |status: u16, message: &str| {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            Stated::from_body(status, body.as_bytes()).into_error("host", "url", "model", "key")
        };
        for (status, message, sent, window, may_be) in [
            (400, "no", 80_000, 128_000, true),
            (400, "no", 10_000, 128_000, false),
            (422, "ei käy päinsä", 80_000, 128_000, true),
            (400, "se on 18000", 19_000, 128_000, true),
            (400, "se on 128000", 10_000, 128_000, true),
            (400, "virhe 5000", 19_000, 128_000, false),
            (400, "Ombi lako lina 18000, lakini 16384 pekee", 26_000, 128_000, true),
            (400, "Ombi lako ni refu mno kwa mfumo huu", 80_000, 128_000, true),
            (400, "Ombi lako ni refu mno kwa mfumo huu", 20_000, 128_000, false),
            (400, "Bad request from upstream provider", 17_605, 128_000, false),
            (400, "Thamani ya temperature si sahihi kwa mfumo huu", 120_000, 128_000, false),
            (400, "Thamani ya foo_bar si sahihi: 18000 > 16384", 19_000, 128_000, false),
            (400, "Ogiltig API-nyckel", 120_000, 1_280_000, false),
            (400, "Unknown parameter: 'top_k'", 120_000, 128_000, false),
            (400, "max_tokens must be at most 8192", 120_000, 128_000, false),
            (400, "Your credit balance is too low", 120_000, 128_000, false),
            (401, "no", 120_000, 128_000, false),
            (404, "no", 120_000, 128_000, false),
        ] {
            assert_eq!(refused(status, message).may_be_size(sent, window), may_be, "{status} {message}");
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
        for body in [
            r#"{"errors":[{"message":"it broke"}]}"#,
            r#"{"errors":["it broke"]}"#,
            r#"{"errors":"it broke"}"#,
            r#"{"error":{"error":{"message":"it broke"}}}"#,
            r#"{"error":[{"message":"it broke"}]}"#,
            r#"{"error":"invalid_request","error_description":"it broke"}"#,
            r#"{"error":{"code":"x","error_description":"it broke"}}"#,
            r#"{"reason":"it broke"}"#,
            r#"{"error":{"reason":"it broke"}}"#,
            r#"{"reason":"x","message":"it broke"}"#,
            r#"{"base_resp":{"status_code":2013,"status_msg":"it broke"}}"#,
            r#"{"base_resp":{"status_code":0,"status_msg":"success"},"error":"it broke"}"#,
        ] {
            assert_eq!(message(body), "it broke", "{body}");
        }
        assert_eq!(message("<!doctype html><title>502</title>"), "a web page instead of an answer");
        assert!(message(&"ä".repeat(5000)).len() <= LONGEST_MESSAGE + 3);
    }
}
