//! The host's reaction to a plugin's failures in a session: it retries the call, waits, or suspends the plugin.
//!
//! After a failure, the runtime creates a new instance at the next call; this module decides whether and when there is a
//! next call. It never suspends a context engine: the agent has a breaker for engines, which outlives the process.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hermes_runtime::services::{Level, Reporter};
use hermes_runtime::{CallError, Cause, FaultKind};

use crate::record::{Recorder, Suspension};
use crate::settings::OnFailure;

/// Failures in a row after which a plugin is suspended for the session.
const STRIKES: u32 = 3;
/// The pause before the next call after the second failure in a row. It doubles with each further failure.
const REST: Duration = Duration::from_millis(100);
/// The longest pause.
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

/// Ends the turn if a plugin with `on_failure: stop` fails for good.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<OnceLock<(String, String)>>);

impl Halt {
    /// The plugin, and a line with the reason that names it.
    pub fn why(&self) -> Option<(String, String)> {
        self.0.get().cloned()
    }

    fn call(&self, plugin: &str, why: String) {
        // Keep the first reason.
        let _ = self.0.set((plugin.to_owned(), why));
    }
}

/// Supervises one plugin in one session.
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
    own: Streak,
    /// Failures as the context engine have a counter of their own: a bad plan must not suspend the plugin's tools.
    engine: Streak,
    /// The last failure before the suspension.
    suspended: Option<String>,
    /// Revoked: the plugin must not run again.
    revoked: bool,
}

/// Failures since the plugin last worked.
#[derive(Default)]
struct Streak {
    failures: u32,
    rests_until: Option<Instant>,
}

impl State {
    fn streak(&mut self, retry: RetryPolicy) -> &mut Streak {
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

    /// A supervisor for the same plugin without any failures.
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

    /// Makes a call, retries it if that may help, and records the outcome.
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
        let rest = self.state().streak(retry).rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            tokio::time::sleep(rest).await;
        }
        let mut result = ask().await;
        if let Err(error) = &result
            && retry.reads
            && may_pass(&error.cause)
        {
            self.reporter.log(Level::Info, &format!("{error}; retrying"));
            result = ask().await;
        }
        if let Err(error) = &result
            && was_made(&error.cause)
        {
            // Only for the plugin's log: the caller decides what the user sees.
            self.reporter.log(Level::Info, &error.to_string());
        }
        if let Err(error) = &result {
            self.recorder.returned(error);
        }
        match &result {
            Err(error) if error.cause.is_failure() => self.failed(error, retry),
            Err(error) if !has_worked(&error.cause) => {}
            _ => self.answered(retry),
        }
        result
    }

    /// Whether the plugin is suspended with `on_failure: disable`.
    pub(crate) fn is_off(&self) -> bool {
        self.policy == OnFailure::Disable && self.state().suspended.is_some()
    }

    /// Warns the user about something that the host leaves out.
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

    /// Revokes the plugin: it gets no further calls.
    pub(crate) fn revoke(&self) {
        self.state().revoked = true;
    }

    fn answered(&self, retry: RetryPolicy) {
        *self.state().streak(retry) = Streak::default();
        self.recorder.answered();
    }

    fn failed(&self, error: &CallError, retry: RetryPolicy) {
        let failure = self.recorder.failed(error);
        let mut state = self.state();
        let streak = state.streak(retry);
        streak.failures = streak.failures.saturating_add(1);
        streak.rests_until = rest(streak.failures).map(|rest| Instant::now() + rest);
        let failures = streak.failures;
        let suspend = failures >= STRIKES && !retry.engine && state.suspended.is_none();
        if suspend {
            state.suspended = Some(format!("`{}`: {}", error.call, error.cause));
        }
        drop(state);
        if suspend {
            self.recorder.suspended(Suspension { failures, last: failure });
            self.suspended(failures, error);
        }
        let recorder = Arc::clone(&self.recorder);
        tokio::task::spawn_blocking(move || recorder.write());
    }

    /// Writes one line for the user. Later refusals of calls are silent.
    fn suspended(&self, failures: u32, error: &CallError) {
        let plugin = &self.plugin;
        let failed = format!("failed {failures} times in a row");
        let last = format!("last failure, in `{}`: {}", error.call, error.cause);
        let line = format!("it {failed} and is disabled for this session; {last}");
        if self.policy == OnFailure::Stop {
            // The error that ends the turn tells the user, so this line is for the log only.
            self.reporter.log(Level::Info, &line);
            self.halt.call(plugin, format!("plugin `{plugin}` {failed}; {last}"));
        } else {
            self.reporter.log(Level::Error, &line);
        }
    }
}

/// Writes the record when the session ends, also while an earlier write still runs.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.recorder.write();
    }
}

/// Whether the call reached the plugin.
fn was_made(cause: &Cause) -> bool {
    !matches!(cause, Cause::Suspended { .. } | Cause::Revoked | Cause::Cancelled | Cause::NotExported(_))
}

/// Whether a plugin that answered an error has worked. `invalid-input` is the caller's mistake; with any other error the plugin
/// could not do its work, which neither counts as a failure nor ends a row of failures.
fn has_worked(cause: &Cause) -> bool {
    matches!(cause, Cause::Fault(fault) if fault.kind == FaultKind::InvalidInput)
}

/// Whether a new instance may succeed at once. A call that met a limit would meet it again.
fn may_pass(cause: &Cause) -> bool {
    matches!(cause, Cause::Trap(_))
}

/// The pause after this many failures in a row. The first failure has none: it may have been chance.
fn rest(in_a_row: u32) -> Option<Duration> {
    let doublings = in_a_row.checked_sub(2)?;
    let rest = REST.checked_mul(2u32.checked_pow(doublings).unwrap_or(u32::MAX)).unwrap_or(LONGEST_REST);
    Some(rest.min(LONGEST_REST))
}

#[cfg(test)]
mod tests;
