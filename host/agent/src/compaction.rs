//! Making room in the window: the engine is asked, its plan is checked, and the host has a plan of its own.

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::plan::{self, Ground};
use hermes_conversation::{Plan, Refusal, Usage, last_resort};
use hermes_plugins::{CallError, ContextEngine, Moment, Outcome, PlanRequest, Pressure, Progress, Timing};
use tokio::task::JoinHandle;

use crate::agent::Host;
use crate::error::AgentError;
use crate::event::{Event, Observer};
use crate::freezing;
use crate::live::Live;

/// Failures and refusals in a row after which an engine is not asked any more.
const STRIKES: u32 = 3;

/// The engine of a session, and how it has fared.
pub(crate) struct Engine {
    plugin: Arc<dyn ContextEngine>,
    strikes: u32,
    /// It failed in this turn: it is asked again in the next one.
    resting: bool,
    preparing: Option<JoinHandle<()>>,
    /// Tokens of the last request.
    sent: Option<u32>,
    last_usage: Option<Usage>,
    /// How much more the provider counts than the estimate says; never less than 1.
    skew: f64,
}

impl Engine {
    pub(crate) fn new(plugin: Arc<dyn ContextEngine>) -> Self {
        Self { plugin, strikes: 0, resting: false, preparing: None, sent: None, last_usage: None, skew: 1.0 }
    }

    pub(crate) fn plugin(&self) -> &Arc<dyn ContextEngine> {
        &self.plugin
    }

    pub(crate) fn turn_begins(&mut self) {
        self.resting = false;
    }

    /// Takes what a provider counted for a request whose estimate is known.
    pub(crate) fn counted(&mut self, estimate: u32, usage: Option<Usage>) {
        if let Some(usage) = usage.filter(|usage| usage.input > 0) {
            // A count that is far off says more about the provider than about the text.
            self.skew = (f64::from(usage.input) / f64::from(estimate.max(1))).clamp(1.0, 2.0);
            self.last_usage = Some(usage);
        }
        self.sent = Some(self.scaled(estimate));
    }

    fn scaled(&self, estimate: u32) -> u32 {
        (f64::from(estimate) * self.skew) as u32
    }

    fn failed(&mut self) {
        self.strikes += 1;
        self.resting = true;
    }

    fn may_be_asked(&self) -> bool {
        !self.resting && self.strikes < STRIKES
    }

    /// Lets slow work end that is under way, for as long as `patience`.
    pub(crate) async fn finish(&mut self, patience: Duration) {
        if let Some(mut preparing) = self.preparing.take()
            && tokio::time::timeout(patience, &mut preparing).await.is_err()
        {
            preparing.abort();
        }
    }
}

/// Tokens kept free for the reply.
pub(crate) fn reserve(window: u32) -> u32 {
    (window / 5).min(8_192)
}

/// Tokens that the messages of a request may take, by the estimate.
fn limit(live: &Live, window: u32) -> u32 {
    let room = window - reserve(window);
    let estimate = (f64::from(room) / live.engine.skew) as u32;
    estimate.saturating_sub(live.fixed_tokens)
}

/// Whether the conversation, as it is shown, stands well beside a prompt and tools of that size: with room to go on, or
/// it would have to be compacted again at once.
pub(crate) fn fits_beside(live: &Live, window: u32, fixed: u32) -> bool {
    let shown = live.journal.conversation().view_tokens(live.journal.view());
    fixed <= live.fixed_tokens || live.engine.scaled(shown.saturating_add(fixed)) <= window / 10 * 6
}

pub(crate) fn room_for_messages(live: &Live, window: u32) -> u32 {
    limit(live, window)
}

/// Estimate for the next request, by the provider's ruler where it is known.
pub(crate) fn next_request(live: &Live) -> u32 {
    live.engine.scaled(estimate(live))
}

/// Estimate for the next request, by the host's ruler.
pub(crate) fn estimate(live: &Live) -> u32 {
    let conversation = live.journal.conversation();
    live.fixed_tokens.saturating_add(conversation.view_tokens(live.journal.view()))
}

