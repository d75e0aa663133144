//! Background preparation of the engine, such as writing summaries.

use std::sync::Arc;

use hermes_conversation::MessageRange;
use hermes_plugin_host::{CallError, ContextEngine, PlanRequest, Pressure, Progress};

use super::Compactor;
use crate::compaction::memory;
use crate::compaction::notify::Notify;
use crate::compaction::target::CompactionTarget;
use crate::error::AgentError;

/// The most preparation steps in a row. Each step may call a model, so an engine that never finishes must be limited.
const MAX_STEPS: u32 = 256;

impl Compactor {
    /// Whether the engine is preparing.
    pub fn is_preparing(&self) -> bool {
        self.preparing.as_ref().is_some_and(|preparing| !preparing.is_finished())
    }

    /// Starts preparation unless it is already running.
    pub(super) fn prepare(&mut self, target: &dyn CompactionTarget, pressure: Pressure) {
        if self.is_preparing() {
            return;
        }
        let mut request = self.request(target, pressure, None);
        let folds = foldable(target);
        let (plugin, memories, notify) = (Arc::clone(&self.plugin), self.memories.clone(), Arc::clone(&self.notify));
        self.preparing = Some(tokio::spawn(async move {
            request.memory_context = memory::texts_to_keep(&memories, folds, &notify).await;
            let prepared = prepare(plugin.as_ref(), &request, &notify).await;
            if let Err(error) = &prepared {
                notify(format!("{error}; nothing was prepared, and the conversation is whole").into());
            }
            prepared
        }));
    }

    /// Handles the outcome of a preparation that has ended.
    pub(super) async fn finish_preparation(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        let Some(ended) = self.preparing.take_if(|preparing| preparing.is_finished()) else { return Ok(()) };
        match ended.await {
            Ok(Err(error)) => self.preparation_failed(target, &error).await,
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// Counts a failed preparation. Only crashes count: an unavailable model or service is not the engine's fault.
    pub(super) async fn preparation_failed(
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

/// Prepares until the engine has finished or has used all its steps.
pub(super) async fn prepare(
    plugin: &dyn ContextEngine,
    request: &PlanRequest,
    notify: &Notify,
) -> Result<(), CallError> {
    for _ in 0..MAX_STEPS {
        if plugin.prepare(request).await? == Progress::Done {
            return Ok(());
        }
    }
    let text = format!(
        "the context engine `{}` had not finished preparing after {MAX_STEPS} steps: the rest waits for the next request",
        plugin.name()
    );
    notify(text.into());
    Ok(())
}

/// The messages that a plan may fold: all visible messages except the last turn.
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
