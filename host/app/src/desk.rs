//! The desk: where every front end gets its sessions.
//!
//! A [`Desk`] belongs to one process. A front end asks it for a session with a [`SessionRequest`], which has everything that is the
//! session's own: folder, platform, mode, model, tool servers, author, tenant, lifetime. Two openings of one stored session get the
//! same session. The desk also finds, lists and searches stored sessions, and carries out one message to its end.

mod consent;
mod request;
mod services;
mod source;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_agent::{AcceptedParts, Begin, Choice, CommandEnd, HostSource, OpeningComparison, SessionHandle, Sessions};
use hermes_conversation::SessionId;
use hermes_diagnostic::Notice;
use hermes_protocol::{Command, CommandError, Event, UserMessage};
use hermes_session_store::SessionStore;
use tokio_util::sync::CancellationToken;

pub use consent::{ImportedFolder, ImportedSession};
pub use request::{Beginning, Lifetime, NoTenant, SessionRequest, Tenant};
pub use source::recovered_undos;

use crate::{AppError, Reporter, Setup};
use services::Services;
use source::SessionSource;

/// Opens sessions for front ends. The sessions of one process share the store, the connections to models, and the plugins' code,
/// watcher and connections.
pub struct Desk {
    setup: Setup,
    reporter: Arc<dyn Reporter>,
    /// What the sessions of a tenant share; of the owner under `None`.
    services: Mutex<HashMap<Option<Tenant>, Arc<Services>>>,
    /// What was read for a request that has not opened its session yet.
    prepared: Mutex<Option<(SessionRequest, Arc<SessionSource>)>>,
    /// The open sessions by tenant: two tenants may have sessions with the same id.
    open: Mutex<HashMap<Option<Tenant>, Arc<Sessions>>>,
}

/// A session that the desk opened.
pub struct Opened {
    /// The session.
    pub session: SessionHandle,
    /// Whether another opening of it came before. It then keeps its folder, mode and model, and this request's are not used.
    pub joined: bool,
}

impl Opened {
    /// Carries out one message without a person, as [`Desk::run_once`] does.
    pub async fn run(
        self,
        message: UserMessage,
        stop: &CancellationToken,
        most: Option<Duration>,
        mut show: impl FnMut(&Event),
    ) -> Carried {
        let Self { session, joined } = self;
        let mut events = session.subscribe((!joined).then(|| session.beginning()).as_ref());
        let end = session.carry_out(Command::Say(message), &mut events, stop, most, &mut show).await;
        if !joined {
            // An error only says that the session has already ended.
            let never = CancellationToken::new();
            let _ = session.carry_out(Command::Close, &mut events, &never, None, &mut show).await;
        }
        // A session without a message is gone once it is closed.
        Carried { session: session.session(), end }
    }
}

impl Desk {
    /// A desk for a home. Nothing is opened before the first request.
    pub fn new(setup: Setup, reporter: Arc<dyn Reporter>) -> Self {
        let reporter = Arc::new(ToldOnce { reporter, told: Mutex::default() });
        Self { setup, reporter, services: Mutex::default(), prepared: Mutex::default(), open: Mutex::default() }
    }

    /// The home of the owner and its configuration.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Checks a request and opens the store, but no session: what a front end does before it shows anything.
    ///
    /// # Errors
    ///
    /// When no model can be chosen, a setting is wrong, or the store cannot be opened.
    pub async fn prepare(&self, request: &SessionRequest) -> Result<(), AppError> {
        let source = self.source(request).await?;
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some((plain(request), source));
        Ok(())
    }