fn pressure(live: &Live, moment: Moment, window: u32) -> Pressure {
    let engine = &live.engine;
    Pressure {
        moment,
        prompt_tokens: next_request(live),
        estimated: engine.last_usage.is_none(),
        fixed_tokens: live.fixed_tokens,
        context_length: window,
        reserve: reserve(window),
        expected_requests: expected(moment),
        cache: live.outgoing.cache_state(&live.frozen, &live.journal, live.clock.now()),
        last: engine.last_usage,
    }
}

/// Requests to come before the conversation rests: a turn that calls tools calls more of them.
fn expected(moment: Moment) -> u32 {
    match moment {
        Moment::TurnStart | Moment::MidTurn | Moment::Overflow => 10,
        Moment::TurnEnd | Moment::Manual => 5,
        Moment::Idle => 1,
    }
}

fn request(live: &Live, pressure: Pressure, focus: Option<&str>) -> PlanRequest {
    let conversation = live.journal.conversation();
    let items = conversation.items(live.journal.view()).into_iter();
    PlanRequest {
        pressure,
        view: items.map(|item| (item.clone(), conversation.item_tokens(&item))).collect(),
        focus: focus.map(str::to_owned),
        memory_context: String::new(),
    }
}

/// Before a request: the engine is heard, and the window has room afterwards.
pub(crate) async fn make_room(
    host: &Host,
    live: &mut Live,
    moment: Moment,
    observer: &mut dyn Observer,
) -> Result<(), AgentError> {
    let window = host.model.context_length;
    let overflow = moment == Moment::Overflow;
    if host.settings.compression && live.engine.may_be_asked() {
        let pressure = pressure(live, moment, window);
        let plugin = Arc::clone(live.engine.plugin());
        match live.ear.attend(observer, plugin.assess(&pressure)).await {
            Ok(advice) => {
                let cold = pressure.cache.warm_tokens == 0 || pressure.cache.breaking;
                let wanted = match advice.propose {
                    Timing::Now => true,
                    Timing::Boundary => cold,
                    Timing::NotNow => false,
                };
                if wanted || overflow || is_full(live, window) {
                    propose(host, live, pressure, None, !cold, observer).await?;
                } else if advice.prepare {
                    prepare(live, request(live, pressure, None));
                }
            }
            Err(error) => engine_failed(live, &error),
        }
    }
    live.ear.drain(observer);
    if is_full(live, window) || (overflow && !shrunk(live)) {
        fold_by_rule(live, window, overflow, observer)?;
    }
    freezing::after_compaction(host, live).await
}

/// After a turn, while the user reads: the engine may work ahead.
pub(crate) async fn turn_ended(host: &Host, live: &mut Live, observer: &mut dyn Observer) {
    if !host.settings.compression || !live.engine.may_be_asked() {
        return;
    }
    let pressure = pressure(live, Moment::TurnEnd, host.model.context_length);
    let plugin = Arc::clone(live.engine.plugin());
    match live.ear.attend(observer, plugin.assess(&pressure)).await {
        Ok(advice) if advice.prepare => prepare(live, request(live, pressure, None)),
        Ok(_) => {}
        Err(error) => engine_failed(live, &error),
    }
}

fn is_full(live: &Live, window: u32) -> bool {
    live.journal.conversation().view_tokens(live.journal.view()) > limit(live, window)
}

/// Whether the view is smaller than what was last sent.
fn shrunk(live: &Live) -> bool {
    live.engine.sent.is_some_and(|tokens| next_request(live) < tokens / 10 * 9)
}

/// `/compress`: now, whatever the window says. True when a new view was adopted.
pub(crate) async fn compress(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    observer: &mut dyn Observer,
) -> Result<bool, AgentError> {
    live.engine.turn_begins();
    let pressure = pressure(live, Moment::Manual, host.model.context_length);
    // The person waits for this one: what the engine can prepare, it may.
    let plugin = Arc::clone(live.engine.plugin());
    let asked = request(live, pressure.clone(), focus);
    loop {
        match live.ear.attend(observer, plugin.prepare(&asked)).await {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => break,
            Err(error) => {
                engine_failed(live, &error);
                break;
            }
        }
    }
    let adopted = propose(host, live, pressure, focus, true, observer).await?;
    freezing::after_compaction(host, live).await?;
    live.ear.drain(observer);
    Ok(adopted)
}

