//! Endpoints over HTTP, whatever their wire format.
//!
//! Each provider has one client, which is created at the first request and reuses its connections. Redirects are off, because
//! the key would be sent along. What was shown of a reply is begun again only by callers that keep trying.

mod events;
mod persistence;
#[cfg(test)]
mod streams;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use jiff::Timestamp;
use reqwest::{
    Client, Method, Response,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use serde_json::Value;
use url::Url;

pub(crate) use self::events::{Event, events};
pub use self::persistence::Persistence;

use crate::{
    ApiMode, Delta, Logins, ModelError, OnDelta, Reply, Route, Waits,
    assembly::{Assemble, Broken, MOST_CALLS, Progress, Unread},
    auth::{self, Authentication, Authorized, ReadKey},
    client,
    failure::{self, Stated, complaint, silence, wait},
    json,
    providers::{self, ProviderRow},
    wire::Body,
};

/// Most bytes of one reply. No model writes as much; a broken server might. Parsed, a reply can take twenty times its size.
const LARGEST_REPLY: usize = 16 << 20;
/// Most bytes of a reply with vectors: numbers for thousands of texts.
const LARGEST_VECTORS: usize = 64 << 20;
/// JSON of more bytes is parsed on a thread of its own, so that Ctrl-C works meanwhile.
const PARSED_AT_ONCE: usize = 64 << 10;
/// After so many events in a row, other tasks have a turn.
const EVENTS_IN_A_ROW: usize = 64;
/// Most bytes that are read of an error.
const LARGEST_ERROR: usize = 64 << 10;
/// A mark that some servers put before their answers.
const BOM: &[u8] = "\u{feff}".as_bytes();
/// Why a reply broke off whose stream ended.
const ENDED: &str = "the connection ended before the reply did";
/// The longest waits for each step of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a connection.
    pub(crate) connect: Duration,
    /// For the next byte.
    pub(crate) silence: Duration,
    /// For what follows a complete reply: counts, and the end.
    pub(crate) rest: Duration,
    /// Before a refused connection is tried once more: a server may be restarting.
    pub(crate) reconnect: Duration,
    /// Before the first retry; doubled for each further one.
    pub(crate) retry: Duration,
    /// How long requests are tried again after the tries that all of them get.
    pub(crate) keep_trying: Duration,
}

impl Patience {
    /// The limits of [`Patience::for_route`], except for those that the caller chooses.
    pub(crate) fn chosen(route: &Route, waits: Waits) -> Self {
        let usual = Self::for_route(route);
        Self { silence: waits.silence.unwrap_or(usual.silence), keep_trying: waits.keep_trying, ..usual }
    }

    /// Limits for an endpoint. A model on this machine may read a long prompt for minutes before its first token, and some
    /// models think for minutes.
    pub(crate) fn for_route(route: &Route) -> Self {
        let thinking = silence::thinking_silence(&route.model.name).unwrap_or(0);
        let local = route.base_url.as_ref().is_some_and(providers::is_loopback);
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(thinking.max(if local { 900 } else { 180 })),
            rest: Duration::from_secs(5),
            reconnect: Duration::from_millis(300),
            retry: Duration::from_secs(2),
            keep_trying: Duration::ZERO,
        }
    }
}

/// Where requests go, and how.
pub(crate) struct Endpoint {
    method: Method,
    url: Url,
    /// The address without its query, which may contain secrets.
    shown_url: String,
    host: String,
    headers: HeaderMap,
    authentication: Arc<dyn Authentication>,
    patience: Patience,
    /// Most bytes of one reply.
    largest: usize,
    client: Mutex<Option<Client>>,
    /// Whether the server has ever answered. The address of one that has not may be wrong.
    was_reached: AtomicBool,
}

/// A failed request, and whether to send it again.
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
    /// The server was reached and then silent for long, so that only patient callers try again.
    IfPatient,
}

impl Failed {
    fn for_good(error: ModelError) -> Self {
        Self { error, again: Again::Never }
    }
}

