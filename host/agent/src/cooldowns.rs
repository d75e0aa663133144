//! How long a model is left alone after it failed.

use std::time::{Duration, Instant};

use hermes_models::{Cooldown, Cooldowns, ModelError};

use crate::served::ServedModel;

/// The longest cooldown that Hermes itself decides on. A server may ask for a longer one.
const LONGEST: Duration = Duration::from_secs(3600);
/// A refused key or an empty account is not repaired as soon as a server: its cooldown is this many times as long.
const UNTIL_REPAIRED: u32 = 5;

/// The models that failed, shared by all sessions of a home.
pub struct ModelCooldowns {
    first: Duration,
    cooldowns: Cooldowns,
}

impl ModelCooldowns {
    /// `first` is the cooldown after a first failure that may pass. Each further one in a row doubles it, up to an hour.
    pub fn new(first: Duration, cooldowns: Cooldowns) -> Self {
        Self { first, cooldowns }
    }

    pub(crate) fn of(&self, model: &ServedModel, now: Instant) -> Option<Cooldown> {
        self.cooldowns.of(&model.cooldown, now)
    }

    pub(crate) fn failed(&self, model: &ServedModel, error: &ModelError, now: Instant) {
        let failures = self.of(model, now).map_or(0, |cooldown| cooldown.failures()).saturating_add(1);
        self.cooldowns.begin(&model.cooldown, length(self.first, failures, error), failures, &error.to_string(), now);
    }

    pub(crate) fn answered(&self, model: &ServedModel) {
        self.cooldowns.end(&model.cooldown);
    }
}

/// The cooldown after so many failures in a row.
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
