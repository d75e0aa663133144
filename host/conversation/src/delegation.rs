//! The states of a task that an agent delegated to a session of its own.

use serde::{Deserialize, Serialize};

/// What became of a delegated task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DelegationState {
    /// Other tasks run first.
    Waiting,
    /// Its session works.
    Running,
    /// Its session gave an answer.
    Done,
    /// Its session made all requests that it may make, and gave a summary.
    OutOfBudget,
    /// The model's output limit cut its last reply.
    Cut,
    /// The user stopped it.
    Stopped,
    /// It took longer than it may.
    TimedOut,
    /// An error ended it.
    Failed,
    /// Hermes ended while it ran.
    Interrupted,
}

impl DelegationState {
    const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::OutOfBudget,
        Self::Cut,
        Self::Stopped,
        Self::TimedOut,
        Self::Failed,
        Self::Interrupted,
    ];

    /// The name under which a store keeps it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::OutOfBudget => "out-of-budget",
            Self::Cut => "cut",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed-out",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// The state with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether its session gave the delegating agent a text, whole or not.
    pub fn has_answer(self) -> bool {
        matches!(self, Self::Done | Self::OutOfBudget | Self::Cut)
    }

    /// Whether the task is over.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_from_its_name() {
        for state in DelegationState::ALL {
            assert_eq!(DelegationState::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).ok(), Some(state.as_str().into()));
        }
        assert_eq!(DelegationState::parse("lost"), None);
    }
}
