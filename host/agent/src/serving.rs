//! Which model answers a session: the chosen one, or a fallback while the chosen one fails.
//!
//! The system prompt stays as it was built for the chosen model. Only the messages are rendered again, because wire formats
//! differ and sealed reasoning is for the model that wrote it.

use std::time::{Duration, Instant};

use hermes_diagnostic::{Diagnose as _, Notice};
use hermes_models::{LEAST_WINDOW, ModelError};
use hermes_protocol::EventKind;

use crate::chain::ModelChain;
use crate::compaction::load_ruler;
use crate::error::AgentError;
use crate::host::Host;
use crate::learned::{self, LearnedWindow};
use crate::live::Live;
use crate::outgoing::RequestSettings;
use crate::without_tool;

/// The models that did not answer one request.
#[derive(Default)]
pub(crate) struct Attempts {
    failed: Vec<(usize, ModelError)>,
    /// Whether every model has failed, and one of them is asked again with all patience.
    is_last_round: bool,
}

impl Attempts {
    /// Whether a model will be asked after the one that serves now, if that one fails.
    pub(crate) fn has_another(&self, chain: &ModelChain) -> bool {
        let is_untried = || chain.next_but(&self.tried(chain.serving()), Instant::now()).is_some();
        !self.is_last_round && (self.failed.iter().any(|(_, error)| error.may_pass()) || is_untried())
    }

    /// The models that this round no longer asks: those that failed, and the one that serves now.
    fn tried(&self, serving: usize) -> Vec<usize> {
        self.failed.iter().map(|(model, _)| *model).chain([serving]).collect()
    }
}

/// Lets another model answer after one failed, and tells the user. Returns the error if no other model may answer.
pub(crate) async fn after_failure(
    host: &Host,
    live: &mut Live,
    attempts: &mut Attempts,
    error: ModelError,
) -> Result<(), AgentError> {
    let chain = &host.chain;
    if !error.is_of_place() || chain.is_single() {
        return Err(error.into());
    }
    let now = Instant::now();
    let failed = chain.serving();
    chain.cooldowns().failed(chain.now(), &error, now);
    if attempts.is_last_round {
        return Err(error.into());
    }
    attempts.failed.push((failed, error.clone()));
    let who = chain.now().label();
    let (next, line) = match chain.next_but(&attempts.tried(failed), now) {
        Some(next) => (next, format!("{error}; {} answers in place of {who}", chain.all()[next].label())),
        None => {
            let mut others = attempts.failed.iter().filter(|(model, _)| *model != failed);
            let Some((next, _)) = others.find(|(_, error)| error.may_pass()) else {
                return Err(unanswered(live, attempts, &who));
            };
            attempts.is_last_round = true;
            let next = *next;
            (next, format!("{error}; no other model answers, so {} is asked again", chain.all()[next].label()))
        }
    };
    live.front.feed.notice(failure(line, &error));
    serve(host, live, next).await
}

/// A line about a failure. It contains a remedy only if waiting does not help.
fn failure(line: String, error: &ModelError) -> Notice {
    if error.may_pass() { line.into() } else { Notice::new(line, error.parts().2) }
}

/// The error after every model failed: that of the first. The others get a line each.
fn unanswered(live: &Live, attempts: &mut Attempts, who: &str) -> AgentError {
    if attempts.failed.len() > 1
        && let Some((_, error)) = attempts.failed.last()
    {
        live.front.feed.notice(failure(format!("{who} does not answer either: {error}"), error));
    }
    attempts.failed.swap_remove(0).1.into()
}

/// Chooses the model of a turn: the first that is not on cooldown after a failure.
pub(crate) async fn turn_begins(host: &Host, live: &mut Live) -> Result<(), AgentError> {
    let chain = &host.chain;
    let now = Instant::now();
    let serving = chain.serving();
    let Some(best) = chain.first_ready(now).filter(|best| *best != serving) else { return Ok(()) };
    let (old, new) = (&chain.all()[serving], &chain.all()[best]);
    let line = if best < serving {
        let failed = chain
            .cooldowns()
            .of(new, now)
            .map(|cooldown| format!(", which failed {} ago: {}", shown(cooldown.since(now)), cooldown.cause()));
        format!("asking {} again{}", new.label(), failed.unwrap_or_default())
    } else {
        let cooldown = chain.cooldowns().of(old, now).map(|cooldown| {
            format!(
                "{} failed and is asked again in {}: {}; ",
                old.label(),
                shown(cooldown.left(now)),
                cooldown.cause()
            )
        });
        format!("{}{} answers", cooldown.unwrap_or_default(), new.label())
    };
    live.front.feed.notice(line);
    serve(host, live, best).await
}

/// The model that serves has answered.
pub(crate) fn answered(host: &Host) {
    // A single model has no cooldown.
    if !host.chain.is_single() {
        host.chain.cooldowns().answered(host.chain.now());
    }
}

/// Makes another model of the chain the one that is asked.
async fn serve(host: &Host, live: &mut Live, model: usize) -> Result<(), AgentError> {
    host.chain.serve(model);
    let serving = &host.chain.now().model;
    // A plan under way is for the old model's window, and the engine answers nothing else until it is done.
    live.compaction.compactor.finish(Duration::ZERO).await;
    let settings = RequestSettings::of(host);
    live.prefix.outgoing.change_model(settings, &live.log.session, &live.prefix.frozen, &live.log.journal).await?;
    let ruler = load_ruler(host.store.as_ref(), serving).await;
    live.compaction.compactor.measure_by(host.chain.window(), ruler);
    if let Err(error) = live.plugins.engine.model_changed(serving).await {
        live.front.feed.notice(format!("{error}; the engine will see the new model with the next request"));
    }
    let (model, engine) = (serving.clone(), host.engine.clone());
    live.front.feed.publish(EventKind::Switched { model, engine });
    without_tool::tell(host, live);
    Ok(())
}

/// Keeps to a window that the provider named, if it is smaller than the known one, and stores it. A configured window is
/// replaced for this session only. Returns whether the window changed.
pub(crate) async fn learn(host: &Host, live: &mut Live, tokens: u32) -> bool {
    let chain = &host.chain;
    if tokens < LEAST_WINDOW || tokens >= chain.window() {
        return false;
    }
    chain.keep_to(tokens);
    let ruler = *live.compaction.compactor.ruler();
    live.compaction.compactor.measure_by(tokens, ruler);
    learned::store(host.store.as_ref(), chain.now(), Some(LearnedWindow { tokens, at: live.log.clock.now() })).await;
    true
}

/// A time in words: `40 s`, `5 min`.
fn shown(time: Duration) -> String {
    match time.as_secs() {
        0 => "a moment".to_owned(),
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
