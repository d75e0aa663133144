//! Measures the processor time of a call: all that its thread computes while the call's future is polled. While the future
//! waits, it is not polled, so no wait counts, however short or frequent the waits are.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of one call.
#[derive(Debug, Default)]
pub(crate) struct ProcessorTime(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    /// The time of finished polls.
    before: Duration,
    /// The clock of the polling thread when the present poll began.
    since: Option<Duration>,
}

impl ProcessorTime {
    /// The time so far. Within a poll, call this on the polling thread.
    pub(crate) fn total(&self) -> Duration {
        let measured = self.measured();
        measured.before + measured.since.map_or(Duration::ZERO, |since| thread_time().saturating_sub(since))
    }

    /// Measures a future.
    pub(crate) async fn of<T>(&self, work: impl Future<Output = T>) -> T {
        /// Ends the measurement also if the future panics.
        struct Poll<'a>(&'a ProcessorTime);
        impl Drop for Poll<'_> {
            fn drop(&mut self) {
                let before = self.0.total();
                *self.0.measured() = Measured { before, since: None };
            }
        }
        let mut work = pin!(work);
        poll_fn(|context| {
            self.measured().since = Some(thread_time());
            let _poll = Poll(self);
            work.as_mut().poll(context)
        })
        .await
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long this thread has computed.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes on this thread for at least as long.
    fn compute(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun < time {
            std::hint::spin_loop();
        }
    }

    #[tokio::test]
    async fn computing_counts_and_waiting_does_not() {
        let time = ProcessorTime::default();
        time.of(async {
            for _ in 0..20 {
                compute(Duration::from_millis(3));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        let total = time.total();
        assert!(total >= Duration::from_millis(60), "{total:?}");
        assert!(total < Duration::from_millis(300), "{total:?} contains the waits of 400 ms");
        compute(Duration::from_millis(5));
        assert_eq!(time.total(), total, "what happens outside of the call does not count");
    }

    #[tokio::test]
    async fn a_call_sees_its_time_while_it_runs() {
        let time = ProcessorTime::default();
        let seen = time
            .of(async {
                compute(Duration::from_millis(5));
                time.total()
            })
            .await;
        assert!(seen >= Duration::from_millis(5), "{seen:?}");
        assert!(time.total() >= seen);
    }
}
