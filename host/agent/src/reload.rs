//! Newer generations of plugins take over between two turns. What the session's requests begin with stays as it is.

use std::sync::Arc;
use std::time::Duration;

use hermes_session_store::EngineFaults;

use crate::error::AgentError;
use crate::host::Host;
use crate::live::Live;
use crate::live::plugins::surroundings;
use crate::watchers::Watchers;

/// How long a turn waits for a generation that is being built when it begins: one that was compiled before is there by then.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// To be called when no turn is under way. What is to be said is said to the user with the turn that follows.
pub(crate) async fn take_over(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    let changes = host.plugins.changes(PATIENCE).await;
    if changes.is_empty() {
        return Ok(());
    }
    let session = host.store.session(&live.log.session).await?;
    let around =
        surroundings(host, &session, false, live.log.journal.history(), &live.plugged.notices, &live.plugged.gate);
    let taken = live.plugged.generations.take_over(changes, &around).await;
    live.plugged.gate.renew(taken.identities);
    taken.lines.into_iter().for_each(|line| live.plugged.notices.notice(line));
    if let Some(engine) = taken.engine {
        // It has not failed yet, whatever the one before it did.
        let forgotten = EngineFaults { engine, in_a_row: 0, cause: String::new() };
        host.store.set_engine_faults(&live.log.session, &forgotten).await?;
        live.compaction.faults = 0;
        live.plugged.engine_version = forgotten.engine;
        live.compaction.compactor.engine_renewed();
        live.compaction.assistant.engine_renewed();
    }
    if taken.hooks {
        let (watchers, unwatched) = Watchers::gather(&live.plugged.hooks).await;
        unwatched.into_iter().for_each(|notice| live.plugged.notices.notice(notice));
        let watchers = Arc::new(watchers);
        live.plugged.toolbox.watch_with(Arc::clone(&watchers));
        // What the old ones have still to tell, they tell.
        live.plugged.watchers = watchers;
    }
    Ok(())
}
