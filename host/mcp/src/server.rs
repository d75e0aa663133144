//! One server in one session, which may share its connection with others. A server whose list of tools is known starts at its first call.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_diagnostic::Diagnose as _;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, timeout};

use crate::connection::{Connection, Request};
use crate::content::Answer;
use crate::definition::{Endpoint, ServerDefinition};
use crate::error::{Cause, McpError};
use crate::front::Front;
use crate::handler::Handler;
use crate::kept::KeptListings;
use crate::limits;
use crate::listing::Listing;
use crate::said::Said;
use crate::shared::{self, SharedFront};

/// A call waits out a cooldown that ends within this time.
const SHORT_REST: Duration = Duration::from_secs(5);
/// How long to wait for further change notices before the list is read again.
const SETTLE: Duration = Duration::from_millis(300);
/// After this many unanswered calls in a row, the server is ended.
const PATIENT_CALLS: u32 = 2;

/// At most this many servers of a process start at once, so that the machine stays usable. A server that a call waits for is not counted.
static STARTS: Semaphore = Semaphore::const_new(4);

/// A server of a session. It connects in the background, or at its first call if its list was kept lately. Dropping it ends the server.
pub struct Server(Arc<Inner>);

struct Inner {
    definition: Arc<ServerDefinition>,
    front: Arc<dyn Front>,
    kept: KeptListings,
    phase: watch::Sender<Phase>,
    /// Failures in a row, without an answer between them.
    failures: AtomicU32,
    /// Calls without an answer in a row.
    unanswered: AtomicU32,
    /// The list that the session uses.
    used: Mutex<Option<Arc<Listing>>>,
    /// The list that the user was told of.
    told: Mutex<Option<Arc<Listing>>>,
    /// What the user was told of the sandbox.
    denials: Mutex<HashSet<String>>,
}

#[derive(Clone)]
enum Phase {
    /// It was not started: its kept list is used.
    Idle(Arc<Listing>),
    Connecting,
    Ready {
        connection: Arc<Connection>,
        listing: Arc<Listing>,
    },
    Failed {
        error: McpError,
        since: Instant,
    },
    Closed,
}

impl Phase {
    fn has(&self, own: &Arc<Connection>) -> bool {
        matches!(self, Self::Ready { connection, .. } if Arc::ptr_eq(connection, own))
    }
}

/// What a session finds when it asks for the tools of a server.
#[derive(Debug, Clone)]
pub enum Found {
    /// The server has just listed them.
    Live(Arc<Listing>),
    /// The server has not answered, so these are the tools of the last time; with the error, if it has failed.
    Kept(Arc<Listing>, Option<McpError>),
    /// There are none.
    Missing(McpError),
}

/// How a server is at a moment.
#[derive(Debug, Clone)]
pub enum Condition {
    /// It starts at its first call. Its list was kept by an earlier session.
    Idle(Arc<Listing>),
    /// It has not answered yet.
    Connecting,
    /// It is connected, and has listed its tools.
    Ready(Arc<Listing>),
    /// It cannot be used.
    Failed(McpError),
    /// It was ended.
    Closed,
}

impl Server {
    /// Starts to connect, unless its list was kept lately.
    pub fn start(definition: ServerDefinition, front: Arc<dyn Front>, kept: KeptListings) -> Self {
        let inner = Arc::new(Inner {
            definition: Arc::new(definition),
            front,
            kept,
            phase: watch::Sender::new(Phase::Connecting),
            failures: AtomicU32::new(0),
            unanswered: AtomicU32::new(0),
            used: Mutex::default(),
            told: Mutex::default(),
            denials: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&inner).begin());
        Self(inner)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.definition.name
    }

    /// How it was configured.
    pub fn definition(&self) -> &ServerDefinition {
        &self.0.definition
    }