impl Endpoint {
    /// The endpoint for embeddings beside the one for replies.
    pub(crate) fn for_embeddings(route: &Route, logins: &Logins, patience: Patience) -> Result<Self, ModelError> {
        let endpoint = Self::new(route, logins, patience)?;
        let url = beside(&endpoint.url, "/embeddings");
        Ok(Self { largest: LARGEST_VECTORS, ..endpoint.at(url) })
    }

    /// The list of models beside the endpoint for replies.
    pub(crate) fn for_models(route: &Route, logins: &Logins, patience: Patience) -> Result<Self, ModelError> {
        let endpoint = Self::new(route, logins, patience)?;
        let mut url = beside(&endpoint.url, "/models");
        if route.api_mode == ApiMode::AnthropicMessages {
            // A page has 20 models if nothing is said.
            url.query_pairs_mut().append_pair("limit", "1000");
        }
        Ok(Self { method: Method::GET, ..endpoint.at(url) })
    }

    /// The same endpoint at another address.
    fn at(self, url: Url) -> Self {
        Self { shown_url: shown(&url), url, ..self }
    }

    /// The endpoint of a route that names one. Nothing is sent yet.
    pub(crate) fn new(route: &Route, logins: &Logins, patience: Patience) -> Result<Self, ModelError> {
        let base = route
            .base_url
            .as_ref()
            .ok_or_else(|| ModelError::unsendable("the route names no endpoint; set model.base_url".to_owned()))?;
        let url = address(base, route.api_mode);
        Ok(Self {
            method: Method::POST,
            host: providers::host(base).unwrap_or_default(),
            shown_url: shown(&url),
            url,
            headers: headers(route.api_mode),
            authentication: auth::for_route(route, logins, None)?,
            patience,
            largest: LARGEST_REPLY,
            client: Mutex::new(None),
            was_reached: AtomicBool::new(false),
        })
    }

    /// Reads the key again when the server refuses it.
    pub(crate) fn rereading(mut self, route: &Route, logins: &Logins, read: ReadKey) -> Result<Self, ModelError> {
        self.authentication = auth::for_route(route, logins, Some(read))?;
        Ok(self)
    }

