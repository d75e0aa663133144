//! The engine apart from the host: what it remembers between calls, and what it answers.

use std::collections::HashMap;
use std::rc::Rc;

use hermes_plugin::context_engine::{Advice, Moment, Outcome, Plan, Pressure, Request, Segment};
use hermes_plugin::{Error, Header, MessageId, Progress, log};
use serde_json::json;

use crate::config::Config;
use crate::desk::Desk;
use crate::gist::Gist;
use crate::ground::{Ground, Rows, Standing};
use crate::layout::backlog;
use crate::note::{self, Writer};
use crate::plan::{Draft, Planner};
use crate::policy::{Marks, Shares};
use crate::shelf::{Shelf, State};
use crate::source::{Database, Source};
use crate::texts::Made;
use crate::timing::{self, Quiet};
use crate::told::Told;
use crate::work::{self, Bookmark};

/// Tokens of new messages that are worth reading ahead, as a part of what is folded at once.
const AHEAD: u32 = 4;

/// An engine over a log and a database.
pub(crate) struct Engine<S, D> {
    pub(crate) config: Config,
    pub(crate) source: S,
    pub(crate) shelf: Shelf<D>,
    pub(crate) session: String,
    pub(crate) rows: Rows,
    pub(crate) desk: Desk,
    quiet: Quiet,
    /// As it is kept; read when it is first needed.
    state: Option<State>,
    bookmark: Bookmark,
    /// The newest message when reading ahead was last asked for.
    asked: MessageId,
    /// The plan that waits for its verdict.
    proposed: Option<Draft>,
    marks: Option<(Marks, Shares)>,
    /// Tokens of the next request when a plan was asked for.
    read_at: u32,
    /// Texts of segments in the view, by key: those that this instance made.
    texts: HashMap<String, String>,
    /// Gists of segments in the view, by key, as far as they were needed.
    gists: HashMap<String, Rc<Gist>>,
    union: Option<(u64, Made)>,
    told: Told,
}

impl<S: Source, D: Database> Engine<S, D> {
    pub(crate) fn new(config: Config, source: S, database: D) -> Self {
        Self {
            config,
            source,
            shelf: Shelf::new(database),
            session: String::new(),
            rows: Rows::default(),
            desk: Desk::default(),
            quiet: Quiet::Off,
            state: None,
            bookmark: Bookmark::default(),
            asked: 0,
            proposed: None,
            marks: None,
            read_at: 0,
            texts: HashMap::new(),
            gists: HashMap::new(),
            union: None,
            told: Told::default(),
        }
    }

    pub(crate) fn begin(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.state = None;
    }

    pub(crate) fn model_changed(&mut self) {
        // Another window, another ruler: what was tried means nothing any more.
        self.quiet = Quiet::Off;
        self.marks = None;
    }

    pub(crate) fn observe(&mut self, headers: &[Header]) {
        if let Some(first) = headers.first().filter(|first| self.rows.last().is_some_and(|last| first.id <= last.id)) {
            self.rewound(first.id);
        }
        self.rows.observe(headers);
    }

    pub(crate) fn rewound(&mut self, first: MessageId) {
        self.rows.rewind(first);
        self.desk.rewind(first);
        self.quiet = Quiet::Off;
        self.bookmark.next = self.bookmark.next.min(first);
        self.asked = self.asked.min(first);
        if self.state().folded >= first {
            // The host goes back to an earlier view: which messages it folds is seen when it is next shown.
            self.change(|state| state.folded = 0);
        }
    }

    pub(crate) fn assess(&mut self, pressure: &Pressure) -> Advice {
        if let Err(error) = self.desk.catch_up(&self.rows, &self.source) {
            log::debug(error);
        }
        let state = self.state();
        let (folded, texts) = (state.folded, state.prefix.saturating_add(state.working));
        let backlog = backlog(&self.rows, folded);
        let marks = Marks::of(&self.config, pressure, backlog.shown.saturating_add(texts));
        let shares = Shares::of(&self.config, &marks, pressure.moment);
        self.marks = Some((marks, shares));
        // A cache that is cold anyway makes a smaller fold worth it.
        let pays = if is_cold(pressure) {
            backlog.shown >= shares.tail.saturating_add(shares.fold / 2)
        } else {
            backlog.ripe >= shares.tail.saturating_add(shares.fold)
        };
        let propose = timing::propose(pressure, &marks, &mut self.quiet, pays);
        Advice { prepare: self.is_worth_reading(pressure, shares.fold / AHEAD), propose }
    }

    fn is_worth_reading(&mut self, pressure: &Pressure, least: u32) -> bool {
        let Some(last) = self.rows.last().filter(|last| last.id > self.asked) else { return false };
        let worth = backlog(&self.rows, self.asked).shown >= least || pressure.moment == Moment::Manual;
        if worth {
            self.asked = last.id;
        }
        worth
    }

    /// One step of reading ahead.
    pub(crate) fn read_ahead(&mut self) -> Result<Progress, Error> {
        work::step(&mut self.bookmark, &self.rows, &mut self.shelf, &self.source)
            .map_err(|error| error.context("keeping what was read of the conversation"))
    }