/// Starts slow work unless some is under way.
fn prepare(live: &mut Live, request: PlanRequest) {
    if live.engine.preparing.as_ref().is_some_and(|preparing| !preparing.is_finished()) {
        return;
    }
    let plugin = Arc::clone(live.engine.plugin());
    let voice = live.plugged.voice.clone();
    live.engine.preparing = Some(tokio::spawn(async move {
        loop {
            match plugin.prepare(&request).await {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return,
                Err(error) => return voice.notice(format!("{error}; nothing was prepared, the conversation is whole")),
            }
        }
    }));
}

/// Asks for a plan, checks it, and makes it the view. True when it was adopted.
async fn propose(
    host: &Host,
    live: &mut Live,
    pressure: Pressure,
    focus: Option<&str>,
    must_shrink: bool,
    observer: &mut dyn Observer,
) -> Result<bool, AgentError> {
    let plugin = Arc::clone(live.engine.plugin());
    let asked = request(live, pressure, focus);
    let proposed = match live.ear.attend(observer, plugin.propose(&asked)).await {
        Ok(Some(plan)) => plan,
        Ok(None) => return Ok(false),
        Err(error) => {
            engine_failed(live, &error);
            return Ok(false);
        }
    };
    let limit = limit(live, host.model.context_length);
    let (outcome, adopted) = match adopt(live, &proposed, limit, must_shrink, plugin.name(), observer)? {
        Ok(()) => {
            live.engine.strikes = 0;
            (Outcome::Adopted, true)
        }
        Err(refusal) => {
            live.engine.failed();
            live.plugged.voice.notice(format!(
                "the plan of the context engine `{}` was refused: {refusal}; the view stays as it was",
                plugin.name()
            ));
            tell_of_suspension(live);
            (Outcome::Refused(refusal), false)
        }
    };
    if let Err(error) = live.ear.attend(observer, plugin.settled(&outcome)).await {
        live.plugged.voice.notice(error.to_string());
    }
    Ok(adopted)
}

/// The host's own plan, when the window is really full.
fn fold_by_rule(live: &mut Live, window: u32, overflow: bool, observer: &mut dyn Observer) -> Result<(), AgentError> {
    let mut limit = limit(live, window);
    if overflow {
        // The provider's window is smaller than was thought, by how much nobody knows.
        let now = live.journal.conversation().view_tokens(live.journal.view());
        limit = limit.min(now / 10 * 7);
    }
    let full = AgentError::WindowFull { window };
    let plan = {
        let conversation = live.journal.conversation();
        last_resort::plan(&conversation, live.journal.view(), live.journal.summaries(), limit)
    };
    match adopt(live, &plan.ok_or(full)?, limit, false, "host", observer)? {
        Ok(()) => Ok(()),
        Err(refusal) => {
            tracing::error!(%refusal, "the host's own plan was refused");
            Err(AgentError::WindowFull { window })
        }
    }
}

fn adopt(
    live: &mut Live,
    plan: &Plan,
    limit: u32,
    must_shrink: bool,
    engine: &str,
    observer: &mut dyn Observer,
) -> Result<Result<(), Refusal>, AgentError> {
    let (view, before, after) = {
        let conversation = live.journal.conversation();
        let ground = Ground {
            conversation: &conversation,
            view: live.journal.view(),
            summaries: live.journal.summaries(),
            limit,
            must_shrink,
        };
        match plan::verify(plan, &ground) {
            Ok(view) => {
                let before = conversation.view_tokens(live.journal.view());
                let after = conversation.view_tokens(&view);
                (view, before, after)
            }
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
    let reason = plan.reason.lines().next().unwrap_or_default();
    live.journal.adopt(view, reason, engine)?;
    observer.event(Event::Compacted { reason, before, after });
    Ok(Ok(()))
}

fn engine_failed(live: &mut Live, error: &CallError) {
    live.engine.failed();
    live.plugged.voice.notice(format!("{error}; the turn goes on without it"));
    tell_of_suspension(live);
}

fn tell_of_suspension(live: &Live) {
    if live.engine.strikes == STRIKES {
        live.plugged.voice.notice(format!(
            "the context engine `{}` failed {STRIKES} times in a row and is not asked any more in this session: when the window \
             is full, older messages are folded by rule; `context.engine` selects another one",
            live.engine.plugin().name()
        ));
    }
}
