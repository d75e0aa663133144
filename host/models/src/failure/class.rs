//! Finds the kind of a failure that a server reports: first by its codes for programs, then by its status, then by its prose.
//!
//! Prose decides only where a status means several things. Its phrases are those that providers send, in the languages in
//! which they send them.

use serde_json::Value;

use super::{limit, size, wordless};

/// What can be done about a failure, apart from its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// The account is out of money or quota.
    Billing,
    /// Too many requests; later ones succeed.
    RateLimited,
    /// The server has no room; later requests succeed.
    Overloaded,
    /// The server failed; a later request may succeed.
    Server,
    /// The request took too long; a later one may succeed.
    TimedOut,
    /// The conversation is longer than the model's window.
    TooLong,
    /// No such model or address.
    NotFound,
    /// A policy about contents forbids the request.
    Refused,
    /// The provider does not serve this country or region.
    Region,
    /// The request as it is will always fail.
    BadRequest,
}

/// Error codes in lower case. Each has one meaning, independent of the status.
const CODES: &[(&str, Class)] = &[
    ("context_length_exceeded", Class::TooLong),
    ("context_window_exceeded", Class::TooLong),
    ("model_context_window_exceeded", Class::TooLong),
    ("exceed_context_size_error", Class::TooLong),
    ("context_too_long", Class::TooLong),
    ("input_too_long", Class::TooLong),
    ("prompt_too_long", Class::TooLong),
    ("request_too_large", Class::TooLong),
    ("insufficient_quota", Class::Billing),
    ("insufficient_credits", Class::Billing),
    ("insufficient_balance", Class::Billing),
    ("billing_error", Class::Billing),
    ("billing_not_active", Class::Billing),
    ("billing_hard_limit_reached", Class::Billing),
    ("payment_required", Class::Billing),
    ("model_not_supported_on_free_tier", Class::Billing),
    ("unsupported_country_region_territory", Class::Region),
    ("content_filter", Class::Refused),
    ("content_policy_violation", Class::Refused),
    ("responsibleaipolicyviolation", Class::Refused),
    ("invalid_api_key", Class::Auth),
    ("authentication_error", Class::Auth),
    ("invalid_authentication_error", Class::Auth),
    ("model_not_found", Class::NotFound),
    ("deploymentnotfound", Class::NotFound),
    ("rate_limit_exceeded", Class::RateLimited),
    ("rate_limit_error", Class::RateLimited),
    ("rate_limit_reached_error", Class::RateLimited),
    ("too_many_requests", Class::RateLimited),
    ("throttled", Class::RateLimited),
    ("throttlingexception", Class::RateLimited),
    ("overloaded_error", Class::Overloaded),
    ("engine_overloaded_error", Class::Overloaded),
    ("server_overloaded", Class::Overloaded),
];

/// A prompt that is too long.
const TOO_LONG: &[&str] = &[
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
    "tokens in your prompt exceed",
    "request entity too large",
    "context shift is disabled",
    // Chinese, simplified and traditional.
    "超过最大长度",
    "超出最大长度",
    "超过最大token",
    "上下文长度",
    "上下文窗口",
    "上下文過長",
    "上下文长度超",
    "输入过长",
    "输入长度超",
    "提示词过长",
    "超過最大長度",
    // Japanese and Korean.
    "コンテキスト長",
    "コンテキストウィンドウ",
    "最大長を超え",
    "컨텍스트 길이",
    "컨텍스트 창",
    // Russian, Spanish, Portuguese, French, German.
    "длина контекста",
    "длину контекста",
    "контекстного окна",
    "longitud del contexto",
    "longitud máxima del contexto",
    "ventana de contexto",
    "comprimento do contexto",
    "janela de contexto",
    "longueur du contexte",
    "fenêtre de contexte",
    "kontextlänge",
    "kontextfenster",
];

