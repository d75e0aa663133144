//! The functions of the contract, as the host calls them.

use std::sync::Arc;

use hermes_bindings::hermes::plugin::types::Error;
use hermes_conversation::{MessageRange, Model, Plan};

use crate::convert;
use crate::error::{CallError, Cause};
use crate::instance::{Asked, Instance, Live, Recipe};
use crate::limits::Limit;
use crate::size::Size;
use crate::types::{
    Advice, AssistDraft, Event, Invocation, Outcome, Output, PlanRequest, Pressure, Progress, Query, Quote,
    Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

/// A component that lacks the interface is not asked: that was read off its exports.
fn missing(interface: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it does not export `{interface}`"))
}

/// Tells a context engine of the messages that its instance has not heard of.
async fn catch_up(live: &mut Live) -> wasmtime::Result<Result<(), Error>> {
    let headers = live.store.data().services.history.headers_after(live.observed);
    let Some(last) = headers.last().map(|header| header.id) else { return Ok(Ok(())) };
    let headers: Vec<_> = headers.iter().map(convert::header).collect();
    let engine = live.context_engine.as_ref().ok_or_else(|| missing("context-engine"))?;
    let answer = engine.call_observe(&mut live.store, &headers).await?;
    if answer.is_ok() {
        live.observed = Some(last);
    }
    Ok(answer)
}

/// Calls a function of a kind; `$live` and `$guest` are named by the caller.
macro_rules! ask {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, $field:ident, |$live:ident, $guest:ident| $call:expr) => {{
        let asked = Asked { name: $name, within: Limit::$deadline, bytes: $bytes };
        $instance
            .call(asked, move |$live: &mut Live| {
                Box::pin(async move {
                    let $guest = $live.$field.as_ref().ok_or_else(|| missing($name))?;
                    $call.await
                })
            })
            .await
    }};
}

/// As [`ask`], for an engine that is first told what it has not heard of.
macro_rules! ask_engine {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, |$live:ident, $guest:ident| $call:expr) => {{
        let asked = Asked { name: $name, within: Limit::$deadline, bytes: $bytes };
        $instance
            .call(asked, move |$live: &mut Live| {
                Box::pin(async move {
                    if let Err(error) = catch_up($live).await? {
                        return Ok(Err(error));
                    }
                    let $guest = $live.context_engine.as_ref().ok_or_else(|| missing($name))?;
                    $call.await
                })
            })
            .await
    }};
}

