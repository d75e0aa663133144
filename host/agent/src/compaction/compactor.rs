//! Decides when the engine prepares and proposes, verifies its plans, and falls back to the host's own plan.

mod fallback;
mod preparation;
mod proposal;

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::payoff::Payoff;
use hermes_conversation::plan::{self, ReferenceState};
use hermes_conversation::{Conversation, Refusal, Usage, View};
use hermes_diagnostic::{Action, Fix, Notice};
use hermes_plugin_host::{
    CacheState, CallError, Cause, ContextEngine, MemoryEvents, Moment, Outcome, PlanRequest, Pressure, Timing,
};
use tokio::task::JoinHandle;

use self::preparation::{foldable, prepare};
use self::proposal::{PendingPlan, Want, first_line};
use super::memory;
use super::notify::Notify;
use super::ruler::Ruler;
use super::target::CompactionTarget;
use crate::error::AgentError;

/// Failures and refusals in a row after which the host no longer calls an engine.
pub const STRIKES: u32 = 3;
/// The share of the window, in percent, above which the host compacts before a turn even without a plan of the engine.
const HEAVY: u32 = 85;
/// The share of the window, in percent, that the host compacts to in this case.
const RELIEVED: u32 = 60;
/// The share of the window, in percent, that a conversation may take together with a larger prompt. Engines begin to
/// propose plans at about 60.
const BESIDE: u32 = 45;
/// Shorter conversations are folded neither because of a heavy window nor on request.
pub const LEAST_MESSAGES: usize = 4;

/// The settings of compaction.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether the engine is used. A full window is folded by the host's rules in any case.
    pub enabled: bool,
    /// The model's window in tokens.
    pub window: u32,
    /// How long a turn waits for an optional plan. A later plan is handled at the next request.
    pub patience: Duration,
}

/// A compaction that replaced the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// The reason of the engine or the host, one line.
    pub reason: String,
    /// The author of the view: the engine's name, or `host`.
    pub by: String,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
    /// Additional fields of the plan.
    pub extra: Vec<(String, String)>,
}

/// The preview of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The engine's reason, one line.
    pub reason: String,
    /// The new view.
    pub view: View,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}

/// A valid plan that was not adopted, because it does not pay off yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Deferral {
    /// The engine's reason, one line.
    pub reason: String,
    /// The number of requests over which the plan would have to pay off.
    pub requests: u32,
    /// The tokens of both views.
    pub payoff: Payoff,
    /// The price of a token read from the cache, in fresh ones.
    pub read_price: f64,
    /// The price of a token written to the cache, in fresh ones.
    pub write_price: f64,
}

/// Called for each plan that is deferred.
pub type OnDeferral = Arc<dyn Fn(Deferral) + Send + Sync>;

/// The context engine of a session with its current state.
pub struct Compactor {
    plugin: Arc<dyn ContextEngine>,
    memories: Vec<Arc<dyn MemoryEvents>>,
    rules: Rules,
    notify: Notify,
    ruler: Ruler,
    /// Whether the engine failed in this turn. It is called again in the next one.
    failed_in_turn: bool,
    /// Whether the user was notified that the engine is no longer called.
    notified: bool,
    /// The running preparation. It reports its own errors to the user.
    preparing: Option<JoinHandle<Result<(), CallError>>>,
    pending: Option<PendingPlan>,
    /// Tokens of the last request that was too heavy and could not be reduced; 0 if there is none.
    irreducible: u32,
    last_usage: Option<Usage>,
    on_deferral: Option<OnDeferral>,
}

impl Compactor {
    /// Creates a compactor. `memories` are queried before messages are folded.
    pub fn new(
        plugin: Arc<dyn ContextEngine>,
        memories: Vec<Arc<dyn MemoryEvents>>,
        rules: Rules,
        ruler: Ruler,
        notify: Notify,
    ) -> Self {
        Self {
            plugin,
            memories,
            rules,
            notify,
            ruler,
            failed_in_turn: false,
            notified: false,
            preparing: None,
            pending: None,
            irreducible: 0,
            last_usage: None,
            on_deferral: None,
        }
    }

    /// The same with a listener for deferred plans.
    pub fn with_listener(mut self, on_deferral: OnDeferral) -> Self {
        self.on_deferral = Some(on_deferral);
        self
    }

