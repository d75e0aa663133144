//! The default context engine: when the window fills, it folds old messages into a summary.
//!
//! A model writes the summary ahead of time, in the background. If no summary is ready, a rule-based digest takes its
//! place. The rules are plain functions over headers and texts; only this file and [`source`] call the host.

mod budget;
mod config;
mod current_view;
mod dates;
mod digest;
mod entries;
mod excerpt;
mod layout;
mod message_index;
mod notes;
mod plan;
mod preparation;
mod prompt;
mod set;
mod shortening;
mod source;
mod storage;
mod summary_key;
#[cfg(test)]
mod testing;
mod timing;
mod work;

use std::rc::Rc;

use hermes_plugin::context_engine::{Advice, Moment, Outcome, Plan, Pressure, Request, Timing};
use hermes_plugin::{
    ContextEngine, Error, Header, MessageId, Model, Plugin, Progress, Session, Start, clock, llm, log,
};
use serde_json::json;

use crate::budget::{Budget, Thresholds, share};
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::entries::RuleEntries;
use crate::message_index::MessageIndex;
use crate::plan::{Planner, PreparedWork};
use crate::preparation::Preparer;
use crate::source::Host;
use crate::storage::{Prepared, SessionState, Storage};
use crate::timing::Cooldown;

/// The plugin.
pub struct Compressor {
    config: Config,
    storage: Storage,
    index: MessageIndex,
    entries: RuleEntries,
    thresholds: Option<Thresholds>,
    cooldown: Cooldown,
    /// Fingerprint and reason of the plan whose outcome the host has not reported yet.
    proposed: Option<(String, String)>,
    /// Whether the user was already warned that nothing can be compacted.
    warned: bool,
}

impl Plugin for Compressor {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self {
            config: Config::parse(config)?,
            storage: Storage::of(""),
            index: MessageIndex::new(),
            entries: RuleEntries::default(),
            thresholds: None,
            cooldown: Cooldown::Off,
            proposed: None,
            warned: false,
        })
    }

    fn session_start(&mut self, session: &Session, _: &Start) -> Result<(), Error> {
        self.storage = Storage::of(&session.id);
        Ok(())
    }
}

impl ContextEngine for Compressor {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        // The window and the token counts change with the model, so earlier attempts say nothing.
        self.cooldown = Cooldown::Off;
        self.thresholds = None;
        self.warned = false;
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.index.observe(&headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.index.rewind(first);
        self.entries.rewound(&self.index);
        self.cooldown = Cooldown::Off;
        self.warned = false;
        self.change(|state| state.rewound(first));
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        let advice = self.advise(pressure);
        // If a plan is needed at once, reading now would only delay it.
        if advice.propose != Timing::Now
            && let Err(error) = self.entries.take(&self.index, &Host)
        {
            log::warn(format!("{error}; new messages will be read when they are folded"));
        }
        advice
    }

    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        let thresholds = Thresholds::of(&self.config, &request.pressure);
        let least = least(&request.pressure, &thresholds);
        let (config, index, storage) = (&self.config, &self.index, &self.storage);
        Preparer { config, index, storage, least, enough: enough(&request.pressure, least) }.prepare(request)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let pressure = &request.pressure;
        let thresholds = Thresholds::of(&self.config, pressure);
        let state = self.state();
        let current = CurrentView::new(&self.index, &request.view);
        self.entries.keep_shown(&current);
        let is_needed = timing::is_needed(pressure, &thresholds);
        let planner = Planner {
            current: &current,
            config: &self.config,
            budget: Budget::of(&self.config, pressure, &current),
            ready: PreparedWork {
                written: state.written(&self.index),
                listed: state.listed(&self.index),
                shorter: &state.shorter,
                entries: Some(&self.entries),
            },
            source: &Host,
            needed: is_needed,
        };
        let wanted = |draft: &plan::PlannedView| {
            state.refused.as_ref() != Some(&draft.fingerprint()) && (draft.is_ready() || is_needed)
        };
        let Some(draft) = planner.plan()?.filter(wanted) else {
            let before = planner.budget.before;
            self.cooldown = Cooldown::after_nothing(pressure, &thresholds);
            if is_needed && pressure.moment != Moment::Manual && !self.warned {
                self.warned = true;
                log::warn(format!(
                    "the conversation ({before} tokens) cannot be compacted further, because the newest messages are \
                     always kept; a new session starts empty"
                ));
            }
            return Ok(None);
        };
        log::debug(format!("from {} to {} tokens", planner.budget.before, draft.tokens));
        self.proposed = Some((draft.fingerprint(), draft.plan.reason.clone()));
        Ok(Some(draft.plan))
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let Some((fingerprint, reason)) = self.proposed.take() else { return Ok(()) };
        match outcome {
            Outcome::Adopted => {
                self.cooldown = Cooldown::Measuring;
                self.warned = false;
                self.change(|state| {
                    state.clear();
                    state.refused = None;
                    state.compactions = state.compactions.saturating_add(1);
                    state.last_reason = Some(reason.clone());
                });
            }
            Outcome::Refused(error) => {
                log::warn(format!(
                    "the host refused a plan ({}): {error}; its prepared summary was dropped",
                    error.code
                ));
                self.change(|state| {
                    state.clear();
                    state.refused = Some(fingerprint.clone());
                });
            }
            // The next `assess` sees the current conversation and prices.
            Outcome::Stale | Outcome::Deferred | Outcome::Other(_) => {}
        }
        Ok(())
    }

    fn status(&self) -> String {
        let state = self.state();
        let (written, listed) = (state.written(&self.index), state.listed(&self.index));
        let mut status = json!({
            "compactions": state.compactions,
            "prepared": match (written, listed) {
                (Some(_), _) => "a summary",
                (None, Some(_)) => "notes by rule",
                (None, None) => "nothing",
            },
        });
        // Omit figures that this instance has not seen yet.
        if let Some(thresholds) = self.thresholds {
            status["threshold_tokens"] = thresholds.propose.into();
            status["prepares_from_tokens"] = thresholds.prepare.into();
        }
        if let Some(prepared) = written.or(listed) {
            status["prepared_through"] = prepared.last.into();
            status["prepared_tokens"] = prepared.tokens.into();
        }
        if let Some(reason) = &state.last_reason {
            status["last"] = reason.as_str().into();
        }
        if let Some(failure) = &state.failure {
            status["summaries_failed"] = state.failures.into();
            status["failure"] = failure.as_str().into();
            status["retry_at"] = state.retry_at.into();
        }
        status.to_string()
    }
}