    fn client(&self) -> Result<Client, ModelError> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let client = client::new(&self.url, self.patience.connect, self.patience.silence)
            .map_err(|why| ModelError::Unreachable { url: self.shown_url.clone(), why })?;
        *slot = Some(client.clone());
        Ok(client)
    }

    /// One request and its reply, without a second try.
    async fn once(
        &self,
        body: &Body,
        authorized: &Authorized,
        model: &str,
        assembly: Box<dyn Assemble>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, Failed> {
        let client = self.client().map_err(Failed::for_good)?;
        let request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        let request = request.headers(authorized.headers.clone()).body(body.clone());
        let response = request.send().await.map_err(|error| self.not_sent(error))?;
        let status = response.status();
        self.was_reached.store(true, Ordering::Relaxed);
        if status.is_redirection() {
            return Err(Failed::for_good(self.moved(&response)));
        }
        if !status.is_success() {
            return Err(self.refused(response, model).await);
        }
        let of = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(coding) = of(CONTENT_ENCODING).filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(self.malformed(format!("it is compressed ({coding}), which Hermes did not ask for")));
        }
        let kind = of(CONTENT_TYPE).unwrap_or_default();
        if kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            return self.read_events(bounded(response.bytes_stream(), self.largest), model, assembly, on_delta).await;
        }
        self.read_whole(response, model, assembly, on_delta).await
    }

    async fn read_events<S, E>(
        &self,
        bytes: S,
        model: &str,
        mut assembly: Box<dyn Assemble>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, Failed>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut events = events(bytes);
        // When to stop waiting for further events of a complete reply.
        let mut deadline = None;
        // The words of the newest event, unless it is a part of the reply.
        let mut last_words = None;
        for number in 1_usize.. {
            if number % EVENTS_IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
            let progress = assembly.progress();
            if progress == Progress::Over {
                break;
            }
            let whole = (progress == Progress::Whole).then(|| tokio::time::Instant::now() + self.patience.rest);
            deadline = whole.map(|whole| deadline.unwrap_or(whole));
            let event = match deadline {
                // Only counts can follow, and not every server closes the connection. Pings do not prolong the wait.
                Some(deadline) => match tokio::time::timeout_at(deadline, events.next()).await {
                    Ok(Some(Ok(event))) => event,
                    Ok(_) => break,
                    Err(_) => match events.overdue() {
                        Some(event) => event,
                        None => break,
                    },
                },
                None => match events.next().await {
                    Some(Ok(event)) => event,
                    Some(Err(sse_stream::Error::Body(error))) => {
                        assembly.close(on_delta);
                        return Err(self.broken_off(&*error, assembly.into_text()));
                    }
                    Some(Err(error)) => return Err(self.malformed(error.to_string())),
                    None => break,
                },
            };
            match event {
                Event::Done => {
                    assembly.done();
                    break;
                }
                Event::Error(stated, event) => {
                    let stated = assembly.take(&event, &mut |_| {}).err().unwrap_or(stated);
                    return Err(self.stated(stated, model, None));
                }
                Event::Json(chunk) => {
                    // Some gateways collect the events of a moment in a list.
                    let chunks = match &chunk {
                        Value::Array(chunks) if !chunks.is_empty() => chunks.as_slice(),
                        one => std::slice::from_ref(one),
                    };
                    for chunk in chunks {
                        assembly.take(chunk, on_delta).map_err(|stated| self.stated(stated, model, None))?;
                        last_words = complaint::last_words(chunk);
                    }
                    if assembly.calls() > MOST_CALLS {
                        return Err(self.too_many_calls());
                    }
                }
                Event::Broken(error) => {
                    // Half an event at the very end means that the connection broke.
                    let last = events.next().await.is_none();
                    if last && assembly.progress() != Progress::Whole {
                        return Err(self.cut(ENDED.to_owned(), assembly.into_text()));
                    } else if last {
                        break;
                    }
                    return Err(self.malformed(format!("an event is not valid JSON: {error}")));
                }
            }
        }
        match last_words {
            // A server that ends a stream with a message and no reply says why there is none.
            Some(stated) if assembly.progress() == Progress::Open => Err(self.stated(stated, model, None)),
            _ => self.finish(assembly, model, on_delta),
        }
    }

    /// A reply in one piece, for servers that do not stream; or a stream under another name.
    async fn read_whole(
        &self,
        response: Response,
        model: &str,
        mut assembly: Box<dyn Assemble>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, Failed> {
        let of = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let kind = of(CONTENT_TYPE).unwrap_or("no type").to_owned();
        let mut whole = Vec::new();
        let mut bytes = bounded(response.bytes_stream(), self.largest);
        while let Some(piece) = bytes.next().await {
            match piece {
                Ok(piece) => whole.extend_from_slice(&piece),
                Err(error) => return Err(self.broken_off(&error, String::new())),
            }
        }
        if whole.starts_with(BOM) {
            whole.drain(..BOM.len());
        }
        let start = whole.trim_ascii_start();
        if [b"data:".as_slice(), b"event:", b":"].iter().any(|mark| start.starts_with(mark)) {
            let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(whole))]);
            return self.read_events(bytes, model, assembly, on_delta).await;
        }
        if start.starts_with(b"<") {
            return Err(self.malformed("it is a web page".to_owned()));
        }
        let value = parse(whole).await.map_err(|error| self.malformed(format!("it is not JSON ({kind}): {error}")))?;
        assembly.take_whole(&value, on_delta).map_err(|unread| match unread {
            Unread::Stated(stated) => self.stated(stated, model, None),
            Unread::Lacks(key) => self.malformed(format!("it has no `{key}`")),
        })?;
        self.finish(assembly, model, on_delta)
    }

    fn finish(&self, mut assembly: Box<dyn Assemble>, model: &str, on_delta: OnDelta<'_>) -> Result<Reply, Failed> {
        assembly.close(on_delta);
        if let Some(reason) = assembly.stopped() {
            let message = format!(
                "the provider stopped the reply with the reason `{}`; it is not whole",
                failure::one_line(reason)
            );
            return Err(Failed::for_good(ModelError::Refused {
                host: self.host.clone(),
                message: self.scrub(&message),
            }));
        }
        assembly.finish(model, &mut new_call_id).map_err(|broken| match broken {
            Broken::Cut { partial } => self.cut(ENDED.to_owned(), partial),
            Broken::TooManyCalls => self.too_many_calls(),
        })
    }

    fn too_many_calls(&self) -> Failed {
        Failed::for_good(ModelError::TooManyCalls { host: self.host.clone(), most: MOST_CALLS })
    }

    fn not_sent(&self, error: reqwest::Error) -> Failed {
        let (connecting, late) = (error.is_connect(), error.is_timeout());
        let error = error.without_url();
        if connecting {
            let url = self.shown_url.clone();
            let why = client::innermost(&error);
            return match (late, client::unknown_name(&error)) {
                (true, _) => {
                    let why = format!("no answer within {} s", self.patience.connect.as_secs());
                    Failed::for_good(ModelError::Unreachable { url, why })
                }
                (false, Some(why)) => Failed { error: ModelError::UnknownHost { url, why }, again: Again::Reconnect },
                (false, None) => Failed { error: ModelError::Unreachable { url, why }, again: Again::Reconnect },
            };
        }
        self.broken_off(&error, String::new())
    }

    /// An open connection failed.
    fn broken_off(&self, error: &(dyn std::error::Error + 'static), partial: String) -> Failed {
        let timed_out = error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout)
            || error
                .downcast_ref::<Broke>()
                .is_some_and(|broke| matches!(broke, Broke::Read(error) if error.is_timeout()));
        if timed_out {
            let seconds = self.patience.silence.as_secs();
            return Failed { error: ModelError::Stalled { host: self.host.clone(), seconds }, again: Again::IfPatient };
        }
        if let Some(too_large @ Broke::TooLarge(_)) = error.downcast_ref::<Broke>() {
            let error = ModelError::Cut { host: self.host.clone(), why: too_large.to_string(), partial };
            return Failed::for_good(error);
        }
        let why = if is_end(error) { "the connection was closed".to_owned() } else { client::innermost(error) };
        self.cut(why, partial)
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
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let asked = wait::retry_after(header, Timestamp::now());
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
        let asked = asked.or_else(|| stated.named_wait());
        let again = if stated.passes() { Again::Later(asked) } else { Again::Never };
        let mut error = stated.into_error(&self.host, &self.shown_url, model, &self.authentication.remedy());
        if let ModelError::RateLimited { wait, .. } = &mut error {
            *wait = asked;
        }
        Failed { error, again }
    }

    fn scrub(&self, text: &str) -> String {
        self.authentication.scrub(text)
    }

    /// Sends a body and reads the reply, several times where that may help. `assembly` makes one for each try.
    pub(crate) async fn complete(
        &self,
        body: Body,
        model: &str,
        assembly: &(dyn Fn() -> Box<dyn Assemble> + Send + Sync),
        on_delta: OnDelta<'_>,
        persistence: Persistence,
    ) -> Result<Reply, ModelError> {
        let most = persistence.tries();
        let keep_trying = if persistence == Persistence::Full { self.patience.keep_trying } else { Duration::ZERO };
        let mut failures = 0;
        let begun = Instant::now();
        let mut reconnected = false;
        let mut renewed = false;
        loop {
            let authorized = self.authentication.authorize().await?;
            let mut shown = false;
            let result = {
                let mut watch = |delta: Delta<'_>| {
                    // The user does not see the beginning of a call as output, so it does not prevent a retry.
                    shown |= !matches!(delta, Delta::Call(_));
                    on_delta(delta);
                };
                self.once(&body, &authorized, model, assembly(), &mut watch).await
            };
            let Failed { error, again } = match result {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            tracing::debug!(%error, shown, "a request to a model failed");
            if matches!(error, ModelError::Auth { status: 401, .. }) && !shown && !renewed {
                renewed = true;
                if self.authentication.refused(&authorized).await? {
                    continue;
                }
            }
            if !shown && let Some(line) = self.authentication.rest(&authorized, &error) {
                on_delta(Delta::Notice(&format!("{error}; {line}")));
                continue;
            }
            let wait = match again {
                Again::Reconnect if !reconnected && most > 1 => {
                    reconnected = true;
                    tokio::time::sleep(self.patience.reconnect).await;
                    continue;
                }
                // What the server asks for counts, else our own delay. Nobody waits for hours.
                Again::Later(Some(asked)) if asked > persistence.longest_wait() => return Err(error),
                again => {
                    let asked = match again {
                        Again::Later(asked) => asked,
                        // The connection was lost; a server that never answered may not be there at all.
                        Again::Reconnect if self.was_reached.load(Ordering::Relaxed) => None,
                        Again::IfPatient => None,
                        Again::Reconnect | Again::Never => return Err(error),
                    };
                    failures += 1;
                    let own = wait::delay(failures, self.patience.retry);
                    // What the user has seen of a reply is begun again only by those who keep trying.
                    if failures < most && !shown && matches!(again, Again::Later(_)) {
                        asked.unwrap_or(own)
                    } else {
                        // A server that asks for next to nothing, again and again, does not know better than we do.
                        let wait = asked.map_or(own, |asked| asked.max(own));
                        if most == 1 || begun.elapsed() + wait > keep_trying {
                            return Err(error);
                        }
                        wait
                    }
                }
            };
            let left = keep_trying.saturating_sub(begun.elapsed() + wait).as_secs();
            let left =
                if left > 0 { format!(" (and for {left} s more if it fails; Ctrl-C stops)") } else { String::new() };
            if shown {
                on_delta(Delta::Again);
            }
            on_delta(Delta::Notice(&format!("trying again in {}{left}: {error}", seconds(wait))));
            tokio::time::sleep(wait).await;
        }
    }
}

