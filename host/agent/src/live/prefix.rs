//! What all requests of a session share: the frozen prompt, the tools, and the rendered bytes behind them.

use hermes_diagnostic::Notice;
use hermes_prompt::hints::SubdirectoryHints;
use hermes_session_store::{Frozen, Session};

use crate::error::AgentError;
use crate::freezing;
use crate::host::Host;
use crate::live::log::SessionLog;
use crate::live::plugins::Plugged;
use crate::opening::fixed_tokens;
use crate::outgoing::{Outgoing, Terms};

/// The shared beginning of a session's requests.
pub(crate) struct SessionPrefix {
    pub(crate) frozen: Frozen,
    /// What has changed since the prompt was built; reported with the next turn.
    pub(crate) drift: Option<Notice>,
    pub(crate) outgoing: Outgoing,
    /// Estimate for system prompt and tools.
    pub(crate) fixed_tokens: u32,
    /// Project files of subfolders, shown to the model when it reaches them; none if project files are off.
    pub(crate) hints: Option<SubdirectoryHints>,
}

impl SessionPrefix {
    pub(crate) async fn open(
        host: &Host,
        session: &Session,
        log: &SessionLog,
        plugged: &Plugged,
    ) -> Result<Self, AgentError> {
        let (frozen, drift) = freezing::thaw(host, session, plugged).await?;
        let terms = Terms {
            style: host.provider.style(),
            model: host.model.clone(),
            ephemeral: host.settings.ephemeral.clone(),
            ttl: host.settings.cache_ttl,
        };
        let outgoing = Outgoing::begin(host.store.as_ref(), session, terms, &frozen, &log.journal).await?;
        let mut hints =
            if host.settings.prompt.context_files { SubdirectoryHints::new(&log.workspace, []).ok() } else { None };
        if let Some(hints) = &mut hints {
            log.journal.conversation().messages().iter().filter_map(|message| message.sent.as_deref()).for_each(
                |sent| {
                    hints.learn(sent);
                },
            );
        }
        Ok(Self { fixed_tokens: fixed_tokens(&frozen), frozen, drift, outgoing, hints })
    }

    /// Another prompt from here on.
    pub(crate) fn adopt(&mut self, frozen: Frozen) {
        self.fixed_tokens = fixed_tokens(&frozen);
        self.frozen = frozen;
    }
}
