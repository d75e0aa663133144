//! The engine's state between calls and its answers to the host.

use std::rc::Rc;

use hermes_plugin::context_engine::{Advice, Moment, Outcome, Plan, Pressure, Request, Segment};
use hermes_plugin::{Error, Header, MessageId, Progress, log};
use serde_json::json;

use crate::budgets::{Budgets, Thresholds};
use crate::config::Config;
use crate::current_view::{CurrentView, Rows, Visibility};
use crate::layout::backlog;
use crate::note::{self, NoteWriter};
use crate::plan::PlannedView;
use crate::planner::{PlanCache, Planner};
use crate::read_cache::ReadCache;
use crate::source::{Database, Source};
use crate::storage::{State, Storage};
use crate::timing::{self, Cooldown};
use crate::work::{self, ReadPosition};

/// New messages are worth reading ahead once they hold this fraction (1/AHEAD) of the tokens folded at once.
const AHEAD: u32 = 4;

/// The engine, generic over the message log and the database.
pub(crate) struct Engine<S, D> {
    pub(crate) config: Config,
    pub(crate) source: S,
    pub(crate) storage: Storage<D>,
    pub(crate) session: String,
    pub(crate) rows: Rows,
    pub(crate) read_cache: ReadCache,
    cooldown: Cooldown,
    /// The stored session state, loaded on first use.
    state: Option<State>,
    read_ahead: ReadAhead,
    proposal: Proposal,
    plan_cache: PlanCache,
}

/// Progress of the background reader.
#[derive(Default)]
struct ReadAhead {
    position: ReadPosition,
    /// The newest message when the engine last requested preparation.
    requested_through: MessageId,
}

/// The last proposal and the figures it was based on.
#[derive(Default)]
struct Proposal {
    /// The plan whose outcome the host has not reported yet.
    pending: Option<PlannedView>,
    figures: Option<(Thresholds, Budgets)>,
    /// Tokens of the next request at the time of the proposal.
    prompt_tokens: u32,
}

impl<S: Source, D: Database> Engine<S, D> {
    pub(crate) fn new(config: Config, source: S, database: D) -> Self {
        Self {
            config,
            source,
            storage: Storage::new(database),
            session: String::new(),
            rows: Rows::default(),
            read_cache: ReadCache::default(),
            cooldown: Cooldown::Off,
            state: None,
            read_ahead: ReadAhead::default(),
            proposal: Proposal::default(),
            plan_cache: PlanCache::default(),
        }
    }

    pub(crate) fn begin(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.state = None;
    }

    pub(crate) fn model_changed(&mut self) {
        // The window and the token counts change with the model, so earlier attempts say nothing.
        self.cooldown = Cooldown::Off;
        self.proposal.figures = None;
    }

    pub(crate) fn observe(&mut self, headers: &[Header]) {
        if let Some(first) = headers.first().filter(|first| self.rows.last().is_some_and(|last| first.id <= last.id)) {
            self.rewound(first.id);
        }
        self.rows.observe(headers);
    }

    pub(crate) fn rewound(&mut self, first: MessageId) {
        self.rows.rewind(first);
        self.read_cache.rewind(first);
        self.cooldown = Cooldown::Off;
        self.read_ahead.position.next = self.read_ahead.position.next.min(first);
        self.read_ahead.requested_through = self.read_ahead.requested_through.min(first);
        if self.state().folded >= first {
            // The host restores an earlier view. The next `propose` shows which messages that view folds.
            self.change(|state| state.folded = 0);
        }
    }

    pub(crate) fn assess(&mut self, pressure: &Pressure) -> Advice {
        if let Err(error) = self.read_cache.catch_up(&self.rows, &self.source) {
            log::debug(error);
        }
        let state = self.state();
        let (folded, texts) = (state.folded, state.prefix.saturating_add(state.working));
        let backlog = backlog(&self.rows, folded);
        let thresholds = Thresholds::of(&self.config, pressure, backlog.shown.saturating_add(texts));
        let budgets = Budgets::of(&self.config, &thresholds, &pressure.moment);
        self.proposal.figures = Some((thresholds, budgets));
        // A cold cache costs nothing to break, so a smaller fold pays.
        let pays = if is_cold(pressure) {
            backlog.shown >= budgets.tail.saturating_add(budgets.fold / 2)
        } else {
            backlog.ripe >= budgets.tail.saturating_add(budgets.fold)
        };
        let propose = timing::propose(pressure, &thresholds, &mut self.cooldown, pays);
        Advice::new(self.is_worth_reading(pressure, budgets.fold / AHEAD), propose)
    }

    fn is_worth_reading(&mut self, pressure: &Pressure, least: u32) -> bool {
        let requested = self.read_ahead.requested_through;
        let Some(last) = self.rows.last().filter(|last| last.id > requested) else { return false };
        let worth = backlog(&self.rows, requested).shown >= least || pressure.moment == Moment::Manual;
        if worth {
            self.read_ahead.requested_through = last.id;
        }
        worth
    }

    /// Reads the next batch of new messages.
    pub(crate) fn read_ahead(&mut self) -> Result<Progress, Error> {
        work::step(&mut self.read_ahead.position, &self.rows, &mut self.storage, &self.source)
            .map_err(|error| error.context("storing facts of the conversation"))
    }

