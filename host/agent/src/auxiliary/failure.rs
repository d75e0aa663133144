//! Why a model did not answer a plugin, and whether a retry or another model may help.

use std::time::Duration;

use hermes_diagnostic::{Diagnose as _, Fix, Notice};
use hermes_models::ModelError;
use hermes_plugin_host::{Fault, FaultKind};

use super::route::Route;

/// Why an attempt gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    Model(ModelError),
    /// The attempt did not end within its timeout.
    TimedOut(Duration),
    /// The answer has no text.
    Empty,
    /// The answer reached the limit of its output before it had a text.
    CutBeforeText,
}

impl Failure {
    /// Whether a retry of the same model may help: the connection or the server failed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Failure::Model(error) => matches!(
                error,
                ModelError::Server { .. }
                    | ModelError::Unreachable { .. }
                    | ModelError::UnknownHost { .. }
                    | ModelError::Cut { .. }
                    | ModelError::Stalled { .. }
            ),
            Failure::TimedOut(_) => true,
            Failure::Empty | Failure::CutBeforeText => false,
        }
    }

    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Failure::TimedOut(_) | Failure::Model(ModelError::Stalled { .. }))
    }

    /// Whether the provider read the request, so that it charges for it although there is no usable reply.
    pub(crate) fn is_charged(&self) -> bool {
        match self {
            Failure::Model(error) => error.is_charged(),
            Failure::TimedOut(_) | Failure::Empty | Failure::CutBeforeText => true,
        }
    }

    /// Whether the request itself is at fault, so that other models are not tried.
    pub(crate) fn is_final(&self) -> bool {
        let Failure::Model(error) = self else { return false };
        matches!(error, ModelError::BadRequest { .. } | ModelError::TooLong { .. } | ModelError::Refused { .. })
    }

    /// The window that the provider named when it refused the request as too long.
    pub(crate) fn window(&self) -> Option<u32> {
        if let Failure::Model(ModelError::TooLong { limit, .. }) = self { *limit } else { None }
    }

    /// What failed and why.
    pub(crate) fn cause(&self, who: &Route) -> String {
        match self {
            Failure::Model(error) => error.to_string(),
            Failure::TimedOut(timeout) => format!("{} did not answer within {} s", who.label(), timeout.as_secs()),
            Failure::Empty => format!("{} gave an empty answer", who.label()),
            Failure::CutBeforeText => {
                format!(
                    "{} used up the limit of its output, such as for reasoning, before it had an answer",
                    who.label()
                )
            }
        }
    }

    /// What failed, why, and what to do.
    pub(crate) fn notice(&self, who: &Route) -> Notice {
        let fix = match (who.remedy(), self) {
            (Some(remedy), _) => remedy,
            (None, Failure::Model(error)) => error.parts().2,
            (None, Failure::TimedOut(_) | Failure::Empty) => Fix::words("try again later"),
            (None, Failure::CutBeforeText) => {
                Fix::words("lower `reasoning_effort` for the task").or("choose a model for it that thinks less")
            }
        };
        Notice::new(self.cause(who), fix)
    }

    pub(crate) fn unpaid(who: &str, left: Duration) -> Notice {
        let fix = format!("top up the account; Hermes tries it again in {} s", left.as_secs());
        Notice::new(format!("the account at the provider of {who} has no credit or quota left"), Fix::words(fix))
    }

    /// The fault that the plugin receives.
    pub(crate) fn into_fault(self, who: &Route) -> Fault {
        let (kind, code) = match &self {
            Failure::TimedOut(_) => (FaultKind::Timeout, ""),
            Failure::Empty => (FaultKind::Failed, "empty"),
            Failure::CutBeforeText => (FaultKind::Failed, "cut"),
            Failure::Model(error) => match error {
                ModelError::Auth { .. } | ModelError::Billing { .. } => (FaultKind::Unavailable, "auth"),
                ModelError::NotFound { .. } => (FaultKind::Unavailable, "no-model"),
                ModelError::TooLong { .. } => (FaultKind::InvalidInput, "too-long"),
                ModelError::RateLimited { .. } => (FaultKind::Exhausted, "rate-limit"),
                ModelError::Refused { .. } => (FaultKind::Failed, "refused"),
                ModelError::BadRequest { .. } => (FaultKind::InvalidInput, "bad-request"),
                _ => (FaultKind::Unavailable, ""),
            },
        };
        Fault::new(kind, code, self.notice(who).to_string())
    }
}
