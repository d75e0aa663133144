//! What the host does about a plugin's failures in a session: it retries the call, waits, or suspends the plugin.
//!
//! The runtime ends an instance that fails and makes another at the next call; here it is decided whether and when there
//! is a next call. A context engine is not suspended here: its breaker is the agent's and outlives the process.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hermes_runtime::services::{Level, Reporter};
use hermes_runtime::{CallError, Cause, Limit};

use crate::record::{Recorder, Suspension};
use crate::settings::OnFailure;

/// Failures in a row after which a plugin is suspended for the session.
const STRIKES: u32 = 3;
/// How long a plugin rests after its second failure in a row; twice as long after each further one.
const REST: Duration = Duration::from_millis(100);
/// The most that it rests.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Whether a failed call is retried, and which failure counter it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// The call changes nothing, so it is retried after a crash.
    reads: bool,
    /// The call belongs to the context engine, whose failures never suspend the plugin here.
    engine: bool,
}

impl RetryPolicy {
    pub(crate) const READ: Self = Self { reads: true, engine: false };
    pub(crate) const WRITE: Self = Self { reads: false, engine: false };
    pub(crate) const ENGINE_READ: Self = Self { reads: true, engine: true };
    pub(crate) const ENGINE_WRITE: Self = Self { reads: false, engine: true };
}

/// That a plugin of the session failed for good and the user wants the turn to end then.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<OnceLock<(String, String)>>);

impl Halt {
    /// The plugin, and why, in a line that names it.
    pub fn why(&self) -> Option<(String, String)> {
        self.0.get().cloned()
    }

    fn call(&self, plugin: &str, why: String) {
        // The first plugin that fails for good is reason enough.
        let _ = self.0.set((plugin.to_owned(), why));
    }
}

/// Watches over one plugin in one session.
pub(crate) struct Supervisor {
    plugin: String,
    version: String,
    policy: OnFailure,
    reporter: Arc<dyn Reporter>,
    recorder: Arc<Recorder>,
    halt: Halt,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    own: Row,
    /// Failures as the context engine, counted apart: a bad plan must not suspend the plugin's tools.
    engine: Row,
    /// The last failure before it was suspended.
    suspended: Option<String>,
    /// Its grant was revoked: it must not run again.
    revoked: bool,
}

/// Failures since the last answer.
#[derive(Default)]
struct Row {
    failures: u32,
    rests_until: Option<Instant>,
}

impl State {
    fn row(&mut self, retry: RetryPolicy) -> &mut Row {
        if retry.engine { &mut self.engine } else { &mut self.own }
    }
}

impl Supervisor {
    pub(crate) fn new(
        (plugin, version): (&str, &str),
        policy: OnFailure,
        reporter: Arc<dyn Reporter>,
        recorder: Recorder,
        halt: Halt,
    ) -> Self {
        Self {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            policy,
            reporter,
            recorder: Arc::new(recorder),
            halt,
            state: Mutex::default(),
        }
    }

    /// One for the same plugin, that knows of no failure.
    pub(crate) fn again(&self) -> Self {
        Self {
            plugin: self.plugin.clone(),
            version: self.version.clone(),
            policy: self.policy,
            reporter: Arc::clone(&self.reporter),
            recorder: Arc::clone(&self.recorder),
            halt: self.halt.clone(),
            state: Mutex::default(),
        }
    }

    /// Carries out a call, once more where that may help; how it ended is kept.
    pub(crate) async fn watch<T, F>(
        &self,
        call: &'static str,
        retry: RetryPolicy,
        ask: impl Fn() -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        if self.state().revoked {
            return Err(self.error(call, Cause::Revoked));
        }
        if !retry.engine {
            self.admit(call)?;
        }
        let rest = self.state().row(retry).rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            tokio::time::sleep(rest).await;
        }
        let mut result = ask().await;
        if let Err(error) = &result
            && retry.reads
            && may_pass(&error.cause)
        {
            self.reporter.log(Level::Info, &format!("{error}; asked once more"));
            result = ask().await;
        }
        match &result {
            Err(error) if error.cause.is_failure() => self.failed(error, retry),
            Err(error) if matches!(error.cause, Cause::Cancelled | Cause::Input { .. }) => {}
            // An application error is not a crash.
            _ => self.answered(retry),
        }
        result
    }

    /// Whether it is suspended, and the user wants it out of the way then.
    pub(crate) fn is_off(&self) -> bool {
        self.policy == OnFailure::Disable && self.state().suspended.is_some()
    }

    /// Tells the user of something that is left out of what it offers.
    pub(crate) fn tell(&self, text: &str) {
        self.reporter.log(Level::Warn, text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, call: &'static str) -> Result<(), CallError> {
        let state = self.state();
        let Some(why) = &state.suspended else { return Ok(()) };
        Err(self.error(call, Cause::Suspended { failures: state.own.failures, why: why.clone() }))
    }

    fn error(&self, call: &'static str, cause: Cause) -> CallError {
        CallError { plugin: self.plugin.clone(), version: self.version.clone(), call, cause }
    }

    /// From here on it is not asked any more.
    pub(crate) fn revoke(&self) {
        self.state().revoked = true;
    }

    fn answered(&self, retry: RetryPolicy) {
        *self.state().row(retry) = Row::default();
        self.recorder.answered();
    }

    fn failed(&self, error: &CallError, retry: RetryPolicy) {
        let mishap = self.recorder.failed(error);
        let mut state = self.state();
        let row = state.row(retry);
        row.failures = row.failures.saturating_add(1);
        row.rests_until = rest(row.failures).map(|rest| Instant::now() + rest);
        let failures = row.failures;
        let suspend = failures >= STRIKES && !retry.engine && state.suspended.is_none();
        if suspend {
            state.suspended = Some(format!("`{}`: {}", error.call, error.cause));
        }
        drop(state);
        if suspend {
            self.recorder.suspended(Suspension { failures, last: mishap });
            self.suspended(failures, error);
        }
        let recorder = Arc::clone(&self.recorder);
        tokio::task::spawn_blocking(move || recorder.write());
    }

    /// One line for the user; what comes after it says no more.
    fn suspended(&self, failures: u32, error: &CallError) {
        let Self { plugin, policy, .. } = self;
        let then = match policy {
            OnFailure::Fallback => "the session goes on without it",
            OnFailure::Disable => "it is off until the next session",
            OnFailure::Stop => "the turn ends",
        };
        let why = format!(
            "it is suspended for this session after {failures} failures in a row, the last in `{}`: {}; {then}; the record \
             of the plugin `{plugin}` shows its failures",
            error.call, error.cause
        );
        self.reporter.log(Level::Error, &why);
        if *policy == OnFailure::Stop {
            self.halt.call(plugin, format!("plugin `{plugin}`: {why}"));
        }
    }
}

/// What was counted is written when the session ends, whoever is still at work on an earlier write.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.recorder.write();
    }
}

/// Whether a fresh instance may do better at once: what took its whole time would take it again.
fn may_pass(cause: &Cause) -> bool {
    match cause {
        Cause::Trap { .. } => true,
        Cause::Limit { limit, .. } => !matches!(limit, Limit::Cpu | Limit::HostCalls),
        _ => false,
    }
}

/// How long it is left alone after so many failures in a row. The first may have been chance.
fn rest(in_a_row: u32) -> Option<Duration> {
    let doublings = in_a_row.checked_sub(2)?;
    let rest = REST.checked_mul(2u32.checked_pow(doublings).unwrap_or(u32::MAX)).unwrap_or(LONGEST_REST);
    Some(rest.min(LONGEST_REST))
}

#[cfg(test)]
mod tests;
