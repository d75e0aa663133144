//! The functions of the contract, as the host calls them.

use std::sync::Arc;

use hermes_bindings::hermes::plugin::types::Error;
use hermes_conversation::{MessageRange, Model, Plan};

use crate::convert;
use crate::error::{CallError, Cause};
use crate::instance::{Asked, Instance, Recipe};
use crate::limits::Limit;
use crate::live::Live;
use crate::size::Size;
use crate::types::{
    Advice, AssistDraft, Event, Invocation, Outcome, Output, PlanRequest, Pressure, Progress, Query, Quote,
    Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

/// Calls a function of a kind; `$live` is named by the caller.
macro_rules! ask {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, |$live:ident| $call:expr) => {{
        let asked = Asked { name: $name, within: Limit::$deadline, bytes: $bytes };
        $instance.call(asked, move |$live: &mut Live| Box::pin(async move { $call.await })).await
    }};
}

/// As [`ask`], for an engine that is first told what it has not heard of.
macro_rules! ask_engine {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, |$live:ident| $call:expr) => {
        ask!($instance, $name, $deadline, $bytes, |$live| async {
            match $live.catch_up().await? {
                Ok(()) => $call.await,
                Err(error) => Ok(Err(error)),
            }
        })
    };
}

impl Instance {
    fn answered<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        self.recipe().answered(call, answer)
    }

    /// Tells a context engine that another model serves the session from now on.
    pub async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        let model = convert::model(model);
        let answer = ask!(self, "model-changed", TurnTime, 0, |live| live.model_changed(&model))?;
        self.answered("model-changed", answer)
    }

    /// Whether to prepare or to propose.
    pub async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        let pressure = convert::pressure(pressure);
        let answer = ask_engine!(self, "assess", TurnTime, 0, |live| async { Ok(Ok(live.assess(&pressure).await?)) })?;
        self.answered("assess", answer)
    }

    /// A step of slow work, for an instance in the background.
    pub async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        let request = convert::plan_request(request);
        let answer = ask_engine!(self, "prepare", BackgroundTime, request.size(), |live| live.prepare(&request))?;
        self.answered("prepare", answer)
    }

    /// A new view, or none.
    pub async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        let request = convert::plan_request(request);
        let answer = ask_engine!(self, "propose", TurnTime, request.size(), |live| live.propose(&request))?;
        Ok(self.answered("propose", answer)?.map(convert::plan_back))
    }

    /// What became of the plan just proposed.
    pub async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        let outcome = convert::outcome(outcome);
        let answer = ask!(self, "settled", TurnTime, outcome.size(), |live| live.settled(&outcome))?;
        self.answered("settled", answer)
    }

    /// An engine's own words for `/context`: a JSON object.
    pub async fn status(&self) -> Result<String, CallError> {
        let answer = ask_engine!(self, "status", TurnTime, 0, |live| async { Ok(Ok(live.status().await?)) })?;
        self.answered("status", answer)
    }

    /// Passages that an engine would put behind a message which is about to take its final form.
    pub async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        let bytes = draft.size();
        let answer = ask_engine!(self, "assist", RecallTime, bytes, |live| live.assist(&draft, budget))?;
        self.answered("assist", answer)
    }

    /// What a memory provider would have a summary keep; in the background.
    pub async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        let messages = convert::range(messages);
        let answer = ask!(self, "before-compact", BackgroundTime, 0, |live| live.before_compact(messages))?;
        self.answered("before-compact", answer)
    }

    /// A memory provider's text for the system prompt; may be empty.
    pub async fn system_prompt(&self) -> Result<String, CallError> {
        let answer = ask!(self, "system-prompt", TurnTime, 0, |live| live.system_prompt())?;
        self.answered("system-prompt", answer)
    }

    /// What a memory provider remembers for what the user said.
    pub async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        let answer = ask!(self, "recall", RecallTime, query.size(), |live| live.recall(&query))?;
        self.answered("recall", answer)
    }

    /// Hands a turn to a memory provider, in the background.
    pub async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        let turn = convert::turn(turn);
        let answer = ask!(self, "sync-turn", BackgroundTime, turn.size(), |live| live.sync_turn(&turn))?;
        self.answered("sync-turn", answer)
    }

    /// The tools it offers.
    pub async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        ask!(self, "catalog", TurnTime, 0, |live| live.catalog())
    }

    /// The skills it offers.
    pub async fn skills(&self) -> Result<Vec<Skill>, CallError> {
        let answer = ask!(self, "index", TurnTime, 0, |live| live.index())?;
        self.answered("index", answer)
    }

    /// A skill, or one of its files.
    pub async fn skill(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        let answer = ask!(self, "view", TurnTime, name.size() + path.size(), |live| live.view(&name, path.as_deref()))?;
        self.answered("view", answer)
    }

    /// The events that hooks want to be told of.
    pub async fn interests(&self) -> Result<Vec<String>, CallError> {
        ask!(self, "interests", TurnTime, 0, |live| live.interests())
    }

    /// Tells hooks of an event.
    pub async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        ask!(self, "on-event", TurnTime, event.size(), |live| live.on_event(&event))
    }
}

impl Recipe {
    /// Runs a tool in an instance that nobody else has meanwhile.
    pub async fn call_tool(self: &Arc<Self>, invocation: Invocation) -> Result<Output, CallError> {
        let asked = Asked { name: "call", within: Limit::ToolTime, bytes: invocation.size() };
        let answer =
            self.once(asked, move |live: &mut Live| Box::pin(async move { live.call(&invocation).await })).await?;
        self.answered("call", answer)
    }

    fn answered<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        answer.map_err(|error| self.error(call, Cause::Fault(Box::new(convert::fault_back(error)))))
    }
}
