//! One typed method for each contract function that the host calls.

use std::sync::Arc;
use std::time::Duration;

use hermes_bindings::exported::memory_prefetch::Prefetched;
use hermes_bindings::imported::types::Error;
use hermes_conversation::{MessageId, MessageRange, Model, Plan};

use crate::convert;
use crate::error::{CallError, Cause};
use crate::instance::{CallInfo, Instance, Recipe};
use crate::limits::{Limit, Limits};
use crate::live::Live;
use crate::services::{EmbeddingModel, EmbeddingRequest};
use crate::size::Size;
use crate::types::{
    Advice, AssistDraft, CallPreview, Event, Invocation, MemoryWrite, Outcome, Outlook, Output, PlanRequest, Pressure,
    Progress, Query, Quote, Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

/// Calls a contract function of an instance. The caller names the variable `$live`.
macro_rules! invoke {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, |$live:ident| $call:expr) => {{
        let info = CallInfo { name: $name, deadline: Limit::$deadline, longer: None, bytes: $bytes };
        $instance.call(info, move |$live: &mut Live| Box::pin(async move { $call.await })).await
    }};
}

/// Like [`invoke`], but first passes the context engine the message headers that its instance has not seen.
macro_rules! invoke_engine {
    ($instance:expr, $name:literal, $deadline:ident, $bytes:expr, |$live:ident| $call:expr) => {
        invoke!($instance, $name, $deadline, $bytes, |$live| async {
            match $live.catch_up().await? {
                Ok(()) => $call.await,
                Err(error) => Ok(Err(error)),
            }
        })
    };
}

