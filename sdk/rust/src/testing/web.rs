//! A web that is scripted by the test, and secrets.

use std::collections::{BTreeMap, VecDeque};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Host;
use crate::Error;
use crate::bindings::imports::http as wit;

const REDACTED: &str = "[REDACTED]";
/// Lengths of a new secret.
const SECRET: std::ops::RangeInclusive<usize> = 8..=4096;

/// A request as the server would see it: with the secrets in their places.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Upper-case.
    pub method: String,
    /// With the query.
    pub url: String,
    /// Names are lower-case.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Sent {
    /// The first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body parsed as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// Whether a pattern such as `GET https://example.org/*` matches. An address without `?` matches any query.
    fn fits(&self, pattern: &str) -> bool {
        let (method, url) = pattern.split_once(' ').unwrap_or(("*", pattern));
        let own = if url.contains('?') { &self.url } else { self.url.split('?').next().unwrap_or_default() };
        matches(method, &self.method) && matches(url, own)
    }
}

/// Whether a text matches a pattern in which `*` stands for any characters.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(begin) else { return false };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| matches(rest, &text[at..]))
}

/// The answer to a request: a status (`429`), a text (`"pong"`), JSON (`json!({…})`), or an [`Error`] of the connection.
#[derive(Clone, Debug)]
pub struct Answer(Result<wit::Response, Error>);

impl Answer {
    /// An answer without a body.
    pub fn status(status: u16) -> Self {
        let (url, headers, body) = (String::new(), Vec::new(), Vec::new());
        Self(Ok(wit::Response { status, headers, body, url, extra: Vec::new() }))
    }

    /// An answer with these bytes.
    pub fn bytes(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::status(status).header("content-type", media_type);
        if let Ok(response) = &mut answer.0 {
            response.body = body.into();
        }
        answer
    }

    /// An answer with a status and JSON.
    pub fn json(status: u16, body: Value) -> Self {
        Self::bytes(status, "application/json", body.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Ok(response) = &mut self.0 {
            response.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        self
    }
}

impl From<u16> for Answer {
    fn from(status: u16) -> Self {
        Self::status(status)
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::bytes(200, "text/plain", text)
    }
}

impl From<Value> for Answer {
    fn from(body: Value) -> Self {
        Self::json(200, body)
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self(Err(error))
    }
}

type Server = Box<dyn FnMut(&Sent) -> Answer>;

#[derive(Default)]
pub(crate) struct Web {
    secrets: BTreeMap<String, String>,
    /// Patterns with their answers; an empty pattern matches every request.
    script: VecDeque<(String, Answer)>,
    server: Option<Server>,
    sent: Vec<Sent>,
}

impl Web {
    pub(crate) fn has_secret(&mut self, name: &str) -> bool {
        self.secrets.get(name).is_some_and(|value| !value.is_empty())
    }

    pub(crate) fn replace_secret(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let Some(secret) = self.secrets.get_mut(name) else { return Err(unknown(name)) };
        if !SECRET.contains(&value.len()) || !value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            let why = format!("the new value of `{name}` must have 8 to 4,096 printable ASCII characters");
            return Err(Error::invalid(why).with_code("value"));
        }
        value.clone_into(secret);
        Ok(())
    }

    pub(crate) fn send(&mut self, request: &wit::Request) -> Result<wit::Response, Error> {
        let sent = self.sent(request)?;
        self.sent.push(sent.clone());
        let scripted = self.script.iter().position(|(pattern, _)| pattern.is_empty() || sent.fits(pattern));
        let answer = match (scripted.and_then(|at| self.script.remove(at)), &mut self.server) {
            (Some((_, answer)), _) => answer,
            (None, Some(server)) => server(&sent),
            (None, None) => panic!(
                "the test has no answer for `{} {}`: add `.reply(…)` to its host, or `.reply(Error::unavailable(\"down\"))`",
                sent.method, sent.url
            ),
        };
        let mut response = answer.0?;
        if response.url.is_empty() {
            response.url.clone_from(&request.url);
        }
        Ok(self.redacted(response))
    }

    /// The request with secrets in their places.
    fn sent(&self, request: &wit::Request) -> Result<Sent, Error> {
        if !request.url.starts_with("https://") && !request.url.starts_with("http://") {
            let why = format!("`{}` is not an address that begins with https:// or http://", request.url);
            return Err(Error::invalid(why).with_code("url"));
        }
        if request.method.is_empty() || !request.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            let why = format!("`{}` is not a method in upper case", request.method);
            return Err(Error::invalid(why).with_code("method"));
        }
        let mut headers = Vec::new();
        for field in &request.headers {
            headers.push((field.name.to_ascii_lowercase(), self.value(&field.value)?));
        }
        let query = self.encoded(&request.query)?;
        let joint = if query.is_empty() {
            ""
        } else if request.url.contains('?') {
            "&"
        } else {
            "?"
        };
        let (media_type, body) = match &request.body {
            wit::Body::Bytes(bytes) => (None, bytes.clone()),
            wit::Body::Form(fields) => (Some("application/x-www-form-urlencoded"), self.encoded(fields)?.into_bytes()),
            wit::Body::Json(body) => (Some("application/json"), self.document(body)?.into_bytes()),
        };
        if let Some(media_type) = media_type
            && !headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        let url = format!("{}{joint}{query}", request.url);
        Ok(Sent { method: request.method.clone(), url, headers, body })
    }

