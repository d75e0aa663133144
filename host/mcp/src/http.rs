//! The requests of streamable HTTP: what the SDK's client sends, with answers that are counted and mended before they get types.

use std::borrow::Cow;
use std::collections::HashMap;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;

use crate::flow::Flow;
use crate::limits;
use crate::mended;
use crate::stream::{Events, events};

pub(crate) type HttpError = StreamableHttpError<reqwest::Error>;

const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";

/// Who asks: the session and the token, if there are any.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) session: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: &'a HashMap<HeaderName, HeaderValue>,
}

impl Asker<'_> {
    fn request(self, mut request: RequestBuilder) -> RequestBuilder {
        request = request.header(ACCEPT, [STREAM, JSON].join(", "));
        if let Some(session) = self.session {
            request = request.header(SESSION, session);
        }
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// Opens the stream of messages that the server sends on its own, or continues one after the event `last`.
pub(crate) async fn get_stream(
    client: &Client,
    uri: &str,
    last: Option<&str>,
    asker: Asker<'_>,
    flow: &Flow,
) -> Result<Events, HttpError> {
    let mut request = asker.request(client.get(uri));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = request.send().await?;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        return Err(StreamableHttpError::ServerDoesNotSupportSse);
    }
    let response = authorized(response)?;
    if !response.status().is_success() {
        return Err(status_error(&response).into());
    }
    match content_type(&response) {
        Some(kind) if kind == STREAM || kind == JSON => Ok(events(response, flow)),
        kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
    }
}

/// Sends a message. The answer to a request comes at once or in a stream.
pub(crate) async fn post(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    asker: Asker<'_>,
    flow: &Flow,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let response = authorized(asker.request(client.post(uri)).json(message).send().await?)?;
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && asker.session.is_some() {
        return Err(StreamableHttpError::SessionExpired);
    }
    let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let kind = content_type(&response);
    let is_json = kind.as_deref() == Some(JSON);
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if !status.is_success() {
        let failure = status_error(&response);
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(failure.into());
        }
        let body =
            body(response, if is_json && !is_refused { limits::MESSAGE } else { limits::ERROR_PAGE }, flow).await;
        let Ok(body) = body else { return Err(failure.into()) };
        // The server's own words about a request that failed. Without a challenge, the status says more.
        let error = answer_to(message, &body).filter(|error| matches!(error, JsonRpcMessage::Error(_)));
        return match error.filter(|_| is_json && !is_refused) {
            Some(error) => Ok(StreamableHttpPostResponse::Json(error, session)),
            None if status.is_server_error() => Err(failure.into()),
            None => {
                let said = String::from_utf8_lossy(&body);
                Err(unexpected(format!("HTTP {status}: {}", crate::error::line(&said))))
            }
        };
    }
    if kind.as_deref() == Some(STREAM) {
        return Ok(StreamableHttpPostResponse::Sse(events(response, flow), session));
    }
    // Nobody waits for what comes back on an answer or a notification.
    let ClientJsonRpcMessage::Request(request) = message else { return Ok(StreamableHttpPostResponse::Accepted) };
    match kind.as_deref() {
        Some(JSON) => {
            let body = body(response, limits::MESSAGE, flow).await?;
            let answer = answer_to(message, &body).or_else(|| {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                let preview = crate::error::line(&String::from_utf8_lossy(&body[..body.len().min(PREVIEW)]));
                serde_json::from_value(mended::unreadable(&id, &format!("it is no message: {preview}"))).ok()
            });
            let answer = answer.ok_or_else(|| unexpected("an answer that is no message".to_owned()))?;
            Ok(StreamableHttpPostResponse::Json(answer, session))
        }
        _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
    }
}

/// The most bytes of a body that an error shows.
const PREVIEW: usize = 256;

fn unexpected(why: String) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

