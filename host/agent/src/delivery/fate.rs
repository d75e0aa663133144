//! What happens to a turn whose delivery failed. The contract's `error-kind` defines it for the answers of a plugin.

use std::time::Duration;

use hermes_plugin_host::{Cause, FaultKind};

/// The pause after the first failure. It doubles with each further failure.
const LEAST: Duration = Duration::from_secs(2);
/// The longest pause after failures.
const MOST: Duration = Duration::from_secs(60 * 60);
/// The longest pause if only the user can remove the cause. It is short because Hermes does not learn when that is done.
const MOST_FOR_USER: Duration = Duration::from_secs(5 * 60);
/// The shortest pause that a provider can request.
const LEAST_REQUESTED: Duration = Duration::from_secs(1);

/// What happens to a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is delivered again later.
    Retry {
        /// The pause that the provider requested.
        after: Option<Duration>,
        /// The longest pause without such a request.
        most: Duration,
    },
    /// The same turn would be rejected again: it is kept for the user, and later turns go on.
    SetAside,
    /// The delivery says nothing about the turn: it waits as if it had not been delivered.
    Keep,
}

/// The fate of a turn after a failed call.
pub(crate) fn fate(cause: &Cause) -> Fate {
    match cause {
        Cause::Fault(fault) if fault.may_pass() => {
            let most = if fault.is_of_the_user() { MOST_FOR_USER } else { MOST };
            Fate::Retry { after: fault.retry_after_ms.map(|ms| Duration::from_millis(ms.into())), most }
        }
        Cause::Fault(fault) if fault.kind == FaultKind::Cancelled => Fate::Keep,
        Cause::Fault(_) => Fate::SetAside,
        Cause::Trap(_) | Cause::Start(_) | Cause::Deadline { .. } | Cause::Limit { .. } => {
            Fate::Retry { after: None, most: MOST }
        }
        // The turn exceeds the plugin's limit, now and later.
        Cause::Input { .. } => Fate::SetAside,
        Cause::Suspended { .. } | Cause::Revoked | Cause::Cancelled | Cause::NotExported(_) => Fate::Keep,
    }
}

/// The pause before the next delivery after so many failures of a turn. Without a request of the provider it is a duration that
/// doubles, up to `most`, and a random part of a quarter of it, so that many processes do not return at the same moment.
pub(crate) fn pause(failures: u32, requested: Option<Duration>, most: Duration, random: u64) -> Duration {
    if let Some(requested) = requested {
        return requested.max(LEAST_REQUESTED);
    }
    let doublings = failures.saturating_sub(1);
    let longest = most / 5 * 4;
    let least = LEAST.checked_mul(2u32.checked_pow(doublings).unwrap_or(u32::MAX)).unwrap_or(longest).min(longest);
    let quarter = u64::try_from(least.as_millis() / 4).unwrap_or(u64::MAX);
    least + Duration::from_millis(random % (quarter + 1))
}

#[cfg(test)]
mod tests {
    use hermes_plugin_host::{Fault, Limit};
    use proptest::prelude::*;

    use super::*;

    fn fault(kind: FaultKind, retry_after_ms: Option<u32>) -> Cause {
        Cause::Fault(Box::new(Fault { retry_after_ms, ..Fault::new(kind, "", "no") }))
    }

    #[test]
    fn the_kind_of_an_error_decides_what_happens_to_the_turn() {
        let retry = |after| Fate::Retry { after, most: MOST };
        let crash = Cause::Trap(Box::new("unreachable".into()));
        let late = Cause::Deadline { limit: Limit::BackgroundTime, after: MOST };
        let unstarted = Cause::Start(Box::new(Fault::new(FaultKind::Denied, "", "no key")));
        for (cause, expected) in [
            (fault(FaultKind::Unavailable, None), retry(None)),
            (fault(FaultKind::Unavailable, Some(2_000)), retry(Some(Duration::from_secs(2)))),
            (fault(FaultKind::Timeout, None), retry(None)),
            (fault(FaultKind::Exhausted, Some(5)), retry(Some(Duration::from_millis(5)))),
            (fault(FaultKind::Conflict, None), retry(None)),
            (fault(FaultKind::InvalidInput, Some(5)), Fate::SetAside),
            (fault(FaultKind::Denied, None), Fate::SetAside),
            (fault(FaultKind::Unsupported, None), Fate::SetAside),
            (fault(FaultKind::Failed, None), Fate::SetAside),
            (fault(FaultKind::Cancelled, None), Fate::Keep),
            (crash, retry(None)),
            (late, retry(None)),
            (unstarted, retry(None)),
            (Cause::Limit { limit: Limit::Memory, value: 1 }, retry(None)),
            (Cause::Input { bytes: 2, most: 1 }, Fate::SetAside),
            (Cause::Suspended { failures: 3, why: String::new() }, Fate::Keep),
            (Cause::Revoked, Fate::Keep),
            (Cause::Cancelled, Fate::Keep),
        ] {
            assert_eq!(fate(&cause), expected, "{cause:?}");
        }
    }

    #[test]
    fn what_the_user_can_put_right_does_not_cost_a_turn() {
        for (kind, code) in [
            (FaultKind::Failed, "unset"),
            (FaultKind::Denied, "grant"),
            (FaultKind::Failed, "auth"),
            (FaultKind::Denied, "auth"),
        ] {
            let cause = Cause::Fault(Box::new(Fault::new(kind, code, "no")));
            assert_eq!(fate(&cause), Fate::Retry { after: None, most: MOST_FOR_USER }, "{kind:?} {code}");
        }
    }

    #[test]
    fn a_requested_pause_is_kept() {
        for (requested, pause_ms) in [(0, 1_000), (2_500, 2_500), (u32::MAX, u32::MAX.into())] {
            let requested = Duration::from_millis(requested.into());
            assert_eq!(pause(9, Some(requested), MOST, 7), Duration::from_millis(pause_ms));
        }
    }

    proptest! {
        #[test]
        fn pauses_double_up_to_an_hour_and_differ(failures in 1u32..u32::MAX, random in any::<u64>()) {
            let least = Duration::from_secs(2 << (failures - 1).min(20)).min(Duration::from_secs(48 * 60));
            let for_user = pause(failures, None, MOST_FOR_USER, random);
            let pause = pause(failures, None, MOST, random);
            prop_assert!(pause >= least && pause <= least / 4 * 5, "{pause:?} after {failures}");
            prop_assert!(pause <= Duration::from_secs(3_600));
            prop_assert!(for_user <= MOST_FOR_USER && for_user <= pause, "{for_user:?}");
        }
    }
}
