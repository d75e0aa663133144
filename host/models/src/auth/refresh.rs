//! One request to a token server: a refresh token goes in, an access token comes out (RFC 6749, section 6).

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use reqwest::{
    Client,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::file::Login;
use crate::{client, failure, providers};

/// How long the token server may take for a connection, and for its whole answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);
/// How often a request is sent while the network fails, and the shortest delay before the second try.
const TRIES: usize = 3;
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Most bytes that are read of an answer.
const LARGEST_ANSWER: usize = 64 << 10;

/// What the token server gave.
pub(super) struct Tokens {
    pub(super) access: String,
    /// Replaces the refresh token, where the server rotates it.
    pub(super) refresh: Option<String>,
    /// Seconds until the access token expires.
    pub(super) expires_in: Option<u64>,
}

/// Why there is no new token. The texts may quote secrets: the caller scrubs them.
pub(super) enum Refusal {
    /// The server does not accept the refresh token, and will not accept it later.
    Final(String),
    /// The request was not sent, because `token_url` cannot be used.
    Address(String),
    /// The server failed, or did not answer in time.
    Passing(String),
    /// The connection failed, so that the server may never have seen the request.
    Network(String),
}

/// Asks for a new access token, up to [`TRIES`] times where the network fails.
pub(super) async fn ask(login: &Login) -> Result<Tokens, Refusal> {
    let waits = ExponentialBuilder::new().with_min_delay(FIRST_WAIT).with_max_times(TRIES - 1).with_jitter();
    let is_network = |refusal: &Refusal| matches!(refusal, Refusal::Network(_));
    (|| ask_once(login)).retry(waits).when(is_network).await
}

async fn ask_once(login: &Login) -> Result<Tokens, Refusal> {
    let url = address(&login.token_url)?;
    let host = providers::host(&url).unwrap_or_default();
    let client: Client = client::new(&url, CONNECT, ANSWER).map_err(Refusal::Passing)?;
    let request = client
        .post(url)
        .timeout(ANSWER)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .body(form(login));
    let unreachable = |error: reqwest::Error| {
        // A second try would have to wait as long, while other sessions wait for this one.
        let late = error.is_timeout();
        let why = client::innermost(&error.without_url());
        let why = format!("the token server {host} did not answer: {why}");
        if late { Refusal::Passing(why) } else { Refusal::Network(why) }
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < LARGEST_ANSWER
        && let Some(piece) = response.chunk().await.map_err(unreachable)?
    {
        body.extend_from_slice(&piece);
    }
    read(&host, status, &body)
}

fn form(login: &Login) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("refresh_token", &login.refresh_token);
    form.append_pair("client_id", &login.client_id);
    for (name, value) in [("client_secret", &login.client_secret), ("scope", &login.scope)] {
        if let Some(value) = value {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

/// Tokens go encrypted, or stay on this machine.
fn address(text: &str) -> Result<Url, Refusal> {
    let url = Url::parse(text).map_err(|_| Refusal::Address("its token_url is not a URL".to_owned()))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if providers::is_loopback(&url) => Ok(url),
        _ => Err(Refusal::Address("its token_url does not begin with https://".to_owned())),
    }
}

fn read(host: &str, status: u16, body: &[u8]) -> Result<Tokens, Refusal> {
    let answer: Option<Value> = serde_json::from_slice(body).ok();
    let word = |key: &str| answer.as_ref()?.get(key)?.as_str().map(str::to_owned);
    if !(200..300).contains(&status) {
        let words = [word("error"), word("error_description")];
        let words: Vec<String> = words.into_iter().flatten().map(|word| failure::one_line(&word)).collect();
        let words = if words.is_empty() { failure::reason(status).to_owned() } else { words.join(": ") };
        let why = format!("the token server {host} refused to refresh it (status {status}): {words}");
        let is_final = matches!(status, 400..500) && !matches!(status, 408 | 425 | 429);
        return Err(if is_final { Refusal::Final(why) } else { Refusal::Passing(why) });
    }
    let unusable = |what: &str| Refusal::Passing(format!("the answer of the token server {host} {what}"));
    let access =
        word("access_token").filter(|token| !token.is_empty()).ok_or_else(|| unusable("has no access_token"))?;
    if !access.chars().all(|character| character.is_ascii_graphic()) {
        return Err(unusable("has an access_token that no header can carry"));
    }
    if word("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(unusable("has a token that is not a bearer token"));
    }
    let expires_in = answer.as_ref().and_then(|answer| match answer.get("expires_in")? {
        Value::String(seconds) => seconds.parse().ok(),
        seconds => seconds.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64),
    });
    Ok(Tokens { access, refresh: word("refresh_token").filter(|token| !token.is_empty()), expires_in })
}
