//! A scripted model server on the loopback interface that records all requests.
//!
//! It answers chat completions at `/v1/chat/completions`, Anthropic's messages at `/v1/messages` and the Responses API at
//! `/v1/responses`, from one script, and may list models at `/v1/models`.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::billing::{Bill, Cache};
use crate::reply::{Completion, Counters, Fault, Kind, Reply, refusal};
use crate::request::Request;
use crate::wire::{Wire, is_auxiliary};

/// How long a test waits for an expected request; far longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(600);

/// An address without a listener.
pub fn dead_endpoint() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback can be bound");
    let address = listener.local_addr().expect("a bound socket has an address");
    format!("http://{address}/v1")
}

type Script = Box<dyn Fn(&Value, usize) -> Reply + Send + Sync>;
type Check = Box<dyn Fn(Wire, &Value) -> Result<(), String> + Send>;

struct Shared {
    script: Script,
    check: Mutex<Option<Check>>,
    cache: Mutex<Option<Cache>>,
    models: Mutex<Option<Value>>,
    /// Whether it shows its models to clients without a key.
    keyless: AtomicBool,
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
struct Log {
    requests: Vec<Request>,
    /// Number of replies sent to the last byte.
    finished: usize,
    /// Number of faults that happened. The client has received the frames before them.
    faults: usize,
    /// Number of access tokens that were issued.
    tokens: usize,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        // If a script panicked, its test has failed already.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason to refuse a request, if any.
    fn check(&self, wire: Wire, body: &Value) -> Result<(), String> {
        let check = self.check.lock().unwrap_or_else(PoisonError::into_inner);
        check.as_ref().map_or(Ok(()), |check| check(wire, body))
    }

    fn cache(&self) -> MutexGuard<'_, Option<Cache>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn models(&self) -> MutexGuard<'_, Option<Value>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log());
        self.changed.notify_all();
    }
}

/// The server; stops when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Replies from a closure. It receives the body of the request and its number, counted from 0 over all requests.
    pub fn answering(script: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback can be bound");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            check: Mutex::default(),
            cache: Mutex::default(),
            models: Mutex::default(),
            keyless: AtomicBool::new(false),
            log: Mutex::default(),
            changed: Condvar::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(listener, state, stopped));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Replies from a list, one per request of the conversation. Auxiliary requests get a short text. After the end of the list the
    /// server answers with status 500.
    pub fn scripted(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let next = Mutex::new(replies.into_iter());
        Self::answering(move |body, _| {
            if is_auxiliary(body) {
                return Reply::text("The user and the assistant talked; nothing is open.");
            }
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            next.next().unwrap_or_else(|| Reply::error(500, "the script has no more replies"))
        })
    }

    /// Refuses, with status 400 and the reason, each request in which the check finds a fault. Such a request takes no reply of
    /// the script.
    pub fn checking(self, check: impl Fn(Wire, &Value) -> Result<(), String> + Send + 'static) -> Self {
        *self.shared.check.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(check));
        self
    }

    /// Adds a cache: from now on each reply is billed.
    pub fn with_cache(self, cache: impl Into<Cache>) -> Self {
        *self.shared.cache() = Some(cache.into());
        self
    }

    /// Shows its models to clients without a key too, as servers on the user's machine do.
    pub fn without_key(self) -> Self {
        self.shared.keyless.store(true, Ordering::Relaxed);
        self
    }

    /// Adds a list of models, which it shows to clients with a key.
    pub fn with_models(self, models: Value) -> Self {
        *self.shared.models() = Some(models);
        self
    }

    /// Advances the clock of its cache.
    pub fn advance(&self, time: Duration) {
        if let Some(cache) = self.shared.cache().as_mut() {
            cache.advance(time);
        }
    }

    /// For `model.base_url` of chat completions and of the Responses API.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// For `model.base_url` with Anthropic's messages, in the form of the vendor's SDK, which appends `/v1/messages`.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For `token_url` of a login. It issues the access tokens `access-1`, `access-2` and so on, each after a while, and
    /// refuses a refresh token that it has replaced.
    pub fn token_url(&self) -> String {
        format!("http://{}/token", self.address)
    }

    /// How many access tokens were issued.
    pub fn tokens(&self) -> usize {
        self.shared.log().tokens
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// The requests of the conversation, which are those with tools.
    pub fn turns(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !request.is_auxiliary()).collect()
    }

    /// The newest request of the conversation.
    pub fn last_turn(&self) -> Request {
        self.turns().pop().expect("no request of the conversation has arrived")
    }

    /// Waits until so many requests have arrived.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait("requests", count, |log| log.requests.len());
    }

    /// Waits until so many replies were sent completely.
    pub fn wait_for_finished(&self, count: usize) {
        self.wait("finished replies", count, |log| log.finished);
    }

    /// Waits until so many replies have reached their scripted fault.
    pub fn wait_for_faults(&self, count: usize) {
        self.wait("faults", count, |log| log.faults);
    }

    fn wait(&self, what: &str, wanted: usize, count: impl Fn(&Log) -> usize) {
        let deadline = Instant::now() + PATIENCE;
        let mut log = self.shared.log();
        while count(&log) < wanted {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {wanted} {what}; there are {}", count(&log));
            log = self.shared.changed.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in this thread came from the script; the client saw a broken connection.
            drop(thread.join());
        }
    }
}

fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the socket is non-blocking");
        let router = axum::Router::new().fallback(answer).with_state(shared);
        tokio::select! {
            ended = async { axum::serve(listener, router).await } => ended.expect("the server runs"),
            _ = stopped => {}
        }
    });
    // Do not wait for hanging replies.
    runtime.shutdown_background();
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    raw: Bytes,
) -> Response {
    if uri.path() == "/token" {
        return issue(&shared, &raw).await;
    }
    if method == Method::GET && uri.path() == "/v1/models" && shared.models().is_some() {
        return list(&shared, &headers);
    }
    let Some(wire) = Wire::at(uri.path()) else {
        let refused = refusal(Wire::ChatCompletions, 404, &format!("{} is not served", uri.path()));
        return whole(&Reply::json(404, &refused), None);
    };
    let Ok(body) = serde_json::from_slice::<Value>(&raw) else {
        return whole(&Reply::json(400, &refusal(wire, 400, "the body is not JSON")), None);
    };
    record(wire, &raw);
    let mut request = Request { wire, body: body.clone(), raw, headers: texts(&headers), bill: None };
    let mut number = 0;
    shared.change(|log| {
        number = log.requests.len();
        log.requests.push(request.clone());
    });
    if let Err(reason) = shared.check(wire, &body) {
        return whole(&Reply::json(400, &refusal(wire, 400, &reason)), Some(shared));
    }
    let reply = (shared.script)(&body, number);
    match &reply.kind {
        Kind::Completion(completion) => {
            let usage = bill(&shared, &mut request, completion);
            shared.change(|log| log.requests[number].bill = request.bill);
            if body["stream"] == true {
                let events = completion.events(wire, &body, &usage);
                return response(&reply, Body::from_stream(streamed(events, completion, shared)));
            }
            if !completion.pause.is_zero() {
                tokio::time::sleep(completion.pause).await;
            }
            match completion.fault {
                Some((_, Fault::Hang)) => {
                    shared.change(|log| log.faults += 1);
                    std::future::pending::<()>().await;
                }
                Some((_, Fault::Disconnect)) => {
                    shared.change(|log| log.faults += 1);
                    let cut = stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut as scripted")) });
                    return response(&reply, Body::from_stream(cut));
                }
                None => {}
            }
            whole(&Reply::json(200, &completion.whole(wire, &body, &usage)), Some(shared))
        }
        Kind::Error { status, message } => {
            let refused = Reply::json(*status, &refusal(wire, *status, message));
            whole(&refused.with_headers_of(&reply), Some(shared))
        }
        Kind::Raw { .. } => whole(&reply, Some(shared)),
    }
}

/// The list of models, for clients that may see it.
fn list(shared: &Shared, headers: &HeaderMap) -> Response {
    let has_key = ["authorization", "x-api-key"].iter().any(|name| headers.contains_key(*name));
    let models = shared.models().clone().unwrap_or_default();
    let reply = match has_key || shared.keyless.load(Ordering::Relaxed) {
        true => Reply::json(200, &models),
        false => Reply::json(401, &refusal(Wire::ChatCompletions, 401, "no key")),
    };
    whole(&reply, None)
}