impl Instance {
    fn result<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        self.recipe().result(call, answer)
    }

    /// Notifies a context engine that the session uses another model from now on.
    pub async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        let model = convert::model(model);
        let answer = invoke!(self, "model-changed", TurnTime, 0, |live| live.model_changed(&model))?;
        self.result("model-changed", answer)
    }

    /// Tells a context engine that the user took back a message and all later ones.
    pub async fn rewound(&self, first: MessageId) -> Result<(), CallError> {
        let answer = invoke!(self, "rewound", TurnTime, 0, |live| live.take_back(first))?;
        self.result("rewound", answer)
    }

    /// Asks a context engine whether it wants to prepare or to propose a plan.
    pub async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        let pressure = convert::pressure(pressure);
        let answer =
            invoke_engine!(self, "assess", TurnTime, 0, |live| async { Ok(Ok(live.assess(&pressure).await?)) })?;
        self.result("assess", answer)
    }

    /// Lets a context engine do one step of slow preparation. Meant for background instances.
    pub async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        let request = convert::plan_request(request);
        let answer = invoke_engine!(self, "prepare", BackgroundTime, request.size(), |live| live.prepare(&request))?;
        self.result("prepare", answer)
    }

    /// Asks a context engine for a plan of a new view; `None` leaves the view as it is.
    pub async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        let request = convert::plan_request(request);
        let answer = invoke_engine!(self, "propose", TurnTime, request.size(), |live| live.propose(&request))?;
        Ok(self.result("propose", answer)?.map(convert::plan_back))
    }

    /// Reports to the context engine what happened to the plan that it proposed last.
    pub async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        let outcome = convert::outcome(outcome);
        let answer = invoke!(self, "settled", TurnTime, outcome.size(), |live| live.settled(&outcome))?;
        self.result("settled", answer)
    }

    /// A context engine's status for `/context`: a JSON object.
    pub async fn status(&self) -> Result<String, CallError> {
        let answer = invoke_engine!(self, "status", TurnTime, 0, |live| async { Ok(Ok(live.status().await?)) })?;
        self.result("status", answer)
    }

    /// Passages that a context engine adds to a message before the message takes its final form.
    pub async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        let bytes = draft.size();
        let answer = invoke_engine!(self, "assist", RecallTime, bytes, |live| live.assist(&draft, budget))?;
        self.result("assist", answer)
    }

    /// Asks a memory provider what a summary should keep. Called in the background.
    pub async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        let messages = convert::range(messages);
        let answer = invoke!(self, "before-compact", BackgroundTime, 0, |live| live.before_compact(messages))?;
        self.result("before-compact", answer)
    }

    /// A memory provider's text for the system prompt; may be empty.
    pub async fn system_prompt(&self) -> Result<String, CallError> {
        let answer = invoke!(self, "system-prompt", TurnTime, 0, |live| live.system_prompt())?;
        self.result("system-prompt", answer)
    }

    /// A memory provider's memories for the user's message.
    pub async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        let answer = invoke!(self, "recall", RecallTime, query.size(), |live| live.recall(&query))?;
        self.result("recall", answer)
    }

    /// The same with the deadline of a call in the background, for a caller that uses a late answer.
    pub async fn recall_at_leisure(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        let answer = invoke!(self, "recall", BackgroundTime, query.size(), |live| live.recall(&query))?;
        self.result("recall", answer)
    }

    /// Passes a finished turn to a memory provider, in the background.
    pub async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        let turn = convert::turn(turn);
        let answer = invoke!(self, "sync-turn", BackgroundTime, turn.size(), |live| live.sync_turn(&turn))?;
        self.result("sync-turn", answer)
    }

    /// Passes a write of another memory provider to this one, in the background.
    pub async fn written(&self, write: MemoryWrite) -> Result<(), CallError> {
        let answer = invoke!(self, "written", BackgroundTime, write.size(), |live| live.written(&write))?;
        self.result("written", answer)
    }

    /// Tells a memory provider that the user took back a message of a session and all later ones, in the background.
    pub async fn turns_rewound(&self, session: String, first: MessageId) -> Result<(), CallError> {
        let answer = invoke!(self, "rewound", BackgroundTime, 0, |live| live.turns_rewound(&session, first.0))?;
        self.result("rewound", answer)
    }

    /// The tools that the plugin offers.
    pub async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        let answer = invoke!(self, "catalog", TurnTime, 0, |live| live.catalog())?;
        self.result("catalog", answer)
    }

    /// What a call of one of its tools would do.
    pub async fn preview(&self, name: String, arguments: String) -> Result<CallPreview, CallError> {
        let bytes = name.size() + arguments.size();
        let answer = invoke!(self, "preview", TurnTime, bytes, |live| live.preview(&name, &arguments))?;
        self.result("preview", answer).map(CallPreview::from)
    }

    /// The skills that the plugin offers.
    pub async fn skills(&self) -> Result<Vec<Skill>, CallError> {
        let answer = invoke!(self, "index", TurnTime, 0, |live| live.index())?;
        self.result("index", answer)
    }

    /// The text of a skill, or of one of its files if `path` is given.
    pub async fn skill(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        let answer =
            invoke!(self, "view", TurnTime, name.size() + path.size(), |live| live.view(&name, path.as_deref()))?;
        self.result("view", answer)
    }

    /// The names of the events that the plugin's hooks subscribe to.
    pub async fn interests(&self) -> Result<Vec<String>, CallError> {
        invoke!(self, "interests", TurnTime, 0, |live| live.interests())
    }

    /// Passes an event to the plugin's hooks.
    pub async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        invoke!(self, "on-event", TurnTime, event.size(), |live| live.on_event(&event))
    }
}

impl Instance {
    /// The model of an embedder: its name, and the length of its vectors.
    pub async fn describe(&self) -> Result<EmbeddingModel, CallError> {
        let answer = invoke!(self, "describe", TurnTime, 0, |live| live.describe())?;
        self.result("describe", answer).map(|described| EmbeddingModel {
            provider: self.recipe().plugin.clone(),
            name: described.model,
            dimensions: Some(described.dimensions),
        })
    }