impl Instance {
    fn answered<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        self.recipe().answered(call, answer)
    }

    /// Tells a context engine that another model serves the session from now on.
    pub async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        let model = convert::model(model);
        let answer = ask!(self, "model-changed", TurnTime, 0, context_engine, |live, engine| engine
            .call_model_changed(&mut live.store, &model))?;
        self.answered("model-changed", answer)
    }

    /// Whether to prepare or to propose.
    pub async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        let pressure = convert::pressure(pressure);
        let answer = ask_engine!(self, "assess", TurnTime, 0, |live, engine| async {
            Ok(Ok(engine.call_assess(&mut live.store, &pressure).await?))
        })?;
        self.answered("assess", answer)
    }

    /// A step of slow work, for an instance in the background.
    pub async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        let request = convert::plan_request(request);
        let answer = ask_engine!(self, "prepare", BackgroundTime, request.size(), |live, engine| engine
            .call_prepare(&mut live.store, &request))?;
        self.answered("prepare", answer)
    }

    /// A new view, or none.
    pub async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        let request = convert::plan_request(request);
        let answer = ask_engine!(self, "propose", TurnTime, request.size(), |live, engine| engine
            .call_propose(&mut live.store, &request))?;
        Ok(self.answered("propose", answer)?.map(convert::plan_back))
    }

    /// What became of the plan just proposed.
    pub async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        let outcome = convert::outcome(outcome);
        let answer = ask!(self, "settled", TurnTime, outcome.size(), context_engine, |live, engine| engine
            .call_settled(&mut live.store, &outcome))?;
        self.answered("settled", answer)
    }

    /// An engine's own words for `/context`: a JSON object.
    pub async fn status(&self) -> Result<String, CallError> {
        let answer = ask_engine!(self, "status", TurnTime, 0, |live, engine| async {
            Ok(Ok(engine.call_status(&mut live.store).await?))
        })?;
        self.answered("status", answer)
    }

    /// Passages that an engine would put behind a message which is about to take its final form.
    pub async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        let asked = Asked { name: "assist", within: Limit::RecallTime, bytes: draft.size() };
        let answer = self
            .call(asked, move |live: &mut Live| {
                Box::pin(async move {
                    if let Err(error) = catch_up(live).await? {
                        return Ok(Err(error));
                    }
                    let assist = live.context_assist.as_ref().ok_or_else(|| missing("context-assist"))?;
                    assist.call_assist(&mut live.store, &draft, budget).await
                })
            })
            .await?;
        self.answered("assist", answer)
    }

    /// What a memory provider would have a summary keep; in the background.
    pub async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        let messages = convert::range(messages);
        let answer = ask!(self, "before-compact", BackgroundTime, 0, memory_events, |live, memory| memory
            .call_before_compact(&mut live.store, messages))?;
        self.answered("before-compact", answer)
    }

    /// A memory provider's text for the system prompt; may be empty.
    pub async fn system_prompt(&self) -> Result<String, CallError> {
        let answer = ask!(self, "system-prompt", TurnTime, 0, memory_provider, |live, memory| memory
            .call_system_prompt(&mut live.store))?;
        self.answered("system-prompt", answer)
    }

    /// What a memory provider remembers for what the user said.
    pub async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        let answer = ask!(self, "recall", RecallTime, query.size(), memory_provider, |live, memory| memory
            .call_recall(&mut live.store, &query))?;
        self.answered("recall", answer)
    }

    /// Hands a turn to a memory provider, in the background.
    pub async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        let turn = convert::turn(turn);
        let answer = ask!(self, "sync-turn", BackgroundTime, turn.size(), memory_provider, |live, memory| memory
            .call_sync_turn(&mut live.store, &turn))?;
        self.answered("sync-turn", answer)
    }

    /// The tools it offers.
    pub async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        ask!(self, "catalog", TurnTime, 0, tools, |live, tools| tools.call_catalog(&mut live.store))
    }

    /// The skills it offers.
    pub async fn skills(&self) -> Result<Vec<Skill>, CallError> {
        let answer = ask!(self, "index", TurnTime, 0, skills, |live, skills| skills.call_index(&mut live.store))?;
        self.answered("index", answer)
    }

    /// A skill, or one of its files.
    pub async fn skill(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        let answer = ask!(self, "view", TurnTime, name.size() + path.size(), skills, |live, skills| skills.call_view(
            &mut live.store,
            &name,
            path.as_deref()
        ))?;
        self.answered("view", answer)
    }

    /// The events that hooks want to be told of.
    pub async fn interests(&self) -> Result<Vec<String>, CallError> {
        ask!(self, "interests", TurnTime, 0, hooks, |live, hooks| hooks.call_interests(&mut live.store))
    }

    /// Tells hooks of an event.
    pub async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        ask!(self, "on-event", TurnTime, event.size(), hooks, |live, hooks| hooks
            .call_on_event(&mut live.store, &event))
    }
}

impl Recipe {
    /// Runs a tool in an instance of its own.
    pub async fn call_tool(self: &Arc<Self>, invocation: Invocation) -> Result<Output, CallError> {
        let asked = Asked { name: "call", within: Limit::ToolTime, bytes: invocation.size() };
        let answer = self
            .once(asked, move |live: &mut Live| {
                Box::pin(async move {
                    let tools = live.tools.as_ref().ok_or_else(|| missing("tools"))?;
                    tools.call_call(&mut live.store, &invocation).await
                })
            })
            .await?;
        self.answered("call", answer)
    }

    fn answered<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        answer.map_err(|error| self.error(call, Cause::Fault(Box::new(convert::fault_back(error)))))
    }
}
