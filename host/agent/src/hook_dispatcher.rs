//! Sends events to hooks. Only `before-tool` is awaited; other events are queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermes_conversation::{ToolCall, Usage};
use hermes_plugin_host::{Event, Hooks, ToolDone, ToolEvent, Verdict, model_answered};
use hermes_protocol::Objection;
use tokio::sync::{mpsc, oneshot};

use crate::answer::Answer;

/// Most bytes of events that may wait for slow hooks while the model is asked again.
const MOST_WAITING: usize = 4 << 20;

/// The hooks of a session, grouped by the events they subscribed to.
pub(crate) struct HookDispatcher {
    before_tool: Vec<Arc<dyn Hooks>>,
    after_tool: Vec<Arc<dyn Hooks>>,
    before_model: Vec<Arc<dyn Hooks>>,
    after_model: Vec<Arc<dyn Hooks>>,
    /// Queued events, delivered in order.
    queue: mpsc::UnboundedSender<Delivery>,
    /// Bytes of the queued events.
    waiting: Arc<AtomicUsize>,
}

/// A call that a hook did not let pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    /// The hook's plugin.
    pub(crate) hook: String,
    /// The text for the model, with the hook's own words.
    pub(crate) text: String,
}

impl Blocked {
    fn by(hook: &str, text: String) -> Self {
        Self { hook: hook.to_owned(), text }
    }
}

enum Delivery {
    Event(Arc<dyn Hooks>, Event),
    /// Answered when everything before it was delivered.
    Settled(oneshot::Sender<()>),
}

impl HookDispatcher {
    /// Reads the subscriptions of every hook. Also returns notices of hooks that failed.
    pub(crate) async fn subscribe(hooks: &[Arc<dyn Hooks>]) -> (Self, Vec<String>) {
        let waiting = Arc::<AtomicUsize>::default();
        let mut dispatcher = Self {
            before_tool: Vec::new(),
            after_tool: Vec::new(),
            before_model: Vec::new(),
            after_model: Vec::new(),
            queue: delivery_task(Arc::clone(&waiting)),
            waiting,
        };
        let mut notices = Vec::new();
        for hook in hooks {
            let interests = match hook.interests().await {
                Ok(interests) => interests,
                Err(error) => {
                    notices.push(format!("{error}; the hook receives no events"));
                    continue;
                }
            };
            for (event, subscribers) in [
                ("before-tool", &mut dispatcher.before_tool),
                ("after-tool", &mut dispatcher.after_tool),
                ("before-model", &mut dispatcher.before_model),
                ("after-model", &mut dispatcher.after_model),
            ] {
                if interests.iter().any(|interest| interest == event) {
                    subscribers.push(Arc::clone(hook));
                }
            }
        }
        (dispatcher, notices)
    }

    /// Asks the hooks whether a tool may run. Returns the objections that need an approval. The text of an error goes to
    /// the model. A hook that fails blocks the call.
    pub(crate) async fn before_tool(&self, call: &ToolCall, owner: &str) -> Result<Vec<Objection>, Blocked> {
        let mut objections = Vec::new();
        for hook in &self.before_tool {
            match hook.on_event(Event::BeforeTool(event(call, owner))).await {
                Ok(Verdict::Proceed) => {}
                Ok(Verdict::Block(why)) => {
                    return Err(Blocked::by(hook.name(), format!("blocked by `{}`: {why}", hook.name())));
                }
                Ok(Verdict::Ask(why)) => objections.push(Objection { plugin: hook.name().to_owned(), why }),
                Err(error) => {
                    return Err(Blocked::by(hook.name(), format!("not run, because a hook failed: {error}")));
                }
            }
        }
        Ok(objections)
    }

    pub(crate) fn after_tool(&self, call: &ToolCall, owner: &str, answer: &Answer) {
        self.enqueue(&self.after_tool, || {
            Event::AfterTool(ToolDone {
                event: event(call, owner),
                content: answer.content.clone(),
                failed: answer.failed,
                elapsed_ms: short(answer.elapsed_ms),
                extra: Vec::new(),
            })
        });
    }

    pub(crate) fn before_model(&self, model: &str) {
        self.enqueue(&self.before_model, || Event::BeforeModel(model.to_owned()));
    }

    pub(crate) fn after_model(&self, model: &str, usage: Usage, elapsed_ms: u64) {
        self.enqueue(&self.after_model, || Event::AfterModel(model_answered(model, usage, short(elapsed_ms))));
    }

    fn enqueue(&self, hooks: &[Arc<dyn Hooks>], event: impl Fn() -> Event) {
        for hook in hooks {
            let event = event();
            self.waiting.fetch_add(size(&event), Ordering::Relaxed);
            // The receiving task lives as long as this sender.
            let _ = self.queue.send(Delivery::Event(Arc::clone(hook), event));
        }
    }

    /// Waits for slow hooks if too many bytes wait for them, so that the queue stays small. Every delivery has a deadline.
    pub(crate) async fn catch_up(&self) {
        if self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
            self.settle().await;
        }
    }

    /// Waits until all queued events are delivered.
    pub(crate) async fn settle(&self) {
        let (settled, answer) = oneshot::channel();
        if self.queue.send(Delivery::Settled(settled)).is_ok() {
            let _ = answer.await;
        }
    }
}

/// Starts the task that delivers events one after the other.
fn delivery_task(waiting: Arc<AtomicUsize>) -> mpsc::UnboundedSender<Delivery> {
    let (sender, mut queue) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(delivery) = queue.recv().await {
            match delivery {
                Delivery::Event(hook, event) => {
                    let bytes = size(&event);
                    if let Err(error) = hook.on_event(event).await {
                        tracing::warn!(%error, "a hook failed to handle an event");
                    }
                    waiting.fetch_sub(bytes, Ordering::Relaxed);
                }
                Delivery::Settled(settled) => drop(settled.send(())),
            }
        }
    });
    sender
}

/// About how many bytes an event takes.
fn size(event: &Event) -> usize {
    const REST: usize = 512;
    REST + match event {
        Event::AfterTool(done) => done.content.len() + done.event.arguments.len(),
        Event::BeforeTool(event) => event.arguments.len(),
        Event::BeforeModel(_) | Event::AfterModel(_) | Event::Other(_) => 0,
    }
}

fn event(call: &ToolCall, owner: &str) -> ToolEvent {
    ToolEvent {
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        plugin: owner.to_owned(),
        extra: Vec::new(),
    }
}

fn short(milliseconds: u64) -> u32 {
    u32::try_from(milliseconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
