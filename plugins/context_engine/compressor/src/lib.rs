//! The context engine that is on by default: when the window fills, what is old is folded into a summary.
//!
//! The summary is written ahead by a model, in the background; where none is at hand, a digest by rule takes its place.
//! The rules are plain functions over headers and texts; only this file and [`source`] speak with the host.

mod budget;
mod config;
mod digest;
mod excerpt;
mod ground;
mod plan;
mod prompt;
mod secrets;
mod shelf;
mod source;
mod stay;
#[cfg(test)]
mod testing;
mod timing;
mod work;

use hermes_plugin::context_engine::{Advice, Moment, Outcome, Plan, Pressure, Request};
use hermes_plugin::{
    ContextEngine, Error, ErrorKind, Header, MessageId, Model, Plugin, Progress, Session, Start, clock, llm, log,
};
use serde_json::json;

use crate::budget::{Budget, Marks, share, summary_tokens};
use crate::config::Config;
use crate::ground::Ground;
use crate::plan::Planner;
use crate::shelf::{Prepared, Shelf};
use crate::source::Host;
use crate::timing::Quiet;
use crate::work::Portion;

/// Milliseconds to wait after a summary failed, by how many failed in a row.
const WAITS: [u64; 3] = [60_000, 300_000, 900_000];

/// An instance of the engine.
pub struct Compressor {
    config: Config,
    session: String,
    headers: Vec<Header>,
    marks: Option<Marks>,
    quiet: Quiet,
    /// The plan that waits for its verdict.
    proposed: Option<String>,
}

impl Plugin for Compressor {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self {
            config: Config::parse(config)?,
            session: String::new(),
            headers: Vec::new(),
            marks: None,
            quiet: Quiet::Off,
            proposed: None,
        })
    }

    fn session_start(&mut self, session: &Session, _: &Start) -> Result<(), Error> {
        self.session.clone_from(&session.id);
        Ok(())
    }
}