    /// How it is now.
    pub fn condition(&self) -> Condition {
        match self.0.now() {
            Phase::Idle(listing) => Condition::Idle(listing),
            Phase::Connecting => Condition::Connecting,
            Phase::Ready { listing, .. } => Condition::Ready(listing),
            Phase::Failed { error, .. } => Condition::Failed(error),
            Phase::Closed => Condition::Closed,
        }
    }

    /// The tools for a session. Waits for the server until this moment, and longer where no earlier list of it is kept. From now on,
    /// a notice tells the user when the tools change.
    pub async fn find(&self, until: Instant) -> Found {
        let (kept, definition) = (self.0.kept.clone(), Arc::clone(&self.0.definition));
        let was_waited_for = {
            let (kept, definition) = (kept.clone(), Arc::clone(&definition));
            tokio::task::spawn_blocking(move || kept.was_waited_for(&definition)).await.unwrap_or_default()
        };
        // A server that never answers costs no session a wait again.
        let (until, patient) = match was_waited_for {
            true => (Instant::now(), Instant::now()),
            false => (until, Instant::now() + limits::PATIENCE),
        };
        let failure = match self.settled(until).await {
            Ok(listing) => return Found::Live(listing),
            Err(failure) => failure,
        };
        if let Phase::Idle(listing) = self.0.now() {
            self.0.use_listing(&listing);
            return Found::Kept(listing, None);
        }
        let kept = tokio::task::spawn_blocking(move || kept.read(&definition)).await.ok().flatten();
        if let Some(listing) = kept.map(Arc::new) {
            self.0.use_listing(&listing);
            return Found::Kept(listing, failure);
        }
        match self.settled(patient.max(until)).await {
            Ok(listing) => Found::Live(listing),
            Err(failure) => {
                let slow = Cause::Slow { after: limits::PATIENCE };
                Found::Missing(failure.unwrap_or_else(|| self.0.error(slow)))
            }
        }
    }

    /// The tools, once the server has given them; else why it failed, if it did so until this moment.
    async fn settled(&self, until: Instant) -> Result<Arc<Listing>, Option<McpError>> {
        let mut phases = self.0.phase.subscribe();
        let settled = phases.wait_for(|phase| !matches!(phase, Phase::Connecting));
        // Without an answer in time, the phase is still the same.
        let _ = tokio::time::timeout_at(until, settled).await;
        match self.0.now() {
            Phase::Ready { listing, .. } => {
                self.0.use_listing(&listing);
                Ok(listing)
            }
            Phase::Failed { error, .. } => Err(Some(error)),
            Phase::Idle(_) | Phase::Connecting | Phase::Closed => Err(None),
        }
    }

    /// Carries out a request. Connects again if the connection has ended.
    ///
    /// # Errors
    ///
    /// When the server cannot be used, or answers with an error.
    pub async fn call(&self, request: Request) -> Result<Answer, McpError> {
        let connection = self.0.connection().await?;
        let answer = connection.carry_out(&request).await;
        let answer = self.0.judge(&connection, answer).await;
        self.0.explain(answer)
    }

    /// Whether it is connecting, has no kept list, and was not waited for in vain before.
    pub async fn is_worth_waiting(&self) -> bool {
        let (kept, definition) = (self.0.kept.clone(), Arc::clone(&self.0.definition));
        let is_new = move || !kept.was_waited_for(&definition) && kept.read(&definition).is_none();
        matches!(self.0.now(), Phase::Connecting) && tokio::task::spawn_blocking(is_new).await.unwrap_or(false)
    }

    /// Waits until this moment for the server's list, which is then kept. A list that does not come is not waited for again.
    pub async fn keep_list(&self, until: Instant) -> bool {
        let has_come = self.settled(until).await.is_ok();
        if !has_come {
            let (kept, definition) = (self.0.kept.clone(), Arc::clone(&self.0.definition));
            // Without the mark, the next session waits again.
            let _ = tokio::task::spawn_blocking(move || kept.mark_waited_for(&definition)).await;
        }
        has_come
    }

