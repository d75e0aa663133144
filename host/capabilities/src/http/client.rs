//! Sends a request: checks, redirects, and an answer that the plugin may see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermes_http_client::innermost;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use url::Url;

use super::body::Body;
use super::connections::{Carrier, Connections, Rights};
use super::error::{BODY, HttpError};
use super::message::{Headers, Request, Response, check_query, is_method, shown};
use super::redaction::Redaction;
use super::resolver::{Closed, Resolver};
use super::secret::Secret;
use super::site::has_userinfo;
use super::store::Stored;
use super::transport::{Answer, Broken, Transport, send_to};
use super::value::Value;

/// The default and the longest time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(120);
/// Most redirects of a request.
const REDIRECTS: usize = 5;
/// Most bytes of an address.
const URL: usize = 8 << 10;

/// The traffic of a plugin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of requests, including redirects.
    pub requests: u64,
    /// Bytes sent in addresses, headers and bodies.
    pub sent: u64,
    /// Bytes received in bodies.
    pub received: u64,
}

#[derive(Default)]
struct Meter {
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// The web as one plugin may use it.
pub struct Http {
    connections: Arc<Connections>,
    meter: Meter,
}

impl Http {
    /// Access for a plugin without any grant.
    pub fn closed() -> Self {
        let denial = "the plugin may not reach the web".to_owned();
        Self::new(Rights { grants: Vec::new(), secrets: Vec::new(), denial }, Arc::new(super::SystemResolver))
    }

    /// Access with connections of its own. Nothing is resolved or sent before the first request.
    pub fn new(rights: Rights, resolver: Arc<dyn Resolver>) -> Self {
        Self::over(Arc::new(Connections::new(rights, resolver)))
    }

    /// Access to a script in place of the network. Everything above a single request stays as it is.
    pub fn scripted(rights: Rights, transport: Arc<dyn Transport>) -> Self {
        Self::over(Arc::new(Connections::scripted(rights, transport)))
    }

    /// Access over connections that the same plugin uses elsewhere in the process.
    pub fn over(connections: Arc<Connections>) -> Self {
        Self { connections, meter: Meter::default() }
    }

    fn rights(&self) -> &Rights {
        self.connections.rights()
    }

    /// Whether any address is granted.
    pub fn is_granted(&self) -> bool {
        !self.rights().grants.is_empty()
    }

    /// Whether a secret may be used and has a value.
    pub async fn has_secret(&self, name: &str) -> bool {
        self.refresh().await;
        self.rights().secrets.iter().any(|secret| secret.name == name && secret.value().is_ok())
    }

    /// Replaces the value of a writable secret, for this session and later ones.
    pub async fn replace_secret(&self, name: &str, value: String) -> Result<(), HttpError> {
        let mut of_name = self.rights().secrets.iter().filter(|secret| secret.name == name);
        let Some(first) = of_name.next() else {
            let denial = self.rights().denial.clone();
            return Err(HttpError::NoSecret { denial, name: shown(name), granted: self.names_of_secrets() });
        };
        let (name, secrets) = (first.name.clone(), std::iter::once(first).chain(of_name).cloned().collect::<Vec<_>>());
        let given = value.clone();
        let stored = tokio::task::spawn_blocking(move || secrets.iter().try_for_each(|secret| secret.replace(&given)));
        match stored.await {
            Ok(Ok(())) => {
                self.redaction().add(value.trim());
                Ok(())
            }
            Ok(Err(Stored::Fixed)) => Err(HttpError::Fixed { name }),
            Ok(Err(Stored::Unfit(why))) => Err(HttpError::Value { name, why }),
            Ok(Err(Stored::Failed(error))) => Err(HttpError::Store { name, why: error.to_string() }),
            Err(error) => Err(HttpError::Store { name, why: error.to_string() }),
        }
    }

    /// Reads the values of secrets that may have changed.
    async fn refresh(&self) {
        if self.rights().secrets.iter().any(Secret::may_change) {
            let connections = Arc::clone(&self.connections);
            // If this fails, the process is about to end.
            let _ = tokio::task::spawn_blocking(move || connections.refresh()).await;
        }
    }