impl Compressor {
    /// Decides what to do at this pressure.
    fn advise(&mut self, pressure: &Pressure) -> Advice {
        let thresholds = Thresholds::of(&self.config, pressure);
        self.thresholds = Some(thresholds);
        let looks_ahead = pressure.prompt_tokens >= thresholds.prepare || pressure.moment == Moment::Manual;
        if !looks_ahead {
            return Advice::new(false, timing::propose(pressure, &thresholds, &mut self.cooldown, false));
        }
        let state = self.state();
        let writes = model().is_some_and(|model| state.may_ask(&model, clock::now()));
        let due = self.due(pressure, &thresholds, &state, writes);
        // Wait for a summary that a model is about to write, and do not use one that is about to be updated.
        let best = state.written(&self.index).or(state.listed(&self.index).filter(|_| !writes));
        let propose =
            timing::propose(pressure, &thresholds, &mut self.cooldown, best.is_some() && due != Preparation::Summary);
        Advice::new(due != Preparation::Nothing, propose)
    }

    /// The stored session state, or an empty one if it is unreadable: a rule-based plan is better than none.
    fn state(&self) -> Rc<SessionState> {
        self.storage.read().unwrap_or_else(|error| {
            log::warn(format!("{error}; old messages are summarised by rule"));
            Rc::default()
        })
    }

    fn change(&self, change: impl Fn(&mut SessionState)) {
        if let Err(error) = self.storage.update(change) {
            log::warn(error);
        }
    }

    /// What to prepare, given the messages added since the last preparation.
    fn due(&self, pressure: &Pressure, thresholds: &Thresholds, state: &SessionState, writes: bool) -> Preparation {
        let (written, listed) = (state.written(&self.index), state.listed(&self.index));
        let manual = pressure.moment == Moment::Manual;
        let tail = if manual { 0 } else { share(thresholds.propose, self.config.target_ratio) };
        let least = least(pressure, thresholds);
        let beyond_tail = |prepared: Option<&Prepared>| {
            let new = match prepared {
                Some(prepared) => self.index.tokens_after(prepared.last),
                None => pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens),
            };
            new.saturating_sub(tail)
        };
        let looked = !manual && state.seen > 0 && self.index.tokens_after(state.seen) < least / 2;
        if looked {
            return Preparation::Nothing;
        }
        // Updating an existing summary needs more new messages than a first one.
        let of_summary = if written.is_some() { enough(pressure, least) } else { least };
        let newest = written.into_iter().chain(listed).max_by_key(|prepared| prepared.last);
        if writes && beyond_tail(written) >= of_summary {
            Preparation::Summary
        } else if beyond_tail(newest) >= least {
            Preparation::List
        } else {
            Preparation::Nothing
        }
    }
}

/// What to prepare next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preparation {
    Nothing,
    /// A rule-based list.
    List,
    /// A summary by a model, with a rule-based list until it is ready.
    Summary,
}

/// Tokens of new messages that justify a first summary.
fn least(pressure: &Pressure, thresholds: &Thresholds) -> u32 {
    if pressure.moment == Moment::Manual { 100 } else { share(thresholds.usable, 0.05).max(150) }
}

/// Tokens of new messages that justify an updated summary.
fn enough(pressure: &Pressure, least: u32) -> u32 {
    if pressure.moment == Moment::Manual { least } else { least.saturating_mul(3) }
}

/// The name of the model that writes summaries.
fn model() -> Option<String> {
    llm::resolve(prompt::TASK).ok().map(|model| preparation::name(&model))
}

hermes_plugin::export!(Compressor: ContextEngine);