/// The endpoint of a wire format below a base address, as the vendors' libraries take it. Whole addresses work too.
pub(crate) fn address(base: &Url, mode: ApiMode) -> Url {
    let row = ProviderRow::by_host(base);
    let path = mode.format().path(base.path().trim_end_matches('/'), row);
    let mut url = base.clone();
    url.set_path(&path);
    for (name, value) in row.into_iter().flat_map(|row| row.query(mode)) {
        // A value that the user gives counts.
        if !base.query_pairs().any(|(given, _)| given == name) {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    url
}

/// The address of another endpoint of the API beside the one for replies. A whole address works too.
fn beside(replies: &Url, endpoint: &str) -> Url {
    // The version of Anthropic's format is part of its endpoint, and stays.
    const REPLIES: [&str; 3] = ["/chat/completions", "/responses", "/messages"];
    let base = REPLIES.iter().fold(replies.path(), |path, end| path.trim_end_matches(end));
    let path = format!("{}{endpoint}", base.strip_suffix(endpoint).unwrap_or(base));
    let mut url = replies.clone();
    url.set_path(&path);
    url
}

/// An address without its query, which may contain secrets.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.to_string()
}

/// The headers that every request of a wire format has.
fn headers(mode: ApiMode) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    for (name, value) in mode.format().headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

/// What ended the bytes of a reply.
#[derive(Debug, thiserror::Error)]
enum Broke {
    #[error(transparent)]
    Read(reqwest::Error),
    #[error("it is longer than {} MiB", .0 >> 20)]
    TooLarge(usize),
}

/// Whether the server closed the connection in the middle of a reply. The library's own text describes its parser.
fn is_end(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
}

/// Parses JSON as servers write it, on a thread of its own if it is long.
async fn parse(text: Vec<u8>) -> Result<Value, serde_json::Error> {
    let text = String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if text.len() <= PARSED_AT_ONCE {
        return json::parse(text.as_bytes());
    }
    let parsed = tokio::task::spawn_blocking(move || json::parse(text.as_bytes())).await;
    parsed.unwrap_or_else(|ended| Err(serde::de::Error::custom(ended)))
}

/// Bytes of a reply, up to a bound.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Bytes, Broke>> + Send + Unpin {
    let read = AtomicUsize::new(0);
    Box::pin(bytes.map(move |piece| {
        let piece = piece.map_err(|error| Broke::Read(error.without_url()))?;
        let before = read.fetch_add(piece.len(), Ordering::Relaxed);
        if before + piece.len() > most { Err(Broke::TooLarge(most)) } else { Ok(piece) }
    }))
}

