//! Endpoints that speak chat completions, over HTTP.
//!
//! One client a provider, made at the first request and kept for its connections. Redirects are off: the key would go
//! along. What was shown of a reply is never asked for again; before anything was shown, what may pass is retried.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{
    Client, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION},
    redirect,
};
use serde_json::Value;
use sse_stream::SseByteStream;
use url::Url;

use crate::{
    Delta, Known, ModelError, OnDelta, Provider, Reply, Request, Route, Secret,
    assembly::{Assembly, Broken},
    failure::{self, Stated},
    known, wire,
};

/// Most bytes of one reply. No model writes as much; a broken server might.
const LARGEST_REPLY: usize = 64 << 20;
/// Most bytes that are read of an error.
const LARGEST_ERROR: usize = 64 << 10;
/// How often a request is sent where the server says that it may work later.
const TRIES: u32 = 3;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a connection.
    pub(crate) connect: Duration,
    /// For the next byte.
    pub(crate) silence: Duration,
    /// For what follows a reply that is whole: counts, and the end.
    pub(crate) rest: Duration,
    /// Before a refused connection is tried once more: a server may be restarting.
    pub(crate) reconnect: Duration,
    /// Before the first retry; doubled for each further one.
    pub(crate) retry: Duration,
}

impl Patience {
    /// What suits an endpoint: a model on this machine may read a long prompt for minutes before it says a word.
    pub(crate) fn for_route(route: &Route) -> Self {
        let local = route.base_url.as_ref().is_some_and(known::is_loopback);
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(if local { 900 } else { 180 }),
            rest: Duration::from_secs(5),
            reconnect: Duration::from_millis(300),
            retry: Duration::from_secs(2),
        }
    }
}

/// A provider that speaks chat completions.
pub(crate) struct Chat {
    url: Url,
    /// The address without a query, which may hold what is not to be shown.
    shown_url: String,
    host: String,
    key: Option<Secret>,
    authorization: Option<HeaderValue>,
    /// What to do about a refused key.
    remedy: String,
    dialect: wire::Dialect,
    patience: Patience,
    client: Mutex<Option<Client>>,
}

/// A request that failed, and what that means for another one.
struct Failed {
    error: ModelError,
    again: Again,
}

#[derive(Clone, Copy)]
enum Again {
    Never,
    /// No connection was made.
    Reconnect,
    /// The server was reached; it may say when to come back.
    Later(Option<Duration>),
}

impl Failed {
    fn for_good(error: ModelError) -> Self {
        Self { error, again: Again::Never }
    }
}

