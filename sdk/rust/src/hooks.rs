//! Watching the agent loop.

use crate::Plugin;
use crate::export::Slot;

use crate::bindings::hooks::exports::hermes::hooks::hooks as wit;
pub use wit::{Event, Notice, Reply, ToolDone, ToolEvent, Verdict};

/// Event names for [`Hooks::interests`].
pub mod interest {
    /// Before a tool call. The host waits for the verdict.
    pub const BEFORE_TOOL: &str = "before-tool";
    /// After a tool call, with its result.
    pub const AFTER_TOOL: &str = "after-tool";
    /// Before a request, with the model's name.
    pub const BEFORE_MODEL: &str = "before-model";
    /// After a reply, with its usage.
    pub const AFTER_MODEL: &str = "after-model";
}

impl ToolEvent {
    /// A call of a tool, for tests. `arguments` is a JSON object.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            call_id: "call".to_owned(),
            name: name.into(),
            arguments: arguments.into(),
            plugin: String::new(),
            extra: Vec::new(),
        }
    }
}

impl ToolDone {
    /// A finished call, for tests.
    pub fn new(event: ToolEvent, content: impl Into<String>, failed: bool) -> Self {
        Self { event, content: content.into(), failed, elapsed_ms: 0, extra: Vec::new() }
    }
}

/// A plugin that receives events of the agent loop and can stop a tool call.
pub trait Hooks: Plugin {
    /// The events to receive, see [`interest`]. Called once.
    fn interests(&self) -> Vec<&'static str>;

    /// Handles an event. A verdict other than [`Verdict::Proceed`] has an effect only before a tool call.
    fn on_event(&mut self, event: &Event) -> Verdict;
}

impl<S: Slot<Plugin: Hooks>> wit::Guest for S {
    fn interests() -> Vec<String> {
        S::expect("interests", |plugin| plugin.interests().into_iter().map(str::to_owned).collect())
    }

    fn on_event(event: Event) -> Verdict {
        S::expect("on-event", |plugin| plugin.on_event(&event))
    }
}