    /// One step of work ahead: what is new is read, then a model may write a note on what is folded.
    pub(crate) fn prepare(&mut self, request: &Request, writer: &impl Writer) -> Result<Progress, Error> {
        if self.read_ahead()? == Progress::More {
            return Ok(Progress::More);
        }
        if self.config.notes {
            let ground = Ground::new(&self.rows, &request.view);
            let folded = ground.standings.iter().rposition(|standing| *standing == Standing::Folded);
            let folded = folded.map_or(0, |at| at + 1);
            note::write(&self.rows, folded, &self.session, &mut self.shelf, &self.source, writer)?;
        }
        Ok(Progress::Done)
    }

    pub(crate) fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let pressure = &request.pressure;
        if let Err(error) = self.desk.catch_up(&self.rows, &self.source) {
            log::debug(error);
        }
        self.read_at = pressure.prompt_tokens;
        let refused = self.state().refused.clone();
        let ground = Ground::new(&self.rows, &request.view);
        let folded = ground.standings.iter().rposition(|standing| *standing == Standing::Folded);
        let folded = folded.map_or(0, |at| self.rows.get(at).id);
        let marks = Marks::of(&self.config, pressure, ground.least());
        let shares = Shares::of(&self.config, &marks, pressure.moment);
        self.marks = Some((marks, shares));
        if ground.first_shown < ground.len() {
            self.desk.folded(self.rows.get(ground.first_shown).id);
        }
        let stands = |key: &String| ground.summaries.iter().any(|shown| shown.key == *key);
        self.texts.retain(|key, _| stands(key));
        let gone: Vec<String> = self.gists.extract_if(|key, _| !stands(key)).map(|(key, _)| key).collect();
        if let Err(error) = self.shelf.forget_gists(&gone) {
            log::debug(error);
        }
        let mut planner = Planner {
            ground: &ground,
            config: &self.config,
            shares,
            desk: &self.desk,
            shelf: &mut self.shelf,
            source: &self.source,
            needed: timing::is_needed(pressure, &marks),
            presses: timing::is_pressing(pressure, &marks),
            focus: request.focus.as_deref().unwrap_or_default().trim(),
            memory: &request.memory_context,
            known: &self.texts,
            gists: &mut self.gists,
            union: &mut self.union,
            told: &mut self.told,
        };
        let draft = planner.plan()?;
        match draft.filter(|draft| refused.is_none() || refused != Some(draft.fingerprint())) {
            Some(draft) => {
                log::debug(format!("a view of {} tokens", draft.tokens));
                let plan = draft.plan.clone();
                self.proposed = Some(draft);
                Ok(Some(plan))
            }
            None => {
                self.quiet = Quiet::after_nothing(pressure, &marks);
                // What is shown may be other than what was last known of it.
                if folded != self.state().folded {
                    self.change(|state| state.folded = folded);
                }
                Ok(None)
            }
        }
    }

    pub(crate) fn settled(&mut self, outcome: &Outcome) {
        let Some(proposed) = self.proposed.take() else { return };
        match outcome {
            Outcome::Adopted => {
                self.quiet = Quiet::Measuring;
                for segment in &proposed.plan.segments {
                    let Segment::Summary(summary) = segment else { continue };
                    self.texts.insert(summary.key.clone(), summary.content.clone());
                    let Some((key, gist)) = proposed.gists.iter().find(|(key, _)| *key == summary.key) else {
                        continue;
                    };
                    if let Err(error) = self.shelf.keep_gist(&self.rows, key, &summary.covers, gist) {
                        log::debug(format!("{error}; a later instance will read what is folded again"));
                    }
                    self.gists.insert(key.clone(), Rc::clone(gist));
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
                log::warn(format!("the host refused a plan ({}): {error}; the view stays as it is", error.code));
                self.change(|state| state.refused = Some(proposed.fingerprint()));
            }
            Outcome::Deferred => self.quiet = Quiet::after_deferral(self.read_at),
            // The next question brings the conversation as it is then.
            Outcome::Stale => {}
        }
    }

    pub(crate) fn status(&self) -> String {
        let state = self.state.clone().unwrap_or_default();
        let shown = backlog(&self.rows, state.folded).shown;
        let mut status = json!({
            "segments": state.segments,
            "tokens": { "segments": state.prefix, "working_set": state.working, "messages": shown },
            "folded_through": state.folded,
            "read_through": self.asked,
            "publications": state.publications,
        });
        if !state.reason.is_empty() {
            status["last_publication"] = state.reason.into();
        }
        if let Some((marks, shares)) = self.marks {
            status["threshold_tokens"] = marks.hard.into();
            status["fold_tokens"] = shares.fold.into();
            status["tail_tokens"] = shares.tail.into();
        }
        status.to_string()
    }

    /// How the session stands. A new one where that cannot be read: the first view that is shown corrects it.
    pub(crate) fn state(&mut self) -> &State {
        let (shelf, session) = (&mut self.shelf, &self.session);
        self.state.get_or_insert_with(|| {
            shelf.state(session).unwrap_or_else(|error| {
                log::debug(format!("{error}; how the session stood is not known"));
                State::default()
            })
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.state().clone();
        change(&mut state);
        if let Err(error) = self.shelf.keep_state(&self.session, &state) {
            log::debug(format!("{error}; a later instance will not know how the session stood"));
        }
        self.state = Some(state);
    }
}

fn is_cold(pressure: &Pressure) -> bool {
    pressure.cache.warm_tokens == 0 || pressure.cache.breaking
}
