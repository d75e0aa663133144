//! The engine is asked, its plan is checked, and the host has a plan of its own.

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::payoff::Payoff;
use hermes_conversation::plan::{self, Ground};
use hermes_conversation::{MessageId, MessageRange, Plan, Refusal, Usage, View, last_resort};
use hermes_plugin_host::{
    CallError, ContextEngine, MemoryEvents, Moment, Outcome, PlanRequest, Pressure, Progress, Timing,
};
use tokio::task::JoinHandle;

use super::memory;
use super::notify::Notify;
use super::ruler::Ruler;
use super::target::CompactionTarget;
use crate::error::AgentError;

/// Failures and refusals in a row after which an engine is not asked any more.
pub const STRIKES: u32 = 3;
/// Share of the window above which a turn does not begin, in hundredths: whatever the engine thinks.
const HEAVY: u32 = 85;
/// Share of the window that is left then, in hundredths.
const RELIEVED: u32 = 60;
/// Share of the window, in hundredths, up to which a larger prompt stands well beside a conversation: engines propose from
/// about 60 on.
const BESIDE: u32 = 45;
/// Steps of slow work in a row, each up to a call of a model: an engine that never has enough gets no more for nothing.
const STEPS: u32 = 256;
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

/// Why a plan is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// It is taken if it pays over so many requests.
    Boundary { requests: u32 },
    /// The user asked for it.
    Asked,
    /// It is taken.
    Now,
    /// The window is full, too heavy to begin a turn with, or the provider said so.
    Demanded,
}

/// A plan on its way that the turn did not wait for.
struct Late {
    plan: JoinHandle<Result<Option<Plan>, CallError>>,
    view: View,
    through: Option<MessageId>,
    want: Want,
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
    /// The user was told that it is not asked any more.
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

