//! One command to its end, without a person: what `-z`, subagents and everything unattended do.

use std::time::Duration;

use hermes_protocol::{Command, CommandError, Event, EventKind};
use tokio_util::sync::CancellationToken;

use crate::feed::Subscription;
use crate::session::SessionHandle;

/// How long a command that was cut off may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandEnd {
    /// The event that ended it; `None` if the session was closed, or did not end the command in time.
    pub event: Option<EventKind>,
    /// Why the command was cut off, if it was.
    pub cut: Option<CutOff>,
}

/// Why a command was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// The caller stopped it.
    Stopped,
    /// It took longer than it may.
    TimedOut,
}

/// Whether an event ends a turn or a compaction.
fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TurnEnded { .. }
            | EventKind::CompressionEnded { .. }
            | EventKind::CompressionPreviewed { .. }
            | EventKind::PromptRebuilt { .. }
    )
}

impl SessionHandle {
    /// Sends a command and waits for its end. `show` gets every event of `events` until then, the last one included.
    ///
    /// `stop` cuts the command off, and so does `most`, the longest time that it may take. Questions that the session asks
    /// meanwhile are not answered: they fail after a while.
    ///
    /// # Errors
    ///
    /// When the session refuses the command.
    pub async fn carry_out(
        &self,
        command: Command,
        events: &mut Subscription,
        stop: &CancellationToken,
        most: Option<Duration>,
        mut show: impl FnMut(&Event),
    ) -> Result<CommandEnd, CommandError> {
        let closes = command == Command::Close;
        let mut sending = Box::pin(self.send(command));
        let mut is_accepted = false;
        let mut cut = None;
        let mut deadline = Box::pin(after(most));
        loop {
            let why = tokio::select! {
                biased;
                accepted = &mut sending, if !is_accepted => {
                    accepted?;
                    is_accepted = true;
                    continue;
                }
                // Before the events: a fast server always has the next one ready.
                () = stop.cancelled(), if cut.is_none() && !closes => CutOff::Stopped,
                event = events.next() => {
                    let Some(event) = event else { return Ok(CommandEnd { event: None, cut }) };
                    show(&event);
                    match &event.kind {
                        EventKind::Ended => return Ok(CommandEnd { event: closes.then_some(EventKind::Ended), cut }),
                        kind if is_end(kind) && !closes => return Ok(CommandEnd { event: Some(kind.clone()), cut }),
                        _ => continue,
                    }
                }
                () = &mut deadline => match cut {
                    None => CutOff::TimedOut,
                    Some(_) => return Ok(CommandEnd { event: None, cut }),
                },
            };
            cut = Some(why);
            deadline = Box::pin(after(Some(PATIENCE)));
            // Refused only if the command has already ended.
            let _ = self.send(Command::Stop).await;
        }
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
