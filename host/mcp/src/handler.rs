//! What a server may ask of its client, and what it may tell.

// The protocol calls roots deprecated since its version 2026-07-28; servers of earlier versions use them.
#![allow(deprecated)]

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ListRootsResult, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, Root,
    RootsCapabilities, SamplingCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use url::Url;

use crate::definition::{Endpoint, ServerDefinition};
use crate::error::line;
use crate::form::{Field, Values, defaults, fields};
use crate::front::Front;
use crate::limits;
use crate::sampling::Sampling;

/// The calls of one connection that run, and the questions of the server in them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    running: AtomicUsize,
    asking: watch::Sender<usize>,
}

/// A call that runs, until it is dropped.
pub(crate) struct RunningCall<'a>(&'a Calls);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A question to the user, until it is dropped.
struct Asking<'a>(&'a Calls);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.send_modify(|asking| *asking -= 1);
    }
}

impl Calls {
    pub(crate) fn begin(&self) -> RunningCall<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        RunningCall(self)
    }

    /// A question of the server; `None` outside of its calls.
    fn ask(&self) -> Option<Asking<'_>> {
        (self.running.load(Ordering::SeqCst) > 0).then(|| {
            self.asking.send_modify(|asking| *asking += 1);
            Asking(self)
        })
    }

    /// Waits for at most this time, in which the moments do not count while the user is asked.
    pub(crate) async fn within<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let mut asking = self.asking.subscribe();
        let (mut answer, mut left) = (pin!(answer), limit);
        loop {
            let is_asking = *asking.borrow_and_update() > 0;
            let begun = Instant::now();
            tokio::select! {
                answer = &mut answer => return Some(answer),
                () = tokio::time::sleep(left), if !is_asking => return None,
                // The sender is in `self`, so that waiting cannot fail.
                _ = asking.changed() => {}
            }
            if !is_asking {
                left = left.saturating_sub(begun.elapsed());
            }
        }
    }
}

/// How often an answer that does not fit is asked for again.
const TRIES: usize = 3;
/// The choice that ends a form.
const DECLINE: &str = "decline";

/// The client's side of one connection.
pub(crate) struct Handler {
    server: String,
    pub(crate) calls: Arc<Calls>,
    pub(crate) front: Arc<dyn Front>,
    /// Notified when the server says that its tools have changed.
    pub(crate) changed: Arc<Notify>,
    /// Whether the user lets it ask a model.
    samples: bool,
    /// Its requests to a model.
    sampled: AtomicUsize,
    /// The folders that the user named to it, beside that of the session.
    folders: Vec<PathBuf>,
    /// Whether it gets the values that it proposes where nobody can answer.
    accepts_defaults: bool,
}

impl Handler {
    pub(crate) fn new(definition: &ServerDefinition, front: Arc<dyn Front>, changed: Arc<Notify>) -> Self {
        Self {
            server: definition.name.clone(),
            calls: Arc::default(),
            front,
            changed,
            samples: definition.sampling > 0 && !definition.is_shared,
            sampled: AtomicUsize::new(0),
            folders: match &definition.endpoint {
                Endpoint::Program(program) => program.confinement.writable.clone(),
                Endpoint::Web(_) => Vec::new(),
            },
            // A shared server does not say for which session it asks, and that session may have a user.
            accepts_defaults: definition.accepts_defaults && !definition.is_shared,
        }
    }

    /// The folders that the server may work in.
    pub(crate) fn roots(&self) -> ListRootsResult {
        let mut folders = self.front.roots();
        // File servers restrict themselves to the roots and ignore the folders in their arguments, so the roots must include
        // those folders.
        folders.extend(self.folders.iter().filter(|folder| !folders.contains(folder)).cloned().collect::<Vec<_>>());
        let urls = folders.iter().filter_map(|folder| Url::from_directory_path(folder).ok());
        // Without the slash at the end, as other clients write it.
        let roots = urls.map(|url| Root::new(url.as_str().trim_end_matches('/')));
        ListRootsResult::new(roots.collect())
    }

