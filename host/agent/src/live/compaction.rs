//! The compaction state of a session: its compactor, the engine's quotes, and the engine's failures.

use std::collections::HashMap;
use std::sync::{Arc, RwLockReadGuard};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Conversation, SessionId, Summary, View};
use hermes_plugin_host::CacheState;
use hermes_session_store::{EngineFaults, Frozen, SessionStore};

use crate::assist::Assistant;
use crate::clock::Clock;
use crate::compaction::{CompactionTarget, Compactor, Notify, Rules, load_ruler};
use crate::error::AgentError;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::log::SessionLog;
use crate::live::plugins::RunningPlugins;
use crate::outgoing::Outgoing;
use crate::report::NoticeSender;

/// Everything that decides which view the model sees.
pub(crate) struct SessionCompaction {
    pub(crate) compactor: Compactor,
    pub(crate) assistant: Assistant,
    /// The engine's failures in a row.
    pub(crate) faults: u32,
}

impl SessionCompaction {
    pub(crate) async fn open(host: &Host, log: &SessionLog, plugins: &RunningPlugins) -> Result<Self, AgentError> {
        let faults = host.store.engine_faults(&log.session).await?;
        let own = faults.into_iter().find(|faults| faults.engine == plugins.engine_version);
        Ok(Self {
            compactor: compactor(host, plugins).await,
            assistant: Assistant::new(plugins.assist.clone(), notify(&plugins.notices), host.settings.marks.clone()),
            faults: own.map_or(0, |faults| faults.in_a_row),
        })
    }
}

/// How long a turn waits for an optional plan.
const PLAN_TIMEOUT: Duration = Duration::from_millis(300);

/// A session as the target of compaction.
pub(crate) struct SessionTarget<'a> {
    pub(super) store: &'a dyn SessionStore,
    pub(super) session: &'a SessionId,
    pub(super) engine: &'a str,
    pub(super) journal: &'a mut Journal,
    pub(super) outgoing: &'a Outgoing,
    pub(super) frozen: &'a Frozen,
    pub(super) fixed_tokens: u32,
    pub(super) clock: Clock,
    pub(super) faults: &'a mut u32,
}

#[async_trait]
impl CompactionTarget for SessionTarget<'_> {
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.journal.conversation()
    }

    fn view(&self) -> &View {
        self.journal.view()
    }

    fn summaries(&self) -> &HashMap<String, Summary> {
        self.journal.summaries()
    }

    async fn adopt(&mut self, view: View, reason: &str, engine: &str) -> Result<(), AgentError> {
        Ok(self.journal.adopt(view, reason, engine).await?)
    }

    fn fixed_tokens(&self) -> u32 {
        self.fixed_tokens
    }

    fn cache(&self) -> CacheState {
        self.outgoing.cache_state(self.frozen, self.journal, self.clock.now())
    }

    fn faults(&self) -> u32 {
        *self.faults
    }

    async fn keep_faults(&mut self, in_a_row: u32, cause: &str) -> Result<(), AgentError> {
        *self.faults = in_a_row;
        let _step = self.journal.steps().begin();
        let faults = EngineFaults { engine: self.engine.to_owned(), in_a_row, cause: cause.to_owned() };
        Ok(self.store.set_engine_faults(self.session, &faults).await?)
    }
}

/// Creates the compactor of a session.
async fn compactor(host: &Host, plugins: &RunningPlugins) -> Compactor {
    let model = &host.chain.now().model;
    let window = host.chain.window();
    let rules = Rules { enabled: host.settings.compression, window, patience: PLAN_TIMEOUT };
    let ruler = load_ruler(host.store.as_ref(), model).await;
    Compactor::new(plugins.engine.clone(), plugins.memory_events.clone(), rules, ruler, notify(&plugins.notices))
}

/// Wraps a notice sender as the compactor's callback.
fn notify(notices: &NoticeSender) -> Notify {
    let notices = notices.clone();
    Arc::new(move |notice| notices.notice(notice))
}