    /// The engine.
    pub fn plugin(&self) -> &Arc<dyn ContextEngine> {
        &self.plugin
    }

    /// Begins a turn: an engine that failed in the previous turn is called again.
    pub fn turn_begins(&mut self) {
        self.failed_in_turn = false;
    }

    /// Resets the state of failures for a new generation of the engine.
    pub fn engine_renewed(&mut self) {
        (self.failed_in_turn, self.notified) = (false, false);
    }

    /// Measures by the window and the counts of another model.
    pub fn measure_by(&mut self, window: u32, ruler: Ruler) {
        self.rules.window = window;
        (self.ruler, self.irreducible, self.last_usage) = (ruler, 0, None);
    }

    /// Updates the ruler with the provider's count for a request. Returns whether the ruler changed.
    pub fn counted(&mut self, estimate: u32, usage: Option<Usage>) -> bool {
        let moved = usage.is_some_and(|usage| self.ruler.read(estimate, &usage));
        if let Some(usage) = usage.filter(|usage| usage.input > 0) {
            self.last_usage = Some(usage);
        }
        moved
    }

    /// The token ratio of the model's provider.
    pub fn ruler(&self) -> &Ruler {
        &self.ruler
    }

    /// Whether a plan is pending. Until it arrives, every other call of the engine would have to wait.
    pub fn is_proposing(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.plan.is_finished())
    }

    /// Waits at most `patience` for a running preparation, then cancels it. A pending plan is cancelled at once.
    pub async fn finish(&mut self, patience: Duration) {
        if let Some(pending) = self.pending.take() {
            pending.plan.abort();
        }
        if let Some(mut preparing) = self.preparing.take()
            && tokio::time::timeout(patience, &mut preparing).await.is_err()
        {
            preparing.abort();
        }
    }

    /// The estimated tokens of the next request.
    pub fn estimate(&self, target: &dyn CompactionTarget) -> u32 {
        target.fixed_tokens().saturating_add(target.conversation().view_tokens(target.view()))
    }

    /// The tokens of the next request in the provider's counts, as far as they are known.
    pub fn next_request(&self, target: &dyn CompactionTarget) -> u32 {
        self.ruler.counted(self.estimate(target))
    }

    /// The most estimated tokens for the messages of a request.
    pub fn limit(&self, target: &dyn CompactionTarget) -> u32 {
        self.ruler.estimated(self.rules.window - reserve(self.rules.window)).saturating_sub(target.fixed_tokens())
    }

    /// Whether the current view leaves enough room next to a prompt and tools of the given size. Otherwise another
    /// compaction would follow at once.
    pub fn fits_beside(&self, target: &dyn CompactionTarget, fixed: u32) -> bool {
        let shown = target.conversation().view_tokens(target.view());
        fixed <= target.fixed_tokens()
            || self.ruler.counted(shown.saturating_add(fixed)) <= self.rules.window / 100 * BESIDE
    }

    /// Consults the engine before a request and makes sure that the request fits. `done` receives the compactions, also
    /// before an error.
    pub async fn make_room(
        &mut self,
        target: &mut dyn CompactionTarget,
        moment: Moment,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let overflow = moment == Moment::Overflow;
        let before = self.next_request(target);
        self.finish_preparation(target).await?;
        let pressed =
            |at: &Self, target: &dyn CompactionTarget| overflow || at.is_full(target) || at.is_heavy(target, moment);
        if self.rules.enabled && self.is_available(target) {
            self.take_pending(target, done).await?;
            if self.is_proposing() {
                if !pressed(self, target) {
                    return Ok(());
                }
                self.await_pending(target, done).await?;
            }
            if !done.is_empty() && !pressed(self, target) {
                return Ok(());
            }
        }
        if self.rules.enabled && self.is_available(target) {
            let pressure = self.pressure(target, moment);
            let plugin = Arc::clone(&self.plugin);
            match plugin.assess(&pressure).await {
                Ok(advice) => {
                    let demanded = pressed(self, target);
                    let want = match advice.propose {
                        _ if demanded => Some(Want::Demanded),
                        Timing::Now => Some(Want::Now),
                        Timing::Boundary => Some(Want::Boundary { requests: pressure.expected_requests }),
                        Timing::NotNow => None,
                    };
                    if let Some(want) = want {
                        self.propose(target, pressure.clone(), None, want, done).await?;
                    }
                    if advice.prepare {
                        self.prepare(target, pressure);
                    }
                }
                Err(error) => self.engine_failed(target, &error).await?,
            }
        }
        let has_shrunk = self.next_request(target) < before / 10 * 9;
        if self.is_full(target) || (overflow && !has_shrunk) {
            return self.fold_by_rule(target, overflow, done).await;
        }
        if self.rules.enabled && self.is_heavy(target, moment) {
            // The host reduces a heavy window itself. If it cannot, the request still fits.
            self.lighten(target, done).await?;
        }
        if moment == Moment::TurnStart {
            let next = self.next_request(target);
            self.irreducible = if next > heavy(self.rules.window) { next } else { 0 };
        }
        Ok(())
    }

    /// Lets the engine assess the conversation after a turn, and prepare while the user reads.
    pub async fn turn_ended(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        self.assess_end(target, true).await
    }

    /// Lets the engine assess the conversation after the only turn of a process. Nothing is prepared, because the process ends.
    pub async fn single_turn_ended(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        self.assess_end(target, false).await
    }

    async fn assess_end(&mut self, target: &mut dyn CompactionTarget, prepares: bool) -> Result<(), AgentError> {
        self.finish_preparation(target).await?;
        if !self.rules.enabled || self.is_proposing() || !self.is_available(target) {
            return Ok(());
        }
        let pressure = self.pressure(target, Moment::TurnEnd);
        let plugin = Arc::clone(&self.plugin);
        match plugin.assess(&pressure).await {
            Ok(advice) if advice.prepare && prepares => self.prepare(target, pressure),
            Ok(_) => {}
            Err(error) => self.engine_failed(target, &error).await?,
        }
        Ok(())
    }

    /// `/compress`: compacts now, however full the window is, even with an engine that is otherwise no longer called.
    /// Returns whether a view was adopted.
    pub async fn compress(
        &mut self,
        target: &mut dyn CompactionTarget,
        focus: Option<&str>,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        self.failed_in_turn = false;
        self.await_pending(target, done).await?;
        let pressure = self.pressure(target, Moment::Manual);
        let mut request = self.request(target, pressure.clone(), focus);
        // The user waits for this compaction, so the engine may prepare first.
        request.memory_context = memory::texts_to_keep(&self.memories, foldable(target), &self.notify).await;
        let plugin = Arc::clone(&self.plugin);
        if let Err(error) = prepare(plugin.as_ref(), &request, &self.notify).await {
            (self.notify)(format!("{error}; what is prepared already counts").into());
            self.preparation_failed(target, &error).await?;
        }
        self.propose(target, pressure, focus, Want::Asked, done).await
    }

    /// What [`Compactor::compress`] would change with the current preparation. Changes nothing and calls no model.
    pub async fn preview(
        &mut self,
        target: &dyn CompactionTarget,
        focus: Option<&str>,
    ) -> Result<Result<Option<Preview>, Refusal>, CallError> {
        let request = self.request(target, self.pressure(target, Moment::Manual), focus);
        let plugin = Arc::clone(&self.plugin);
        let Some(plan) = plugin.propose(&request).await? else { return Ok(Ok(None)) };
        let preview = self.check(target, &plan, true).map(|view| {
            let conversation = target.conversation();
            let (before, after) = (conversation.view_tokens(target.view()), conversation.view_tokens(&view));
            Some(Preview { reason: first_line(&plan), view, before, after })
        });
        // A preview must not report a refusal: the engine would drop its preparation.
        self.settle(&Outcome::Deferred).await;
        Ok(preview)
    }

    fn is_available(&mut self, target: &dyn CompactionTarget) -> bool {
        let faults = target.faults();
        if faults >= STRIKES && !self.notified {
            self.notified = true;
            let text = format!(
                "the context engine `{}` failed {faults} times in a row and is no longer called in this session; a full window \
                 is compacted by rule",
                self.plugin.name()
            );
            (self.notify)(Notice::new(text, Fix::from(Action::Compress).or(Action::ChooseEngine)));
        }
        !self.failed_in_turn && faults < STRIKES
    }

    async fn failed(&mut self, target: &mut dyn CompactionTarget, cause: &str) -> Result<(), AgentError> {
        self.failed_in_turn = true;
        let faults = target.faults().saturating_add(1);
        target.keep_faults(faults, cause).await?;
        self.is_available(target);
        Ok(())
    }

    async fn engine_failed(&mut self, target: &mut dyn CompactionTarget, error: &CallError) -> Result<(), AgentError> {
        let log = Action::ReadPluginLog { plugin: error.plugin.clone() };
        (self.notify)(Notice::new(format!("{}; the turn continues without it", engine_failure(error)), log));
        self.failed(target, &error.to_string()).await
    }

    fn pressure(&self, target: &dyn CompactionTarget, moment: Moment) -> Pressure {
        Pressure {
            moment,
            prompt_tokens: self.next_request(target),
            estimated: !self.ruler.is_calibrated(),
            fixed_tokens: target.fixed_tokens(),
            context_length: self.rules.window,
            reserve: reserve(self.rules.window),
            room: self.room(target, moment),
            expected_requests: expected(moment),
            cache: target.cache(),
            last: self.last_usage,
        }
    }

    /// The most tokens of a view that would be adopted now.
    fn room(&self, target: &dyn CompactionTarget, moment: Moment) -> u32 {
        let conversation = target.conversation();
        let must_shrink = moment == Moment::Manual || !is_free(&target.cache());
        plan::room(&self.ground(target, &conversation, must_shrink))
    }

    /// What a plan is checked against.
    fn ground<'g>(
        &self,
        target: &'g dyn CompactionTarget,
        conversation: &'g Conversation,
        must_shrink: bool,
    ) -> ReferenceState<'g> {
        ReferenceState {
            conversation,
            view: target.view(),
            summaries: target.summaries(),
            limit: self.limit(target),
            must_shrink,
        }
    }

    fn request(&self, target: &dyn CompactionTarget, pressure: Pressure, focus: Option<&str>) -> PlanRequest {
        PlanRequest {
            pressure,
            view: target.conversation().priced_items(target.view()),
            focus: focus.map(str::to_owned),
            memory_context: String::new(),
        }
    }

    fn is_full(&self, target: &dyn CompactionTarget) -> bool {
        target.conversation().view_tokens(target.view()) > self.limit(target)
    }

    /// Whether a turn would begin with hardly any room in the window. After an attempt that could not reduce the request,
    /// for example because of a large prompt, the next attempt waits until the request has grown: each attempt rewrites
    /// the view.
    fn is_heavy(&self, target: &dyn CompactionTarget, moment: Moment) -> bool {
        let most = heavy(self.rules.window).max(self.irreducible.saturating_add(self.irreducible / 20));
        moment == Moment::TurnStart
            && target.conversation().messages().len() >= LEAST_MESSAGES
            && self.next_request(target) > most
    }
}