impl Chat {
    /// A provider for a route that names an endpoint. Nothing is sent yet.
    pub(crate) fn new(route: &Route, patience: Patience) -> Result<Self, ModelError> {
        let unusable = |message: &str| ModelError::BadRequest {
            host: "hermes".to_owned(),
            status: 0,
            message: message.to_owned(),
        };
        let base =
            route.base_url.as_ref().ok_or_else(|| unusable("the route names no endpoint; set model.base_url"))?;
        let mut url = base.clone();
        url.set_path(&format!("{}/chat/completions", base.path().trim_end_matches('/')));
        let mut shown = url.clone();
        shown.set_query(None);
        let authorization = match &route.api_key {
            None => None,
            Some(key) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                    .map_err(|_| unusable("the key holds characters that no header may have; enter it again"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let known = Known::by_host(base);
        Ok(Self {
            host: known::host(base).unwrap_or_default(),
            shown_url: shown.to_string(),
            url,
            key: route.api_key.clone(),
            authorization,
            remedy: route.key_remedy(),
            dialect: wire::Dialect {
                stream_options: known.is_none_or(|known| known.stream_options),
                newer_cap: known.is_some_and(|known| known.id == "openai"),
            },
            patience,
            client: Mutex::new(None),
        })
    }

    fn client(&self) -> Result<Client, ModelError> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        // Refused where one is installed already, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("hermes/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(self.patience.connect)
            .read_timeout(self.patience.silence);
        if known::is_loopback(&self.url) {
            builder = builder.no_proxy();
        }
        if self.url.scheme() == "http" {
            // Reading the machine's root certificates takes longer than the rest of the start.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| ModelError::Unreachable {
            url: self.shown_url.clone(),
            why: innermost(&error.without_url()),
        })?;
        *slot = Some(client.clone());
        Ok(client)
    }

    /// One request and its reply, without a second try.
    async fn once(&self, body: &Bytes, model: &str, on_delta: OnDelta<'_>) -> Result<Reply, Failed> {
        let mut request = self
            .client()
            .map_err(Failed::for_good)?
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body.clone());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let response = request.send().await.map_err(|error| self.not_sent(error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Failed::for_good(self.moved(&response)));
        }
        if !status.is_success() {
            return Err(self.refused(response, model).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            return self.read_events(bounded(response.bytes_stream()), model, on_delta).await;
        }
        self.read_whole(response, model, on_delta).await
    }

    async fn read_events<S, E>(&self, bytes: S, model: &str, on_delta: OnDelta<'_>) -> Result<Reply, Failed>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
        E: std::error::Error + Send + Sync + 'static,
    {
        // Not all servers end their last event with an empty line.
        let closing = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
        let mut events = SseByteStream::new(bytes.chain(closing));
        let mut assembly = Assembly::default();
        loop {
            let event = if assembly.is_finished() {
                // Only counts can follow, and not every server closes the connection.
                match tokio::time::timeout(self.patience.rest, events.next()).await {
                    Ok(Some(Ok(event))) => event,
                    _ => break,
                }
            } else {
                match events.next().await {
                    Some(Ok(event)) => event,
                    Some(Err(sse_stream::Error::Body(error))) => return Err(self.broken_off(&*error, assembly)),
                    Some(Err(error)) => return Err(self.malformed(error.to_string())),
                    None => break,
                }
            };
            let Some(data) = event.data.as_deref().map(str::trim).filter(|data| !data.is_empty()) else {
                continue;
            };
            if data == "[DONE]" {
                assembly.end();
                break;
            }
            match serde_json::from_str::<Value>(data) {
                Ok(chunk) => assembly.take(&chunk, on_delta).map_err(|stated| self.stated(stated, model, None))?,
                Err(error) => {
                    // Half an event at the very end is a connection that broke.
                    let last = events.next().await.is_none();
                    if last {
                        break;
                    }
                    return Err(self.malformed(format!("an event is no JSON: {error}")));
                }
            }
        }
        self.finish(assembly, model)
    }

    /// A reply in one piece, for servers that do not stream; or a stream under another name.
    async fn read_whole(&self, response: Response, model: &str, on_delta: OnDelta<'_>) -> Result<Reply, Failed> {
        let mut whole = Vec::new();
        let mut bytes = bounded(response.bytes_stream());
        while let Some(piece) = bytes.next().await {
            match piece {
                Ok(piece) => whole.extend_from_slice(&piece),
                Err(error) => return Err(self.broken_off(&error, Assembly::default())),
            }
        }
        let start = whole.trim_ascii_start();
        if [b"data:".as_slice(), b"event:", b":"].iter().any(|mark| start.starts_with(mark)) {
            let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(whole))]);
            return self.read_events(bytes, model, on_delta).await;
        }
        if start.starts_with(b"<") {
            return Err(self.malformed("it is a web page".to_owned()));
        }
        let value: Value = serde_json::from_slice(&whole).map_err(|error| self.malformed(error.to_string()))?;
        let mut assembly = Assembly::default();
        assembly.take(&value, on_delta).map_err(|stated| self.stated(stated, model, None))?;
        if value.pointer("/choices/0").is_none() {
            return Err(self.malformed("it has no `choices`".to_owned()));
        }
        self.finish(assembly, model)
    }

    fn finish(&self, assembly: Assembly, model: &str) -> Result<Reply, Failed> {
        assembly.finish(model, new_call_id).map_err(|broken| match broken {
            Broken::Cut { partial } => self.cut("the connection ended before the reply did".to_owned(), partial),
            Broken::NamelessCall => self.malformed("a tool call has no name".to_owned()),
        })
    }

    fn not_sent(&self, error: reqwest::Error) -> Failed {
        let (connecting, late) = (error.is_connect(), error.is_timeout());
        let error = error.without_url();
        if connecting {
            let why = if late {
                format!("no answer within {} s", self.patience.connect.as_secs())
            } else {
                innermost(&error)
            };
            let again = if late { Again::Never } else { Again::Reconnect };
            return Failed { error: ModelError::Unreachable { url: self.shown_url.clone(), why }, again };
        }
        self.broken_off(&error, Assembly::default())
    }

    /// A connection that stood and failed.
    fn broken_off(&self, error: &(dyn std::error::Error + 'static), assembly: Assembly) -> Failed {
        let timed_out = error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout)
            || error
                .downcast_ref::<Broke>()
                .is_some_and(|broke| matches!(broke, Broke::Read(error) if error.is_timeout()));
        if timed_out {
            let seconds = self.patience.silence.as_secs();
            return Failed::for_good(ModelError::Stalled { host: self.host.clone(), seconds });
        }
        self.cut(innermost(error), assembly.into_text())
    }

    fn cut(&self, why: String, partial: String) -> Failed {
        let why = self.scrub(&failure::one_line(&why));
        Failed { error: ModelError::Cut { host: self.host.clone(), why, partial }, again: Again::Later(None) }
    }

    fn malformed(&self, why: String) -> Failed {
        let why = self.scrub(&failure::one_line(&why));
        Failed::for_good(ModelError::Malformed { host: self.host.clone(), why })
    }

    fn moved(&self, response: &Response) -> ModelError {
        let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
        let to = target.and_then(|target| self.url.join(target).ok()).map_or("another address".to_owned(), |mut to| {
            to.set_query(None);
            let _ = to.set_username("");
            let _ = to.set_password(None);
            self.scrub(&failure::one_line(to.as_str()))
        });
        ModelError::Moved { url: self.shown_url.clone(), to }
    }

    async fn refused(&self, response: Response, model: &str) -> Failed {
        let status = response.status();
        let asked = failure::retry_after(|name| Some(response.headers().get(name)?.to_str().ok()?.to_owned()));
        let mut body = Vec::new();
        let mut bytes = response.bytes_stream();
        while body.len() < LARGEST_ERROR
            && let Some(Ok(piece)) = bytes.next().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(LARGEST_ERROR);
        self.stated(Stated::from_body(status.as_u16(), &body), model, asked)
    }

    fn stated(&self, mut stated: Stated, model: &str, asked: Option<Duration>) -> Failed {
        stated.message = self.scrub(&stated.message);
        let again = if stated.passes() { Again::Later(asked) } else { Again::Never };
        Failed { error: stated.into_error(&self.host, &self.shown_url, model, &self.remedy), again }
    }

    fn scrub(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }
}