    /// Ends the server with everything that it started.
    pub async fn close(&self) {
        if let Phase::Ready { connection, .. } = self.0.phase.send_replace(Phase::Closed) {
            // Another session may use it. The last one that drops it ends the server.
            if !self.0.definition.is_shared || Arc::strong_count(&connection) == 1 {
                connection.close().await;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dropping the connection ends the program.
        self.0.phase.send_replace(Phase::Closed);
    }
}

impl Inner {
    fn now(&self) -> Phase {
        self.phase.borrow().clone()
    }

    fn error(&self, cause: Cause) -> McpError {
        McpError { server: self.definition.name.clone(), cause }
    }

    /// Connects, unless a list was kept lately.
    async fn begin(self: Arc<Self>) {
        let (kept, definition) = (self.kept.clone(), Arc::clone(&self.definition));
        let fresh = tokio::task::spawn_blocking(move || kept.read_fresh(&definition)).await.ok().flatten();
        if let Some(listing) = fresh {
            self.phase.send_if_modified(|phase| {
                let is_first = matches!(phase, Phase::Connecting);
                if is_first {
                    *phase = Phase::Idle(Arc::new(listing));
                }
                is_first
            });
            return;
        }
        let permit = tokio::select! {
            permit = STARTS.acquire() => permit,
            () = self.session_end() => return,
        };
        self.connect(permit.ok()).await;
    }

    /// Connects once, and watches the connection until it ends. `permit` is given back when the server has answered.
    async fn connect(self: Arc<Self>, permit: Option<SemaphorePermit<'static>>) {
        let changed = Arc::new(Notify::new());
        let is_shared = self.definition.is_shared;
        let front = if is_shared { Arc::new(SharedFront(Arc::clone(&self.front))) } else { Arc::clone(&self.front) };
        let handler = || Handler::new(&self.definition, Arc::clone(&front), Arc::clone(&changed));
        let (kept, definition) = (self.kept.clone(), Arc::clone(&self.definition));
        let is_later = move || kept.read(&definition).is_some_and(|listing| listing.is_later);
        let is_later = tokio::task::spawn_blocking(is_later).await.unwrap_or_default();
        let said = Said::default();
        let limit = self.definition.connect_timeout;
        let opened = async {
            let connection = Connection::open(&self.definition, handler, &said, is_later).await?;
            let listing = connection.list().await?;
            Ok((Arc::new(connection), Arc::new(listing)))
        };
        let opened = async {
            match is_shared {
                true => shared::opened(&self.definition, front.roots(), opened).await,
                false => opened.await,
            }
        };
        let opened = tokio::select! {
            opened = timeout(limit, opened) => opened,
            () = self.session_end() => return,
        };
        drop(permit);
        let (connection, listing) = match opened.unwrap_or_else(|_| Err(unconnected(limit, &said))) {
            Ok(opened) => opened,
            Err(cause) => {
                self.keep_words(said).await;
                return self.fail(cause);
            }
        };
        self.learn(&listing).await;
        let ready = Phase::Ready { connection: Arc::clone(&connection), listing };
        let is_open = self.phase.send_if_modified(|phase| {
            let is_open = !matches!(phase, Phase::Closed);
            if is_open {
                *phase = ready;
            }
            is_open
        });
        if is_open {
            let flow = connection.flow();
            let watched = Arc::downgrade(&connection);
            drop(connection);
            loop {
                tokio::select! {
                    cause = flow.end() => {
                        self.keep_words(said).await;
                        return self.fail(cause);
                    }
                    () = self.session_end() => return,
                    () = changed.notified() => {}
                }
                tokio::time::sleep(SETTLE).await;
                let Some(connection) = watched.upgrade() else { continue };
                match timeout(limit, connection.list()).await {
                    Ok(Ok(listing)) => self.renew(Arc::new(listing)).await,
                    Ok(Err(cause)) => {
                        tracing::warn!(server = self.definition.name, %cause, "its new list cannot be read")
                    }
                    Err(_) => tracing::warn!(server = self.definition.name, "its new list did not come in time"),
                }
            }
        }
    }

    /// Waits until the session ends.
    async fn session_end(&self) {
        self.until(|phase| matches!(phase, Phase::Closed)).await;
    }

    /// Replaces the list of the current connection.
    async fn renew(&self, newer: Arc<Listing>) {
        self.learn(&newer).await;
        self.phase.send_if_modified(|phase| match phase {
            Phase::Ready { listing, .. } => {
                *listing = newer;
                true
            }
            _ => false,
        });
    }

    /// Keeps a list for the next session, and tells the user if this session uses another one.
    async fn learn(&self, listing: &Arc<Listing>) {
        let (kept, definition, verified) = (self.kept.clone(), Arc::clone(&self.definition), Arc::clone(listing));
        let written = tokio::task::spawn_blocking(move || kept.write(&definition, &verified)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(server = self.definition.name, %error, "its list of tools cannot be kept");
        }
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(change) = used.and_then(|used| used.changes(listing)) else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() != Some(listing) {
            let name = &self.definition.name;
            self.front.notice(format!(
                "the MCP server `{name}` offers other tools now ({change}); this session keeps those it began with, and new \
                 sessions get the new ones"
            ));
            *told = Some(Arc::clone(listing));
        }
    }

    /// Keeps what the program wrote before it failed.
    async fn keep_words(&self, said: Said) {
        let (kept, name) = (self.kept.clone(), self.definition.name.clone());
        let written = tokio::task::spawn_blocking(move || kept.write_words(&name, &said)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(server = self.definition.name, %error, "what it wrote cannot be kept");
        }
    }

    fn use_listing(&self, listing: &Arc<Listing>) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(listing));
    }

