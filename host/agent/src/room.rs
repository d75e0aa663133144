//! Making room for a session's next request, and compactions that the user asks for.

use hermes_conversation::Usage;
use hermes_conversation::picture;
use hermes_plugin_host::Moment;
use tokio_util::sync::CancellationToken;

use crate::compaction::{Compacted, Compression, LEAST_MESSAGES, Outlook, Preview, note_ruler};
use crate::error::AgentError;
use crate::event::EventKind;
use crate::host::Host;
use crate::live::Live;
use crate::rebuild;
use crate::stop::until_stopped;

/// Takes what a provider counted for a request whose estimate is known.
pub(crate) async fn counted(host: &Host, live: &mut Live, estimate: u32, usage: Option<Usage>) {
    if live.compaction.compactor.counted(estimate, usage)
        && let Err(error) = note_ruler(host.store.as_ref(), &host.model, live.compaction.compactor.ruler()).await
    {
        tracing::debug!(%error, "how the model counts was not noted");
    }
}

/// Before a request: the engine is heard, and the window has room afterwards. False where the user stopped it; what was done
/// until then is told all the same.
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
    // Where it is stopped, it is made up for before the next request: the view is a new one still.
    let steps = live.log.journal.steps().clone();
    until_stopped(stop, &steps, rebuild::after_compaction(host, live))
        .await
        .map_or(Ok(false), |done| done.map(|()| true))
}

/// After a turn, while the user reads: the engine may work ahead.
pub(crate) async fn turn_ended(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    let (compactor, mut target) = live.compactor(host);
    compactor.turn_ended(&mut target).await
}

/// Why `/compress` and its preview need not ask.
pub(crate) fn unasked(host: &Host, live: &Live) -> Option<Compression> {
    let messages = live.log.journal.conversation().messages().len();
    if messages < LEAST_MESSAGES {
        return Some(Compression::TooFew { messages, least: LEAST_MESSAGES });
    }
    (!host.settings.compression).then_some(Compression::Off)
}

/// `/compress`: now, whatever the window says.
pub(crate) async fn compress(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    stop: &CancellationToken,
) -> Result<Compression, AgentError> {
    if let Some(unasked) = unasked(host, live) {
        return Ok(unasked);
    }
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

/// `/compress --preview`: what that would do, or why nothing. Nothing is changed.
pub(crate) async fn preview(host: &Host, live: &mut Live, focus: Option<&str>) -> Result<Outlook, Compression> {
    if let Some(unasked) = unasked(host, live) {
        return Err(unasked);
    }
    let (compactor, target) = live.compactor(host);
    let previewed = compactor.preview(&target, focus).await;
    match previewed {
        Ok(Ok(Some(Preview { reason, view, before, after }))) => {
            let conversation = live.log.journal.conversation();
            let changes = picture::compare(&conversation, live.log.journal.view(), &view);
            Ok(Outlook { by: live.plugged.engine.name().to_owned(), reason, changes, before, after })
        }
        Ok(Ok(None)) => Err(Compression::Nothing),
        Ok(Err(refusal)) => {
            live.front.feed.notice(format!(
                "the plan of the context engine `{}` would be refused: {refusal}",
                live.plugged.engine.name()
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