#[async_trait]
impl Provider for Chat {
    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        let unsendable = |message| ModelError::BadRequest { host: "hermes".to_owned(), status: 0, message };
        let body = Bytes::from(wire::body(request, self.dialect).map_err(unsendable)?);
        let mut tries = 1;
        let mut reconnected = false;
        loop {
            let mut shown = false;
            let result = {
                let mut watch = |delta: Delta<'_>| {
                    shown = true;
                    on_delta(delta);
                };
                self.once(&body, request.model, &mut watch).await
            };
            let Failed { error, again } = match result {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            tracing::debug!(%error, tries, shown, "a request to a model failed");
            let wait = match again {
                Again::Reconnect if !reconnected => {
                    reconnected = true;
                    tokio::time::sleep(self.patience.reconnect).await;
                    continue;
                }
                Again::Later(asked) if !shown && tries < TRIES => {
                    failure::wait(tries, asked, self.patience.retry, chance())
                }
                _ => return Err(error),
            };
            tries += 1;
            on_delta(Delta::Notice(&format!("trying again in {}: {}", seconds(wait), in_brief(&error))));
            tokio::time::sleep(wait).await;
        }
    }

    fn is_offline(&self) -> bool {
        false
    }
}

/// What ended the bytes of a reply.
#[derive(Debug, thiserror::Error)]
enum Broke {
    #[error(transparent)]
    Read(reqwest::Error),
    #[error("it is longer than {} MiB", LARGEST_REPLY >> 20)]
    TooLarge,
}

/// Bytes of a reply, up to a bound.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Broke>> + Send + Unpin {
    let read = AtomicUsize::new(0);
    Box::pin(bytes.map(move |piece| {
        let piece = piece.map_err(|error| Broke::Read(error.without_url()))?;
        let before = read.fetch_add(piece.len(), Ordering::Relaxed);
        if before + piece.len() > LARGEST_REPLY { Err(Broke::TooLarge) } else { Ok(piece) }
    }))
}

/// The cause behind the causes: the outer ones only say that a request failed.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    failure::one_line(&error.to_string())
}

/// The cause alone: what to do about it is not yet for the user to do.
fn in_brief(error: &ModelError) -> String {
    match error {
        ModelError::RateLimited { host, message } => format!("{host} limits the rate of requests: {message}"),
        ModelError::Server { host, status, message } => format!("{host} failed (status {status}): {message}"),
        ModelError::Cut { host, why, .. } => format!("the reply of {host} broke off: {why}"),
        other => other.to_string(),
    }
}

fn seconds(wait: Duration) -> String {
    if wait < Duration::from_secs(1) { "a moment".to_owned() } else { format!("{} s", wait.as_secs_f64().ceil()) }
}

/// Between 0 and 1. Without randomness waits are as good, only less spread.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}

/// An id for a call to which the server gave none: unlike any other of the conversation.
fn new_call_id() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let random = getrandom::u64().unwrap_or(0);
    format!("call_{random:016x}{:04x}", MADE.fetch_add(1, Ordering::Relaxed) & 0xffff)
}

#[cfg(test)]
mod tests;
