//! Measures the processor time of a call: what its thread computes while the call's future is polled. While the future waits,
//! it is not polled, so no wait counts, however short or frequent the waits are.
//!
//! Asking the system for a thread's processor time takes longer than a short call. So the wall clock measures the beginning of a
//! poll, up to the guest's first tick. Most polls end before it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::engine::TICK;

/// The most time that the beginning of a poll counts. The wall clock may show more, because the thread may have been without a
/// processor, and ticks may be late.
const BEGINNING: Duration = TICK.saturating_mul(2);

/// The processor time of one call.
#[derive(Debug, Default)]
pub(crate) struct ProcessorTime(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    /// The time that is no longer measured.
    before: Duration,
    present: Option<Present>,
}

/// The present poll.
#[derive(Debug, Clone, Copy)]
enum Present {
    /// It began at this time.
    Beginning(Instant),
    /// Its beginning is counted; the clock of the polling thread showed this at the end of the beginning.
    Later(Duration),
}

impl Measured {
    fn total(&self) -> Duration {
        self.before
            + match self.present {
                None => Duration::ZERO,
                Some(Present::Beginning(begun)) => begun.elapsed().min(BEGINNING),
                Some(Present::Later(since)) => thread_time().saturating_sub(since),
            }
    }
}

impl ProcessorTime {
    /// The time so far. Within a poll, call this on the polling thread.
    pub(crate) fn total(&self) -> Duration {
        self.measured().total()
    }

    /// The time so far, at a tick of the guest: from now on, the thread's own clock measures the present poll.
    pub(crate) fn total_at_tick(&self) -> Duration {
        let mut measured = self.measured();
        let total = measured.total();
        if let Some(Present::Beginning(_)) = measured.present {
            *measured = Measured { before: total, present: Some(Present::Later(thread_time())) };
        }
        total
    }

    /// Measures a future.
    pub(crate) async fn of<T>(&self, work: impl Future<Output = T>) -> T {
        /// Ends the measurement also if the future panics.
        struct Poll<'a>(&'a ProcessorTime);
        impl Drop for Poll<'_> {
            fn drop(&mut self) {
                let mut measured = self.0.measured();
                *measured = Measured { before: measured.total(), present: None };
            }
        }
        let mut work = pin!(work);
        poll_fn(|context| {
            self.measured().present = Some(Present::Beginning(Instant::now()));
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

    #[tokio::test]
    async fn a_long_poll_counts_what_its_thread_computes() {
        let time = ProcessorTime::default();
        time.of(async {
            time.total_at_tick();
            compute(Duration::from_millis(50));
            std::thread::sleep(Duration::from_millis(400));
        })
        .await;
        let total = time.total();
        assert!(total >= Duration::from_millis(50), "{total:?}");
        assert!(total < Duration::from_millis(300), "{total:?} contains the time without a processor");
    }

    #[tokio::test]
    async fn a_poll_without_a_processor_counts_as_its_beginning() {
        let time = ProcessorTime::default();
        time.of(async { std::thread::sleep(Duration::from_millis(200)) }).await;
        assert!(time.total() <= BEGINNING, "{:?}", time.total());
    }
}
