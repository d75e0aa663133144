//! Makes room for a session's next request, and runs compactions on request.

use hermes_conversation::Usage;
use hermes_conversation::picture;
use hermes_plugin_host::Moment;
use hermes_protocol::{Compression, CompressionPreview, EventKind};
use tokio_util::sync::CancellationToken;

use crate::compaction::{Compacted, LEAST_MESSAGES, Preview, store_ruler};
use crate::error::AgentError;
use crate::host::Host;
use crate::live::Live;
use crate::rebuild;
use crate::stop::until_stopped;

/// Updates the ruler with the provider's count for a request.
pub(crate) async fn counted(host: &Host, live: &mut Live, estimate: u32, usage: Option<Usage>) {
    if live.compaction.compactor.counted(estimate, usage)
        && let Err(error) =
            store_ruler(host.store.as_ref(), &host.chain.now().model, live.compaction.compactor.ruler()).await
    {
        tracing::debug!(%error, "the token ratio of the model was not stored");
    }
}

/// Consults the engine before a request and makes sure that the request fits. Returns false if the user stopped it. Views
/// that were adopted before the stop are reported.
pub(crate) async fn make_room(
    host: &Host,
    live: &mut Live,
    moment: Moment,
    stop: &CancellationToken,
) -> Result<bool, AgentError> {
    let mut done = Vec::new();
    let outcome = {
        let steps = live.log.journal.steps().clone();
        let (compactor, mut target) = live.compactor(host);
        until_stopped(stop, &steps, compactor.make_room(&mut target, moment, &mut done)).await
    };
    report(live, &done);
    let Some(outcome) = outcome else { return Ok(false) };
    outcome?;
    // After a stop the rebuild happens before the next request, because the view is still newer than the prefix.
    let steps = live.log.journal.steps().clone();
    until_stopped(stop, &steps, rebuild::after_compaction(host, live))
        .await
        .map_or(Ok(false), |done| done.map(|()| true))
}

/// Lets the engine prepare after a turn, while the user reads.
pub(crate) async fn turn_ended(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    let (compactor, mut target) = live.compactor(host);
    match host.settings.one_shot {
        true => compactor.single_turn_ended(&mut target).await,
        false => compactor.turn_ended(&mut target).await,
    }
}

/// Why `/compress` and its preview do not consult the engine, if there is a reason.
pub(crate) fn skip_reason(host: &Host, live: &Live) -> Option<Compression> {
    let messages = live.log.journal.conversation().messages().len();
    if messages < LEAST_MESSAGES {
        return Some(Compression::TooFew { messages, least: LEAST_MESSAGES });
    }
    (!host.settings.compression).then_some(Compression::Off)
}

/// `/compress`: compacts now, however full the window is.
pub(crate) async fn compress(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    stop: &CancellationToken,
) -> Result<Compression, AgentError> {
    if let Some(skip_reason) = skip_reason(host, live) {
        return Ok(skip_reason);
    }
    live.front.feed.publish(EventKind::CompressionStarted);
    let faults = live.compaction.faults;
    let mut done = Vec::new();
    let outcome = {
        let steps = live.log.journal.steps().clone();
        let (compactor, mut target) = live.compactor(host);
        until_stopped(stop, &steps, compactor.compress(&mut target, focus, &mut done)).await
    };
    report(live, &done);
    let Some(outcome) = outcome else {
        return Ok(if done.is_empty() { Compression::Stopped } else { Compression::Adopted });
    };
    let adopted = outcome?;
    let steps = live.log.journal.steps().clone();
    until_stopped(stop, &steps, rebuild::after_compaction(host, live)).await.unwrap_or(Ok(()))?;
    Ok(match adopted || !done.is_empty() {
        true => Compression::Adopted,
        false if live.compaction.faults > faults => Compression::Failed,
        false => Compression::Nothing,
    })
}

/// `/compress --preview`: what a compaction would change, or why it would change nothing.
pub(crate) async fn preview(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
) -> Result<CompressionPreview, Compression> {
    if let Some(skip_reason) = skip_reason(host, live) {
        return Err(skip_reason);
    }
    let (compactor, target) = live.compactor(host);
    let previewed = compactor.preview(&target, focus).await;
    match previewed {
        Ok(Ok(Some(Preview { reason, view, before, after }))) => {
            let conversation = live.log.journal.conversation();
            let changes = picture::compare(&conversation, live.log.journal.view(), &view);
            Ok(CompressionPreview { by: live.plugins.engine.name().to_owned(), reason, changes, before, after })
        }
        Ok(Ok(None)) => Err(Compression::Nothing),
        Ok(Err(refusal)) => {
            live.front.feed.notice(format!(
                "the plan of the context engine `{}` would be refused: {refusal}",
                live.plugins.engine.name()
            ));
            Err(Compression::Failed)
        }
        Err(error) => {
            live.front.feed.notice(error.to_string());
            Err(Compression::Failed)
        }
    }
}

fn report(live: &mut Live, done: &[Compacted]) {
    if !done.is_empty() {
        live.compaction.assistant.view_changed();
    }
    for Compacted { reason, by, before, after, .. } in done {
        let (reason, by) = (reason.clone(), by.clone());
        live.front.feed.publish(EventKind::Compacted { reason, by, before: *before, after: *after });
    }
}
