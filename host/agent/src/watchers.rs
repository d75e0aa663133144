//! Hooks: who is told of what. Only `before-tool` is waited for.

use std::sync::Arc;

use hermes_conversation::{ToolCall, Usage};
use hermes_plugin_host::{Event, Hooks, ToolDone, ToolEvent, Verdict, model_answered};
use tokio::sync::{mpsc, oneshot};

use crate::approval::Objection;

/// The hooks of a session, by what they want to be told of.
pub(crate) struct Watchers {
    before_tool: Vec<Arc<dyn Hooks>>,
    after_tool: Vec<Arc<dyn Hooks>>,
    before_model: Vec<Arc<dyn Hooks>>,
    after_model: Vec<Arc<dyn Hooks>>,
    /// Events that nobody waits for, told in the order in which they happened.
    queue: mpsc::UnboundedSender<Told>,
}

enum Told {
    Event(Arc<dyn Hooks>, Event),
    /// Answered when everything before it was told.
    Settled(oneshot::Sender<()>),
}

impl Watchers {
    /// Asks every hook what it wants to be told of.
    pub(crate) async fn gather(hooks: &[Arc<dyn Hooks>]) -> (Self, Vec<String>) {
        let mut watchers = Self {
            before_tool: Vec::new(),
            after_tool: Vec::new(),
            before_model: Vec::new(),
            after_model: Vec::new(),
            queue: teller(),
        };
        let mut notices = Vec::new();
        for hook in hooks {
            let interests = match hook.interests().await {
                Ok(interests) => interests,
                Err(error) => {
                    notices.push(format!("{error}; it watches nothing"));
                    continue;
                }
            };
            for (event, who) in [
                ("before-tool", &mut watchers.before_tool),
                ("after-tool", &mut watchers.after_tool),
                ("before-model", &mut watchers.before_model),
                ("after-model", &mut watchers.after_model),
            ] {
                if interests.iter().any(|interest| interest == event) {
                    who.push(Arc::clone(hook));
                }
            }
        }
        (watchers, notices)
    }

    /// Whether a tool may run, and who wants the user to say so; the text of an error goes to the model. A hook that
    /// fails is a hook that did not agree.
    pub(crate) async fn before_tool(&self, call: &ToolCall) -> Result<Vec<Objection>, String> {
        let mut objections = Vec::new();
        for hook in &self.before_tool {
            match hook.on_event(Event::BeforeTool(event(call))).await {
                Ok(Verdict::Proceed) => {}
                Ok(Verdict::Block(why)) => return Err(format!("blocked by `{}`: {why}", hook.name())),
                Ok(Verdict::Ask(why)) => objections.push(Objection { plugin: hook.name().to_owned(), why }),
                Err(error) => return Err(format!("not run, because a hook could not be asked: {error}")),
            }
        }
        Ok(objections)
    }

    pub(crate) fn after_tool(&self, call: &ToolCall, content: &str, failed: bool, elapsed_ms: u64) {
        self.tell(&self.after_tool, || {
            Event::AfterTool(ToolDone {
                event: event(call),
                content: content.to_owned(),
                failed,
                elapsed_ms: short(elapsed_ms),
            })
        });
    }

    pub(crate) fn before_model(&self, model: &str) {
        self.tell(&self.before_model, || Event::BeforeModel(model.to_owned()));
    }

    pub(crate) fn after_model(&self, model: &str, usage: Usage, elapsed_ms: u64) {
        self.tell(&self.after_model, || Event::AfterModel(model_answered(model, usage, short(elapsed_ms))));
    }

    fn tell(&self, hooks: &[Arc<dyn Hooks>], event: impl Fn() -> Event) {
        for hook in hooks {
            // The receiving task lives as long as this sender.
            let _ = self.queue.send(Told::Event(Arc::clone(hook), event()));
        }
    }

    /// Waits until every hook was told.
    pub(crate) async fn settle(&self) {
        let (settled, answer) = oneshot::channel();
        if self.queue.send(Told::Settled(settled)).is_ok() {
            let _ = answer.await;
        }
    }
}

/// A task that tells one event after the other.
fn teller() -> mpsc::UnboundedSender<Told> {
    let (sender, mut queue) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(told) = queue.recv().await {
            match told {
                Told::Event(hook, event) => {
                    if let Err(error) = hook.on_event(event).await {
                        tracing::warn!(%error, "a hook was not told of an event");
                    }
                }
                Told::Settled(settled) => drop(settled.send(())),
            }
        }
    });
    sender
}

fn event(call: &ToolCall) -> ToolEvent {
    ToolEvent { call_id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() }
}

fn short(milliseconds: u64) -> u32 {
    u32::try_from(milliseconds).unwrap_or(u32::MAX)
}
