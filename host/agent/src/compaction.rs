//! Making room in the window: the engine is asked, its plan is checked, and the host has a plan of its own.
//!
//! [`Compactor`] does it for whatever can show a conversation and take a view, a [`Desk`]; here it does it for a session.

mod compactor;
mod desk;
mod memory;
mod notify;
mod ruler;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, RwLockReadGuard};
use std::time::Duration;

use hermes_conversation::picture::{self, Change};
use hermes_conversation::{Conversation, Model, SessionId, Summary, Usage, View};
use hermes_plugin_host::{CacheState, Moment};
use hermes_store::{Frozen, Store};

pub use self::compactor::{Compacted, Compactor, LEAST_MESSAGES, Preview, Rules, STRIKES, heavy, reserve};
pub use self::desk::Desk;
pub use self::notify::Notify;
pub use self::ruler::Ruler;
use crate::clock::Clock;
use crate::error::AgentError;
use crate::event::{Event, Observer};
use crate::freezing;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::live::{Live, Plugged};
use crate::outgoing::Outgoing;
use crate::report::Voice;

/// How long a turn waits for a plan that it can do without.
const PATIENCE: Duration = Duration::from_millis(300);

/// A session as compaction works on it.
pub(crate) struct SessionDesk<'a> {
    store: &'a Store,
    session: &'a SessionId,
    engine: &'a str,
    journal: &'a mut Journal,
    outgoing: &'a Outgoing,
    frozen: &'a Frozen,
    fixed_tokens: u32,
    clock: Clock,
    faults: &'a mut u32,
}

impl Desk for SessionDesk<'_> {
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.journal.conversation()
    }

    fn view(&self) -> &View {
        self.journal.view()
    }

    fn summaries(&self) -> &HashMap<String, Summary> {
        self.journal.summaries()
    }

    fn adopt(&mut self, view: View, reason: &str, engine: &str) -> Result<(), AgentError> {
        Ok(self.journal.adopt(view, reason, engine)?)
    }

    fn fixed_tokens(&self) -> u32 {
        self.fixed_tokens
    }

    fn cache(&self) -> CacheState {
        self.outgoing.cache_state(self.frozen, self.journal, self.clock.now())
    }

    fn faults(&self) -> u32 {
        *self.faults
    }

    fn keep_faults(&mut self, in_a_row: u32, cause: &str) -> Result<(), AgentError> {
        *self.faults = in_a_row;
        Ok(self.store.set_engine_faults(self.session, self.engine, in_a_row, cause)?)
    }
}

/// The compactor of a session, what else it needs of it, and what passes on what is said meanwhile.
macro_rules! at_work {
    ($host:ident, $live:ident) => {{
        let Live { session, compactor, journal, outgoing, frozen, fixed_tokens, clock, faults, plugged, ear, .. } =
            &mut *$live;
        let desk = SessionDesk {
            store: &$host.store,
            session,
            engine: &plugged.engine_version,
            journal,
            outgoing,
            frozen,
            fixed_tokens: *fixed_tokens,
            clock: *clock,
            faults,
        };
        (compactor, desk, ear)
    }};
}

/// The compactor that a session begins with.
pub(crate) fn begin(host: &Host, plugged: &Plugged) -> Compactor {
    let window = host.model.context_length;
    let rules = Rules { enabled: host.settings.compression, window, patience: PATIENCE };
    let ruler = noted_ruler(&host.store, &host.model);
    Compactor::new(plugged.engine.clone(), plugged.memory_events.clone(), rules, ruler, notify(&plugged.voice))
}

/// What passes lines on to the user.
pub(crate) fn notify(voice: &Voice) -> Notify {
    let voice = voice.clone();
    Arc::new(move |text| voice.notice(text))
}

fn ruler_name(model: &Model) -> String {
    format!("ruler:{}/{}", model.provider, model.name)
}

/// How a model's provider counts, as far as any process has learnt.
pub(crate) fn noted_ruler(store: &Store, model: &Model) -> Ruler {
    let note = store.note(&ruler_name(model)).unwrap_or_default();
    note.map_or_else(Ruler::default, |note| Ruler::from_note(&note))
}

/// Takes what a provider counted for a request whose estimate is known.
pub(crate) fn counted(host: &Host, live: &mut Live, estimate: u32, usage: Option<Usage>) {
    if live.compactor.counted(estimate, usage)
        && let Err(error) = host.store.set_note(&ruler_name(&host.model), Some(&live.compactor.ruler().note()))
    {
        tracing::debug!(%error, "how the model counts was not noted");
    }
}

/// Before a request: the engine is heard, and the window has room afterwards. False where the user stopped it; what was done
/// until then is told all the same.
pub(crate) async fn make_room(
    host: &Host,
    live: &mut Live,
    moment: Moment,
    observer: &mut dyn Observer,
    interrupt: &Interrupt,
) -> Result<bool, AgentError> {
    let mut done = Vec::new();
    let outcome = {
        let (compactor, mut desk, ear) = at_work!(host, live);
        interrupt.or_done(ear.attend(observer, compactor.make_room(&mut desk, moment, &mut done))).await
    };
    tell(live, &done, observer);
    let Some(outcome) = outcome else { return Ok(false) };
    outcome?;
    // Where it is stopped, it is made up for before the next request: the view is a new one still.
    interrupt.or_done(freezing::after_compaction(host, live)).await.map_or(Ok(false), |done| done.map(|()| true))
}