/// Those of [`TOO_LONG`] that need no other words.
const LONG: &[&str] =
    &["context_length_exceeded", "is too long", "prompt too long", "exceeds the context", "too many tokens"];

/// A prompt for which the account would have to be upgraded: a shorter one is accepted.
const LONG_CONTEXT_TIER: &str = "extra usage is required for long context";

/// Complaints about the cap on output, which also name the window.
const OUTPUT_CAP: &[&str] = &["max_tokens is too large", "range of max_tokens", "completion tokens, whereas"];

/// No money or quota.
const BILLING: &[&str] = &[
    "insufficient credit",
    "insufficient balance",
    "insufficient funds",
    "credit balance",
    "out of credits",
    "out of extra usage",
    "not enough credits",
    "spending limit",
    "quota exhausted",
    "exceeded your current quota",
    "model_not_supported_on_free_tier",
    "plan does not include",
    "payment required",
    "余额不足",
    "余额耗尽",
    "账户欠费",
    "餘額不足",
    "残高不足",
    "잔액이 부족",
    "недостаточно средств",
    "saldo insuficiente",
    "solde insuffisant",
    "guthaben",
];

/// Too many requests.
const RATE: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "too many requests",
    "requests per minute",
    "tokens per minute",
    "slow down",
    "throttl",
    "请求过于频繁",
    "请求频率",
    "速率限制",
    "限流",
    "請求過於頻繁",
    "レート制限",
    "リクエストが多すぎ",
    "요청이 너무 많",
    "слишком много запросов",
    "demasiadas solicitudes",
    "muitas solicitações",
    "trop de requêtes",
    "zu viele anfragen",
];

/// A limit that is lifted by waiting.
const LIFTED_LATER: &[&str] = &[
    "try again in",
    "try again at",
    "try again after",
    "retry after",
    "retry in",
    "resets in",
    "resets at",
    "reset at",
    "will reset",
    "请稍后重试",
    "分钟后重试",
    "秒后重试",
];

/// A policy about contents.
const REFUSED: &[&str] = &[
    "content_filter",
    "content_policy",
    "content policy",
    "data policy",
    "usage polic",
    "content safety",
    "内容安全",
    "敏感内容",
];

/// A country that is not served.
const REGION: &[&str] = &[
    "country, region, or territory not supported",
    "not available in your country",
    "not available in your region",
    "not supported in your country",
    "not supported in your region",
    "user location is not supported",
    "unsupported region",
];

/// A key that is not known.
const AUTH: &[&str] =
    &["invalid api key", "incorrect api key", "invalid x-api-key", "api key not valid", "api key expired"];

/// A server without room.
const OVERLOADED: &[&str] = &["overloaded", "at capacity", "负载过高", "系统繁忙"];

/// A model that does not exist.
const NOT_FOUND: &[&str] = &["model not found", "no such model", "is not a valid model", "model does not exist"];

/// Errors of the server that it reports as errors of the request.
const SERVER: &[&str] = &["provider returned an empty response"];

