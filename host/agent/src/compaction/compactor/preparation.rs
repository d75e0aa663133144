//! Slow work of the engine in the background.

use std::sync::Arc;

use hermes_conversation::MessageRange;
use hermes_plugin_host::{CallError, ContextEngine, PlanRequest, Pressure, Progress};

use super::Compactor;
use crate::compaction::memory;
use crate::compaction::notify::Notify;
use crate::compaction::target::CompactionTarget;
use crate::error::AgentError;

/// Steps of slow work in a row, each up to a call of a model: an engine that never has enough gets no more for nothing.
const STEPS: u32 = 256;

impl Compactor {
    /// Whether slow work is under way.
    pub fn is_preparing(&self) -> bool {
        self.preparing.as_ref().is_some_and(|preparing| !preparing.is_finished())
    }

    /// Starts slow work unless some is under way.
    pub(super) fn prepare(&mut self, target: &dyn CompactionTarget, pressure: Pressure) {
        if self.is_preparing() {
            return;
        }
        let mut request = self.request(target, pressure, None);
        let folds = foldable(target);
        let (plugin, memories, notify) = (Arc::clone(&self.plugin), self.memories.clone(), Arc::clone(&self.notify));
        self.preparing = Some(tokio::spawn(async move {
            request.memory_context = memory::keepsakes(&memories, folds, &notify).await;
            let prepared = prepare(plugin.as_ref(), &request, &notify).await;
            if let Err(error) = &prepared {
                notify(format!("{error}; nothing was prepared, and the conversation is whole").into());
            }
            prepared
        }));
    }

    /// Takes up how slow work ended, if it has.
    pub(super) async fn take_prepared(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        let Some(ended) = self.preparing.take_if(|preparing| preparing.is_finished()) else { return Ok(()) };
        match ended.await {
            Ok(Err(error)) => self.prepared_badly(target, &error).await,
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// An engine that crashed has failed; that a model or a service was away is not its fault.
    pub(super) async fn prepared_badly(
        &mut self,
        target: &mut dyn CompactionTarget,
        error: &CallError,
    ) -> Result<(), AgentError> {
        match &error.cause {
            cause if cause.is_failure() => self.failed(target, &error.to_string()).await,
            _ => Ok(()),
        }
    }
}

/// Slow work, until there is no more of it.
pub(super) async fn prepare(
    plugin: &dyn ContextEngine,
    request: &PlanRequest,
    notify: &Notify,
) -> Result<(), CallError> {
    for _ in 0..STEPS {
        if plugin.prepare(request).await? == Progress::Done {
            return Ok(());
        }
    }
    let text = format!(
        "the context engine `{}` had not finished preparing after {STEPS} steps: the rest waits for the next request",
        plugin.name()
    );
    notify(text.into());
    Ok(())
}

/// The messages that a plan may fold: all that is shown but the last turn.
pub(super) fn foldable(target: &dyn CompactionTarget) -> Option<MessageRange> {
    let conversation = target.conversation();
    let turn = conversation.headers().last()?.turn;
    let end = conversation.headers().partition_point(|header| header.turn < turn);
    let last = conversation.headers()[..end].last()?.id;
    let first = conversation.items(target.view()).iter().find_map(|item| match item {
        hermes_conversation::Item::Messages(range) => Some(range.first),
        hermes_conversation::Item::Excerpt(excerpt) => Some(excerpt.id),
        hermes_conversation::Item::Summary(_) => None,
    })?;
    (first <= last).then(|| MessageRange::new(first, last))
}
