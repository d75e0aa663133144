//! Background preparation: first a rule-based list and shortened renderings, then a summary by a model.
//!
//! The list comes first, so that there is a result even if the model is slow, unavailable or useless.

use hermes_plugin::context_engine::{Moment, Request};
use hermes_plugin::{Error, ErrorKind, Message, MessageRange, Model, Progress, clock, llm, log};

use crate::budget::{Budget, SAID_BESIDE, share, summary_tokens, written_most};
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::digest;
use crate::message_index::MessageIndex;
use crate::notes::{NoteBudget, Notes};
use crate::plan::{Planner, PreparedWork};
use crate::prompt::{self, PromptContext};
use crate::set::Set;
use crate::shortening;
use crate::source::{Host, Source};
use crate::storage::{Prepared, SessionState, Storage};
use crate::work::{self, Portion, Work};

/// Input of the background instance.
pub(crate) struct Preparer<'a> {
    pub(crate) config: &'a Config,
    pub(crate) index: &'a MessageIndex,
    pub(crate) storage: &'a Storage,
    /// Tokens of new messages that justify a first and an updated summary.
    pub(crate) least: u32,
    pub(crate) enough: u32,
}

impl Preparer<'_> {
    pub(crate) fn prepare(&self, request: &Request) -> Result<Progress, Error> {
        let current = CurrentView::new(self.index, &request.view);
        let budget = Budget::of(self.config, &request.pressure, &current);
        let state = self.storage.read()?;
        self.list(&current, budget, &state)?;

        let model = match llm::resolve(prompt::TASK) {
            Ok(model) => model,
            Err(error) if is_without_model(&error) => return self.seen(),
            Err(error) => return Err(error.context("resolving the model that writes summaries")),
        };
        // On a manual request the user may have fixed the cause of the failure.
        if request.pressure.moment != Moment::Manual && !state.may_ask(&name(&model), clock::now()) {
            return self.seen();
        }
        self.write(request, &model, &current, &budget, &state)
    }

    /// Prepares a rule-based list of messages without a summary, and shortened renderings.
    fn list(&self, current: &CurrentView<'_>, budget: Budget, state: &SessionState) -> Result<(), Error> {
        let (written, listed) = (state.written(self.index), state.listed(self.index));
        let ready = PreparedWork { written, listed, ..PreparedWork::default() };
        let planner = Planner { current, config: self.config, budget, ready, source: &Host, needed: true };
        let Some(listing) = planner.listing(self.least)? else { return Ok(()) };
        let listed = Prepared::new(listing.text, listing.tokens, &listing.covers, self.index, None);
        let shorter = shortening::of(&self.in_view(current)?, &Host);
        self.storage.update(|state| {
            state.listed = Some(listed.clone());
            state.shorter.clone_from(&shorter);
        })?;
        Ok(())
    }

    /// The newest messages of the view that the next plan may still show.
    fn in_view(&self, current: &CurrentView<'_>) -> Result<Vec<Message>, Error> {
        const MOST: u32 = 100_000;
        let mut from = current.len();
        while from > 0 && current.is_shown(from - 1) && self.index.tokens(from - 1..current.len()) <= MOST {
            from -= 1;
        }
        let mut newest = Set::empty(current.len());
        newest.insert(from..current.len());
        self.read(&self.index.ranges(&newest))
    }

    fn write(
        &self,
        request: &Request,
        model: &Model,
        current: &CurrentView<'_>,
        budget: &Budget,
        state: &SessionState,
    ) -> Result<Progress, Error> {
        let window = request.pressure.context_length;
        let focus = request.focus.as_deref().map(str::trim).filter(|focus| !focus.is_empty());
        // Another focus needs a new summary, made from the messages themselves.
        let base = state.written(self.index);
        let base = base.filter(|prepared| focus.is_none() || prepared.focus.as_deref() == focus);
        let enough = if base.is_some() { self.enough } else { self.least };
        let portion = Portion { input: input(model, window), least: self.least, enough };
        let Some(work) = work::next(current, self.config, budget, base, portion, &Host)? else { return self.seen() };

        let tokens = summary_tokens(work.folded, window);
        let now = self.newest_words(current)?;
        let around = PromptContext {
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
                let prepared = Prepared::new(text, tokens, &work.covers, self.index, focus.map(str::to_owned));
                self.storage.update(|state| {
                    state.written = Some(prepared.clone());
                    state.succeeded();
                    let left = state.listed.take();
                    state.listed = left.filter(|listed| listed.last > prepared.last);
                })?;
                Ok(if work.more { Progress::More } else { Progress::Done })
            }
            Err(why) => self.failed(model, &why),
        }
    }

    fn failed(&self, model: &Model, why: &Error) -> Result<Progress, Error> {
        let now = clock::now();
        let state = self.storage.update(|state| state.failed(&name(model), why, now))?;
        log::warn(format!(
            "no summary was written: {}; retrying after {} s, until then old messages are summarised by rule \
             (`auxiliary.compression.model` selects another model)",
            why.message,
            state.retry_at.saturating_sub(now) / 1_000
        ));
        Ok(Progress::Done)
    }

    /// Records that there is nothing to prepare until new messages arrive.
    fn seen(&self) -> Result<Progress, Error> {
        let last = self.index.last().unwrap_or_default();
        self.storage.update(|state| state.seen = last)?;
        Ok(Progress::Done)
    }

    fn newest_words(&self, current: &CurrentView<'_>) -> Result<String, Error> {
        let Some(at) = current.index.last_user() else { return Ok(String::new()) };
        let messages = self.read(&[MessageRange::one(current.index.id(at))])?;
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

/// Identifies a model.
pub(crate) fn name(model: &Model) -> String {
    format!("{}/{}", model.provider, model.name)
}

/// Input tokens for the model that writes, with room for its reply and for estimation errors.
fn input(model: &Model, window: u32) -> u32 {
    let theirs = if model.context_length == 0 { window } else { model.context_length };
    let reply = prompt::longest(summary_tokens(u32::MAX, window));
    share(theirs.saturating_sub(reply).saturating_sub(prompt::INSTRUCTIONS), 0.6).max(500)
}

/// Appends the user's words verbatim, where the model cannot misquote them.
pub(crate) fn with_words(text: String, work: &Work, source: &impl Source) -> String {
    let mut notes = Notes::default();
    for earlier in &work.earlier {
        notes.said.extend(Notes::parse(earlier).said);
    }
    notes.said.extend(digest::said(&work.messages));
    let room = NoteBudget { written: 0, said: SAID_BESIDE.min(work.folded / 10), done: 0 };
    let said = notes.within(room, source).said;
    Notes { written: text, said, done: Default::default() }.by_model()
}

/// Whether no model is configured or permitted, which can be intended.
fn is_without_model(error: &Error) -> bool {
    error.code == "no-model" || error.is(ErrorKind::Denied)
}
