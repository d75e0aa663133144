//! Why a model did not answer a plugin, and what follows: the same one again, the next one, or the end.

use std::time::Duration;

use hermes_diagnostic::{Diagnose as _, Fix, Notice};
use hermes_models::ModelError;
use hermes_plugin_host::{Fault, FaultKind};

use super::serving::Serving;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    Model(ModelError),
    /// The attempt took all its time.
    TimedOut(Duration),
    /// Not a word.
    Empty,
}

impl Trouble {
    /// Whether the same model may answer a moment later: the connection or the server failed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Trouble::Model(error) => match error {
                ModelError::Server { status, .. } => matches!(status, 500 | 502 | 503 | 504 | 529),
                ModelError::Unreachable { .. } | ModelError::Cut { .. } | ModelError::Stalled { .. } => true,
                _ => false,
            },
            Trouble::TimedOut(_) => true,
            Trouble::Empty => false,
        }
    }

    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Trouble::TimedOut(_) | Trouble::Model(ModelError::Stalled { .. }))
    }

    /// Whether the request is at fault, so that no other model is troubled with it.
    pub(crate) fn is_final(&self) -> bool {
        let Trouble::Model(error) = self else { return false };
        matches!(error, ModelError::BadRequest { .. } | ModelError::TooLong { .. } | ModelError::Refused { .. })
    }

    /// What failed and why.
    pub(crate) fn cause(&self, who: &Serving) -> String {
        match self {
            Trouble::Model(error) => error.to_string(),
            Trouble::TimedOut(timeout) => format!("{} did not answer within {} s", who.shown(), timeout.as_secs()),
            Trouble::Empty => format!("{} answered with nothing", who.shown()),
        }
    }

    /// What failed, why, and what to do.
    pub(crate) fn notice(&self, who: &Serving) -> Notice {
        let fix = match (who.remedy(), self) {
            (Some(remedy), _) => remedy,
            (None, Trouble::Model(error)) => error.parts().2,
            (None, Trouble::TimedOut(_) | Trouble::Empty) => Fix::words("try again later"),
        };
        Notice::new(self.cause(who), fix)
    }

    pub(crate) fn unpaid(who: &str, left: Duration) -> Notice {
        let fix = format!("top up the account; it is asked again in {} s", left.as_secs());
        Notice::new(format!("the provider of {who} requires payment"), Fix::words(fix))
    }

    /// For the plugin.
    pub(crate) fn into_fault(self, who: &Serving) -> Fault {
        let (kind, code) = match &self {
            Trouble::TimedOut(_) => (FaultKind::Timeout, ""),
            Trouble::Empty => (FaultKind::Failed, "empty"),
            Trouble::Model(error) => match error {
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