    /// Records a failure of the current connection. If the session uses the server's tools, the user gets one line.
    fn fail(&self, cause: Cause) {
        let error = self.error(cause);
        let failed = Phase::Failed { error: error.clone(), since: Instant::now() };
        let is_open = self.phase.send_if_modified(|phase| {
            let is_open = matches!(phase, Phase::Connecting | Phase::Ready { .. });
            if is_open {
                *phase = failed;
            }
            is_open
        });
        if !is_open {
            return;
        }
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        // The model reads about further failures when it calls.
        if before == 0 && self.used.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.front.notice(format!("{}; the next call of one of its tools tries again", error.diagnose()));
        }
    }

    /// The connection, established again if it has ended.
    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let mut attempted = false;
        loop {
            match self.now() {
                Phase::Ready { connection, .. } if !connection.is_closed() => return Ok(connection),
                // The end of this connection is about to be recorded.
                Phase::Ready { connection, .. } => self.until(|phase| !phase.has(&connection)).await,
                Phase::Connecting => self.until(|phase| !matches!(phase, Phase::Connecting)).await,
                Phase::Idle(_) => {
                    attempted = true;
                    self.connect_again(|phase| matches!(phase, Phase::Idle(_)));
                }
                // Each call attempts to connect once.
                Phase::Failed { error, .. } if attempted => return Err(error),
                Phase::Failed { error, since } => {
                    let left = self.rest().saturating_sub(since.elapsed());
                    if left > SHORT_REST {
                        return Err(self.error(Cause::Resting { why: error.cause.to_string(), left }));
                    }
                    tokio::time::sleep(left).await;
                    attempted = true;
                    self.connect_again(|phase| matches!(phase, Phase::Failed { .. }));
                }
                Phase::Closed => return Err(self.error(Cause::Ended("the session ends".to_owned()))),
            }
        }
    }

    /// Connects in the background if the phase is still this one.
    fn connect_again(self: &Arc<Self>, is_still: impl Fn(&Phase) -> bool) {
        let begins = self.phase.send_if_modified(|phase| {
            let begins = is_still(phase);
            if begins {
                *phase = Phase::Connecting;
            }
            begins
        });
        if begins {
            tokio::spawn(Arc::clone(self).connect(None));
        }
    }

    async fn until(&self, is_reached: impl Fn(&Phase) -> bool) {
        // The sender lives as long as this value.
        let _ = self.phase.subscribe().wait_for(|phase| is_reached(phase)).await;
    }

    /// How long the server is left alone after its last failure.
    fn rest(&self) -> Duration {
        let doublings = self.failures.load(Ordering::Relaxed).saturating_sub(1).min(16);
        (limits::REST * (1 << doublings)).min(limits::LONGEST_REST)
    }

    /// An answer that says what the sandbox denied also says how the user allows it. The user gets one line, too.
    fn explain(&self, mut answer: Result<Answer, McpError>) -> Result<Answer, McpError> {
        let text = match &mut answer {
            Ok(answer) => &mut answer.text,
            Err(McpError { cause: Cause::Refused(why), .. }) => why,
            Err(_) => return answer,
        };
        let Endpoint::Program(program) = &self.definition.endpoint else { return answer };
        if text.len() <= limits::EXPLAINED {
            let base = self.front.roots().into_iter().next().unwrap_or_default();
            let section = format!("mcp_servers.{}", self.definition.name);
            if let Some(remedy) = program.confinement.remedy(&base, &section, text) {
                text.push_str(&format!("\n({remedy})"));
                if self.denials.lock().unwrap_or_else(PoisonError::into_inner).insert(remedy.clone()) {
                    self.front.notice(format!("the MCP server `{}`: {remedy}", self.definition.name));
                }
            }
        }
        answer
    }

    /// Draws conclusions from the answer to a call.
    async fn judge(&self, connection: &Connection, answer: Result<Answer, Cause>) -> Result<Answer, McpError> {
        match &answer {
            Ok(_) | Err(Cause::Refused(_)) => {
                self.failures.store(0, Ordering::Relaxed);
                self.unanswered.store(0, Ordering::Relaxed);
            }
            Err(Cause::Timeout { .. }) => {
                if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENT_CALLS {
                    self.unanswered.store(0, Ordering::Relaxed);
                    connection.close().await;
                }
            }
            // A connection over HTTP does not end by itself when its address cannot be reached.
            Err(Cause::NotReached { .. } | Cause::NotAuthorized { .. }) => connection.close().await,
            Err(_) => {}
        }
        let answer = answer.map_err(|cause| self.error(cause));
        // Only the user can widen a login. The next call uses it.
        if let Err(error @ McpError { cause: Cause::Scope { .. }, .. }) = &answer {
            self.front.notice(error.diagnose().to_string());
        }
        answer
    }
}

/// Connects to a server, lists its tools and ends it, for a test by the user. `said` gets what a program writes to its standard
/// error.
///
/// # Errors
///
/// When it cannot be used.
pub async fn try_once(definition: ServerDefinition, front: Arc<dyn Front>, said: &Said) -> Result<Listing, McpError> {
    let definition = Arc::new(definition);
    let limit = definition.connect_timeout;
    let handler = || Handler::new(&definition, Arc::clone(&front), Arc::default());
    let tried = async {
        let connection = Connection::open(&definition, handler, said, false).await?;
        let listing = connection.list().await;
        connection.close().await;
        listing
    };
    let tried = timeout(limit, tried).await.unwrap_or_else(|_| Err(unconnected(limit, said)));
    tried.map_err(|cause| McpError { server: definition.name.clone(), cause })
}

/// Why a server is not connected in time. What it wrote may explain it, such as that it serves HTTP.
fn unconnected(limit: Duration, said: &Said) -> Cause {
    let words = said.reason().map(|words| format!("; it wrote: {words}")).unwrap_or_default();
    Cause::Timeout { what: format!("connecting and listing its tools{words}"), after: limit }
}
