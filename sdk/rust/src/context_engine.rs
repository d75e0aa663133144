//! Deciding when to compact the conversation, and into what.

use crate::export::Slot;
use crate::{Error, Extra, Header, MessageId, Model, Plugin, Progress};

use crate::bindings::context_engine::exports::hermes::context_engine::context_engine as wit;
pub use wit::{
    Advice, CacheState, Excerpt, Item, Moment, Outcome, Plan, Pressure, Request, Segment, ShownExcerpt, ShownSummary,
    Summary, Timing,
};

impl Advice {
    /// Whether to prepare in the background, and how urgent a plan is.
    pub fn new(prepare: bool, propose: Timing) -> Self {
        Self { prepare, propose, extra: Extra::new() }
    }
}

impl Pressure {
    /// A window of this length in tokens at the end of a turn, with so many tokens in use, for tests.
    pub fn new(prompt_tokens: u32, context_length: u32) -> Self {
        let cache = CacheState {
            warm_tokens: 0,
            warm_until: None,
            read_price: 0.1,
            write_price: 1.25,
            breaking: false,
            extra: Extra::new(),
        };
        Self {
            moment: Moment::TurnEnd,
            prompt_tokens,
            estimated: false,
            fixed_tokens: 0,
            context_length,
            reserve: 0,
            expected_requests: 1,
            cache,
            last: None,
            extra: Extra::new(),
        }
    }
}

/// The tokens that the host's frame adds to the text of a summary, at most.
const FRAME: u32 = 110;

impl Pressure {
    /// The most tokens that the next view may take: the sum of [`Header::tokens`] of the messages that it shows, and of
    /// [`Summary::tokens`]. An older host gives no number; then it is what reply, prompt and tools leave of the window.
    pub fn room(&self) -> u32 {
        let window = || self.context_length.saturating_sub(self.reserve).saturating_sub(self.fixed_tokens);
        number(&self.extra, "room").unwrap_or_else(window)
    }
}

impl Summary {
    /// The most tokens that it takes in a view.
    pub fn tokens(&self) -> u32 {
        crate::llm::count_tokens(&self.content).saturating_add(FRAME)
    }
}

/// The size of a plan that the host refused for its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversize {
    /// The tokens that the new view would take.
    pub needed: u32,
    /// The most that it may take.
    pub room: u32,
}

impl Oversize {
    /// Reads the outcome of a plan; `None` if its size is not why it was refused.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        let Outcome::Refused(error) = outcome else { return None };
        Some(Self { needed: number(&error.extra, "needed")?, room: number(&error.extra, "room")? })
    }
}

fn number(extra: &Extra, key: &str) -> Option<u32> {
    extra.iter().find(|(name, _)| name == key)?.1.parse().ok()
}

impl Request {
    /// A request for a plan about this view, for tests.
    pub fn new(pressure: Pressure, view: impl Into<Vec<Item>>) -> Self {
        Self { pressure, view: view.into(), focus: None, memory_context: String::new(), extra: Extra::new() }
    }
}

/// A context engine. It receives the headers of messages, reads texts through [`history`](crate::history), and answers
/// [`propose`](ContextEngine::propose) with a new view over message ids.
pub trait ContextEngine: Plugin {
    /// The session uses another model, whose window applies from now on.
    fn model_changed(&mut self, model: Model) -> Result<(), Error>;

    /// Delivers headers of the messages stored since the last call, in order. The first call to an instance delivers the
    /// whole conversation.
    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error>;

    /// The user rewound the conversation: this message and all later ones are gone.
    fn rewound(&mut self, first: MessageId) -> Result<(), Error>;

    /// Called after every reply and before every request.
    fn assess(&mut self, pressure: &Pressure) -> Advice;

    /// Prepares slow work with at most one model call, on an instance of its own. The host calls again while the result is
    /// [`Progress::More`].
    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        let _ = request;
        Ok(Progress::Done)
    }

    /// Returns the new view from prepared work, or `None` to keep the current one. Must not call a model.
    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error>;

    /// Reports the outcome of the last plan.
    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let _ = outcome;
        Ok(())
    }

    /// A JSON object with status for `/context`.
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