/// Background work ends with the session.
impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(preparing) = &self.preparing {
            preparing.abort();
        }
        if let Some(pending) = &self.pending {
            pending.plan.abort();
        }
    }
}

/// The failure in a sentence for the user. The place of a panic in the engine's source is only in the log, for its author.
fn engine_failure(error: &CallError) -> String {
    let Cause::Trap(crash) = &error.cause else { return error.to_string() };
    format!("the context engine `{}` {} crashed: {}", error.plugin, error.version, crash.what)
}

/// Whether another view costs nothing more: nothing of this one is in the provider's cache, or it breaks anyway.
fn is_free(cache: &CacheState) -> bool {
    cache.warm_tokens == 0 || cache.breaking
}

/// The tokens of a request above which the host compacts before a turn.
pub fn heavy(window: u32) -> u32 {
    window / 100 * HEAVY
}

/// The tokens kept free for the reply.
pub fn reserve(window: u32) -> u32 {
    (window / 5).min(8_192)
}

/// The expected number of further requests: a turn that calls tools continues with more calls.
fn expected(moment: Moment) -> u32 {
    match moment {
        Moment::TurnStart | Moment::MidTurn | Moment::Overflow => 10,
        Moment::TurnEnd | Moment::Manual => 5,
        Moment::Idle => 1,
    }
}
