//! A finished turn on its way to a mem0 service: stored once, however often the host delivers it.

use hermes_guest_backend::{cut, for_turn, without_fence};
use hermes_plugin::memory_provider::Turn;
use hermes_plugin::{Error, ErrorKind, clock, log};

use crate::memory::Added;
use crate::outbound::{self, State};
use crate::service::{Dialect, Found, Progress, Service, is_refusal};

/// The most bytes of each side of a turn.
const SIDE: usize = 32 * 1024;
/// How long a service may take to extract facts: a server calls models meanwhile.
const ADD: u32 = 100_000;
const LOOK_UP: u32 = 20_000;
/// How long a server may still be storing a turn after the connection broke.
const SETTLE: u64 = 30_000;
/// After so many attempts a turn that makes the server fail for an unknown reason is set aside.
const ATTEMPTS: u32 = 8;
/// The pause before the next try if only the user can correct the configuration.
const MENDING: u32 = 600_000;
/// Queued turns that are followed at a time.
const FOLLOWED: u32 = 5;

/// The two sides of a turn as they are stored.
pub(crate) fn sides(turn: &Turn) -> (String, String) {
    let side = |text: &str| {
        let text = without_fence(text);
        cut(&text, SIDE).to_owned()
    };
    (side(&turn.user), side(&turn.assistant))
}

/// Stores a turn.
pub(crate) fn deliver(service: &Service, turn: &Turn) -> Result<(), Error> {
    let (user, assistant) = sides(turn);
    if user.is_empty() {
        return Ok(());
    }
    outbound::prepare()?;
    let key = outbound::key(turn);
    let attempts = match outbound::state(&key)? {
        State::Stored => return Ok(()),
        State::New => 0,
        State::Refused { attempts } => attempts,
        State::Unknown { begun, attempts } => {
            match service.look_up(&key, &user, LOOK_UP).map_err(waiting)? {
                Found::Yes => return outbound::stored(&key, ""),
                Found::CannotTell => return Err(ambiguous()),
                Found::No => settled(begun)?,
            }
            attempts
        }
    };
    outbound::begin(&key)?;
    match service.add_turn(&key, &user, &assistant, turn.ended_at, ADD) {
        Ok(Added::Queued(event)) => outbound::stored(&key, &event)?,
        Ok(Added::Stored(_) | Added::Known) => outbound::stored(&key, "")?,
        Err(error) => {
            if is_refusal(&error) {
                outbound::refused(&key)?;
            }
            let is_poison = error.code == "unknown" && attempts + 1 >= ATTEMPTS;
            let error = waiting(error);
            return Err(if is_poison { Error { kind: ErrorKind::Failed, ..error } } else { error });
        }
    }
    if service.dialect == Dialect::Platform {
        follow(service);
    }
    Ok(())
}

/// An error unless the last attempt is so old that the service has finished with it.
fn settled(begun: u64) -> Result<(), Error> {
    let age = clock::now().saturating_sub(begun);
    if age >= SETTLE {
        return Ok(());
    }
    let rest = u32::try_from(SETTLE - age).unwrap_or(u32::MAX);
    let why = "the connection to mem0 broke while a turn was sent; it is looked up again before it is sent again";
    Err(Error::unavailable(why).with_code("settling").with_retry_after(rest))
}

fn ambiguous() -> Error {
    let why = "the connection to mem0 broke while this turn was sent, and the service cannot look turns up, so nobody knows \
               whether it is stored. It is not sent again, so that nothing is stored twice; look for it with mem0_search";
    Error::failed(why).with_code("ambiguous")
}

/// The error of a delivery: what the user can mend costs no turn.
fn waiting(error: Error) -> Error {
    let error = for_turn(error);
    if error.code == "not-found" {
        let message = format!("{}: is there a mem0 server at this address?", error.message);
        return Error { kind: ErrorKind::Unavailable, message, ..error }.with_retry_after(MENDING);
    }
    if error.is(ErrorKind::Denied) {
        return Error { kind: ErrorKind::Unavailable, ..error }.with_retry_after(MENDING);
    }
    error
}

/// Looks what became of queued turns. A failure is reported; it does not concern the turn at hand.
pub(crate) fn follow(service: &Service) {
    let result = outbound::notes(FOLLOWED).and_then(|notes| {
        for (turn, event) in notes {
            match service.progress(&event, LOOK_UP)? {
                Progress::Open => continue,
                Progress::Done => {}
                Progress::Failed(why) => {
                    log::warn(format!("mem0 could not extract memories from the turn {turn}, event {event}: {why}"));
                }
            }
            outbound::clear_note(&turn)?;
        }
        Ok(())
    });
    if let Err(error) = result {
        log::debug(format!("queued turns of mem0 could not be followed: {error}"));
    }
}
