//! The engine is asked, its plan is checked, and the host has a plan of its own.

mod fallback;
mod preparation;
mod proposal;

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::{Refusal, Usage, View};
use hermes_diagnostic::{Action, Fix, Notice};
use hermes_plugin_host::{CallError, ContextEngine, MemoryEvents, Moment, Outcome, PlanRequest, Pressure, Timing};
use tokio::task::JoinHandle;

use self::preparation::{foldable, prepare};
use self::proposal::{Late, Want, first_line};
use super::memory;
use super::notify::Notify;
use super::ruler::Ruler;
use super::target::CompactionTarget;
use crate::error::AgentError;

/// Failures and refusals in a row after which an engine is no longer asked.
pub const STRIKES: u32 = 3;
/// Share of the window above which a turn does not begin, in hundredths: whatever the engine thinks.
const HEAVY: u32 = 85;
/// Share of the window that is left then, in hundredths.
const RELIEVED: u32 = 60;
/// Share of the window, in hundredths, up to which a larger prompt stands well beside a conversation: engines propose from
/// about 60 on.
const BESIDE: u32 = 45;
/// Fewer messages than these are folded neither for their weight alone nor because the user says so.
pub const LEAST_MESSAGES: usize = 4;

/// What compaction obeys.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether the engine is asked. A window that is really full is folded by rule in any case.
    pub enabled: bool,
    /// The model's window in tokens.
    pub window: u32,
    /// How long a turn waits for a plan that it can do without; one that comes later is taken up at the next request.
    pub patience: Duration,
}

/// A view that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// The engine's line, or the host's.
    pub reason: String,
    /// Who made the view: the engine's name or `host`.
    pub by: String,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
    /// What the plan says beside.
    pub extra: Vec<(String, String)>,
}

/// What a compaction would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The engine's line.
    pub reason: String,
    /// The view that it would make.
    pub view: View,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}

/// The context engine of a session, and how it has fared.
pub struct Compactor {
    plugin: Arc<dyn ContextEngine>,
    memories: Vec<Arc<dyn MemoryEvents>>,
    rules: Rules,
    notify: Notify,
    ruler: Ruler,
    /// It failed in this turn: it is asked again in the next one.
    resting: bool,
    /// The user knows that it is no longer asked.
    told: bool,
    /// Slow work under way; the error that it ends with is told already.
    preparing: Option<JoinHandle<Result<(), CallError>>>,
    late: Option<Late>,
    /// Tokens of a request that a turn began with though it is too heavy, since nothing made it lighter.
    borne: u32,
    last_usage: Option<Usage>,
}

