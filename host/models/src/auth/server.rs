//! One request to a server of logins: a form goes in, an answer of bounded size comes out (RFC 6749, sections 4, 5 and 6).

use std::time::Duration;

use reqwest::{
    Client, RequestBuilder,
    header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use crate::{client, failure, providers};

/// How long the server may take for a connection, and for its whole answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const LARGEST_ANSWER: usize = 64 << 10;
/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// What a token server gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: String,
    /// Replaces the refresh token, where the server rotates it.
    pub(super) refresh: Option<String>,
    /// Seconds until the access token expires.
    pub(super) expires_in: Option<u64>,
    /// What was granted, where that differs from what was asked for.
    pub(super) scope: Option<String>,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) host: String,
    pub(super) status: u16,
    /// None for what is not JSON.
    body: Option<Value>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The connection failed, so that the server may never have seen the request.
    Network(String),
    /// The server was too slow, or sent too much.
    Server(String),
}

impl NoAnswer {
    pub(super) fn into_why(self) -> String {
        match self {
            Self::Network(why) | Self::Server(why) => why,
        }
    }
}

/// Tokens go encrypted, or stay on this machine. The error says what is wrong with the address.
pub(super) fn address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL")?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if providers::is_loopback(&url) => Ok(url),
        _ => Err("does not begin with https://"),
    }
}

/// The fields of a form. A field without a value is left out.
pub(super) fn form<'a>(fields: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        if let Some(value) = value {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

/// Sends a form once.
pub(super) async fn post(url: &Url, form: String) -> Result<Answer, NoAnswer> {
    post_as(None, url, form).await
}

/// Sends a form once, with the id and the password of this program in a header (RFC 6749, section 2.3.1).
pub(super) async fn post_as(basic: Option<(&str, &str)>, url: &Url, form: String) -> Result<Answer, NoAnswer> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let request = client(url)?.post(url.clone()).header(CONTENT_TYPE, FORM).body(form);
    let request = match basic {
        Some((id, secret)) => request.basic_auth(encoded(id), Some(encoded(secret))),
        None => request,
    };
    received(url, request).await
}

/// Sends JSON once.
pub(super) async fn post_json(url: &Url, body: &Value) -> Result<Answer, NoAnswer> {
    let request = client(url)?.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_string());
    received(url, request).await
}

/// Gets a document once.
pub(super) async fn get(url: &Url) -> Result<Answer, NoAnswer> {
    received(url, client(url)?.get(url.clone())).await
}

/// The header `WWW-Authenticate` of a server that refuses a request without a login. Some servers refuse the greeting of the
/// versions up to 2025-11-25 or since 2026-07-28; others accept the greeting and refuse the request after it.
pub(super) async fn challenge(url: &Url) -> Result<Option<String>, NoAnswer> {
    let about = json!({"name": "hermes", "version": env!("CARGO_PKG_VERSION")});
    let greeting = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
    let greeted = asked(url, "initialize", greeting, &[]).await?;
    if greeted.challenge.is_some() {
        return Ok(greeted.challenge);
    }
    let behind = match greeted.session.as_deref() {
        _ if !greeted.is_success => {
            const VERSION: &str = "2026-07-28";
            let key = |name: &str| format!("io.modelcontextprotocol/{name}");
            let meta =
                json!({key("protocolVersion"): VERSION, key("clientInfo"): about, key("clientCapabilities"): {}});
            let headers = [("mcp-protocol-version", VERSION), ("mcp-method", "tools/list")];
            asked(url, "tools/list", json!({"_meta": meta}), &headers).await?
        }
        Some(session) => asked(url, "tools/list", json!({}), &[("mcp-session-id", session)]).await?,
        None => asked(url, "tools/list", json!({}), &[]).await?,
    };
    Ok(behind.challenge)
}

/// What the head of an answer says.
struct Head {
    is_success: bool,
    challenge: Option<String>,
    session: Option<String>,
}

