//! Switches to newer generations of plugins between two turns. The session's system prompt and tools stay unchanged.

use std::sync::Arc;
use std::time::Duration;

use hermes_session_store::EngineFaults;

use crate::error::AgentError;
use crate::hook_dispatcher::HookDispatcher;
use crate::host::Host;
use crate::live::Live;
use crate::live::plugins::surroundings;

/// How long a turn waits for a generation that is being built. A generation from the code cache is ready by then.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// Applies the changes of plugins. Must not run during a turn.
pub(crate) async fn take_over(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    let changes = host.plugins.changes(PATIENCE).await;
    if changes.is_empty() {
        return Ok(());
    }
    let session = host.store.session(&live.log.session).await?;
    let around =
        surroundings(host, &session, false, live.log.journal.history(), &live.plugins.notices, &live.plugins.gate);
    let taken = live.plugins.generations.take_over(changes, &around).await;
    live.plugins.gate.renew(taken.identities);
    taken.lines.into_iter().for_each(|line| live.plugins.notices.notice(line));
    if let Some(engine) = taken.engine {
        // A new generation starts without failures.
        let no_faults = EngineFaults { engine, in_a_row: 0, cause: String::new() };
        host.store.set_engine_faults(&live.log.session, &no_faults).await?;
        live.compaction.faults = 0;
        live.plugins.engine_version = no_faults.engine;
        live.compaction.compactor.engine_renewed();
        live.compaction.assistant.engine_renewed();
    }
    if taken.hooks {
        let (dispatcher, failed_hooks) = HookDispatcher::subscribe(&live.plugins.hooks).await;
        failed_hooks.into_iter().for_each(|notice| live.plugins.notices.notice(notice));
        let dispatcher = Arc::new(dispatcher);
        live.plugins.toolbox.set_dispatcher(Arc::clone(&dispatcher));
        // The old dispatcher still delivers its queued events.
        live.plugins.dispatcher = dispatcher;
    }
    Ok(())
}
