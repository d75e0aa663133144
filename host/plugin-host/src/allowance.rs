//! The user's models within a plugin's grant: for some tasks, with a token budget for each session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use hermes_conversation::Model;
use hermes_runtime::services::{ModelReply, ModelRequest, Models};
use hermes_runtime::{Fault, FaultKind};

use crate::permission::{Llm, Right};

/// Models behind a grant.
pub(crate) struct Allowance {
    models: Arc<dyn Models>,
    plugin: String,
    granted: Llm,
    used: AtomicU64,
}

impl Allowance {
    /// Limits the models to the grant; returns them unchanged if the grant has no limits.
    pub(crate) fn of(models: Arc<dyn Models>, plugin: &str, granted: Option<&Llm>) -> Arc<dyn Models> {
        match granted {
            Some(granted) if *granted != Llm::default() => {
                Arc::new(Self { models, plugin: plugin.to_owned(), granted: granted.clone(), used: AtomicU64::new(0) })
            }
            _ => models,
        }
    }

    fn check(&self, task: &str) -> Result<(), Fault> {
        if self.granted.admits(task) {
            return Ok(());
        }
        let tasks = self.granted.tasks.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
        let name = Right::Llm.name();
        let plugin = &self.plugin;
        let why = format!(
            "denied: the plugin has permission to ask models (`{name}`) only for {tasks}, not for {task}; grant the plugin \
             `{plugin}` this task"
        );
        Err(Fault::new(FaultKind::Denied, "task", why))
    }
}

#[async_trait]
impl Models for Allowance {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        self.check(task)?;
        self.models.resolve(task)
    }

    async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault> {
        self.check(&request.task)?;
        let Some(budget) = self.granted.budget else { return self.models.complete(request).await };
        // Reserve the tokens before the call, so that concurrent calls cannot spend the same tokens. The real cost is known
        // after the reply, and never for a call whose caller stopped waiting.
        let sent: u64 = request.messages.iter().map(|(_, text)| u64::from(self.count_tokens(text))).sum();
        let taken = sent.saturating_add(request.max_tokens.map_or(0, u64::from));
        let take = |used: u64| used.checked_add(taken).filter(|sum| *sum <= budget);
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            let left = budget.saturating_sub(used);
            let plugin = &self.plugin;
            let why = format!(
                "this request of about {taken} tokens is more than the {left} that are left of the {budget} granted for a \
                 session; grant the plugin `{plugin}` more"
            );
            return Err(Fault::new(FaultKind::Exhausted, "budget", why));
        }
        let reply = self.models.complete(request).await;
        let cost = match &reply {
            Ok(reply) => u64::from(reply.usage.input) + u64::from(reply.usage.output),
            Err(_) => 0,
        };
        if cost > taken {
            self.used.fetch_add(cost - taken, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(taken - cost, Ordering::Relaxed);
        }
        reply
    }

    fn count_tokens(&self, text: &str) -> u32 {
        self.models.count_tokens(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Role, Usage};
    use hermes_runtime::services::Finish;

    use super::*;

    /// Counts one token for each byte, and ten for each reply.
    struct Bytes;

    #[async_trait]
    impl Models for Bytes {
        fn resolve(&self, _: &str) -> Result<Model, Fault> {
            Ok(Model { provider: "offline".into(), name: "bytes".into(), context_length: 1000 })
        }

        async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault> {
            let text = &request.messages[0].1;
            if text == "fail" {
                return Err(Fault::new(FaultKind::Unavailable, "network", "away"));
            }
            let usage =
                Usage { input: self.count_tokens(text), output: 10, cache_read: 0, cache_write: 0, reasoning: 0 };
            Ok(ModelReply { text: String::new(), finish: Finish::Stop, model: "bytes".into(), usage })
        }

        fn count_tokens(&self, text: &str) -> u32 {
            u32::try_from(text.len()).unwrap()
        }
    }

    fn asks(task: &str, text: &str) -> ModelRequest {
        let messages = vec![(Role::User, text.to_owned())];
        ModelRequest { task: task.into(), messages, max_tokens: Some(10), temperature: None, schema: None }
    }

    #[tokio::test]
    async fn a_grant_for_some_tasks_denies_others() {
        let granted = Llm { tasks: Some(vec!["compression".into()]), budget: None };
        let models = Allowance::of(Arc::new(Bytes), "mine", Some(&granted));
        assert!(models.resolve("compression").is_ok() && models.complete(asks("compression", "a")).await.is_ok());
        for fault in [models.resolve("memory").unwrap_err(), models.complete(asks("memory", "a")).await.unwrap_err()] {
            assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Denied, "task"));
            assert!(fault.message.contains("grant the plugin `mine`"), "{fault}");
        }
    }

    #[tokio::test]
    async fn a_budget_pays_for_answered_calls_and_not_for_failed_ones() {
        let models = Allowance::of(Arc::new(Bytes), "mine", Some(&Llm { tasks: None, budget: Some(40) }));
        for text in ["fail", "12345", "fail", "1234567890"] {
            let _ = models.complete(asks("any", text)).await;
        }
        let fault = models.complete(asks("any", "")).await.unwrap_err();
        assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Exhausted, "budget"));
        assert!(fault.message.contains("5 that are left of the 40"), "{fault}");
    }
}
