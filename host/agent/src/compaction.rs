//! Making room in the window: the engine is asked, its plan is checked, and the host has a plan of its own.
//!
//! [`Compactor`] does it for whatever can show a conversation and take a view, a [`Desk`]; here it does it for a session.

mod compactor;
mod desk;
mod memory;
mod ruler;

use std::collections::HashMap;
use std::sync::{Arc, RwLockReadGuard};
use std::time::Duration;

use hermes_conversation::{Conversation, SessionId, Summary, Usage, View};
use hermes_plugins::{CacheState, Moment};
use hermes_store::{Frozen, Store};

pub use self::compactor::{Compacted, Compactor, Notify, Preview, Rules, STRIKES, reserve};
pub use self::desk::Desk;
pub use self::ruler::Ruler;
use crate::agent::Host;
use crate::clock::Clock;
use crate::error::AgentError;
use crate::event::{Event, Observer};
use crate::freezing;
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
    let note = host.store.note(&ruler_name(host)).unwrap_or_default();
    let ruler = note.map_or_else(Ruler::default, |note| Ruler::from_note(&note));
    Compactor::new(plugged.engine.clone(), plugged.memory_events.clone(), rules, ruler, notify(&plugged.voice))
}

/// What passes lines on to the user.
pub(crate) fn notify(voice: &Voice) -> Notify {
    let voice = voice.clone();
    Arc::new(move |text| voice.notice(text))
}

fn ruler_name(host: &Host) -> String {
    format!("ruler:{}/{}", host.model.provider, host.model.name)
}

/// Takes what a provider counted for a request whose estimate is known.
pub(crate) fn counted(host: &Host, live: &mut Live, estimate: u32, usage: Option<Usage>) {
    if live.compactor.counted(estimate, usage)
        && let Err(error) = host.store.set_note(&ruler_name(host), Some(&live.compactor.ruler().note()))
    {
        tracing::debug!(%error, "how the model counts was not noted");
    }
}

/// Before a request: the engine is heard, and the window has room afterwards.
pub(crate) async fn make_room(
    host: &Host,
    live: &mut Live,
    moment: Moment,
    observer: &mut dyn Observer,
) -> Result<(), AgentError> {
    let mut done = Vec::new();
    let outcome = {
        let (compactor, mut desk, ear) = at_work!(host, live);
        ear.attend(observer, compactor.make_room(&mut desk, moment, &mut done)).await
    };
    tell(live, &done, observer);
    outcome?;
    freezing::after_compaction(host, live).await
}

/// After a turn, while the user reads: the engine may work ahead.
pub(crate) async fn turn_ended(host: &Host, live: &mut Live, observer: &mut dyn Observer) -> Result<(), AgentError> {
    let (compactor, mut desk, ear) = at_work!(host, live);
    ear.attend(observer, compactor.turn_ended(&mut desk)).await
}

/// `/compress`: now, whatever the window says. True when a new view was adopted.
pub(crate) async fn compress(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    observer: &mut dyn Observer,
) -> Result<bool, AgentError> {
    let mut done = Vec::new();
    let outcome = {
        let (compactor, mut desk, ear) = at_work!(host, live);
        ear.attend(observer, compactor.compress(&mut desk, focus, &mut done)).await
    };
    tell(live, &done, observer);
    let adopted = outcome?;
    freezing::after_compaction(host, live).await?;
    live.ear.drain(observer);
    Ok(adopted)
}

/// `/compress --preview`: what that would do. Nothing is changed.
pub(crate) async fn preview(
    host: &Host,
    live: &mut Live,
    focus: Option<&str>,
    observer: &mut dyn Observer,
) -> Option<Preview> {
    let (compactor, desk, ear) = at_work!(host, live);
    let preview = ear.attend(observer, compactor.preview(&desk, focus)).await;
    let preview = preview.unwrap_or_else(|error| {
        live.plugged.voice.notice(error.to_string());
        None
    });
    live.ear.drain(observer);
    preview
}

fn tell(live: &mut Live, done: &[Compacted], observer: &mut dyn Observer) {
    live.ear.drain(observer);
    if !done.is_empty() {
        live.assistant.view_changed();
    }
    for Compacted { reason, before, after, .. } in done {
        observer.event(Event::Compacted { reason, before: *before, after: *after });
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
