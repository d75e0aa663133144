//! The parts of a request that a plugin may set: methods, headers and parameters without side effects on the connection.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::body::Body;
use super::error::HttpError;
use super::value::{BAD_PREFIX, Value, is_prefix};

/// Most headers of one request, and their bytes.
const HEADERS: usize = 64;
const HEADER_BYTES: usize = 32 << 10;
/// Most parameters that are appended to the query, and their bytes.
const PARAMETERS: usize = 64;
const PARAMETER_BYTES: usize = 8 << 10;

/// A request of a plugin.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method in capitals.
    pub method: String,
    /// The address.
    pub url: String,
    /// Parameters to append to the query, in order.
    pub query: Vec<(String, Value)>,
    /// The headers, in order.
    pub headers: Vec<(String, Value)>,
    /// The body. It may be empty.
    pub body: Body,
    /// The time limit of the whole exchange.
    pub timeout_ms: Option<u32>,
}

/// Checks the parameters for the query.
pub(super) fn check_query(query: &[(String, Value)]) -> Result<(), HttpError> {
    let bytes: usize = query.iter().map(|(name, value)| name.len() + value.len()).sum();
    if query.len() > PARAMETERS || bytes > PARAMETER_BYTES {
        return Err(HttpError::Query("there are more than 64 parameters, or more than 8 KiB of them"));
    }
    query.iter().find_map(|(_, value)| value.fault()).map_or(Ok(()), |why| Err(HttpError::Query(why)))
}

/// A redacted response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// The address that answered.
    pub url: String,
}

/// Whether a text is a method that plugins may use: capitals, and neither `CONNECT`, which opens a tunnel, nor `TRACE`,
/// which returns the request.
pub fn is_method(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_uppercase())
        && !["CONNECT", "TRACE"].contains(&text)
}

/// A header that will carry a secret, without its value.
#[derive(Debug, Clone)]
pub(super) struct SecretHeader {
    pub(super) header: HeaderName,
    pub(super) name: String,
    pub(super) prefix: String,
}

/// The checked headers of a plugin.
pub(super) struct Headers {
    pub(super) plain: HeaderMap,
    pub(super) secret: Vec<SecretHeader>,
}

/// Why plugins may not set a header.
fn refusal(name: &str) -> Option<&'static str> {
    Some(match name {
        "host" => "the address says it",
        "content-length" | "transfer-encoding" | "te" | "trailer" | "expect" => {
            "it frames the message, which the host does"
        }
        "connection" | "keep-alive" | "proxy-connection" | "upgrade" | "http2-settings" => {
            "it is about the connection, which is the host's"
        }
        "accept-encoding" => "answers come as they are, so that secrets can be found in them",
        "forwarded" | "via" => "it speaks for another than the plugin",
        "x-http-method" | "x-http-method-override" | "x-method-override" => {
            "the method that is sent is the granted one"
        }
        "x-original-url" | "x-rewrite-url" | "x-original-uri" | "x-original-host" | "x-host" => {
            "the address that is sent is the granted one"
        }
        name if name.starts_with("proxy-") => "it is for a proxy, and there is none",
        name if name.starts_with("x-forwarded-") => "it speaks for another than the plugin",
        _ => return None,
    })
}

impl Headers {
    pub(super) fn of(request: &Request) -> Result<Self, HttpError> {
        let mut headers = Self { plain: HeaderMap::new(), secret: Vec::new() };
        let error = |name: &str, why| HttpError::Header { name: shown(name), why };
        let mut bytes = 0;
        for (index, (name, value)) in request.headers.iter().enumerate() {
            let (Value::Plain(text) | Value::Secret { prefix: text, .. }) = value;
            bytes += name.len() + text.len();
            if index == HEADERS || bytes > HEADER_BYTES {
                return Err(error(name, "there are more than 64, or more than 32 KiB of them"));
            }
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| error(name, "its name is none"))?;
            // Some servers treat both as the same header.
            if let Some(why) = refusal(&header.as_str().replace('_', "-")) {
                return Err(error(name, why));
            }
            let plain = HeaderValue::from_str(text)
                .map_err(|_| error(name, "its value has line breaks, or other characters that are not printable"))?;
            match value {
                Value::Plain(_) => drop(headers.plain.append(header, plain)),
                Value::Secret { name: secret, prefix } if is_prefix(prefix) => {
                    headers.secret.push(SecretHeader { header, name: secret.clone(), prefix: prefix.clone() });
                }
                Value::Secret { .. } => return Err(error(name, BAD_PREFIX)),
            }
        }
        // A part of an answer could contain a part of a secret, which redaction would miss.
        let has_secret = !headers.secret.is_empty()
            || request.query.iter().any(|(_, value)| value.secret().is_some())
            || request.body.secrets().next().is_some();
        if has_secret && headers.plain.contains_key(reqwest::header::RANGE) {
            return Err(error("range", "an answer to a secret comes whole"));
        }
        Ok(headers)
    }
}

/// A text of a plugin for an error message: short, and without control characters.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}