/// The answer to a request among the messages of a body: the message with the request's id, or else the first without an id or of
/// another kind.
fn answer_to(message: &ClientJsonRpcMessage, body: &[u8]) -> Option<ServerJsonRpcMessage> {
    let id = match message {
        ClientJsonRpcMessage::Request(request) => serde_json::to_value(&request.id).ok(),
        _ => None,
    };
    let mut messages = mended::messages(body);
    let is_answer = |message: &Value| message.get("method").is_none();
    let own = messages.iter().position(|message| is_answer(message) && message.get("id") == id.as_ref());
    let mut chosen = match own.or_else(|| messages.iter().position(is_answer)) {
        Some(at) => messages.swap_remove(at),
        None => messages.into_iter().next()?,
    };
    // The body is the answer to this request and to no other one.
    if let Some(id) = id.filter(|id| is_answer(&chosen) && chosen.get("id") != Some(id)) {
        match chosen.get("error").is_some() {
            true => chosen["id"] = id,
            false => chosen = mended::unreadable(&id, &format!("it is for the request {}", chosen["id"])),
        }
    }
    serde_json::from_value(chosen).ok()
}

/// The response, unless the server wants a login or a wider one.
fn authorized(response: Response) -> Result<Response, HttpError> {
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let Some(challenge) = response.headers().get(WWW_AUTHENTICATE) else { return Ok(response) };
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    match response.status() {
        _ if is_unauthorized => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))),
        StatusCode::FORBIDDEN => {
            let scope = scope(&challenge).map(str::to_owned);
            Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope)))
        }
        _ => Ok(response),
    }
}

/// The scope that a challenge names.
fn scope(challenge: &str) -> Option<&str> {
    const KEY: &str = "scope=";
    let at = challenge.to_ascii_lowercase().find(KEY)? + KEY.len();
    let value = &challenge[at..];
    let scope = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => value.split([',', ';', ' ', '\t']).next()?,
    };
    (!scope.is_empty()).then_some(scope)
}

fn status_error(response: &Response) -> HttpStatusError {
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    HttpStatusError::new(response.status().as_u16(), retry_after)
}

/// The type of a body without its parameters, in lower case.
fn content_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?.as_bytes();
    let kind = String::from_utf8_lossy(kind);
    Some(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// A body of at most so many bytes. They count like those of a stream.
async fn body(response: Response, most: usize, flow: &Flow) -> Result<Vec<u8>, HttpError> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if body.len() + chunk.len() > most || !flow.admit_stream(chunk.len(), 0) {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: most });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_scope_of_a_challenge_is_read_with_quotes_and_without() {
        for (challenge, expected) in [
            ("Bearer scope=\"a:read a:write\", error=x", Some("a:read a:write")),
            ("Bearer error=x, Scope=a:read, y", Some("a:read")),
            ("Bearer scope=\"open", None),
            ("Bearer scope=", None),
            ("Bearer", None),
        ] {
            assert_eq!(scope(challenge), expected, "{challenge}");
        }
    }

    #[test]
    fn of_a_batch_the_answer_with_the_id_of_the_request_is_taken() {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
        let request: ClientJsonRpcMessage = serde_json::from_value(request).unwrap();
        let answer = |body: &str| match answer_to(&request, body.as_bytes()) {
            Some(JsonRpcMessage::Response(response)) => Some((response.id.to_string(), String::new())),
            Some(JsonRpcMessage::Error(error)) => {
                Some((error.id.unwrap().to_string(), error.error.message.to_string()))
            }
            other => other.map(|message| (format!("{message:?}"), String::new())),
        };
        let result = || Some(("7".to_owned(), String::new()));
        let error = |words: &str| Some(("7".to_owned(), words.to_owned()));
        for (body, expected) in [
            (r#"[{"id":6,"result":1},{"id":"7","result":2}]"#, result()),
            (r#"{"jsonrpc":"2.0","method":"notifications/message"}{"id":7,"result":2}"#, result()),
            (r#"{"id":6,"result":1}"#, error("its answer cannot be read: it is for the request 6")),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"message":"no"}}"#, error("no")),
            (r#"{"jsonrpc":"2.0","error":{"message":"no"}}"#, error("no")),
            (r#"{"id":"server-error","error":{"message":"no"}}"#, error("no")),
            (r#"{"id":null,"result":1}"#, error("its answer cannot be read: it does not say which request it answers")),
            ("<html>", None),
        ] {
            assert_eq!(answer(body), expected, "{body}");
        }
    }
}
