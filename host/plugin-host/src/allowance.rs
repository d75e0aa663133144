//! The user's models within a plugin's grant: for some tasks, with a token budget for each session.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use hermes_conversation::tokens::{self, ImageRule};
use hermes_conversation::{Media, Model};
use hermes_runtime::services::{ModelReply, ModelRequest, Models, Pieces};
use hermes_runtime::{Fault, FaultKind};

use crate::permission::{Llm, Right};

/// Bytes of text that count as a token of a reply whose cost is not known yet.
const BYTES_PER_TOKEN: u64 = 4;

/// Models behind a grant.
pub(crate) struct Allowance {
    models: Arc<dyn Models>,
    plugin: String,
    granted: Llm,
    used: AtomicU64,
}

/// The models for one asker that is no plugin, with a budget of tokens. A request beyond it fails with the code `budget`.
pub fn budgeted(models: &Arc<dyn Models>, asker: &str, budget: u64) -> Arc<dyn Models> {
    Allowance::of(models, asker, Some(&Llm { tasks: None, budget: Some(budget) }))
}

impl Allowance {
    /// Limits the models to the grant; returns them unchanged if the grant has no limits.
    pub(crate) fn of(models: &Arc<dyn Models>, plugin: &str, granted: Option<&Llm>) -> Arc<dyn Models> {
        let models = models.of_plugin(plugin).unwrap_or_else(|| Arc::clone(models));
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

    fn exceeded(&self, what: &str, budget: u64) -> Fault {
        let plugin = &self.plugin;
        let why = format!("{what} left of the {budget} granted for a session; grant the plugin `{plugin}` more");
        Fault::new(FaultKind::Exhausted, "budget", why)
    }
}

/// The tokens of one request while its cost is unknown.
struct Spending<'a> {
    used: &'a AtomicU64,
    pieces: &'a Pieces,
    sent: u64,
    /// The reserved tokens.
    taken: u64,
    settled: bool,
}

impl Spending<'_> {
    /// The estimated tokens that a streaming plugin has received so far.
    fn received(&self) -> u64 {
        self.pieces.bytes().div_ceil(BYTES_PER_TOKEN)
    }

    /// Whether the reply so far exceeds the budget.
    fn is_over(&self, budget: u64) -> bool {
        let beyond = self.sent.saturating_add(self.received()).saturating_sub(self.taken);
        beyond > 0 && self.used.load(Ordering::Relaxed).saturating_add(beyond) > budget
    }

    /// Corrects the reservation by the real cost.
    fn settle(&mut self, reply: &Result<ModelReply, Fault>) {
        let cost = match reply {
            Ok(reply) => u64::from(reply.usage.input) + u64::from(reply.usage.output),
            Err(_) if self.received() > 0 => self.sent + self.received(),
            Err(_) => 0,
        };
        self.settled = true;
        self.correct(cost);
    }

    fn correct(&self, cost: u64) {
        if cost > self.taken {
            self.used.fetch_add(cost - self.taken, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(self.taken - cost, Ordering::Relaxed);
        }
    }
}

impl Drop for Spending<'_> {
    /// The caller stopped waiting: the reservation stays, and what it received beyond that is added.
    fn drop(&mut self) {
        if !self.settled {
            self.correct(self.sent.saturating_add(self.received()).max(self.taken));
        }
    }
}

#[async_trait]
impl Models for Allowance {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        self.check(task)?;
        self.models.resolve(task)
    }

    async fn stream(&self, request: ModelRequest, pieces: &Pieces) -> Result<ModelReply, Fault> {
        self.check(&request.task)?;
        let Some(budget) = self.granted.budget else { return self.models.stream(request, pieces).await };
        // Reserve the tokens before the call, so that concurrent calls cannot spend the same tokens. The real cost is known
        // after the reply, and never for a call whose caller stopped waiting.
        let texts = request.texts().map(|text| self.count_tokens(text));
        let sent: u64 = texts.chain(request.images().map(tokens_of)).map(u64::from).sum();
        let taken = sent.saturating_add(request.max_tokens.map_or(0, u64::from));
        let take = |used: u64| used.checked_add(taken).filter(|sum| *sum <= budget);
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            let left = budget.saturating_sub(used);
            return Err(self
                .exceeded(&format!("this request of about {taken} tokens is more than the {left} that are"), budget));
        }
        let mut spending = Spending { used: &self.used, pieces, sent, taken, settled: false };
        let mut running = self.models.stream(request, pieces);
        let reply = poll_fn(|context| match running.as_mut().poll(context) {
            // A plugin that streams has the tokens already, however the reply ends.
            Poll::Pending if spending.is_over(budget) => {
                Poll::Ready(Err(self.exceeded("the reply became longer than what is", budget)))
            }
            other => other,
        })
        .await;
        spending.settle(&reply);
        reply
    }

    fn count_tokens(&self, text: &str) -> u32 {
        self.models.count_tokens(text)
    }
}