    /// The redaction of its secrets.
    pub fn redaction(&self) -> &Redaction {
        self.connections.redaction()
    }

    /// The traffic so far.
    pub fn traffic(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic { requests: of(&self.meter.requests), sent: of(&self.meter.sent), received: of(&self.meter.received) }
    }

    /// Sends a request and returns the answer, whatever its status.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let allowed = allowed(request.timeout_ms);
        self.refresh().await;
        let hop = self.first(request)?;
        let answer = tokio::time::timeout(allowed, self.follow(hop)).await;
        answer.unwrap_or(Err(HttpError::Timeout(allowed.as_millis())))
    }

    /// Makes all checks that are possible before anything is sent.
    fn first(&self, request: Request) -> Result<Hop, HttpError> {
        if !self.is_granted() {
            let url = Url::parse(&request.url).map_or_else(|_| "an address".to_owned(), |url| self.told(&url));
            let denial = self.rights().denial.clone();
            return Err(HttpError::NotGranted { denial, method: shown(&request.method), url });
        }
        if !is_method(&request.method) {
            return Err(HttpError::Method(shown(&request.method)));
        }
        let method =
            Method::from_bytes(request.method.as_bytes()).map_err(|_| HttpError::Method(shown(&request.method)))?;
        let url = Self::address(&request.url)?;
        check_query(&request.query)?;
        let headers = Headers::of(&request)?;
        if !self.admits(&method, &url) {
            let granted = self.rights().grants.iter().filter(|grant| grant.site.admits(&url));
            let granted: Vec<&str> = granted.flat_map(|grant| grant.methods.iter().map(String::as_str)).collect();
            if !granted.is_empty() {
                let (method, granted) = (method.to_string(), granted.join(", "));
                return Err(HttpError::OtherMethod { method, url: self.told(&url), granted });
            }
            let denial = self.rights().denial.clone();
            return Err(HttpError::NotGranted { denial, method: method.to_string(), url: self.told(&url) });
        }
        let hop = Hop { method, url, query: request.query, headers, body: request.body };
        for name in hop.secrets() {
            self.secret(name, &hop.url)?;
        }
        // Finds what cannot be encoded before anything is sent.
        hop.body.encode(|value| self.text(value, &hop.url))?;
        Ok(hop)
    }

