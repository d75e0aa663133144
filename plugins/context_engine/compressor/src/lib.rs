//! The context engine that is on by default: when the window fills, what is old is folded into a summary.
//!
//! The summary is written ahead by a model, in the background; where none is at hand, a digest by rule takes its place.
//! The rules are plain functions over headers and texts; only this file and [`source`] speak with the host.

mod budget;
mod config;
mod dates;
mod digest;
mod excerpt;
mod ground;
mod jottings;
mod ledger;
mod notes;
mod plan;
mod preparation;
mod prompt;
mod set;
mod shelf;
mod shorter;
mod source;
mod stay;
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

use crate::budget::{Budget, Marks, share};
use crate::config::Config;
use crate::ground::Ground;
use crate::jottings::Jottings;
use crate::ledger::Ledger;
use crate::plan::{Planner, Ready};
use crate::preparation::Writer;
use crate::shelf::{Cabinet, Prepared, Shelf};
use crate::source::Host;
use crate::timing::Quiet;

/// An instance of the engine.
pub struct Compressor {
    config: Config,
    cabinet: Cabinet,
    ledger: Ledger,
    jottings: Jottings,
    marks: Option<Marks>,
    quiet: Quiet,
    /// The plan that waits for its verdict: its fingerprint and reason.
    proposed: Option<(String, String)>,
    /// That nothing could be made smaller was said already.
    told: bool,
}

impl Plugin for Compressor {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self {
            config: Config::parse(config)?,
            cabinet: Cabinet::of(""),
            ledger: Ledger::new(),
            jottings: Jottings::default(),
            marks: None,
            quiet: Quiet::Off,
            proposed: None,
            told: false,
        })
    }

    fn session_start(&mut self, session: &Session, _: &Start) -> Result<(), Error> {
        self.cabinet = Cabinet::of(&session.id);
        Ok(())
    }
}

impl ContextEngine for Compressor {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        // Another window, another ruler: what was measured means nothing any more.
        self.quiet = Quiet::Off;
        self.marks = None;
        self.told = false;
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.ledger.observe(&headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.ledger.rewind(first);
        self.jottings.rewound(&self.ledger);
        self.quiet = Quiet::Off;
        self.told = false;
        self.change(|shelf| shelf.rewound(first));
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        let advice = self.advise(pressure);
        // Where a plan is asked for at once this would be no work ahead.
        if advice.propose != Timing::Now
            && let Err(error) = self.jottings.take(&self.ledger, &Host)
        {
            log::warn(format!("{error}; what is new is read when it is folded"));
        }
        advice
    }

    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        let marks = Marks::of(&self.config, &request.pressure);
        let least = least(&request.pressure, &marks);
        let (config, ledger, cabinet) = (&self.config, &self.ledger, &self.cabinet);
        Writer { config, ledger, cabinet, least, enough: enough(&request.pressure, least) }.prepare(request)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let pressure = &request.pressure;
        let marks = Marks::of(&self.config, pressure);
        let shelf = self.shelf();
        let ground = Ground::new(&self.ledger, &request.view);
        self.jottings.keep_shown(&ground);
        let is_needed = timing::is_needed(pressure, &marks);
        let planner = Planner {
            ground: &ground,
            config: &self.config,
            budget: Budget::of(&self.config, pressure, &ground),
            ready: Ready {
                written: shelf.written(&self.ledger),
                listed: shelf.listed(&self.ledger),
                shorter: &shelf.shorter,
                jottings: Some(&self.jottings),
            },
            source: &Host,
            needed: is_needed,
        };
        let wanted = |draft: &plan::Draft| {
            shelf.refused.as_ref() != Some(&draft.fingerprint()) && (draft.is_ready() || is_needed)
        };
        let Some(draft) = planner.plan()?.filter(wanted) else {
            let before = planner.budget.before;
            self.quiet = Quiet::after_nothing(pressure, &marks);
            if is_needed && pressure.moment != Moment::Manual && !self.told {
                self.told = true;
                log::warn(format!(
                    "the conversation takes {before} tokens and cannot be made smaller now: what is newest has to stay; it is \
                     tried again when more was said, and `/new` begins with an empty window"
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
                self.quiet = Quiet::Measuring;
                self.told = false;
                self.change(|shelf| {
                    shelf.clear();
                    shelf.refused = None;
                    shelf.compactions = shelf.compactions.saturating_add(1);
                    shelf.last_reason = Some(reason.clone());
                });
            }
            Outcome::Refused(error) => {
                log::warn(format!(
                    "the host refused a plan ({}): {error}; what was prepared for it is dropped",
                    error.code
                ));
                self.change(|shelf| {
                    shelf.clear();
                    shelf.refused = Some(fingerprint.clone());
                });
            }
            // The next question brings the conversation and the prices as they are then.
            Outcome::Stale | Outcome::Deferred => {}
        }
        Ok(())
    }

    fn status(&self) -> String {
        let shelf = self.shelf();
        let (written, listed) = (shelf.written(&self.ledger), shelf.listed(&self.ledger));
        let mut status = json!({
            "compactions": shelf.compactions,
            "prepared": match (written, listed) {
                (Some(_), _) => "a summary",
                (None, Some(_)) => "notes by rule",
                (None, None) => "nothing",
            },
        });
        // What this instance has not seen yet is left out rather than guessed.
        if let Some(marks) = self.marks {
            status["threshold_tokens"] = marks.propose.into();
            status["prepares_from_tokens"] = marks.prepare.into();
        }
        if let Some(prepared) = written.or(listed) {
            status["prepared_through"] = prepared.last.into();
            status["prepared_tokens"] = prepared.tokens.into();
        }
        if let Some(reason) = &shelf.last_reason {
            status["last"] = reason.as_str().into();
        }
        if let Some(failure) = &shelf.failure {
            status["summaries_failed"] = shelf.failures.into();
            status["failure"] = failure.as_str().into();
            status["retry_at"] = shelf.retry_at.into();
        }
        status.to_string()
    }
}

impl Compressor {
    /// What there is to do.
    fn advise(&mut self, pressure: &Pressure) -> Advice {
        let marks = Marks::of(&self.config, pressure);
        self.marks = Some(marks);
        let looks_ahead = pressure.prompt_tokens >= marks.prepare || pressure.moment == Moment::Manual;
        if !looks_ahead {
            return Advice { prepare: false, propose: timing::propose(pressure, &marks, &mut self.quiet, false) };
        }
        let shelf = self.shelf();
        let writes = model().is_some_and(|model| shelf.may_ask(&model, clock::now()));
        let due = self.due(pressure, &marks, &shelf, writes);
        // What a model will write is worth waiting for, and what is about to be brought up to date is not used before.
        let best = shelf.written(&self.ledger).or(shelf.listed(&self.ledger).filter(|_| !writes));
        let propose = timing::propose(pressure, &marks, &mut self.quiet, best.is_some() && due != Due::Summary);
        Advice { prepare: due != Due::Nothing, propose }
    }