/// After a turn, while the user reads: the engine may work ahead.
pub(crate) async fn turn_ended(host: &Host, live: &mut Live, observer: &mut dyn Observer) -> Result<(), AgentError> {
    let (compactor, mut desk, ear) = at_work!(host, live);
    ear.attend(observer, compactor.turn_ended(&mut desk)).await
}

/// What came of `/compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// A new view was adopted.
    Adopted,
    /// There are fewer messages than any engine folds.
    TooFew {
        /// How many there are.
        messages: usize,
        /// How many it takes.
        least: usize,
    },
    /// `compression.enabled` is false.
    Off,
    /// The engine has nothing to propose.
    Nothing,
    /// The engine failed, or its plan was refused; the user was told why.
    Failed,
    /// The user stopped it before there was a new view.
    Stopped,
}

/// Why `/compress` and its preview need not ask.
pub(crate) fn unasked(host: &Host, live: &Live) -> Option<Compression> {
    let messages = live.journal.conversation().messages().len();
    if messages < LEAST_MESSAGES {
        return Some(Compression::TooFew { messages, least: LEAST_MESSAGES });
    }
    (!host.settings.compression).then_some(Compression::Off)
}

/// `/compress`: now, whatever the window says.
pub(crate) async fn compress(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    observer: &mut dyn Observer,
    interrupt: &Interrupt,
) -> Result<Compression, AgentError> {
    if let Some(unasked) = unasked(host, live) {
        return Ok(unasked);
    }
    let faults = live.faults;
    let mut done = Vec::new();
    let outcome = {
        let (compactor, mut desk, ear) = at_work!(host, live);
        interrupt.or_done(ear.attend(observer, compactor.compress(&mut desk, focus, &mut done))).await
    };
    tell(live, &done, observer);
    let Some(outcome) = outcome else {
        return Ok(if done.is_empty() { Compression::Stopped } else { Compression::Adopted });
    };
    let adopted = outcome?;
    interrupt.or_done(freezing::after_compaction(host, live)).await.unwrap_or(Ok(()))?;
    live.ear.drain(observer);
    Ok(match adopted || !done.is_empty() {
        true => Compression::Adopted,
        false if live.faults > faults => Compression::Failed,
        false => Compression::Nothing,
    })
}

/// What `/compress` would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Who would do it.
    pub by: String,
    /// The engine's line.
    pub reason: String,
    /// Stretch by stretch of the view that it would make.
    pub changes: Vec<Change>,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}

/// `/compress --preview`: what that would do, or why nothing. Nothing is changed.
pub(crate) async fn preview(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    observer: &mut dyn Observer,
) -> Result<Outlook, Compression> {
    if let Some(unasked) = unasked(host, live) {
        return Err(unasked);
    }
    let (compactor, desk, ear) = at_work!(host, live);
    let previewed = ear.attend(observer, compactor.preview(&desk, focus)).await;
    live.ear.drain(observer);
    match previewed {
        Ok(Ok(Some(Preview { reason, view, before, after }))) => {
            let conversation = live.journal.conversation();
            let changes = picture::compare(&conversation, live.journal.view(), &view);
            Ok(Outlook { by: live.plugged.engine.name().to_owned(), reason, changes, before, after })
        }
        Ok(Ok(None)) => Err(Compression::Nothing),
        Ok(Err(refusal)) => {
            observer.event(Event::Notice(&format!(
                "the plan of the context engine `{}` would be refused: {refusal}",
                live.plugged.engine.name()
            )));
            Err(Compression::Failed)
        }
        Err(error) => {
            observer.event(Event::Notice(&error.to_string()));
            Err(Compression::Failed)
        }
    }
}

fn tell(live: &mut Live, done: &[Compacted], observer: &mut dyn Observer) {
    live.ear.drain(observer);
    if !done.is_empty() {
        live.assistant.view_changed();
    }
    for Compacted { reason, by, before, after, .. } in done {
        observer.event(Event::Compacted { reason, by, before: *before, after: *after });
    }
}

/// Whether the conversation, as it is shown, stands well beside a prompt and tools of that size.
pub(crate) fn fits_beside(host: &Host, live: &mut Live, fixed: u32) -> bool {
    let (compactor, desk, _) = at_work!(host, live);
    compactor.fits_beside(&desk, fixed)
}

/// Tokens that the messages of a request may take, by the estimate.
pub(crate) fn room_for_messages(host: &Host, live: &mut Live) -> u32 {
    let (compactor, desk, _) = at_work!(host, live);
    compactor.limit(&desk)
}

/// Estimate for the next request, by the host's ruler.
pub(crate) fn estimate(live: &Live) -> u32 {
    live.fixed_tokens.saturating_add(live.journal.conversation().view_tokens(live.journal.view()))
}

/// Estimate for the next request, by the provider's ruler where it is known.
pub(crate) fn next_request(live: &Live) -> u32 {
    live.compactor.ruler().counted(estimate(live))
}
