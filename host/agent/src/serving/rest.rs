//! How long a model is left alone after it failed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermes_models::ModelError;

use super::chain::ServedModel;

/// The longest rest that Hermes itself decides on. A server may ask for a longer one.
const LONGEST: Duration = Duration::from_secs(3600);
/// A refused key or an empty account is not repaired as soon as a server: its rest is so many times as long.
const UNTIL_REPAIRED: u32 = 5;

/// Address, provider and model.
type Identity = (String, String, String);

/// The models that failed, shared by the sessions of a process.
pub struct Rests {
    first: Duration,
    of: Mutex<HashMap<Identity, Rest>>,
}

/// The rest of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rest {
    began: Instant,
    until: Instant,
    /// Failures in a row.
    failures: u32,
    cause: String,
}

impl Rest {
    /// How long ago the model failed.
    pub(crate) fn since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// How long the model still rests.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// Why it failed.
    pub(crate) fn cause(&self) -> &str {
        &self.cause
    }
}

impl Rests {
    /// `first` is the rest after a first failure that may pass. Each further one in a row doubles it, up to an hour.
    pub fn new(first: Duration) -> Self {
        Self { first, of: Mutex::default() }
    }

    pub(crate) fn of(&self, model: &ServedModel) -> Option<Rest> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).get(&identity(model)).cloned()
    }

    pub(crate) fn failed(&self, model: &ServedModel, error: &ModelError, now: Instant) {
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = all.get(&identity(model)).map_or(0, |rest| rest.failures).saturating_add(1);
        let until = now + length(self.first, failures, error);
        all.insert(identity(model), Rest { began: now, until, failures, cause: error.to_string() });
    }

    pub(crate) fn answered(&self, model: &ServedModel) {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).remove(&identity(model));
    }
}

fn identity(model: &ServedModel) -> Identity {
    (model.address.clone(), model.model.provider.clone(), model.model.name.clone())
}

/// The rest after so many failures in a row.
fn length(first: Duration, failures: u32, error: &ModelError) -> Duration {
    let first = if error.may_pass() { first } else { first.saturating_mul(UNTIL_REPAIRED) };
    let doubled = first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    let asked = if let ModelError::RateLimited { wait, .. } = error { *wait } else { None };
    doubled.min(LONGEST.max(first)).max(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_doubles_with_each_failure_and_a_server_may_ask_for_a_longer_one() {
        let minute = Duration::from_secs(60);
        let limited = |wait| ModelError::RateLimited { host: "h".into(), message: "slow".into(), wait };
        let busy = limited(None);
        let of = |failures, error: &ModelError| length(minute, failures, error).as_secs();
        assert_eq!([1, 2, 3, 7, 1000].map(|failures| of(failures, &busy)), [60, 120, 240, 3600, 3600]);
        assert_eq!(of(1, &limited(Some(Duration::from_secs(7200)))), 7200);
        assert_eq!(of(1, &limited(Some(Duration::from_secs(1)))), 60);
        let unpaid = ModelError::Billing { host: "h".into(), status: 402, message: "no".into() };
        assert_eq!([1, 2].map(|failures| of(failures, &unpaid)), [300, 600]);
        assert_eq!(length(Duration::ZERO, 5, &busy), Duration::ZERO);
        assert_eq!(length(LONGEST * 2, 3, &busy), LONGEST * 2);
    }
}
