//! Watching the loop.

use crate::Plugin;
use crate::export::Slot;

use crate::bindings::hooks::exports::hermes::plugin::hooks as wit;
pub use wit::{Event, Notice, Reply, ToolDone, ToolEvent, Verdict};

/// Names for [`Hooks::interests`].
pub mod interest {
    /// Waited for: its verdict decides about the call.
    pub const BEFORE_TOOL: &str = "before-tool";
    /// With the result.
    pub const AFTER_TOOL: &str = "after-tool";
    /// With the model's name.
    pub const BEFORE_MODEL: &str = "before-model";
    /// With what it used.
    pub const AFTER_MODEL: &str = "after-model";
}

/// A plugin that is told of what the loop does, and may stop a tool call.
pub trait Hooks: Plugin {
    /// The events to be told of, see [`interest`]; asked once.
    fn interests(&self) -> Vec<&'static str>;

    /// Anything but [`Verdict::Proceed`] counts only before a tool.
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
