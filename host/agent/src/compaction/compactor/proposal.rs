//! Plans of the engine: requested, checked, and adopted as the view.

use std::sync::Arc;

use hermes_conversation::payoff::Payoff;
use hermes_conversation::plan::{self, Ground};
use hermes_conversation::{MessageId, Plan, Refusal, View};
use hermes_plugin_host::{CallError, Outcome, Pressure};
use tokio::task::JoinHandle;

use super::{Compacted, Compactor};
use crate::compaction::target::CompactionTarget;
use crate::error::AgentError;

/// Why a plan is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
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
pub(super) struct Late {
    pub(super) plan: JoinHandle<Result<Option<Plan>, CallError>>,
    pub(super) view: View,
    pub(super) through: Option<MessageId>,
    pub(super) want: Want,
}

impl Compactor {
    /// Asks for a plan, checks it, and makes it the view. True when it was adopted.
    pub(super) async fn propose(
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
    pub(super) async fn take_late(
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
    pub(super) async fn await_late(
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

pub(super) fn first_line(plan: &Plan) -> String {
    plan.reason.lines().next().unwrap_or_default().to_owned()
}

fn refused(engine: &str, refusal: &Refusal) -> String {
    format!("the plan of the context engine `{engine}` was refused: {refusal}; the view is unchanged")
}