    /// Opens a session, or joins it if it is open already. Anything invalid is reported before anything is written.
    ///
    /// # Errors
    ///
    /// When no model can be chosen, a setting is wrong, the store cannot be opened, no stored session is meant, a plugin is missing
    /// or broken, or another process works on the session.
    pub async fn session(&self, request: &SessionRequest) -> Result<Opened, AppError> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let source = match prepared {
            Some((prepared, source)) if prepared == plain(request) => source,
            _ => self.source(request).await?,
        };
        let begin = source.begin(request).await?;
        source.warn_of_wide_workspace(&begin, request).await;
        let id = match &begin {
            Begin::Resume(id) | Begin::Imported { session: id, .. } => Some(id.clone()),
            Begin::New | Begin::Branch(_) => None,
        };
        let open = async {
            let host = source.host_now().await?;
            let chosen = (Arc::clone(&source) as Arc<dyn HostSource>, Choice::default());
            let (workspace, rules) = (request.workspace.clone(), request.lifetime.rules());
            Ok::<_, AppError>(SessionHandle::open(host, chosen, begin, workspace, rules).await?)
        };
        let (session, joined) = self.sessions(request.tenant.as_ref()).open(id.as_ref(), open).await?;
        Ok(Opened { session, joined })
    }

    /// Carries out one message without a person: opens the session, says the message, waits for the end of the turn, and closes the
    /// session unless it was open before. `show` gets every event. `stop` and `most`, the longest time that the turn may take, cut it off.
    ///
    /// # Errors
    ///
    /// When the session cannot be opened.
    pub async fn run_once(
        &self,
        request: &SessionRequest,
        message: UserMessage,
        stop: &CancellationToken,
        most: Option<Duration>,
        mut show: impl FnMut(&Event),
    ) -> Result<Carried, AppError> {
        Ok(self.session(request).await?.run(message, stop, most, &mut show).await)
    }

    /// The open sessions of a tenant, or of the owner.
    pub fn sessions(&self, tenant: Option<&Tenant>) -> Arc<Sessions> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(open.entry(tenant.cloned()).or_default())
    }

    /// Closes all sessions.
    pub async fn close(&self) {
        let open: Vec<_> = self.open.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        futures_util::future::join_all(open.iter().map(|sessions| sessions.close())).await;
    }

    /// The stored session that a request means, if it means one.
    ///
    /// # Errors
    ///
    /// When there is no such session, or several fit.
    pub async fn find(&self, request: &SessionRequest) -> Result<Option<SessionId>, AppError> {
        let services = self.services(request.tenant.as_ref())?;
        Ok(match services.find(&request.begin, &request.workspace).await? {
            Begin::New => None,
            Begin::Resume(id) | Begin::Branch(id) | Begin::Imported { session: id, .. } => Some(id),
        })
    }

    /// What the file of an imported session decides, if a request means one that waits for the user's consent.
    ///
    /// # Errors
    ///
    /// When there is no such session, or several fit.
    pub async fn imported(&self, request: &SessionRequest) -> Result<Option<ImportedSession>, AppError> {
        let services = self.services(request.tenant.as_ref())?;
        match services.find(&request.begin, &request.workspace).await? {
            Begin::Resume(id) => {
                let session = services.store.session(&id).await?;
                Ok(session.imported.then(|| ImportedSession::of(&session)))
            }
            _ => Ok(None),
        }
    }

    /// Compares the system prompt and the tools of a stored session with those that a new one would get. No session is changed.
    ///
    /// # Errors
    ///
    /// When a plugin that the session needs is missing or broken.
    pub async fn compare_openings(
        &self,
        request: &SessionRequest,
        session: Option<&SessionId>,
    ) -> Result<OpeningComparison, AppError> {
        let host = self.source(request).await?.host_now().await?;
        Ok(hermes_agent::compare_openings(&host, session, request.workspace.clone()).await?)
    }

    /// The stored sessions of a tenant, or of the owner: lists, search, reading, titles, export, import and usage. The sessions of
    /// this desk use the same store.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened.
    pub fn store(&self, tenant: Option<&Tenant>) -> Result<Arc<dyn SessionStore>, AppError> {
        Ok(Arc::clone(&self.services(tenant)?.store))
    }

    fn services(&self, tenant: Option<&Tenant>) -> Result<Arc<Services>, AppError> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = services.get(&tenant.cloned()) {
            return Ok(Arc::clone(known));
        }
        let setup = match tenant {
            Some(tenant) => self.setup.of_tenant(tenant),
            None => self.setup.clone(),
        };
        let opened = Arc::new(Services::open(setup, Arc::clone(&self.reporter))?);
        services.insert(tenant.cloned(), Arc::clone(&opened));
        Ok(opened)
    }

    async fn source(&self, request: &SessionRequest) -> Result<Arc<SessionSource>, AppError> {
        if !request.workspace.is_absolute() {
            return Err(AppError::RelativeWorkspace { workspace: request.workspace.clone() });
        }
        let services = || self.services(request.tenant.as_ref());
        SessionSource::new(&self.setup, request, &self.reporter, services).await.map(Arc::new)
    }
}

/// The request without the parts that have no effect on the environment of its session.
fn plain(request: &SessionRequest) -> SessionRequest {
    SessionRequest { accepted: AcceptedParts::default(), ..request.beginning(Beginning::New) }
}

/// Passes each note and warning on once: every session would repeat those about the configuration.
struct ToldOnce {
    reporter: Arc<dyn Reporter>,
    told: Mutex<HashSet<String>>,
}

impl ToldOnce {
    fn is_new(&self, text: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }
}

impl Reporter for ToldOnce {
    fn note(&self, text: &str) {
        if self.is_new(text) {
            self.reporter.note(text);
        }
    }

    fn warning(&self, notice: &Notice) {
        if self.is_new(&notice.text) {
            self.reporter.warning(notice);
        }
    }

    fn compiling(&self, plugin: &str, elapsed: Duration) -> ControlFlow<()> {
        self.reporter.compiling(plugin, elapsed)
    }

    fn compiled(&self) {
        self.reporter.compiled();
    }

    fn bytes(&self, done: u64, all: Option<u64>) {
        self.reporter.bytes(done, all);
    }
}

/// One message that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// The session, unless nothing of it was stored.
    pub session: Option<SessionId>,
    /// How its turn ended, or why the session refused the message.
    pub end: Result<CommandEnd, CommandError>,
}
