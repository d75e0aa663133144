//! What happens in a turn, for whoever shows it.

/// Takes events as they happen.
pub trait Observer: Send {
    /// Called in order, from the task that runs the turn.
    fn event(&mut self, event: Event<'_>);
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// A reply of the model is complete; calls may follow.
    ReplyDone,
    /// A tool begins.
    ToolStarted {
        /// Its name.
        name: &'a str,
        /// A JSON object.
        arguments: &'a str,
    },
    /// A tool has answered.
    ToolFinished {
        /// Its name.
        name: &'a str,
        /// What the model gets.
        content: &'a str,
        /// Whether it failed.
        failed: bool,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The view was replaced.
    Compacted {
        /// The engine's line.
        reason: &'a str,
        /// Who made the new one: the engine's name, or `host`.
        by: &'a str,
        /// Estimated tokens of the messages before.
        before: u32,
        /// Estimated tokens of the messages after.
        after: u32,
    },
    /// What the user should know: a plugin that failed, a retry, a fallback.
    Notice(&'a str),
    /// A plugin says what it is at; the next event overwrites it.
    Progress(&'a str),
    /// The user is about to be asked something by [`crate::Approver`]; no event comes before the answer.
    Asking,
}