    fn value(&self, value: &wit::Value) -> Result<String, Error> {
        match value {
            wit::Value::Plain(text) => Ok(text.clone()),
            wit::Value::Secret(secret) => match self.secrets.get(&secret.name) {
                None => Err(unknown(&secret.name)),
                Some(value) if value.is_empty() => {
                    Err(Error::failed(format!("the secret `{}` has no value", secret.name)).with_code("unset"))
                }
                Some(value) => Ok(format!("{}{value}", secret.prefix)),
            },
        }
    }

    fn encoded(&self, fields: &[wit::Field]) -> Result<String, Error> {
        let field = |field: &wit::Field| {
            Ok(format!("{}={}", percent_encoded(&field.name), percent_encoded(&self.value(&field.value)?)))
        };
        Ok(fields.iter().map(field).collect::<Result<Vec<_>, Error>>()?.join("&"))
    }

    fn document(&self, body: &wit::JsonBody) -> Result<String, Error> {
        let mut document: Value = serde_json::from_str(&body.text)?;
        for (place, secret) in &body.secrets {
            let value = self.value(&wit::Value::Secret(secret.clone()))?;
            let Some(found) = document.pointer_mut(place) else {
                return Err(Error::invalid(format!("the document has nothing at `{place}`")).with_code("body"));
            };
            *found = Value::String(value);
        }
        Ok(document.to_string())
    }

    /// The response without the values of secrets. The real host finds encoded ones, too.
    fn redacted(&self, mut response: wit::Response) -> wit::Response {
        for secret in self.secrets.values().filter(|secret| !secret.is_empty()) {
            if let Ok(text) = std::str::from_utf8(&response.body)
                && text.contains(secret)
            {
                response.body = text.replace(secret, REDACTED).into_bytes();
            }
            for (_, value) in &mut response.headers {
                *value = value.replace(secret, REDACTED);
            }
        }
        response
    }
}

fn unknown(name: &str) -> Error {
    Error::denied(format!("the secret `{name}` was not granted; in a test, `.secret(\"{name}\", \"value\")` grants it"))
        .with_code("secret")
}

/// As in forms.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Host {
    /// Grants a secret and sets its value; an empty value means that the user did not set it. The plugin may also replace it.
    pub fn secret(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.state.http.borrow_mut().secrets.insert(name.into(), value.into());
        self
    }

    /// Answers one request. Answers are used in the order in which they were added.
    pub fn reply(self, answer: impl Into<Answer>) -> Self {
        self.reply_to("", answer)
    }

    /// Answers one request that a pattern such as `POST https://example.org/v1/*` matches. `*` stands for any characters, and an
    /// address without `?` matches any query.
    pub fn reply_to(self, pattern: impl Into<String>, answer: impl Into<Answer>) -> Self {
        self.state.http.borrow_mut().script.push_back((pattern.into(), answer.into()));
        self
    }

    /// Answers all requests for which no [`reply`](Self::reply) is left.
    pub fn serve<A: Into<Answer>>(self, mut server: impl FnMut(&Sent) -> A + 'static) -> Self {
        self.state.http.borrow_mut().server = Some(Box::new(move |sent| server(sent).into()));
        self
    }

    /// The requests that the plugin sent.
    pub fn requests(&self) -> Vec<Sent> {
        self.state.http.borrow().sent.clone()
    }

    /// The value of a secret, which the plugin may have replaced.
    pub fn secret_value(&self, name: &str) -> Option<String> {
        self.state.http.borrow().secrets.get(name).cloned()
    }
}
