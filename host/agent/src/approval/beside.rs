//! Calls that run beside each other, and the one that asks the user alone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The tool calls of a session that run at the moment.
#[derive(Debug)]
pub(crate) struct RunningCalls {
    state: watch::Sender<State>,
    /// The total time for which calls waited for answers of the user.
    asked: Mutex<Duration>,
}

#[derive(Debug, Default)]
struct State {
    /// For a moment below zero, if a call ends before its question.
    running: i32,
    /// Whether a call has asked the user: from then on its neighbours run one by one.
    one_by_one: bool,
}

impl State {
    fn admits(&self) -> bool {
        self.running <= 0 || !self.one_by_one
    }
}

/// A call that runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall<'a>(&'a RunningCalls);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.running -= 1);
    }
}

/// A question to the user, until it is dropped.
pub(super) struct Asking<'a> {
    calls: &'a RunningCalls,
    begun: Instant,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        *self.calls.asked.lock().unwrap_or_else(PoisonError::into_inner) += self.begun.elapsed();
    }
}

/// When a call began, by a clock that stops while the user is asked.
pub(crate) struct CallBegun {
    at: Instant,
    asked: Duration,
}

/// A call that waits for the others to end. It counts as running again when this is dropped.
struct Aside<'a>(&'a RunningCalls);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.running += 1);
    }
}

impl RunningCalls {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::new(State::default()), asked: Mutex::default() }
    }

    /// The user is asked from now on. Only one question is asked at a time.
    pub(super) fn asks(&self) -> Asking<'_> {
        Asking { calls: self, begun: Instant::now() }
    }

    fn asked(&self) -> Duration {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to measure a call.
    pub(crate) fn measure(&self) -> CallBegun {
        CallBegun { at: Instant::now(), asked: self.asked() }
    }

    /// How long a call has taken, without the time in which the user was asked.
    pub(crate) fn taken(&self, begun: &CallBegun) -> Duration {
        begun.at.elapsed().saturating_sub(self.asked().saturating_sub(begun.asked))
    }

    /// The next neighbouring calls may run beside each other.
    pub(crate) fn run_begins(&self) {
        self.state.send_modify(|state| state.one_by_one = false);
    }

    /// Begins a call; once one of its neighbours has asked the user, only when no other runs.
    pub(crate) async fn begin(&self) -> RunningCall<'_> {
        self.enter(State::admits).await;
        RunningCall(self)
    }

    /// Waits until the call that wants to ask the user is the only one that runs. Those that also want to ask wait for its end.
    pub(super) async fn alone(&self) {
        let steps_aside = |state: &mut State| {
            // A question outside of a call waits for nothing: no call runs.
            let is_call = state.running > 0;
            state.running -= i32::from(is_call);
            state.one_by_one |= is_call;
            is_call
        };
        if self.state.send_if_modified(steps_aside) {
            let aside = Aside(self);
            self.enter(|state| state.running <= 0).await;
            std::mem::forget(aside);
        }
    }

    /// Counts one more call as soon as the state permits it.
    async fn enter(&self, may: impl Fn(&State) -> bool) {
        let mut changes = self.state.subscribe();
        let enters = |state: &mut State| {
            let entered = may(state);
            state.running += i32::from(entered);
            entered
        };
        while !self.state.send_if_modified(enters) {
            // The sender is in `self`, so that waiting cannot fail.
            let _ = changes.changed().await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn running(calls: &RunningCalls) -> i32 {
        calls.state.borrow().running
    }

    #[tokio::test]
    async fn a_call_that_asks_waits_for_those_beside_it_and_later_ones_wait_for_it() {
        let calls = RunningCalls::new();
        let (asks, beside) = (calls.begin().await, calls.begin().await);
        let mut alone = Box::pin(calls.alone());
        assert!(alone.as_mut().now_or_never().is_none(), "another call runs");
        let mut later = Box::pin(calls.begin());
        assert!(later.as_mut().now_or_never().is_none(), "a call begins before the question");
        drop(beside);
        alone.await;
        assert!(later.as_mut().now_or_never().is_none(), "a call begins beside the one that asked");
        drop(asks);
        let later = later.await;
        assert!(calls.begin().now_or_never().is_none(), "two calls run beside each other again");
        calls.run_begins();
        let _beside = calls.begin().now_or_never().unwrap();
        assert_eq!(running(&calls), 2);
        drop(later);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_call_does_not_include_the_time_of_its_question() {
        let calls = RunningCalls::new();
        let begun = calls.measure();
        tokio::time::advance(Duration::from_secs(1)).await;
        let asking = calls.asks();
        tokio::time::advance(Duration::from_secs(60)).await;
        drop(asking);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(calls.taken(&begun).as_secs(), 3);
        assert_eq!(calls.taken(&calls.measure()), Duration::ZERO);
    }

    #[tokio::test]
    async fn of_two_calls_that_ask_the_second_waits_for_the_end_of_the_first() {
        let calls = RunningCalls::new();
        let (first, second) = (calls.begin().await, calls.begin().await);
        let mut first_alone = Box::pin(calls.alone());
        assert!(first_alone.as_mut().now_or_never().is_none());
        let mut second_alone = Box::pin(calls.alone());
        let (one, two) = (first_alone.as_mut().now_or_never(), second_alone.as_mut().now_or_never());
        assert_eq!((one.is_some(), two.is_some()), (false, true), "the one that comes last finds nobody beside it");
        drop(second);
        first_alone.await;
        drop(first);
        assert_eq!(running(&calls), 0);
    }

    #[tokio::test]
    async fn a_stop_and_questions_outside_of_calls_leave_the_count_right() {
        let calls = RunningCalls::new();
        calls.alone().await;
        assert_eq!(running(&calls), 0);
        let (asks, beside) = (calls.begin().await, calls.begin().await);
        let mut alone = Box::pin(calls.alone());
        assert!(alone.as_mut().now_or_never().is_none());
        // The call is dropped before its question.
        drop((beside, asks));
        drop(alone);
        assert_eq!(running(&calls), 0);
    }
}
