//! The shared prefix of a session's requests: the frozen prompt, the tools, and the rendered messages.

use hermes_diagnostic::Notice;
use hermes_models::SchemaDialect;
use hermes_prompt::hints::SubdirectoryHints;
use hermes_session_store::{Frozen, Session};

use crate::error::AgentError;
use crate::freezing;
use crate::host::Host;
use crate::live::log::SessionLog;
use crate::live::plugins::RunningPlugins;
use crate::opening::fixed_tokens;
use crate::outgoing::{Outgoing, RequestSettings};

/// The shared prefix of a session's requests.
pub(crate) struct SessionPrefix {
    pub(crate) frozen: Frozen,
    /// A notice of changes since the prompt was built; reported with the next turn.
    pub(crate) drift: Option<Notice>,
    pub(crate) outgoing: Outgoing,
    /// How the server reads schemas about which the user was told.
    pub(crate) told_left_out: Option<SchemaDialect>,
    /// The estimated tokens of the system prompt and the tools.
    pub(crate) fixed_tokens: u32,
    /// Project files of subfolders, which the model sees when it reaches the folder; `None` if project files are off.
    pub(crate) hints: Option<SubdirectoryHints>,
}

impl SessionPrefix {
    pub(crate) async fn open(
        host: &Host,
        session: &Session,
        log: &SessionLog,
        plugins: &RunningPlugins,
    ) -> Result<Self, AgentError> {
        let (frozen, drift) = freezing::restore_or_build(host, session, plugins).await?;
        let settings = RequestSettings::of(host);
        let outgoing = Outgoing::begin(host.store.as_ref(), session, settings, &frozen, &log.journal).await?;
        let mut hints =
            if host.settings.prompt.context_files { SubdirectoryHints::new(&log.workspace, []).ok() } else { None };
        if let Some(since) = plugins.project.beside_programs_since() {
            hints = hints.map(|hints| hints.only_before(since));
        }
        if let Some(hints) = &mut hints {
            log.journal.conversation().messages().iter().filter_map(|message| message.sent.as_deref()).for_each(
                |sent| {
                    hints.learn(sent);
                },
            );
        }
        Ok(Self { fixed_tokens: fixed_tokens(&frozen), frozen, drift, outgoing, told_left_out: None, hints })
    }

    /// Switches to another prompt.
    pub(crate) fn adopt(&mut self, frozen: Frozen) {
        self.fixed_tokens = fixed_tokens(&frozen);
        self.frozen = frozen;
        self.told_left_out = None;
    }
}
