//! What carries a request that passed every check: the network, or a script in its place.
//!
//! Grants, limits, secrets, redirects and redaction lie above this seam, so they are the same for both.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use url::Url;

/// Answers requests in place of the network, for tests of plugins.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Answers one request of a chain of redirects. An error takes the place of a failed connection, and says why it failed.
    async fn send(&self, request: SentRequest) -> Result<ScriptedAnswer, String>;
}

/// A request as it leaves the host. Deliberately without `Debug`: it contains secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The method in capitals.
    pub method: String,
    /// The address, with secrets in its query.
    pub url: String,
    /// The headers with names in lower case. Those with secrets are included.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl SentRequest {
    /// Whether its body or its address holds a text, as it is or as JSON writes it.
    pub fn holds(&self, text: &str) -> bool {
        let body = String::from_utf8_lossy(&self.body);
        let json = serde_json::to_string(text).unwrap_or_default();
        body.contains(text) || body.contains(json.trim_matches('"')) || self.url.contains(text)
    }

    /// Its single values: of its address, its headers, and its body if that is JSON.
    pub fn values(&self) -> Vec<String> {
        fn of(value: &serde_json::Value, values: &mut Vec<String>) {
            match value {
                serde_json::Value::Array(items) => items.iter().for_each(|item| of(item, values)),
                serde_json::Value::Object(members) => members.values().for_each(|member| of(member, values)),
                value => values.push(value.to_string()),
            }
        }
        let mut values: Vec<String> = vec![self.url.clone()];
        values.extend(self.headers.iter().map(|(_, value)| value.clone()));
        match serde_json::from_slice(&self.body) {
            Ok(body) => of(&body, &mut values),
            Err(_) => values.push(String::from_utf8_lossy(&self.body).into_owned()),
        }
        values
    }
}

/// An answer from a script. The client limits and redacts it like one from the network.
pub struct ScriptedAnswer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The parts of the body, in order.
    pub body: Box<dyn Iterator<Item = Piece> + Send>,
}

/// A part of a scripted body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The time before it arrives.
    pub wait: Duration,
    /// Its bytes, or why the connection breaks here.
    pub bytes: Result<Vec<u8>, String>,
}

/// An answer whose body was not read yet.
pub(super) enum Answer {
    Network(reqwest::Response),
    Scripted(Scripted),
}

pub(super) struct Scripted {
    status: StatusCode,
    headers: HeaderMap,
    body: Box<dyn Iterator<Item = Piece> + Send>,
}

/// Why there is no answer, or only a part of one.
pub(super) enum Broken {
    Network(reqwest::Error),
    Scripted(String),
}

/// Sends a request to a script.
pub(super) async fn send_to(
    transport: &dyn Transport,
    method: &Method,
    url: &Url,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Answer, Broken> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = SentRequest {
        method: method.to_string(),
        url: url.to_string(),
        headers: headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        body: body.to_vec(),
    };
    let answer = transport.send(request).await.map_err(Broken::Scripted)?;
    let status = StatusCode::from_u16(answer.status).map_err(|error| Broken::Scripted(error.to_string()))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| Broken::Scripted(error.to_string()))?;
        let value = HeaderValue::from_str(value).map_err(|error| Broken::Scripted(error.to_string()))?;
        headers.append(name, value);
    }
    // An answer to `HEAD` has no body, whatever a script says.
    let body = if *method == Method::HEAD { Box::new(std::iter::empty()) } else { answer.body };
    Ok(Answer::Scripted(Scripted { status, headers, body }))
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Network(response) => response.status(),
            Self::Scripted(answer) => answer.status,
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Network(response) => response.headers(),
            Self::Scripted(answer) => &answer.headers,
        }
    }

    /// The length of the body, if the server states it.
    pub(super) fn content_length(&self) -> Option<u64> {
        match self {
            Self::Network(response) => response.content_length(),
            Self::Scripted(answer) => answer.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
        }
    }

    /// The next part of the body; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        match self {
            Self::Network(response) => {
                let chunk = response.chunk().await.map_err(Broken::Network)?;
                Ok(chunk.map(Vec::from))
            }
            Self::Scripted(answer) => {
                let Some(piece) = answer.body.next() else { return Ok(None) };
                if !piece.wait.is_zero() {
                    tokio::time::sleep(piece.wait).await;
                }
                piece.bytes.map(Some).map_err(Broken::Scripted)
            }
        }
    }
}
