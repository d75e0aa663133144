//! The host's own plans, for a window in which the engine made no room.

use hermes_conversation::last_resort;
use hermes_conversation::plan::{self, ReferenceState};

use super::{Compacted, Compactor, RELIEVED};
use crate::compaction::target::CompactionTarget;
use crate::error::AgentError;

impl Compactor {
    /// Folds messages by the host's rules when the window is full.
    pub(super) async fn fold_by_rule(
        &self,
        target: &mut dyn CompactionTarget,
        overflow: bool,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
        let mut limit = self.limit(target);
        if overflow {
            // The provider's window is smaller than configured, by an unknown amount.
            let now = target.conversation().view_tokens(target.view());
            limit = limit.min(now / 10 * 7);
        }
        if self.fold_to(target, limit, done).await? {
            Ok(())
        } else {
            Err(AgentError::WindowFull { window: self.rules.window })
        }
    }

    /// Folds messages by the host's rules when the window leaves a turn hardly any room.
    pub(super) async fn lighten(
        &self,
        target: &mut dyn CompactionTarget,
        done: &mut Vec<Compacted>,
    ) -> Result<(), AgentError> {
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
            let ground = ReferenceState {
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
