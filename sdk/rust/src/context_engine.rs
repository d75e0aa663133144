//! Deciding when the conversation is compacted, and into what.

use crate::export::Slot;
use crate::{Error, Header, MessageId, Model, Plugin, Progress};

use crate::bindings::context_engine::exports::hermes::plugin::context_engine as wit;
pub use wit::{
    Advice, CacheState, Excerpt, Item, Moment, Outcome, Plan, Pressure, Request, Segment, ShownExcerpt, ShownSummary,
    Summary, Timing,
};

/// A context engine: it learns of messages by their headers, reads them through [`history`](crate::history), and
/// answers [`propose`](ContextEngine::propose) with a new view over their ids.
pub trait ContextEngine: Plugin {
    /// The model whose window counts from now on.
    fn model_changed(&mut self, model: Model) -> Result<(), Error>;

    /// Headers of the messages stored since the last call, in order; the first call to an instance brings the whole
    /// conversation.
    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error>;

    /// The user took back this message and all that followed.
    fn rewound(&mut self, first: MessageId) -> Result<(), Error>;

    /// After every reply and before every request.
    fn assess(&mut self, pressure: &Pressure) -> Advice;

    /// Slow work ahead, up to one model call, on an instance of its own; called again while it answers
    /// [`Progress::More`].
    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        let _ = request;
        Ok(Progress::Done)
    }

    /// The new view from what is prepared, without a model; none leaves it as it is.
    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error>;

    /// What became of the plan just proposed.
    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let _ = outcome;
        Ok(())
    }

    /// A JSON object for `/context`.
    fn status(&self) -> String {
        "{}".to_owned()
    }
}

impl<S: Slot<Plugin: ContextEngine>> wit::Guest for S {
    fn model_changed(model: Model) -> Result<(), Error> {
        S::call("model-changed", |engine| engine.model_changed(model))
    }

    fn observe(headers: Vec<Header>) -> Result<(), Error> {
        S::call("observe", |engine| engine.observe(headers))
    }

    fn rewound(first: MessageId) -> Result<(), Error> {
        S::call("rewound", |engine| engine.rewound(first))
    }

    fn assess(pressure: Pressure) -> Advice {
        S::expect("assess", |engine| engine.assess(&pressure))
    }

    fn prepare(request: Request) -> Result<Progress, Error> {
        S::call("prepare", |engine| engine.prepare(&request))
    }

    fn propose(request: Request) -> Result<Option<Plan>, Error> {
        S::call("propose", |engine| engine.propose(&request))
    }

    fn settled(outcome: Outcome) -> Result<(), Error> {
        S::call("settled", |engine| engine.settled(&outcome))
    }

    fn status() -> String {
        S::expect("status", |engine| engine.status())
    }
}