/// Estimates the tokens of a picture, by the higher of the providers' rules.
fn tokens_of(image: &Media) -> u32 {
    let size = image.width.zip(image.height);
    tokens::of_image(ImageRule::Area, size).max(tokens::of_image(ImageRule::Tiles, size))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Role, Usage};
    use hermes_runtime::services::{Finish, Piece, PromptMessage};

    use super::*;

    /// Counts one token for each byte, and ten for each reply.
    struct Bytes;

    #[async_trait]
    impl Models for Bytes {
        fn resolve(&self, _: &str) -> Result<Model, Fault> {
            Ok(Model { provider: "offline".into(), name: "bytes".into(), context_length: 1000 })
        }

        async fn stream(&self, request: ModelRequest, pieces: &Pieces) -> Result<ModelReply, Fault> {
            let text = request.texts().next().unwrap();
            if text == "fail" {
                return Err(Fault::new(FaultKind::Unavailable, "network", "away"));
            }
            if text == "endless" {
                loop {
                    pieces.push(Piece::Text("word".to_owned()));
                    tokio::task::yield_now().await;
                }
            }
            let usage =
                Usage { input: self.count_tokens(text), output: 10, cache_read: 0, cache_write: 0, reasoning: 0 };
            Ok(ModelReply { text: String::new(), finish: Finish::Stop, model: "bytes".into(), usage })
        }

        fn count_tokens(&self, text: &str) -> u32 {
            u32::try_from(text.len()).unwrap()
        }
    }

    fn bytes() -> Arc<dyn Models> {
        Arc::new(Bytes)
    }

    fn asks(task: &str, text: &str) -> ModelRequest {
        let messages = vec![PromptMessage::text(Role::User, text)];
        ModelRequest { task: task.into(), messages, max_tokens: Some(10), temperature: None, schema: None }
    }

    #[tokio::test]
    async fn a_grant_for_some_tasks_denies_others() {
        let granted = Llm { tasks: Some(vec!["compression".into()]), budget: None };
        let models = Allowance::of(&bytes(), "mine", Some(&granted));
        assert!(models.resolve("compression").is_ok() && models.complete(asks("compression", "a")).await.is_ok());
        for fault in [models.resolve("memory").unwrap_err(), models.complete(asks("memory", "a")).await.unwrap_err()] {
            assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Denied, "task"));
            assert!(fault.message.contains("grant the plugin `mine`"), "{fault}");
        }
    }

    #[tokio::test]
    async fn a_budget_pays_for_answered_calls_and_not_for_failed_ones() {
        let models = Allowance::of(&bytes(), "mine", Some(&Llm { tasks: None, budget: Some(40) }));
        for text in ["fail", "12345", "fail", "1234567890"] {
            let _ = models.complete(asks("any", text)).await;
        }
        let fault = models.complete(asks("any", "")).await.unwrap_err();
        assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Exhausted, "budget"));
        assert!(fault.message.contains("5 that are left of the 40"), "{fault}");
    }
    #[tokio::test]
    async fn an_endless_reply_ends_with_the_budget() {
        let models = Allowance::of(&bytes(), "mine", Some(&Llm { tasks: None, budget: Some(100) }));
        let pieces = Pieces::kept();
        let fault = models.stream(asks("any", "endless"), &pieces).await.unwrap_err();
        assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::Exhausted, "budget"));
        assert!(pieces.bytes() <= 4 * 100, "{}", pieces.bytes());
        assert!(models.complete(asks("any", "a")).await.is_err(), "the reply was not paid");
    }

    #[tokio::test]
    async fn a_stream_that_is_dropped_half_way_is_paid() {
        let models = Allowance::of(&bytes(), "mine", Some(&Llm { tasks: None, budget: Some(100) }));
        let pieces = Pieces::kept();
        {
            let mut running = models.stream(asks("any", "endless"), &pieces);
            poll_fn(|context| {
                let polled = running.as_mut().poll(context);
                if pieces.bytes() < 4 * 70 { polled } else { Poll::Ready(Ok(reply())) }
            })
            .await
            .unwrap();
        }
        let fault = models.complete(asks("any", "12345678901234")).await.unwrap_err();
        assert!(fault.message.contains("23 that are left of the 100"), "{fault}");
    }

    fn reply() -> ModelReply {
        ModelReply { text: String::new(), finish: Finish::Stop, model: String::new(), usage: Usage::default() }
    }
}