fn says(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// The class of a failure. `codes` are the server's words for programs, separated by spaces; `message` is its prose.
pub(crate) fn classify(status: u16, codes: &str, message: &str) -> Class {
    let codes = codes.to_lowercase();
    let text = message.to_lowercase();
    let stated =
        codes.split(' ').find_map(|word| CODES.iter().find(|(code, _)| *code == word)).map(|(_, class)| *class);
    // A server may have one word for requests that come too often and for one that is too large.
    if text.contains(LONG_CONTEXT_TIER) || status == 413 || (status == 429 && size::never_passes(&text)) {
        return Class::TooLong;
    }
    match stated {
        // A gateway may answer 402 and 403 with a general word for its own limits.
        Some(Class::Billing) if says(&text, LIFTED_LATER) && matches!(status, 402 | 429) => return Class::RateLimited,
        // Names a type of error for several causes.
        Some(Class::Auth | Class::RateLimited) if says(&text, BILLING) => return Class::Billing,
        Some(class) => return class,
        None => {}
    }
    if codes.contains("content_filter") || codes.contains("content_policy") {
        return Class::Refused;
    }
    by_status(status, &text)
}

/// The class where no word for programs says it. `text` is in lower case.
fn by_status(status: u16, text: &str) -> Class {
    let is_cap = says(text, OUTPUT_CAP) || size::is_about_cap(text);
    // A message may name `context window` beside words about time.
    let is_known = says(text, TOO_LONG) && !is_cap && (!size::is_apart(text) || says(text, LONG));
    let too_long = is_known || (size::speaks(text) && !is_cap);
    match status {
        401 => Class::Auth,
        402 if says(text, LIFTED_LATER) => Class::RateLimited,
        402 => Class::Billing,
        403 if says(text, BILLING) => Class::Billing,
        403 if says(text, REGION) => Class::Region,
        403 if says(text, REFUSED) => Class::Refused,
        403 => Class::Auth,
        404 | 405 if says(text, BILLING) => Class::Billing,
        404 | 405 => Class::NotFound,
        408 => Class::TimedOut,
        429 if says(text, OVERLOADED) => Class::Overloaded,
        429 if says(text, RATE) || says(text, LIFTED_LATER) => Class::RateLimited,
        429 if is_known => Class::TooLong,
        429 => Class::RateLimited,
        451 => Class::Region,
        400 | 422 if too_long => Class::TooLong,
        // A server that fails has other causes, unless it says the size in known words or in numbers.
        500..600 if is_known || too_long && size::counts_tokens(text) => Class::TooLong,
        400..500 => by_prose(text).unwrap_or(Class::BadRequest),
        503 | 529 => Class::Overloaded,
        504 => Class::TimedOut,
        // For an error event after HTTP 200, only the prose tells the kind.
        500 => by_prose(text).filter(|class| *class != Class::Server).unwrap_or(Class::Server),
        _ => Class::Server,
    }
}

/// What prose says on its own.
fn by_prose(text: &str) -> Option<Class> {
    [
        (REFUSED, Class::Refused),
        (RATE, Class::RateLimited),
        (BILLING, Class::Billing),
        (REGION, Class::Region),
        (AUTH, Class::Auth),
        (NOT_FOUND, Class::NotFound),
        (SERVER, Class::Server),
    ]
    .into_iter()
    .find_map(|(phrases, class)| says(text, phrases).then_some(class))
}

/// Whether a refusal of a request of about `sent` tokens may be about its size, although no word says so. It must not name
/// another cause. In addition the request fills most of the window, or the numbers are those of a size, or the language is
/// unknown.
pub(crate) fn may_be_size(message: &str, sent: u32, window: u32) -> bool {
    let text = message.to_lowercase();
    let is_about_other = size::is_about_other(&text) || says(&text, OUTPUT_CAP) || by_prose(&text).is_some();
    if is_about_other || wordless::names_parameter(&text) {
        return false;
    }
    let fills = u64::from(sent) * 10 >= u64::from(window) * 6;
    fills || limit::names_size(message, sent, window) || wordless::may_be_size(&text, sent, window)
}

/// Whether a message only complains about the cap on output.
#[cfg(test)]
pub(crate) fn is_output_cap(message: &str) -> bool {
    says(&message.to_lowercase(), OUTPUT_CAP)
}

/// The words for programs of an error: its code, type and status, also of an error that it wraps.
pub(crate) fn codes(error: &Value, whole: &Value) -> String {
    let places = ["/code", "/type", "/status", "/innererror/code"];
    let words = places.iter().flat_map(|place| [error, whole].into_iter().find_map(|value| value.pointer(place)));
    let words: Vec<String> = words
        .filter_map(|word| match word {
            Value::String(word) => Some(word.split_whitespace().collect::<Vec<_>>().join("_")),
            Value::Number(word) => Some(word.to_string()),
            _ => None,
        })
        .collect();
    words.join(" ")
}