impl ContextEngine for Compressor {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        // Another window, another ruler: what was measured means nothing any more.
        self.quiet = Quiet::Off;
        self.marks = None;
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        if let Some(first) = headers.first() {
            self.headers.retain(|known| known.id < first.id);
        }
        self.headers.extend(headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|known| known.id < first);
        self.quiet = Quiet::Off;
        self.change(|shelf| {
            shelf.prepared.take_if(|prepared| prepared.last >= first);
        });
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        let marks = Marks::of(&self.config, pressure);
        self.marks = Some(marks);
        let looks_ahead = pressure.prompt_tokens >= marks.prepare || pressure.moment == Moment::Manual;
        let shelf = if looks_ahead { self.shelf() } else { Shelf::default() };
        let prepared = shelf.valid(&Ground::new(&self.headers, &[]));
        let prepare = looks_ahead && self.has_work(pressure, &marks, prepared) && self.may_ask(&shelf);
        // What is about to be brought up to date is not used before.
        let propose = timing::propose(pressure, &marks, &mut self.quiet, prepared.is_some() && !prepare);
        Advice { prepare, propose }
    }

    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        let model = match llm::resolve(prompt::TASK) {
            Ok(model) => model,
            Err(error) if is_without_model(&error) => return Ok(Progress::Done),
            Err(error) => return Err(error.context("looking for the model that writes summaries")),
        };
        let pressure = &request.pressure;
        let marks = Marks::of(&self.config, pressure);
        let ground = Ground::new(&self.headers, &request.view);
        let budget = Budget::of(&self.config, pressure, &ground);
        let shelf = shelf::read(&self.session)?;
        let focus = request.focus.as_deref().map(str::trim).filter(|focus| !focus.is_empty());
        // Another focus asks for another summary, from the messages themselves.
        let base = shelf.valid(&ground).filter(|prepared| focus.is_none() || prepared.focus.as_deref() == focus);

        let window = if model.context_length == 0 { pressure.context_length } else { model.context_length };
        let most = summary_tokens(u32::MAX, pressure.context_length).saturating_mul(3) / 2;
        let input = share(window.saturating_sub(most).saturating_sub(prompt::INSTRUCTIONS), 0.6).max(500);
        let portion = Portion { input, least: least(pressure, &marks) };
        let Some(work) = work::next(&ground, &self.config, &budget, base, portion, &Host)? else {
            return Ok(Progress::Done);
        };

        let tokens = summary_tokens(work.folded, pressure.context_length);
        let asked = prompt::request(&work, portion, tokens, focus, &request.memory_context, &Host);
        let written = match llm::complete(&asked) {
            Ok(reply) => prompt::accept(&reply, work.folded, &Host),
            Err(error) if error.is(ErrorKind::Cancelled) => return Err(error),
            Err(error) if is_without_model(&error) => return Ok(Progress::Done),
            Err(error) => Err(error.message),
        };
        match written {
            Ok(text) => {
                let prepared = Prepared::new(text, &work.covers, &ground, focus.map(str::to_owned));
                shelf::update(&self.session, |shelf| {
                    shelf.prepared = Some(prepared.clone());
                    shelf.failures = 0;
                    shelf.retry_at = 0;
                })?;
                Ok(if work.more { Progress::More } else { Progress::Done })
            }
            Err(why) => {
                let now = clock::now();
                let shelf = shelf::update(&self.session, |shelf| {
                    let wait = WAITS[(shelf.failures as usize).min(WAITS.len() - 1)];
                    shelf.failures = shelf.failures.saturating_add(1);
                    shelf.retry_at = now.saturating_add(wait);
                })?;
                log::warn(format!(
                    "no summary was written: {why}; it is tried again after {} s, until then old messages are folded by rule \
                     (`auxiliary.compression.model` names another model for it)",
                    shelf.retry_at.saturating_sub(now) / 1_000
                ));
                Ok(Progress::Done)
            }
        }
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let pressure = &request.pressure;
        let ground = Ground::new(&self.headers, &request.view);
        let shelf = self.shelf();
        let planner = Planner {
            ground: &ground,
            config: &self.config,
            budget: Budget::of(&self.config, pressure, &ground),
            prepared: shelf.valid(&ground),
            source: &Host,
        };
        let marks = Marks::of(&self.config, pressure);
        let wanted = |draft: &plan::Draft| {
            shelf.refused.as_ref() != Some(&draft.fingerprint())
                && (draft.prepared || timing::is_needed(pressure, &marks))
        };
        let draft = planner.plan()?.filter(wanted);
        match draft {
            Some(draft) => {
                log::debug(format!("from {} to {} tokens", planner.budget.before, draft.tokens));
                self.proposed = Some(draft.fingerprint());
                Ok(Some(draft.plan))
            }
            None => {
                self.quiet = Quiet::after_nothing(pressure, &marks);
                Ok(None)
            }
        }
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let proposed = self.proposed.take();
        match outcome {
            Outcome::Adopted => {
                self.quiet = Quiet::Measuring;
                self.change(|shelf| {
                    shelf.prepared = None;
                    shelf.refused = None;
                    shelf.compactions = shelf.compactions.saturating_add(1);
                });
            }
            Outcome::Refused(error) => {
                log::warn(format!(
                    "the host refused a plan ({}): {error}; what was prepared for it is dropped",
                    error.code
                ));
                self.change(|shelf| {
                    shelf.prepared = None;
                    shelf.refused.clone_from(&proposed);
                });
            }
            // The next question brings the conversation and the prices as they are then.
            Outcome::Stale | Outcome::Deferred => {}
        }
        Ok(())
    }

    fn status(&self) -> String {
        let shelf = self.shelf();
        let prepared = shelf.valid(&Ground::new(&self.headers, &[]));
        let mut status = json!({
            "threshold": self.config.threshold,
            "prepared": prepared.is_some(),
            "compactions": shelf.compactions,
        });
        // What this instance has not seen yet is left out rather than guessed.
        if let Some(marks) = self.marks {
            status["threshold_tokens"] = marks.propose.into();
        }
        if let Some(prepared) = prepared {
            status["prepared_through"] = prepared.last.into();
        }
        status.to_string()
    }
}

impl Compressor {
    /// What is on the shelf. Nothing where it cannot be read: a plan by rule is better than none.
    fn shelf(&self) -> Shelf {
        shelf::read(&self.session).unwrap_or_else(|error| {
            log::warn(format!("{error}; old messages are folded by rule"));
            Shelf::default()
        })
    }

    fn change(&self, change: impl Fn(&mut Shelf)) {
        if let Err(error) = shelf::update(&self.session, change) {
            log::warn(error);
        }
    }

    /// Whether enough is new since the last summary.
    fn has_work(&self, pressure: &Pressure, marks: &Marks, prepared: Option<&Prepared>) -> bool {
        let new = match prepared {
            Some(prepared) => self
                .headers
                .iter()
                .filter(|header| header.id > prepared.last)
                .map(|header| header.tokens)
                .fold(0, u32::saturating_add),
            None => pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens),
        };
        let tail = if pressure.moment == Moment::Manual { 0 } else { share(marks.propose, self.config.target_ratio) };
        // A summary that is there already is brought up to date less often than a first one is written.
        let least = least(pressure, marks).saturating_mul(if prepared.is_some() { 3 } else { 1 });
        new.saturating_sub(tail) >= least
    }

    fn may_ask(&self, shelf: &Shelf) -> bool {
        (shelf.retry_at == 0 || clock::now() >= shelf.retry_at) && llm::resolve(prompt::TASK).is_ok()
    }
}

/// Tokens of new messages that are worth a summary.
fn least(pressure: &Pressure, marks: &Marks) -> u32 {
    if pressure.moment == Moment::Manual { 100 } else { share(marks.usable, 0.05).max(150) }
}

/// No model, or no right to one: the user may want it so.
fn is_without_model(error: &Error) -> bool {
    error.code == "no-model" || error.is(ErrorKind::Denied)
}

hermes_plugin::export!(Compressor: ContextEngine);