/// Issues an access token for the refresh token that was issued last; the first one is `refresh-0`.
async fn issue(shared: &Shared, form: &[u8]) -> Response {
    // Any other process that does not wait asks for a token of its own meanwhile.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut issued = shared.log().tokens;
    let expected = format!("refresh_token=refresh-{issued}&");
    if !String::from_utf8_lossy(form).contains(&expected) {
        return whole(&Reply::json(400, &json!({"error": "invalid_grant"})), None);
    }
    issued += 1;
    shared.change(|log| log.tokens = issued);
    let tokens = json!({"access_token": format!("access-{issued}"), "refresh_token": format!("refresh-{issued}"),
        "token_type": "Bearer", "expires_in": 3_600});
    whole(&Reply::json(200, &tokens), None)
}

/// Writes a body into the folder that `cargo xtask sdk-check` names, where it checks the bodies of all tests that it runs.
fn record(wire: Wire, body: &[u8]) {
    static RECORDED: AtomicUsize = AtomicUsize::new(0);
    let Some(folder) = std::env::var_os("HERMES_RECORD_REQUESTS") else { return };
    let number = RECORDED.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number:04}.{}.json", std::process::id(), wire.name());
    std::fs::write(Path::new(&folder).join(name), body).expect("the folder for recorded requests can be written");
}

/// Bills the request, and returns the usage to report. A script's own usage takes precedence.
fn bill(shared: &Shared, request: &mut Request, completion: &Completion) -> Value {
    let mut cache = shared.cache();
    let mut counted = Bill { prompt: completion.prompt_tokens(request.raw.len()), ..Bill::default() };
    // Chat completions report caches only if there is something to report; the others always do.
    let mut reported = request.wire != Wire::ChatCompletions;
    if let Some(cache) = cache.as_mut() {
        let bill = cache.bill(request);
        request.bill = Some(bill);
        if !completion.has_usage() {
            counted = bill;
            reported |= cache.reports();
        }
    }
    match completion.counters {
        Counters::OfTheServer => {}
        Counters::Missing => (counted.read, counted.written, reported) = (0, 0, false),
        Counters::Fixed { read, written } => (counted.read, counted.written, reported) = (read, written, true),
    }
    match request.wire {
        Wire::ChatCompletions => counted.chat_usage(completion.tokens(), reported),
        Wire::AnthropicMessages => counted.anthropic_usage(completion.tokens(), reported),
        Wire::Responses => counted.responses_usage(completion.tokens(), reported),
    }
}

/// Sends a reply in one piece. Without `shared` it does not belong to the script and is not counted.
fn whole(reply: &Reply, shared: Option<Arc<Shared>>) -> Response {
    let Kind::Raw { body, .. } = &reply.kind else { unreachable!("only called with raw replies") };
    if let Some(shared) = shared {
        shared.change(|log| log.finished += 1);
    }
    response(reply, Body::from(body.clone()))
}

fn streamed(
    frames: Vec<String>,
    completion: &Completion,
    shared: Arc<Shared>,
) -> impl stream::Stream<Item = std::io::Result<String>> + Send + use<> {
    let (pause, fault) = (completion.pause, completion.fault);
    stream::iter(0..=frames.len()).then(move |number| {
        let frame = frames.get(number).cloned();
        let shared = Arc::clone(&shared);
        async move {
            if let Some((after, fault)) = fault
                && number == after
            {
                // Let the earlier frames reach the client before the fault.
                tokio::time::sleep(Duration::from_millis(5)).await;
                shared.change(|log| log.faults += 1);
                match fault {
                    Fault::Hang => std::future::pending().await,
                    Fault::Disconnect => return Err(std::io::Error::other("cut as scripted")),
                }
            }
            match frame {
                Some(frame) => {
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    Ok(frame)
                }
                None => {
                    shared.change(|log| log.finished += 1);
                    Ok(String::new())
                }
            }
        }
    })
}

fn response(reply: &Reply, body: Body) -> Response {
    let (status, content_type) = match &reply.kind {
        Kind::Completion(_) => (200, "text/event-stream"),
        Kind::Error { status, .. } => (*status, "application/json"),
        Kind::Raw { status, content_type, .. } => (*status, *content_type),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("a scripted status is a status");
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in reply.headers() {
        let name = HeaderName::try_from(name).expect("a scripted header has a valid name");
        response.headers_mut().insert(name, HeaderValue::from_str(value).expect("and a valid value"));
    }
    response
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

#[cfg(test)]
mod tests;