    /// Whether slow work is under way.
    pub fn is_preparing(&self) -> bool {
        self.preparing.as_ref().is_some_and(|preparing| !preparing.is_finished())
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
            (self.notify)(format!("{error}; what is prepared already counts"));
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
            (self.notify)(format!(
                "the context engine `{}` failed {faults} times in a row and is not asked any more in this session: when the \
                 window is full, older messages are folded by rule; /compress tries it again, `context.engine` or --engine \
                 selects another one",
                self.plugin.name()
            ));
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
        (self.notify)(format!("{error}; the turn goes on without it"));
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

    /// Starts slow work unless some is under way.
    fn prepare(&mut self, target: &dyn CompactionTarget, pressure: Pressure) {
        if self.is_preparing() {
            return;
        }
        let mut request = self.request(target, pressure, None);
        let folds = foldable(target);
        let (plugin, memories, notify) = (Arc::clone(&self.plugin), self.memories.clone(), Arc::clone(&self.notify));
        self.preparing = Some(tokio::spawn(async move {
            request.memory_context = memory::keepsakes(&memories, folds, &notify).await;
            let prepared = prepare(plugin.as_ref(), &request, &notify).await;
            if let Err(error) = &prepared {
                notify(format!("{error}; nothing was prepared, the conversation is whole"));
            }
            prepared
        }));
    }

    /// Takes up how slow work ended, if it has.
    async fn take_prepared(&mut self, target: &mut dyn CompactionTarget) -> Result<(), AgentError> {
        let Some(ended) = self.preparing.take_if(|preparing| preparing.is_finished()) else { return Ok(()) };
        match ended.await {
            Ok(Err(error)) => self.prepared_badly(target, &error).await,
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// An engine that crashed has failed; that a model or a service was away is not its fault.
    async fn prepared_badly(&mut self, target: &mut dyn CompactionTarget, error: &CallError) -> Result<(), AgentError> {
        match &error.cause {
            cause if cause.is_failure() => self.failed(target, &error.to_string()).await,
            _ => Ok(()),
        }
    }

    /// Asks for a plan, checks it, and makes it the view. True when it was adopted.
    async fn propose(
        &mut self,
        target: &mut dyn CompactionTarget,
        pressure: Pressure,
        focus: Option<&str>,
        want: Want,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        let plugin = Arc::clone(&self.plugin);
        let asked = self.request(target, pressure, focus);
        if !matches!(want, Want::Boundary { .. }) {
            let proposed = plugin.propose(&asked).await;
            return self.take(target, proposed, want, done).await;
        }
        if self.late.is_some() {
            return Ok(false);
        }
        // Kept before it is waited for: whoever stops waiting leaves it here.
        let through = target.conversation().messages().last().map(|message| message.id);
        let plan = tokio::spawn(async move { plugin.propose(&asked).await });
        let late = self.late.insert(Late { plan, view: target.view().clone(), through, want });
        match tokio::time::timeout(self.rules.patience, &mut late.plan).await {
            Ok(proposed) => {
                self.late = None;
                self.take(target, proposed.unwrap_or(Ok(None)), want, done).await
            }
            Err(_) => Ok(false),
        }
    }

    /// Takes up a plan that the turn did not wait for, if it has come: over what was said meanwhile.
    async fn take_late(
        &mut self,
        target: &mut dyn CompactionTarget,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        if self.is_proposing() {
            return Ok(());
        }
        self.await_late(target, done).await
    }

    /// Takes up a plan that the turn did not wait for, as soon as it has come.
    async fn await_late(
        &mut self,
        target: &mut dyn CompactionTarget,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let Some(late) = &mut self.late else { return Ok(()) };
        // Whoever stops waiting here leaves it where it is.
        let plan = (&mut late.plan).await;
        let Some(Late { view, through, want, .. }) = self.late.take() else { return Ok(()) };
        let proposed = match plan {
            Ok(Ok(Some(plan))) => {
                let rebased = plan.rebase(through, &target.conversation()).filter(|_| *target.view() == view);
                if rebased.is_none() {
                    self.settle(&Outcome::Stale).await;
                    return Ok(());
                }
                Ok(rebased)
            }
            Ok(other) => other,
            Err(_) => return Ok(()),
        };
        self.take(target, proposed, want, done).await?;
        Ok(())
    }

    /// Checks what the engine proposed and makes it the view. True when it was adopted.
    async fn take(
        &mut self,
        target: &mut dyn CompactionTarget,
        proposed: Result<Option<Plan>, CallError>,
        want: Want,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        let plan = match proposed {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.engine_failed(target, &error).await?;
                return Ok(false);
            }
        };
        let cache = target.cache();
        let is_free = cache.warm_tokens == 0 || cache.breaking;
        let pays = |view: &View| {
            let Want::Boundary { requests } = want else { return true };
            let payoff = Payoff::of(&target.conversation(), target.view(), view);
            is_free || payoff.pays(requests, f64::from(cache.read_price), f64::from(cache.write_price))
        };
        let outcome = match self.check(target, &plan, !is_free || want == Want::Asked) {
            Ok(view) => {
                if !pays(&view) {
                    Outcome::Deferred
                } else {
                    let name = self.plugin.name().to_owned();
                    self.adopt(target, view, &plan, &name, done).await?;
                    if target.faults() > 0 {
                        target.keep_faults(0, "").await?;
                    }
                    Outcome::Adopted
                }
            }
            Err(refusal) => {
                (self.notify)(refused(self.plugin.name(), &refusal));
                self.failed(target, &refusal.to_string()).await?;
                Outcome::Refused(refusal)
            }
        };
        self.settle(&outcome).await;
        Ok(matches!(outcome, Outcome::Adopted))
    }

    async fn settle(&self, outcome: &Outcome) {
        let plugin = Arc::clone(&self.plugin);
        if let Err(error) = plugin.settled(outcome).await {
            (self.notify)(error.to_string());
        }
    }

    fn check(&self, target: &dyn CompactionTarget, plan: &Plan, must_shrink: bool) -> Result<View, Refusal> {
        let conversation = target.conversation();
        plan::verify(
            plan,
            &Ground {
                conversation: &conversation,
                view: target.view(),
                summaries: target.summaries(),
                limit: self.limit(target),
                must_shrink,
            },
        )
    }

    async fn adopt(
        &self,
        target: &mut dyn CompactionTarget,
        view: View,
        plan: &Plan,
        by: &str,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let (before, after) = {
            let conversation = target.conversation();
            (conversation.view_tokens(target.view()), conversation.view_tokens(&view))
        };
        let reason = first_line(plan);
        target.adopt(view, &reason, by).await?;
        done.push(Compacted { reason, by: by.to_owned(), before, after, extra: plan.extra.clone() });
        Ok(())
    }

    /// The host's own plan, when the window is really full.
    async fn fold_by_rule(
        &self,
        target: &mut dyn CompactionTarget,
        overflow: bool,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let mut limit = self.limit(target);
        if overflow {
            // The provider's window is smaller than was thought, by how much nobody knows.
            let now = target.conversation().view_tokens(target.view());
            limit = limit.min(now / 10 * 7);
        }
        if self.fold_to(target, limit, done).await? {
            Ok(())
        } else {
            Err(AgentError::WindowFull { window: self.rules.window })
        }
    }

    /// The host's own plan for a window that leaves a turn hardly any room.
    async fn lighten(&self, target: &mut dyn CompactionTarget, done: &mut Vec<Compacted>) -> Result<(), AgentError> {
        let goal = self.ruler.estimated(self.rules.window / 100 * RELIEVED).saturating_sub(target.fixed_tokens());
        let limit = goal.min(self.limit(target));
        self.fold_to(target, limit, done).await.map(|_| ())
    }

    async fn fold_to(
        &self,
        target: &mut dyn CompactionTarget,
        limit: u32,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        let plan = last_resort::plan(&target.conversation(), target.view(), target.summaries(), limit);
        let Some(plan) = plan else { return Ok(false) };
        let verified = {
            let conversation = target.conversation();
            let ground = Ground {
                conversation: &conversation,
                view: target.view(),
                summaries: target.summaries(),
                limit,
                must_shrink: false,
            };
            plan::verify(&plan, &ground)
        };
        match verified {
            Ok(view) => self.adopt(target, view, &plan, "host", done).await.map(|()| true),
            Err(refusal) => {
                tracing::error!(%refusal, "the host's own plan was refused");
                Ok(false)
            }
        }
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

/// Slow work, until there is no more of it.
async fn prepare(plugin: &dyn ContextEngine, request: &PlanRequest, notify: &Notify) -> Result<(), CallError> {
    for _ in 0..STEPS {
        if plugin.prepare(request).await? == Progress::Done {
            return Ok(());
        }
    }
    notify(format!(
        "the context engine `{}` had not done with preparing after {STEPS} steps: the rest is for the next request",
        plugin.name()
    ));
    Ok(())
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

/// The messages that a plan may fold: all that is shown but the last turn.
fn foldable(target: &dyn CompactionTarget) -> Option<MessageRange> {
    let conversation = target.conversation();
    let turn = conversation.headers().last()?.turn;
    let end = conversation.headers().partition_point(|header| header.turn < turn);
    let last = conversation.headers()[..end].last()?.id;
    let first = conversation.items(target.view()).iter().find_map(|item| match item {
        hermes_conversation::Item::Messages(range) => Some(range.first),
        hermes_conversation::Item::Excerpt(excerpt) => Some(excerpt.id),
        hermes_conversation::Item::Summary(_) => None,
    })?;
    (first <= last).then(|| MessageRange::new(first, last))
}

fn first_line(plan: &Plan) -> String {
    plan.reason.lines().next().unwrap_or_default().to_owned()
}

fn refused(engine: &str, refusal: &Refusal) -> String {
    format!("the plan of the context engine `{engine}` was refused: {refusal}; the view stays as it was")
}