    /// One preparation step: read new messages first, then let a model write a note on folded ones.
    pub(crate) fn prepare(&mut self, request: &Request, writer: &impl NoteWriter) -> Result<Progress, Error> {
        if self.read_ahead()? == Progress::More {
            return Ok(Progress::More);
        }
        if self.config.notes {
            let current = CurrentView::new(&self.rows, &request.view);
            let folded = current.visibility.iter().rposition(|visibility| *visibility == Visibility::Folded);
            let folded = folded.map_or(0, |at| at + 1);
            note::write(&self.rows, folded, &self.session, &mut self.storage, &self.source, writer)?;
        }
        Ok(Progress::Done)
    }

    pub(crate) fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let pressure = &request.pressure;
        if let Err(error) = self.read_cache.catch_up(&self.rows, &self.source) {
            log::debug(error);
        }
        self.proposal.prompt_tokens = pressure.prompt_tokens;
        let refused = self.state().refused.clone();
        let current = CurrentView::new(&self.rows, &request.view);
        let folded = current.visibility.iter().rposition(|visibility| *visibility == Visibility::Folded);
        let folded = folded.map_or(0, |at| self.rows.get(at).id);
        let thresholds = Thresholds::of(&self.config, pressure, current.least());
        let budgets = Budgets::of(&self.config, &thresholds, &pressure.moment);
        self.proposal.figures = Some((thresholds, budgets));
        if current.first_shown < current.len() {
            self.read_cache.folded(self.rows.get(current.first_shown).id);
        }
        let gone = self.plan_cache.retain(|key| current.summaries.iter().any(|shown| shown.key == key));
        if let Err(error) = self.storage.forget_gists(&gone) {
            log::debug(error);
        }
        let mut planner = Planner {
            current: &current,
            config: &self.config,
            budgets,
            read_cache: &self.read_cache,
            storage: &mut self.storage,
            source: &self.source,
            needed: timing::is_needed(pressure, &thresholds),
            presses: timing::is_pressing(pressure, &thresholds),
            focus: request.focus.as_deref().unwrap_or_default().trim(),
            memory: &request.memory_context,
            cache: &mut self.plan_cache,
        };
        let draft = planner.plan()?;
        match draft.filter(|draft| refused.is_none() || refused != Some(draft.fingerprint())) {
            Some(draft) => {
                log::debug(format!("a view of {} tokens", draft.tokens));
                let plan = draft.plan.clone();
                self.proposal.pending = Some(draft);
                Ok(Some(plan))
            }
            None => {
                self.cooldown = Cooldown::after_nothing(pressure, &thresholds);
                // The view can differ from the last known one, for example after a rewind.
                if folded != self.state().folded {
                    self.change(|state| state.folded = folded);
                }
                Ok(None)
            }
        }
    }

    pub(crate) fn settled(&mut self, outcome: &Outcome) {
        let Some(proposed) = self.proposal.pending.take() else { return };
        match outcome {
            Outcome::Adopted => {
                self.cooldown = Cooldown::Measuring;
                for segment in &proposed.plan.segments {
                    let Segment::Summary(summary) = segment else { continue };
                    self.plan_cache.texts.insert(summary.key.clone(), summary.content.clone());
                    let Some((key, gist)) = proposed.gists.iter().find(|(key, _)| *key == summary.key) else {
                        continue;
                    };
                    if let Err(error) = self.storage.keep_gist(&self.rows, key, &summary.covers, gist) {
                        log::debug(format!("{error}; a later instance will read what is folded again"));
                    }
                    self.plan_cache.gists.insert(key.clone(), Rc::clone(gist));
                }
                self.change(|state| {
                    state.folded = proposed.folded.max(state.folded);
                    state.prefix = proposed.prefix;
                    state.working = proposed.working;
                    state.segments = proposed.segments;
                    state.publications = state.publications.saturating_add(1);
                    state.reason.clone_from(&proposed.plan.reason);
                    state.refused = None;
                });
            }
            Outcome::Refused(error) => {
                log::warn(format!("the host refused a plan ({}): {error}; the view is unchanged", error.code));
                self.change(|state| state.refused = Some(proposed.fingerprint()));
            }
            Outcome::Deferred => self.cooldown = Cooldown::after_deferral(self.proposal.prompt_tokens),
            // The next `assess` sees the current conversation.
            Outcome::Stale | Outcome::Other(_) => {}
        }
    }

    pub(crate) fn status(&self) -> String {
        let state = self.state.clone().unwrap_or_default();
        let shown = backlog(&self.rows, state.folded).shown;
        let mut status = json!({
            "segments": state.segments,
            "tokens": { "segments": state.prefix, "working_set": state.working, "messages": shown },
            "folded_through": state.folded,
            "read_through": self.read_ahead.requested_through,
            "publications": state.publications,
        });
        if !state.reason.is_empty() {
            status["last_publication"] = state.reason.into();
        }
        if let Some((thresholds, budgets)) = self.proposal.figures {
            status["threshold_tokens"] = thresholds.hard.into();
            status["fold_tokens"] = budgets.fold.into();
            status["tail_tokens"] = budgets.tail.into();
        }
        status.to_string()
    }

    /// The session's state. Falls back to a new state if the stored one is unreadable: the next view corrects it.
    pub(crate) fn state(&mut self) -> &State {
        let (storage, session) = (&mut self.storage, &self.session);
        self.state.get_or_insert_with(|| {
            storage.state(session).unwrap_or_else(|error| {
                log::debug(format!("{error}; continuing with a new session state"));
                State::default()
            })
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.state().clone();
        change(&mut state);
        if let Err(error) = self.storage.keep_state(&self.session, &state) {
            log::debug(format!("{error}; a later instance will start with a new session state"));
        }
        self.state = Some(state);
    }
}

fn is_cold(pressure: &Pressure) -> bool {
    pressure.cache.warm_tokens == 0 || pressure.cache.breaking
}
