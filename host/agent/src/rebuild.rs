//! Rebuilding the prompt of a running session: with a compaction, or because the user asks for it.

use hermes_diagnostic::{Action, Notice};
use hermes_session_store::Frozen;

use crate::error::AgentError;
use crate::freezing::{build, store};
use crate::host::Host;
use crate::live::Live;
use crate::opening::{Opening, fixed_tokens};

/// Where the conversation was just compacted, the provider reads it anew in any case: a prompt whose inputs have changed is
/// rebuilt with it.
pub(crate) async fn after_compaction(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    if !live.prefix.outgoing.is_stale(&live.log.journal) {
        return Ok(());
    }
    let before = Opening::restore(&live.prefix.frozen);
    let fresh = build(host, &live.log.workspace, &live.plugged, Some(&before)).await;
    let Some(changed) = before.drift(&fresh.opening) else { return Ok(()) };
    fresh.notices.into_iter().for_each(|notice| live.plugged.notices.notice(notice));
    let frozen = fresh.opening.freeze(&format!("{changed} (at a compaction)"));
    if !live.fits_beside(host, fixed_tokens(&frozen)) {
        let text = format!(
            "the system prompt was not rebuilt with the compaction, since it would not leave room beside the conversation; changed: \
             {changed}"
        );
        let session = live.log.session.to_string();
        live.plugged.notices.notice(Notice::new(text, Action::RebuildPrompt { session }));
        return Ok(());
    }
    live.plugged.notices.notice(format!("the system prompt was rebuilt with the compaction; changed: {changed}"));
    adopt(host, live, frozen).await
}

/// Builds the prompt of a session anew because its user asks for it, with the day and all. None where nothing has changed.
pub(crate) async fn rebuild(host: &Host, live: &mut Live) -> Result<Option<String>, AgentError> {
    let before = Opening::restore(&live.prefix.frozen);
    let fresh = build(host, &live.log.workspace, &live.plugged, Some(&before)).await;
    // It is about to be answered.
    live.prefix.drift = None;
    if let Some(switched) = live.switched.take() {
        live.plugged.notices.notice(switched);
    }
    fresh.notices.into_iter().for_each(|notice| live.plugged.notices.notice(notice));
    let changes = hermes_prompt::changes(&before.prompt, &fresh.opening.prompt);
    if changes.is_empty() && before.tools == fresh.opening.tools {
        return Ok(None);
    }
    let changed = before.drift(&fresh.opening).unwrap_or_else(|| hermes_prompt::described(&changes));
    adopt(host, live, fresh.opening.freeze(&format!("{changed} (asked for)"))).await?;
    Ok(Some(changed))
}

async fn adopt(host: &Host, live: &mut Live, frozen: Frozen) -> Result<(), AgentError> {
    let _step = live.log.journal.steps().begin();
    live.prefix.adopt(store(host, &live.log.session, frozen).await?);
    Ok(())
}
