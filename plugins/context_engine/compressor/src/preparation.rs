//! Work ahead: notes by rule at once, then a summary by a model, and shorter renderings of what is large.
//!
//! The notes come first, so that a model that is slow, away or talks nonsense leaves something to go on with.

use hermes_plugin::context_engine::{Moment, Request};
use hermes_plugin::{Error, ErrorKind, Message, MessageRange, Model, Progress, clock, llm, log};

use crate::budget::{Budget, SAID_BESIDE, share, summary_tokens, written_most};
use crate::config::Config;
use crate::digest;
use crate::ground::Ground;
use crate::ledger::Ledger;
use crate::notes::{Notes, Room};
use crate::plan::{Planner, Ready};
use crate::prompt::{self, Circumstances};
use crate::set::Set;
use crate::shelf::{Cabinet, Prepared, Shelf};
use crate::shorter;
use crate::source::{Host, Source};
use crate::work::{self, Portion, Work};

/// What the background instance works with.
pub(crate) struct Writer<'a> {
    pub(crate) config: &'a Config,
    pub(crate) ledger: &'a Ledger,
    pub(crate) cabinet: &'a Cabinet,
    /// Tokens of new messages that are worth a list or a first summary, and another summary.
    pub(crate) least: u32,
    pub(crate) enough: u32,
}