    fn names_of_secrets(&self) -> Vec<String> {
        let mut names: Vec<String> = self.rights().secrets.iter().map(|secret| format!("`{}`", secret.name)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The value of a secret for an address.
    fn secret(&self, name: &str, url: &Url) -> Result<String, HttpError> {
        let of_name = || self.rights().secrets.iter().filter(|secret| secret.name == name);
        let Some(one) = of_name().next() else {
            let denial = self.rights().denial.clone();
            return Err(HttpError::NoSecret { denial, name: shown(name), granted: self.names_of_secrets() });
        };
        let Some(secret) = of_name().find(|secret| secret.audience.admits(url)) else {
            return Err(HttpError::Audience { name: one.name.clone(), audience: one.audience.to_string() });
        };
        secret.value().map_err(|why| HttpError::Unset {
            name: secret.name.clone(),
            variable: secret.variable.clone(),
            why,
        })
    }

    /// The text of a value for an address, with its secret.
    fn text(&self, value: &Value, url: &Url) -> Result<String, HttpError> {
        Ok(match value {
            Value::Plain(text) => text.clone(),
            Value::Secret { name, prefix } => format!("{prefix}{}", self.secret(name, url)?),
        })
    }

    fn address(text: &str) -> Result<Url, HttpError> {
        if text.len() > URL {
            return Err(HttpError::Url(format!("it has {} bytes, and may have {URL}", text.len())));
        }
        let mut url = Url::parse(text).map_err(|error| HttpError::Url(error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(HttpError::Url(format!("`{}` is neither https nor http", shown(url.scheme()))));
        }
        if has_userinfo(&url) {
            return Err(HttpError::Url("it has a user or a password in it; use a header".to_owned()));
        }
        url.set_fragment(None);
        Ok(url)
    }

    fn admits(&self, method: &Method, url: &Url) -> bool {
        self.rights().grants.iter().any(|grant| grant.admits(method, url))
    }

    async fn follow(&self, mut hop: Hop) -> Result<Response, HttpError> {
        for _ in 0..=REDIRECTS {
            let response = self.once(&hop).await?;
            match next(&hop, &response)? {
                None => return self.read(response, &hop).await,
                Some(target) => hop = self.redirected(hop, response.status(), target)?,
            }
        }
        Err(HttpError::Redirects("more than 5 times"))
    }

    /// The request that follows a redirect, if it is allowed.
    fn redirected(&self, mut hop: Hop, status: StatusCode, target: Url) -> Result<Hop, HttpError> {
        let target = Self::address(target.as_str())?;
        let drops_body = match status {
            StatusCode::SEE_OTHER => hop.method != Method::HEAD && hop.method != Method::GET,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => hop.method == Method::POST,
            _ => false,
        };
        if drops_body {
            hop.method = Method::GET;
            hop.body = Body::default();
            for name in [header::CONTENT_TYPE, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION] {
                hop.headers.plain.remove(name);
            }
        }
        if !self.admits(&hop.method, &target) {
            let denial = self.rights().denial.clone();
            return Err(HttpError::Redirected { denial, method: hop.method.to_string(), url: self.told(&target) });
        }
        // A server may put a secret that it got in a header into the address.
        if self.redaction().finds(target.as_str().as_bytes()) {
            return Err(HttpError::CarriesSecret { url: self.told(&target) });
        }
        if target.origin() != hop.url.origin() {
            for name in [header::AUTHORIZATION, header::COOKIE] {
                hop.headers.plain.remove(name);
            }
        }
        // A body without its secret means something else, so it is not sent at all.
        for name in hop.body.secrets() {
            self.secret(name, &target)?;
        }
        // Of the headers, keep those whose audience includes the target. The target has a query of its own.
        Ok(Hop { url: target, query: Vec::new(), ..hop })
    }

    async fn once(&self, hop: &Hop) -> Result<Answer, HttpError> {
        let headers = self.headers(hop);
        let url = hop.with_query(|value| self.text(value, &hop.url).map(Some))?;
        if url.as_str().len() > URL * 2 {
            return Err(HttpError::Query("with its secrets, the address has more than 16 KiB"));
        }
        let body = hop.body.encode(|value| self.text(value, &hop.url))?;
        let lengths = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let sent = url.as_str().len() + lengths.sum::<usize>() + body.len();
        self.meter.requests.fetch_add(1, Ordering::Relaxed);
        self.meter.sent.fetch_add(sent as u64, Ordering::Relaxed);
        let answer = match self.connections.carrier()? {
            Carrier::Network(client) => {
                let mut request = client.request(hop.method.clone(), url).headers(headers);
                if !hop.body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&hop.method) {
                    request = request.body(body);
                }
                request.send().await.map(Answer::Network).map_err(Broken::Network)
            }
            Carrier::Script(transport) => send_to(&*transport, &hop.method, &url, &headers, &body).await,
        };
        answer.map_err(|broken| self.broken(broken, &hop.url))
    }

    fn headers(&self, hop: &Hop) -> HeaderMap {
        let mut headers = hop.headers.plain.clone();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(content_type) = hop.body.content_type().filter(|_| !headers.contains_key(header::CONTENT_TYPE)) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for wanted in &hop.headers.secret {
            // The first address had all of them; a redirect may have left an audience.
            let value = self.secret(&wanted.name, &hop.url).ok();
            let value = value.and_then(|value| HeaderValue::from_str(&format!("{}{value}", wanted.prefix)).ok());
            if let Some(mut value) = value {
                value.set_sensitive(true);
                headers.append(wanted.header.clone(), value);
            }
        }
        headers
    }

    async fn read(&self, mut response: Answer, hop: &Hop) -> Result<Response, HttpError> {
        let encoding = response.headers().get(header::CONTENT_ENCODING).map(|value| lossy(value).trim().to_lowercase());
        if let Some(encoding) = encoding.filter(|encoding| !["", "identity"].contains(&encoding.as_str())) {
            return Err(HttpError::Encoding(self.redaction().text(&shown(&encoding))));
        }
        if response.content_length().is_some_and(|length| length > BODY as u64) {
            return Err(HttpError::TooLong);
        }
        let redaction = self.redaction();
        let mut body = Vec::new();
        while let Some(chunk) = response.next().await.map_err(|broken| self.broken(broken, &hop.url))? {
            self.meter.received.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            if body.len() + chunk.len() > BODY {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        // A parameter with a secret is left out, not redacted: nothing of it is returned.
        let plain = |value: &Value| match value {
            Value::Plain(text) => Ok(Some(text.clone())),
            Value::Secret { .. } => Ok(None),
        };
        let url = hop.with_query(plain)?;
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (redaction.text(name.as_str()), redaction.text(&lossy(value))));
        Ok(Response {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: redaction.bytes(body),
            url: redaction.text(url.as_str()),
        })
    }

    /// The error of a request without an answer, in words without the query.
    fn broken(&self, broken: Broken, url: &Url) -> HttpError {
        let host = url.host_str().unwrap_or_default().to_owned();
        let error = match broken {
            Broken::Network(error) => error.without_url(),
            Broken::Scripted(why) => return HttpError::Network { host, why: self.redaction().text(&why) },
        };
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(inner) = cause {
            if let Some(Closed { host, address }) = inner.downcast_ref() {
                return HttpError::NotPublic { host: host.clone(), address: *address };
            }
            cause = inner.source();
        }
        HttpError::Network { host, why: self.redaction().text(&innermost(&error)) }
    }

    /// An address for a message, without its query, which may contain private data.
    fn told(&self, url: &Url) -> String {
        let mut url = url.clone();
        url.set_query(None);
        self.redaction().text(&url.as_str().chars().take(200).collect::<String>())
    }
}

/// One request in a chain of redirects.
struct Hop {
    method: Method,
    url: Url,
    /// What is appended to the address; nothing after a redirect.
    query: Vec<(String, Value)>,
    headers: Headers,
    body: Body,
}

impl Hop {
    /// The names of all secrets in it.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let query = self.query.iter().filter_map(|(_, value)| value.secret());
        self.headers.secret.iter().map(|wanted| wanted.name.as_str()).chain(query).chain(self.body.secrets())
    }

    /// The address with the appended parameters. `text` gives their values; a parameter without one is left out.
    fn with_query(&self, text: impl Fn(&Value) -> Result<Option<String>, HttpError>) -> Result<Url, HttpError> {
        let mut url = self.url.clone();
        for (name, value) in &self.query {
            if let Some(value) = text(value)? {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        Ok(url)
    }
}

/// The target of a redirect, if the response is one.
fn next(hop: &Hop, response: &Answer) -> Result<Option<Url>, HttpError> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = response.headers().get(header::LOCATION).filter(|_| redirects) else { return Ok(None) };
    let nowhere = HttpError::Redirects("to no address");
    let location = location.to_str().map_err(|_| nowhere.clone())?;
    hop.url.join(location).map(Some).map_err(|_| nowhere)
}

fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The time of a request.
fn allowed(timeout_ms: Option<u32>) -> Duration {
    timeout_ms.map_or(TIMEOUT, |ms| Duration::from_millis(ms.into())).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_30_seconds_unless_it_asks_for_up_to_120() {
        for (timeout_ms, seconds) in [(None, 30), (Some(2_000), 2), (Some(120_000), 120), (Some(u32::MAX), 120)] {
            assert_eq!(allowed(timeout_ms), Duration::from_secs(seconds), "{timeout_ms:?}");
        }
    }
}