    /// Asks the user for the server.
    pub(crate) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        // Without a call of its tools, a server has nothing to ask.
        let Some(_asking) = self.calls.ask() else { return declined };
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return declined;
        };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
        match fields(&schema) {
            Some(fields) if self.accepts_defaults && !self.front.is_attended() => match defaults(&fields) {
                Some(values) => ElicitResult::new(ElicitationAction::Accept).with_content(values.into()),
                None => declined,
            },
            Some(fields) => self.fill(&message, &fields).await,
            None => {
                let name = &self.server;
                self.front.notice(format!(
                    "the MCP server `{name}` asked for more than plain values, so its question was declined"
                ));
                declined
            }
        }
    }

    /// Asks a model for the server, if the user allows it. The error says why not.
    pub(crate) async fn create(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, String> {
        if !self.samples {
            let name = &self.server;
            return Err(format!("the user lets this server ask no model; `mcp_servers.{name}.sampling` allows it"));
        }
        self.sample(request).await.map_err(|why| line(&why))
    }

    /// Asks a model for the server.
    async fn sample(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, String> {
        // As with questions: without a call of its tools, a server has nothing to ask. The time does not count for the call.
        let asking = self.calls.ask().ok_or("a model is asked during calls of tools only")?;
        let request = Sampling::of(request)?;
        let before = self.sampled.fetch_add(1, Ordering::Relaxed);
        if before >= limits::SAMPLINGS {
            return Err(format!("a model is asked at most {} times for a connection", limits::SAMPLINGS));
        }
        let sampled = self.front.sample(request).await;
        drop(asking);
        Ok(sampled?.into())
    }

    /// Asks the user for the values of a form. The question names the server, so that nobody takes it for one of Hermes.
    async fn fill(&self, message: &str, fields: &[Field]) -> ElicitResult {
        let message = within(message.trim(), limits::QUESTION);
        let intro = format!("the MCP server `{}` asks: {message}", self.server);
        if fields.is_empty() {
            let answer = self.front.ask(intro, vec!["accept".to_owned(), DECLINE.to_owned()], false).await;
            return ElicitResult::new(match answer.as_deref().map(str::trim) {
                Some("accept") => ElicitationAction::Accept,
                Some(_) => ElicitationAction::Decline,
                None => ElicitationAction::Cancel,
            });
        }
        let mut values = Values::new();
        'fields: for field in fields {
            let mut question = format!("{intro}\n{}", field.words);
            let mut value = None;
            for _ in 0..TRIES {
                let choices = field.choices().into_iter().chain([DECLINE.to_owned()]).collect();
                let Some(answer) = self.front.ask(question, choices, field.takes_values()).await else {
                    return ElicitResult::new(ElicitationAction::Cancel);
                };
                if answer.trim() == DECLINE {
                    break;
                }
                if field.is_left_out(&answer) {
                    continue 'fields;
                }
                value = field.read(&answer);
                if value.is_some() {
                    break;
                }
                question = format!("{intro}\n{} (the answer must be {})", field.words, field.wanted());
            }
            let Some(value) = value else { return ElicitResult::new(ElicitationAction::Decline) };
            values.insert(field.name.clone(), value);
        }
        ElicitResult::new(ElicitationAction::Accept).with_content(values.into())
    }
}

fn within(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        capabilities.sampling = self.samples.then(SamplingCapability::default);
        let name = Implementation::new("hermes", env!("CARGO_PKG_VERSION"));
        // The handshake is `initialize`, which later versions do not have.
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicit(request).await)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.create(request).await.map_err(|why| ErrorData::invalid_request(why, None))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.front.progress(&progress_line(&progress));
    }

    async fn on_logging_message(&self, message: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text = match &message.data {
            serde_json::Value::String(text) => line(text),
            other => line(&other.to_string()),
        };
        let is_quiet = matches!(message.level, LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice);
        self.front.log(!is_quiet, &text);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

fn progress_line(progress: &ProgressNotificationParam) -> String {
    let amount = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => hermes_conversation::one_line_within(&format!("{message} ({amount})"), limits::PROGRESS),
        None => hermes_conversation::one_line_within(&amount, limits::PROGRESS),
    }
}
