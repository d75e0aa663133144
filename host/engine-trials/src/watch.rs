//! Counts and times the calls between the host and an engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use hermes_agent::compaction::Deferral;
use hermes_conversation::{MessageId, Model, Plan};
use hermes_plugin_host::{Advice, CallError, ContextEngine, Outcome, PlanRequest, Pressure, Progress};
use serde::Serialize;

use crate::gate::Gate;
use crate::timing::Timing;
use crate::trace::Plans;

/// The work of an engine apart from its contexts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effort {
    /// How often a plan was requested; `None` for a column without plans.
    pub plans_asked: Option<u64>,
    /// Plans that were refused.
    pub plans_refused: Option<u64>,
    /// Plans that did not pay off yet.
    pub plans_deferred: Option<u64>,
    /// Calls that failed or missed their deadline.
    pub failures: Option<u64>,
    /// Messages to which the engine added passages by itself.
    pub assisted: Option<u64>,
}

/// An engine whose calls are counted.
pub struct Watched {
    engine: Arc<dyn ContextEngine>,
    gate: Arc<Gate>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    asked: u64,
    refused: u64,
    deferred: u64,
    failures: u64,
}

#[derive(Default)]
struct Seen {
    total: Totals,
    /// Durations of `propose`, in microseconds.
    micros: Vec<u64>,
    /// The last pressure that the engine got.
    pressure: Option<Pressure>,
    /// Durations of `assess`, in microseconds.
    assess: Vec<u64>,
    /// What became of the plans since the last row of the trace.
    plans: Plans,
}

impl Watched {
    pub(crate) fn new(engine: Arc<dyn ContextEngine>, gate: Arc<Gate>) -> Self {
        Self { engine, gate, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted<T>(&self, result: Result<T, CallError>) -> Result<T, CallError> {
        let (mut seen, failed) = (self.seen(), u64::from(result.is_err()));
        seen.total.failures += failed;
        seen.plans.failures += failed;
        result
    }

    /// How often the engine was called, and with which results.
    pub fn effort(&self) -> Effort {
        let Totals { asked, refused, deferred, failures } = self.seen().total;
        Effort {
            plans_asked: Some(asked),
            plans_refused: Some(refused),
            plans_deferred: Some(deferred),
            failures: Some(failures),
            assisted: None,
        }
    }

    /// What became of the plans since the last call of this function.
    pub fn take_plans(&self) -> Plans {
        std::mem::take(&mut self.seen().plans)
    }

    /// Records a plan that was deferred.
    pub(crate) fn deferred(&self, deferral: Deferral) {
        self.seen().plans.deferred.push(deferral.into());
    }

    /// The real time that plans took.
    pub fn timing(&self) -> Option<Timing> {
        Timing::of(self.seen().micros.clone())
    }

    /// The last pressure that the engine got.
    pub fn pressure(&self) -> Option<Pressure> {
        self.seen().pressure.clone()
    }

    /// The durations of `assess` since the last call of this function, in microseconds.
    pub fn take_assess(&self) -> Vec<u64> {
        std::mem::take(&mut self.seen().assess)
    }
}

/// The time since `begun` in microseconds.
pub fn elapsed(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[async_trait]
impl ContextEngine for Watched {
    fn name(&self) -> &str {
        self.engine.name()
    }

    async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        self.noted(self.engine.model_changed(model).await)
    }

    async fn rewound(&self, first: MessageId) -> Result<(), CallError> {
        self.noted(self.engine.rewound(first).await)
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        let begun = Instant::now();
        let advice = self.engine.assess(pressure).await;
        let micros = elapsed(begun);
        {
            let mut seen = self.seen();
            seen.pressure = Some(pressure.clone());
            seen.assess.push(micros);
        }
        self.noted(advice)
    }

    async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        let _slow = self.gate.slow_work();
        self.noted(self.engine.prepare(request).await)
    }

    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        let begun = Instant::now();
        let proposed = self.engine.propose(request).await;
        let micros = elapsed(begun);
        {
            let mut seen = self.seen();
            seen.total.asked += 1;
            seen.plans.asked += 1;
            seen.micros.push(micros);
        }
        self.noted(proposed)
    }

    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        {
            let mut seen = self.seen();
            match outcome {
                Outcome::Refused(refusal) => {
                    seen.total.refused += 1;
                    seen.plans.refused.push(refusal.to_string());
                }
                Outcome::Deferred => seen.total.deferred += 1,
                Outcome::Stale => seen.plans.stale += 1,
                Outcome::Adopted => {}
            }
        }
        self.noted(self.engine.settled(outcome).await)
    }

    async fn status(&self) -> Result<String, CallError> {
        self.engine.status().await
    }
}