impl Compactor {
    /// One that has asked nothing yet. `memories` are heard before messages are folded.
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
            resting: false,
            told: false,
            preparing: None,
            late: None,
            borne: 0,
            last_usage: None,
        }
    }

    /// The engine.
    pub fn plugin(&self) -> &Arc<dyn ContextEngine> {
        &self.plugin
    }

    /// A new turn: an engine that failed in the one before is asked again.
    pub fn turn_begins(&mut self) {
        self.resting = false;
    }

    /// Another generation of the engine serves from here on: it is asked, whatever the one before it did.
    pub fn engine_renewed(&mut self) {
        (self.resting, self.told) = (false, false);
    }

    /// Takes what a provider counted for a request whose estimate is known. True when its ruler is another one now.
    pub fn counted(&mut self, estimate: u32, usage: Option<Usage>) -> bool {
        let moved = usage.is_some_and(|usage| self.ruler.read(estimate, &usage));
        if let Some(usage) = usage.filter(|usage| usage.input > 0) {
            self.last_usage = Some(usage);
        }
        moved
    }

    /// How the model's provider counts.
    pub fn ruler(&self) -> &Ruler {
        &self.ruler
    }

    /// Whether a plan is on its way that no turn waits for. Until it comes, every other call would stand in line behind it.
    pub fn is_proposing(&self) -> bool {
        self.late.as_ref().is_some_and(|late| !late.plan.is_finished())
    }

    /// Lets slow work end that is under way, for as long as `patience`.
    pub async fn finish(&mut self, patience: Duration) {
        if let Some(late) = self.late.take() {
            late.plan.abort();
        }
        if let Some(mut preparing) = self.preparing.take()
            && tokio::time::timeout(patience, &mut preparing).await.is_err()
        {
            preparing.abort();
        }
    }

    /// Estimate for the next request, by the host's ruler.
    pub fn estimate(&self, target: &dyn CompactionTarget) -> u32 {
        target.fixed_tokens().saturating_add(target.conversation().view_tokens(target.view()))
    }

    /// Estimate for the next request, by the provider's ruler where it is known.
    pub fn next_request(&self, target: &dyn CompactionTarget) -> u32 {
        self.ruler.counted(self.estimate(target))
    }

    /// Tokens that the messages of a request may take, by the estimate.
    pub fn limit(&self, target: &dyn CompactionTarget) -> u32 {
        self.ruler.estimated(self.rules.window - reserve(self.rules.window)).saturating_sub(target.fixed_tokens())
    }

    /// Whether the conversation, as it is shown, stands well beside a prompt and tools of that size: with room to go
    /// on, or it would have to be compacted again at once.
    pub fn fits_beside(&self, target: &dyn CompactionTarget, fixed: u32) -> bool {
        let shown = target.conversation().view_tokens(target.view());
        fixed <= target.fixed_tokens()
            || self.ruler.counted(shown.saturating_add(fixed)) <= self.rules.window / 100 * BESIDE
    }

    /// Before a request: the engine is heard, and the window has room afterwards. What was done is in `done`, also where
    /// an error ends it.
    pub async fn make_room(
        &mut self,
        target: &mut dyn CompactionTarget,
        moment: Moment,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let overflow = moment == Moment::Overflow;
        let before = self.next_request(target);
        self.take_prepared(target).await?;
        let pressed =
            |at: &Self, target: &dyn CompactionTarget| overflow || at.is_full(target) || at.is_heavy(target, moment);
        if self.rules.enabled && self.may_be_asked(target) {
            self.take_late(target, done).await?;
            if self.is_proposing() {
                if !pressed(self, target) {
                    return Ok(());
                }
                self.await_late(target, done).await?;
            }
            if !done.is_empty() && !pressed(self, target) {
                return Ok(());
            }
        }
        if self.rules.enabled && self.may_be_asked(target) {
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
            // The second layer: whatever the engine thinks. Where it brings nothing, there is room still.
            self.lighten(target, done).await?;
        }
        if moment == Moment::TurnStart {
            let next = self.next_request(target);
            self.borne = if next > heavy(self.rules.window) { next } else { 0 };
        }
        Ok(())
    }

    /// After a turn, while the user reads: the engine may work ahead.
    pub async fn turn_ended(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        self.take_prepared(target).await?;
        if !self.rules.enabled || self.is_proposing() || !self.may_be_asked(target) {
            return Ok(());
        }
        let pressure = self.pressure(target, Moment::TurnEnd);
        let plugin = Arc::clone(&self.plugin);
        match plugin.assess(&pressure).await {
            Ok(advice) if advice.prepare => self.prepare(target, pressure),
            Ok(_) => {}
            Err(error) => self.engine_failed(target, &error).await?,
        }
        Ok(())
    }

    /// `/compress`: now, whatever the window says, also of an engine that is not asked by itself any more. True when a
    /// new view was adopted.
    pub async fn compress(
        &mut self,
        target: &mut dyn CompactionTarget,
        focus: Option<&str>,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        self.resting = false;
        self.await_late(target, done).await?;
        let pressure = self.pressure(target, Moment::Manual);
        let mut asked = self.request(target, pressure.clone(), focus);
        // The person waits for this one: what the engine can prepare, it may.
        asked.memory_context = memory::keepsakes(&self.memories, foldable(target), &self.notify).await;
        let plugin = Arc::clone(&self.plugin);
        if let Err(error) = prepare(plugin.as_ref(), &asked, &self.notify).await {
            (self.notify)(format!("{error}; what is prepared already counts").into());
            self.prepared_badly(target, &error).await?;
        }
        self.propose(target, pressure, focus, Want::Asked, done).await
    }

    /// What [`Compactor::compress`] would do with what is prepared by now; nothing is changed and no model is asked.
    pub async fn preview(
        &mut self,
        target: &dyn CompactionTarget,
        focus: Option<&str>,
    ) -> Result<Result<Option<Preview>, Refusal>, CallError> {
        let asked = self.request(target, self.pressure(target, Moment::Manual), focus);
        let plugin = Arc::clone(&self.plugin);
        let Some(plan) = plugin.propose(&asked).await? else { return Ok(Ok(None)) };
        let preview = self.check(target, &plan, true).map(|view| {
            let conversation = target.conversation();
            let (before, after) = (conversation.view_tokens(target.view()), conversation.view_tokens(&view));
            Some(Preview { reason: first_line(&plan), view, before, after })
        });
        // A look is no verdict: an engine that heard of a refusal would drop what it has prepared.
        self.settle(&Outcome::Deferred).await;
        Ok(preview)
    }

    fn may_be_asked(&mut self, target: &dyn CompactionTarget) -> bool {
        let faults = target.faults();
        if faults >= STRIKES && !self.told {
            self.told = true;
            let text = format!(
                "the context engine `{}` failed {faults} times in a row and is no longer asked in this session; a full window \
                 is compacted by rule",
                self.plugin.name()
            );
            (self.notify)(Notice::new(text, Fix::from(Action::Compress).or(Action::ChooseEngine)));
        }
        !self.resting && faults < STRIKES
    }

    async fn failed(&mut self, target: &mut dyn CompactionTarget, cause: &str) -> Result<(), AgentError> {
        self.resting = true;
        let faults = target.faults().saturating_add(1);
        target.keep_faults(faults, cause).await?;
        self.may_be_asked(target);
        Ok(())
    }

    async fn engine_failed(&mut self, target: &mut dyn CompactionTarget, error: &CallError) -> Result<(), AgentError> {
        (self.notify)(format!("{error}; the turn goes on without it").into());
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
            expected_requests: expected(moment),
            cache: target.cache(),
            last: self.last_usage,
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

    /// Whether a turn would begin with a window that has hardly any room. Where nothing helped, as beside a prompt that fills
    /// the window, it is not tried again at every turn, which would rewrite the view each time, but when more was said.
    fn is_heavy(&self, target: &dyn CompactionTarget, moment: Moment) -> bool {
        let most = heavy(self.rules.window).max(self.borne.saturating_add(self.borne / 20));
        moment == Moment::TurnStart
            && target.conversation().messages().len() >= LEAST_MESSAGES
            && self.next_request(target) > most
    }
}

/// Work that nobody waits for any more ends with the session.
impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(preparing) = &self.preparing {
            preparing.abort();
        }
        if let Some(late) = &self.late {
            late.plan.abort();
        }
    }
}

/// Tokens of a request above which a turn does not begin.
pub fn heavy(window: u32) -> u32 {
    window / 100 * HEAVY
}

/// Tokens kept free for the reply.
pub fn reserve(window: u32) -> u32 {
    (window / 5).min(8_192)
}

/// Requests to come before the conversation rests: a turn that calls tools calls more of them.
fn expected(moment: Moment) -> u32 {
    match moment {
        Moment::TurnStart | Moment::MidTurn | Moment::Overflow => 10,
        Moment::TurnEnd | Moment::Manual => 5,
        Moment::Idle => 1,
    }
}
