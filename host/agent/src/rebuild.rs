//! Rebuilds the system prompt of a running session, after a compaction or on request of the user.

use hermes_diagnostic::{Action, Notice};
use hermes_session_store::Frozen;

use crate::error::AgentError;
use crate::freezing::{build, store};
use crate::host::Host;
use crate::live::Live;
use crate::opening::{Opening, fixed_tokens};
use crate::project_files::Moment;
use crate::shelf;

/// Rebuilds a prompt with changed inputs after a compaction. The provider's cache is lost then in any case.
pub(crate) async fn after_compaction(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    if !live.prefix.outgoing.is_stale(&live.log.journal) {
        return Ok(());
    }
    let before = Opening::restore(&live.prefix.frozen);
    // A provider answers `system-prompt` only after a recall that still runs.
    live.plugins.recalls.forget();
    let fresh = build(host, &live.log.workspace, &live.plugins, Some(&before), Moment::Compaction).await;
    let Some(changed) = before.drift(&fresh.opening) else { return Ok(()) };
    fresh.notices.into_iter().for_each(|notice| live.plugins.notices.notice(notice));
    let frozen = fresh.opening.freeze(&format!("{changed} (at a compaction)"));
    if !live.fits_beside(host, fixed_tokens(&frozen)) {
        let text = format!(
            "the system prompt was not rebuilt at the compaction, because the conversation would not fit beside it; changed: \
             {changed}"
        );
        let session = live.log.session.to_string();
        live.plugins.notices.notice(Notice::new(text, Action::RebuildPrompt { session }));
        return Ok(());
    }
    live.plugins.notices.notice(format!("the system prompt was rebuilt at the compaction; changed: {changed}"));
    adopt(host, live, frozen).await
}

/// Rebuilds the prompt on request of the user, including the date. Returns `None` if nothing has changed.
pub(crate) async fn rebuild(host: &Host, live: &mut Live) -> Result<Option<String>, AgentError> {
    let before = Opening::restore(&live.prefix.frozen);
    // A provider answers `system-prompt` only after a recall that still runs.
    live.plugins.recalls.forget();
    let fresh = build(host, &live.log.workspace, &live.plugins, Some(&before), Moment::Asked).await;
    // The rebuild resolves the reported changes.
    live.prefix.drift = None;
    if let Some(notice) = live.engine_change.take() {
        live.plugins.notices.notice(notice);
    }
    fresh.notices.into_iter().for_each(|notice| live.plugins.notices.notice(notice));
    let changes = hermes_prompt::changes(&before.prompt, &fresh.opening.prompt);
    if changes.is_empty() && before.tools == fresh.opening.tools {
        return Ok(None);
    }
    let changed = before.drift(&fresh.opening).unwrap_or_else(|| hermes_prompt::described(&changes));
    adopt(host, live, fresh.opening.freeze(&format!("{changed} (asked for)"))).await?;
    Ok(Some(changed))
}

/// Stores a prompt and goes on with it.
pub(crate) async fn adopt(host: &Host, live: &mut Live, frozen: Frozen) -> Result<(), AgentError> {
    let _step = live.log.journal.steps().begin();
    let frozen = store(host, &live.log.session, frozen).await?;
    live.plugins.toolbox.set_shelf(shelf::choice::beside(host, &frozen.tools, &live.plugins.toolbox.schemas()));
    live.prefix.adopt(frozen);
    Ok(())
}