    /// What is on the shelf. Nothing where it cannot be read: a plan by rule is better than none.
    fn shelf(&self) -> Rc<Shelf> {
        self.cabinet.read().unwrap_or_else(|error| {
            log::warn(format!("{error}; old messages are folded by rule"));
            Rc::default()
        })
    }

    fn change(&self, change: impl Fn(&mut Shelf)) {
        if let Err(error) = self.cabinet.update(change) {
            log::warn(error);
        }
    }

    /// What is worth preparing, by what is new since the last time.
    fn due(&self, pressure: &Pressure, marks: &Marks, shelf: &Shelf, writes: bool) -> Due {
        let (written, listed) = (shelf.written(&self.ledger), shelf.listed(&self.ledger));
        let manual = pressure.moment == Moment::Manual;
        let tail = if manual { 0 } else { share(marks.propose, self.config.target_ratio) };
        let least = least(pressure, marks);
        let beyond_tail = |prepared: Option<&Prepared>| {
            let new = match prepared {
                Some(prepared) => self.ledger.tokens_after(prepared.last),
                None => pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens),
            };
            new.saturating_sub(tail)
        };
        let looked = !manual && shelf.seen > 0 && self.ledger.tokens_after(shelf.seen) < least / 2;
        if looked {
            return Due::Nothing;
        }
        // A summary that is there already is brought up to date less often than a first one is written.
        let of_summary = if written.is_some() { enough(pressure, least) } else { least };
        let newest = written.into_iter().chain(listed).max_by_key(|prepared| prepared.last);
        if writes && beyond_tail(written) >= of_summary {
            Due::Summary
        } else if beyond_tail(newest) >= least {
            Due::List
        } else {
            Due::Nothing
        }
    }
}

/// What is worth preparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// By rule, at once.
    List,
    /// By a model, and by rule until it is there.
    Summary,
}

/// Tokens of new messages that are worth a summary.
fn least(pressure: &Pressure, marks: &Marks) -> u32 {
    if pressure.moment == Moment::Manual { 100 } else { share(marks.usable, 0.05).max(150) }
}

/// Tokens of new messages that are worth another summary.
fn enough(pressure: &Pressure, least: u32) -> u32 {
    if pressure.moment == Moment::Manual { least } else { least.saturating_mul(3) }
}

/// The model that writes summaries, by its name.
fn model() -> Option<String> {
    llm::resolve(prompt::TASK).ok().map(|model| preparation::name(&model))
}

hermes_plugin::export!(Compressor: ContextEngine);