async fn asked(url: &Url, method: &str, params: Value, headers: &[(&'static str, &str)]) -> Result<Head, NoAnswer> {
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    let request = client(url)?
        .post(url.clone())
        .timeout(ANSWER)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(message.to_string());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.map_err(|error| unreachable(url, error))?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let challenge = header(WWW_AUTHENTICATE.as_str());
    Ok(Head { is_success: response.status().is_success(), challenge, session: header("mcp-session-id") })
}

fn client(url: &Url) -> Result<Client, NoAnswer> {
    client::new(url, CONNECT, ANSWER).map_err(NoAnswer::Server)
}

fn unreachable(url: &Url, error: reqwest::Error) -> NoAnswer {
    // A second try would have to wait as long.
    let late = error.is_timeout();
    let why = client::innermost(&error.without_url());
    let why = format!("the token server {} did not answer: {why}", providers::host(url).unwrap_or_default());
    if late { NoAnswer::Server(why) } else { NoAnswer::Network(why) }
}

/// Sends a request, and reads its answer. Redirects are not followed: the body holds secrets.
async fn received(url: &Url, request: RequestBuilder) -> Result<Answer, NoAnswer> {
    let host = providers::host(url).unwrap_or_default();
    let unreachable = |error| unreachable(url, error);
    let request = request.timeout(ANSWER).header(ACCEPT, "application/json");
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&piece);
        if body.len() > LARGEST_ANSWER {
            let most = LARGEST_ANSWER >> 10;
            return Err(NoAnswer::Server(format!("the answer of the token server {host} has more than {most} KiB")));
        }
    }
    Ok(Answer::new(host, status, &body))
}

impl Answer {
    pub(super) fn new(host: String, status: u16, body: &[u8]) -> Self {
        Self { host, status, body: serde_json::from_slice(body).ok() }
    }

    /// A text of the answer; none for an empty one.
    pub(super) fn word(&self, key: &str) -> Option<&str> {
        self.body.as_ref()?.get(key)?.as_str().filter(|word| !word.is_empty())
    }

    /// Whether a member of the answer is `true`.
    pub(super) fn is_true(&self, key: &str) -> bool {
        self.body.as_ref().and_then(|body| body.get(key)) == Some(&Value::Bool(true))
    }

    /// Whether the answer is a JSON object.
    pub(super) fn is_object(&self) -> bool {
        self.body.as_ref().is_some_and(Value::is_object)
    }

    /// The texts of a list; none if there is no such list.
    pub(super) fn words_of(&self, key: &str) -> Vec<&str> {
        let list = self.body.as_ref().and_then(|body| body.get(key)?.as_array());
        list.into_iter().flatten().filter_map(Value::as_str).filter(|word| !word.is_empty()).collect()
    }