impl Writer<'_> {
    pub(crate) fn prepare(&self, request: &Request) -> Result<Progress, Error> {
        let ground = Ground::new(self.ledger, &request.view);
        let budget = Budget::of(self.config, &request.pressure, &ground);
        let shelf = self.cabinet.read()?;
        self.list(&ground, budget, &shelf)?;

        let model = match llm::resolve(prompt::TASK) {
            Ok(model) => model,
            Err(error) if is_without_model(&error) => return self.seen(),
            Err(error) => return Err(error.context("looking for the model that writes summaries")),
        };
        // Who asks for it by hand has perhaps put right what was wrong.
        if request.pressure.moment != Moment::Manual && !shelf.may_ask(&name(&model), clock::now()) {
            return self.seen();
        }
        self.write(request, &model, &ground, &budget, &shelf)
    }

    /// Notes by rule of what no summary stands for yet, and what could be shown shorter.
    fn list(&self, ground: &Ground<'_>, budget: Budget, shelf: &Shelf) -> Result<(), Error> {
        let (written, listed) = (shelf.written(self.ledger), shelf.listed(self.ledger));
        let ready = Ready { written, listed, ..Ready::default() };
        let planner = Planner { ground, config: self.config, budget, ready, source: &Host, needed: true };
        let Some(listing) = planner.listing(self.least)? else { return Ok(()) };
        let listed = Prepared::new(listing.text, listing.tokens, &listing.covers, self.ledger, None);
        let shorter = shorter::of(&self.in_view(ground)?, &Host);
        self.cabinet.update(|shelf| {
            shelf.listed = Some(listed.clone());
            shelf.shorter.clone_from(&shorter);
        })?;
        Ok(())
    }

    /// The newest messages of the view, as far as they could still be shown when the next plan is made.
    fn in_view(&self, ground: &Ground<'_>) -> Result<Vec<Message>, Error> {
        const MOST: u32 = 100_000;
        let mut from = ground.len();
        while from > 0 && ground.is_shown(from - 1) && self.ledger.tokens(from - 1..ground.len()) <= MOST {
            from -= 1;
        }
        let mut newest = Set::empty(ground.len());
        newest.insert(from..ground.len());
        self.read(&self.ledger.ranges(&newest))
    }

    fn write(
        &self,
        request: &Request,
        model: &Model,
        ground: &Ground<'_>,
        budget: &Budget,
        shelf: &Shelf,
    ) -> Result<Progress, Error> {
        let window = request.pressure.context_length;
        let focus = request.focus.as_deref().map(str::trim).filter(|focus| !focus.is_empty());
        // Another focus asks for another summary, from the messages themselves.
        let base = shelf.written(self.ledger);
        let base = base.filter(|prepared| focus.is_none() || prepared.focus.as_deref() == focus);
        let enough = if base.is_some() { self.enough } else { self.least };
        let portion = Portion { input: input(model, window), least: self.least, enough };
        let Some(work) = work::next(ground, self.config, budget, base, portion, &Host)? else { return self.seen() };

        let tokens = summary_tokens(work.folded, window);
        let now = self.newest_words(ground)?;
        let around = Circumstances {
            focus,
            memory: &request.memory_context,
            now: &now,
            clock: clock::now(),
            offset: clock::utc_offset(),
        };
        let asked = prompt::request(&work, portion, tokens, around, &Host);
        let written = match llm::complete(&asked) {
            Ok(reply) => prompt::accept(&reply, work.folded, written_most(window), &Host).map_err(Error::failed),
            Err(error) if error.is(ErrorKind::Cancelled) => return Err(error),
            Err(error) if is_without_model(&error) => return self.seen(),
            Err(error) => Err(error),
        };
        match written {
            Ok(text) => {
                let text = with_words(text, &work, &Host);
                let tokens = Host.count(&text);
                let prepared = Prepared::new(text, tokens, &work.covers, self.ledger, focus.map(str::to_owned));
                self.cabinet.update(|shelf| {
                    shelf.written = Some(prepared.clone());
                    shelf.succeeded();
                    let left = shelf.listed.take();
                    shelf.listed = left.filter(|listed| listed.last > prepared.last);
                })?;
                Ok(if work.more { Progress::More } else { Progress::Done })
            }
            Err(why) => self.failed(model, &why),
        }
    }

    fn failed(&self, model: &Model, why: &Error) -> Result<Progress, Error> {
        let now = clock::now();
        let shelf = self.cabinet.update(|shelf| shelf.failed(&name(model), why, now))?;
        log::warn(format!(
            "no summary was written: {}; it is tried again after {} s, until then old messages are folded by rule \
             (`auxiliary.compression.model` names another model for it)",
            why.message,
            shelf.retry_at.saturating_sub(now) / 1_000
        ));
        Ok(Progress::Done)
    }

    /// Nothing more to do until more is said.
    fn seen(&self) -> Result<Progress, Error> {
        let last = self.ledger.last().unwrap_or_default();
        self.cabinet.update(|shelf| shelf.seen = last)?;
        Ok(Progress::Done)
    }

    fn newest_words(&self, ground: &Ground<'_>) -> Result<String, Error> {
        let Some(at) = ground.ledger.last_user() else { return Ok(String::new()) };
        let messages = self.read(&[MessageRange::one(ground.ledger.id(at))])?;
        Ok(messages.into_iter().map(|message| message.content).collect())
    }

    fn read(&self, ranges: &[MessageRange]) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for range in ranges {
            messages.extend(Host.messages(*range)?);
        }
        Ok(messages)
    }
}

/// How a model is told from others.
pub(crate) fn name(model: &Model) -> String {
    format!("{}/{}", model.provider, model.name)
}

/// Tokens that fit the window of the model that writes, with room for its reply and for an estimate that is wrong.
fn input(model: &Model, window: u32) -> u32 {
    let theirs = if model.context_length == 0 { window } else { model.context_length };
    let reply = prompt::longest(summary_tokens(u32::MAX, window));
    share(theirs.saturating_sub(reply).saturating_sub(prompt::INSTRUCTIONS), 0.6).max(500)
}

/// Behind what the model wrote, what the user said, word for word: no model can misquote it there.
pub(crate) fn with_words(text: String, work: &Work, source: &impl Source) -> String {
    let mut notes = Notes::default();
    for earlier in &work.earlier {
        notes.said.extend(Notes::parse(earlier).said);
    }
    notes.said.extend(digest::said(&work.messages));
    let room = Room { written: 0, said: SAID_BESIDE.min(work.folded / 10), done: 0 };
    let said = notes.within(room, source).said;
    Notes { written: text, said, done: Default::default() }.by_model()
}

/// No model, or no right to one: the user may want it so.
fn is_without_model(error: &Error) -> bool {
    error.code == "no-model" || error.is(ErrorKind::Denied)
}