fn seconds(wait: Duration) -> String {
    if wait < Duration::from_secs(1) { "a moment".to_owned() } else { format!("{} s", wait.as_secs_f64().ceil()) }
}

/// An id for a call without one: unique in the conversation.
fn new_call_id() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let random = getrandom::u64().unwrap_or(0);
    format!("call_{random:016x}{:04x}", MADE.fetch_add(1, Ordering::Relaxed) & 0xffff)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_for_calls_without_one_differ() {
        let ids: std::collections::HashSet<String> = (0..1000).map(|_| new_call_id()).collect();
        assert_eq!(ids.len(), 1000);
    }

    #[test]
    fn other_endpoints_are_beside_replies() {
        for (base, sent) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/embeddings"),
            ("http://127.0.0.1:8000/?x=1", "http://127.0.0.1:8000/embeddings?x=1"),
            ("https://proxy.test/v1/embeddings", "https://proxy.test/v1/embeddings"),
            ("https://proxy.test/v1/chat/completions", "https://proxy.test/v1/embeddings"),
        ] {
            let replies = address(&Url::parse(base).unwrap(), ApiMode::ChatCompletions);
            assert_eq!(beside(&replies, "/embeddings").to_string(), sent);
        }
        let replies = address(&Url::parse("https://api.openai.com/v1").unwrap(), ApiMode::Responses);
        assert_eq!(beside(&replies, "/embeddings").to_string(), "https://api.openai.com/v1/embeddings");
        for base in ["https://api.anthropic.com", "https://api.anthropic.com/v1/messages"] {
            let replies = address(&Url::parse(base).unwrap(), ApiMode::AnthropicMessages);
            assert_eq!(beside(&replies, "/models").to_string(), "https://api.anthropic.com/v1/models");
        }
    }

    #[test]
    fn a_base_is_what_the_vendors_library_takes() {
        let at = |base: &str, mode| address(&Url::parse(base).unwrap(), mode).to_string();
        for (base, sent) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            ("https://proxy.test/anthropic", "https://proxy.test/anthropic/v1/messages"),
            ("https://proxy.test/anthropic/v1/messages", "https://proxy.test/anthropic/v1/messages"),
            ("http://127.0.0.1:8000/?x=1", "http://127.0.0.1:8000/v1/messages?x=1"),
            ("https://proxy.test/Anthropic/V1", "https://proxy.test/Anthropic/v1/messages"),
            (
                "https://me.services.ai.azure.com/anthropic?api-version=2026-01-01",
                "https://me.services.ai.azure.com/anthropic/v1/messages?api-version=2026-01-01",
            ),
        ] {
            assert_eq!(at(base, ApiMode::AnthropicMessages), sent);
        }
        for (base, sent) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/chat/completions"),
            ("https://api.anthropic.com/v1", "https://api.anthropic.com/v1/chat/completions"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/chat/completions"),
        ] {
            assert_eq!(at(base, ApiMode::ChatCompletions), sent);
        }
        assert_eq!(at("https://api.openai.com/v1/", ApiMode::Responses), "https://api.openai.com/v1/responses");
    }
}