    /// A number of seconds, which some servers send as a text.
    pub(super) fn seconds(&self, key: &str) -> Option<u64> {
        match self.body.as_ref()?.get(key)? {
            Value::String(seconds) => seconds.parse().ok(),
            seconds => seconds.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64),
        }
    }

    /// Whether the request succeeded. Some servers send errors with the status 200.
    pub(super) fn is_success(&self) -> bool {
        matches!(self.status, 200..300) && self.word("error").is_none()
    }

    /// Whether the same request will fail again.
    pub(super) fn is_final(&self) -> bool {
        let passes = matches!(self.word("error"), Some("server_error" | "temporarily_unavailable"));
        match self.status {
            408 | 425 | 429 => false,
            400..500 => true,
            200..300 => self.word("error").is_some() && !passes,
            _ => false,
        }
    }

    /// What the server says about a failure, on one line. It may quote secrets: the caller scrubs it.
    pub(super) fn words(&self) -> String {
        // The APIs of models nest the message.
        let nested = self.body.as_ref().and_then(|body| body.pointer("/error/message")?.as_str());
        let words = [self.word("error").or(nested), self.word("error_description")];
        let words: Vec<String> = words.into_iter().flatten().map(failure::one_line).collect();
        match self.status {
            _ if !words.is_empty() => words.join(": "),
            300..400 => "it redirects to another address, which Hermes does not follow".to_owned(),
            status => failure::reason(status).to_owned(),
        }
    }

    /// The key of a successful answer, which is not refreshed. The error says what is wrong with the answer.
    pub(super) fn key(&self) -> Result<Tokens, String> {
        let unusable = |what: &str| format!("the answer of the token server {} {what}", self.host);
        let key = self.word("key").ok_or_else(|| unusable("has no key"))?;
        if !key.chars().all(|character| character.is_ascii_graphic()) {
            return Err(unusable("has a key that no header can carry"));
        }
        Ok(Tokens { access: key.to_owned(), refresh: None, expires_in: None, scope: None })
    }

    /// The tokens of a successful answer. The error says what is wrong with it.
    pub(super) fn tokens(&self) -> Result<Tokens, String> {
        let unusable = |what: &str| format!("the answer of the token server {} {what}", self.host);
        let access = self.word("access_token").ok_or_else(|| unusable("has no access_token"))?;
        if !access.chars().all(|character| character.is_ascii_graphic()) {
            return Err(unusable("has an access_token that no header can carry"));
        }
        if self.word("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(unusable("has a token that is not a bearer token"));
        }
        Ok(Tokens {
            access: access.to_owned(),
            refresh: self.word("refresh_token").map(str::to_owned),
            expires_in: self.seconds("expires_in"),
            scope: self.word("scope").map(str::to_owned),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &Value) -> Answer {
        Answer::new("id.test".to_owned(), status, body.to_string().as_bytes())
    }

    #[test]
    fn only_encrypted_and_local_addresses_are_asked() {
        for (text, flaw) in [
            ("https://id.test/token", None),
            ("http://127.0.0.1:8080/token", None),
            ("http://[::1]/token", None),
            ("http://localhost/token", None),
            ("http://id.test/token", Some("does not begin with https://")),
            ("http://127.0.0.1.id.test/token", Some("does not begin with https://")),
            ("file:///etc/passwd", Some("does not begin with https://")),
            ("javascript:alert(1)", Some("does not begin with https://")),
            ("id.test/token", Some("is not a URL")),
        ] {
            assert_eq!(address(text).err(), flaw, "{text}");
        }
    }

    #[test]
    fn tokens_are_taken_only_from_usable_answers() {
        let good = json!({"access_token": "a", "refresh_token": "r", "token_type": "bearer", "expires_in": "60", "scope": "chat"});
        let tokens = Tokens {
            access: "a".to_owned(),
            refresh: Some("r".to_owned()),
            expires_in: Some(60),
            scope: Some("chat".to_owned()),
        };
        assert_eq!(answer(200, &good).tokens(), Ok(tokens));
        for (body, why) in [
            (json!({}), "has no access_token"),
            (json!({"access_token": ""}), "has no access_token"),
            (json!({"access_token": 5}), "has no access_token"),
            (json!({"access_token": "a\r\nX-Other: b"}), "no header can carry"),
            (json!({"access_token": "a", "token_type": "mac"}), "not a bearer token"),
        ] {
            let error = answer(200, &body).tokens().unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
        assert!(Answer::new("id.test".to_owned(), 200, b"<html>").tokens().is_err());
    }

    #[test]
    fn a_key_is_taken_only_from_a_usable_answer() {
        let good = json!({"key": "sk-or-1", "user_id": "user_1"});
        assert_eq!(answer(200, &good).key().unwrap().access, "sk-or-1");
        for (body, why) in [
            (json!({}), "has no key"),
            (json!({"key": ""}), "has no key"),
            (json!({"key": {"value": "a"}}), "has no key"),
            (json!({"key": "a\r\nX-Other: b"}), "no header can carry"),
        ] {
            let error = answer(200, &body).key().unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
        assert!(Answer::new("id.test".to_owned(), 200, b"<html>").key().is_err());
    }

    #[test]
    fn the_lifetime_is_read_in_every_form_that_servers_send() {
        for (given, seconds) in [
            (json!(3600), Some(3600)),
            (json!("3600"), Some(3600)),
            (json!(3599.9), Some(3599)),
            (json!(-1), None),
            (json!("soon"), None),
            (json!(null), None),
        ] {
            assert_eq!(answer(200, &json!({"expires_in": given})).seconds("expires_in"), seconds, "{given}");
        }
    }

    #[test]
    fn an_error_is_known_by_its_status_or_by_its_body() {
        let refused = json!({"error": "access_denied", "error_description": "no\u{1b}[31m\nreally"});
        for (status, success, is_final) in
            [(200, false, true), (400, false, true), (429, false, false), (503, false, false)]
        {
            let answer = answer(status, &refused);
            assert_eq!((answer.is_success(), answer.is_final()), (success, is_final), "{status}");
            assert_eq!(answer.words(), "access_denied: no [31m really");
        }
        assert!(answer(200, &json!({"error": ""})).is_success());
        let nested = json!({"error": {"message": "Invalid code or code_verifier", "code": 403}});
        assert_eq!(answer(403, &nested).words(), "Invalid code or code_verifier");
        assert_eq!(Answer::new("id.test".to_owned(), 502, b"<html>").words(), "not available");
    }
}