    /// An embedder's vectors of these texts, unchecked.
    pub async fn embed(&self, request: EmbeddingRequest) -> Result<Vec<Vec<f32>>, CallError> {
        let request = convert::embedding_request(request);
        let answer = invoke!(self, "embed", ToolTime, request.size(), |live| live.embed(&request))?;
        self.result("embed", answer)
    }
}

/// The key of `tool.extra` with which a tool asks for more time than the limit `tool_time`, in milliseconds. The host passes it on in
/// `invocation.extra`.
pub const TIME_LIMIT: &str = "time-limit-ms";

/// The most time that a tool can ask for.
const LONGEST_TOOL_TIME: Duration = Duration::from_secs(600);

/// The time that the fields of a tool ask for.
fn time_limit(extra: &[(String, String)]) -> Option<Duration> {
    let (_, value) = extra.iter().find(|(key, _)| key == TIME_LIMIT)?;
    Some(Duration::from_millis(value.parse().ok()?).min(LONGEST_TOOL_TIME))
}

impl Recipe {
    /// Calls a tool in an instance that serves no other call meanwhile. The key [`TIME_LIMIT`] of `invocation.extra` gives it more
    /// time, unless the user or the manifest has set the limit `tool_time`.
    pub async fn call_tool(self: &Arc<Self>, invocation: Invocation) -> Result<Output, CallError> {
        let usual = Limits::of(self.loaded.exports().tier()).time(Limit::ToolTime);
        let longer = time_limit(&invocation.extra).filter(|longer| *longer > usual);
        let longer = longer.filter(|_| self.limits.time(Limit::ToolTime) == usual);
        let info = CallInfo { name: "call", deadline: Limit::ToolTime, longer, bytes: invocation.size() };
        let answer =
            self.call_once(info, move |live: &mut Live| Box::pin(async move { live.call(&invocation).await })).await?;
        self.result("call", answer).map(convert::output)
    }

    /// What a memory provider recalls for the next turn, in an instance of its own: turns are stored meanwhile.
    pub async fn prefetch(self: &Arc<Self>, outlook: Outlook) -> Result<Vec<Recollection>, CallError> {
        let info = CallInfo { name: "prefetch", deadline: Limit::BackgroundTime, longer: None, bytes: outlook.size() };
        let answer =
            self.call_once(info, move |live: &mut Live| Box::pin(async move { live.prefetch(&outlook).await })).await?;
        let prefetched = self.result("prefetch", answer)?;
        let recollection = |Prefetched { key, text, extra }| Recollection { key, text, extra };
        Ok(prefetched.into_iter().map(recollection).collect())
    }

    /// A step of a memory provider's upkeep, in an instance of its own.
    pub async fn upkeep(self: &Arc<Self>) -> Result<Progress, CallError> {
        let info = CallInfo { name: "upkeep", deadline: Limit::BackgroundTime, longer: None, bytes: 0 };
        let answer = self.call_once(info, |live: &mut Live| Box::pin(live.upkeep())).await?;
        self.result("upkeep", answer)
    }

    fn result<T>(&self, call: &'static str, answer: Result<T, Error>) -> Result<T, CallError> {
        answer.map_err(|error| self.error(call, Cause::Fault(Box::new(convert::fault_back(error)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_can_ask_for_ten_minutes_at_most() {
        let asked = |key: &str, value: &str| {
            time_limit(&[("x".to_owned(), "1".to_owned()), (key.to_owned(), value.to_owned())])
        };
        assert_eq!(asked(TIME_LIMIT, "60000"), Some(Duration::from_secs(60)));
        assert_eq!(asked(TIME_LIMIT, "600001"), Some(Duration::from_secs(600)));
        for (key, value) in [("time", "60000"), (TIME_LIMIT, "1min"), (TIME_LIMIT, "-1"), (TIME_LIMIT, "")] {
            assert_eq!(asked(key, value), None, "{key} {value}");
        }
    }
}
