//! Plans of the engine: requested, checked, and adopted as the view.

use std::sync::Arc;

use hermes_conversation::payoff::Payoff;
use hermes_conversation::plan;
use hermes_conversation::{MessageId, Plan, Refusal, View, one_line_within};
use hermes_plugin_host::{CallError, Outcome, Pressure};
use tokio::task::JoinHandle;

use super::{Compacted, Compactor, Deferral, is_free};
use crate::compaction::target::CompactionTarget;
use crate::error::AgentError;

/// Why a plan is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// The plan is adopted if it saves money over this number of requests.
    Boundary { requests: u32 },
    /// The user requested it.
    Asked,
    /// The plan is adopted in any case.
    Now,
    /// The window is full or too heavy for a turn, or the provider rejected the request.
    Demanded,
}

/// A pending plan that the turn did not wait for.
pub(super) struct PendingPlan {
    pub(super) plan: JoinHandle<Result<Option<Plan>, CallError>>,
    pub(super) view: View,
    pub(super) through: Option<MessageId>,
    pub(super) want: Want,
}

impl Compactor {
    /// Requests a plan, verifies it and adopts its view. Returns whether a view was adopted.
    pub(super) async fn propose(
        &mut self,
        target: &mut dyn CompactionTarget,
        pressure: Pressure,
        focus: Option<&str>,
        want: Want,
        done: &mut Vec<Compacted>,
    ) -> Result<bool, AgentError> {
        let plugin = Arc::clone(&self.plugin);
        let request = self.request(target, pressure, focus);
        if !matches!(want, Want::Boundary { .. }) {
            let proposed = plugin.propose(&request).await;
            return self.take(target, proposed, want, done).await;
        }
        if self.pending.is_some() {
            return Ok(false);
        }
        // Stored before the wait, so that a stopped turn keeps the pending plan.
        let through = target.conversation().messages().last().map(|message| message.id);
        let plan = tokio::spawn(async move { plugin.propose(&request).await });
        let pending = self.pending.insert(PendingPlan { plan, view: target.view().clone(), through, want });
        match tokio::time::timeout(self.rules.patience, &mut pending.plan).await {
            Ok(proposed) => {
                self.pending = None;
                self.take(target, proposed.unwrap_or(Ok(None)), want, done).await
            }
            Err(_) => Ok(false),
        }
    }

    /// Handles a pending plan if it has arrived, extended by the messages since then.
    pub(super) async fn take_pending(
        &mut self,
        target: &mut dyn CompactionTarget,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        if self.is_proposing() {
            return Ok(());
        }
        self.await_pending(target, done).await
    }

    /// Waits for a pending plan and handles it.
    pub(super) async fn await_pending(
        &mut self,
        target: &mut dyn CompactionTarget,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        // A stopped turn keeps the pending plan here.
        let plan = (&mut pending.plan).await;
        let Some(PendingPlan { view, through, want, .. }) = self.pending.take() else { return Ok(()) };
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

    /// Verifies the engine's proposal and adopts its view. Returns whether a view was adopted.
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
        let is_free = is_free(&cache);
        let deferral = |view: &View| {
            let Want::Boundary { requests } = want else { return None };
            let payoff = Payoff::of(&target.conversation(), target.view(), view);
            let (read_price, write_price) = (f64::from(cache.read_price), f64::from(cache.write_price));
            let pays = is_free || payoff.pays(requests, read_price, write_price);
            (!pays).then(|| Deferral { reason: first_line(&plan), requests, payoff, read_price, write_price })
        };
        let outcome = match self.check(target, &plan, !is_free || want == Want::Asked) {
            Ok(view) => {
                if let Some(deferral) = deferral(&view) {
                    if let Some(listen) = &self.on_deferral {
                        listen(deferral);
                    }
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
                (self.notify)(refused(self.plugin.name(), &refusal).into());
                self.failed(target, &refusal.to_string()).await?;
                Outcome::Refused(refusal)
            }
        };
        self.settle(&outcome).await;
        Ok(matches!(outcome, Outcome::Adopted))
    }

    pub(super) async fn settle(&self, outcome: &Outcome) {
        let plugin = Arc::clone(&self.plugin);
        if let Err(error) = plugin.settled(outcome).await {
            (self.notify)(error.to_string().into());
        }
    }

    pub(super) fn check(&self, target: &dyn CompactionTarget, plan: &Plan, must_shrink: bool) -> Result<View, Refusal> {
        let conversation = target.conversation();
        plan::verify(plan, &self.ground(target, &conversation, must_shrink))
    }

    pub(super) async fn adopt(
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
}

/// The most bytes of a plan's reason that are stored and shown.
const REASON: usize = 300;

pub(super) fn first_line(plan: &Plan) -> String {
    let first = plan.reason.lines().next().unwrap_or_default();
    one_line_within(&first[..first.floor_char_boundary(4 * REASON)], REASON)
}

fn refused(engine: &str, refusal: &Refusal) -> String {
    let engine = format!("the context engine `{engine}` proposed");
    match refusal {
        Refusal::Uncovered(message) => {
            format!("{engine} a compaction that would lose message {message}, so nothing was compacted")
        }
        refusal => format!("{engine} an invalid compaction ({refusal}), so nothing was compacted"),
    }
}
