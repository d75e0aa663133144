//! The terminal as a front end of one session: it sends a command, shows the events that follow, and answers questions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::approval::{Decision, Question};
use hermes_agent::{Accepted, Command, CommandError, Event, EventKind, Query, QuestionId, SessionHandle, Subscription};

use crate::approval::AtTerminal;
use crate::console::Tone;
use crate::screen::Screen;
use crate::signals::StopSwitch;
use crate::slash::Slash;
use crate::typed::Typed;

/// A session, and the terminal's subscription to its events.
pub(crate) struct FrontEnd {
    session: SessionHandle,
    events: Subscription,
    /// Events that arrived while a question was on the screen.
    waiting: VecDeque<Arc<Event>>,
    /// Lines that the user typed while a turn ran, for the time after it.
    typed: VecDeque<String>,
}

impl FrontEnd {
    /// Subscribes to all events of the session, from its opening on.
    pub(crate) fn new(session: SessionHandle) -> Self {
        let events = session.subscribe(Some(&session.beginning()));
        Self { session, events, waiting: VecDeque::new(), typed: VecDeque::new() }
    }

    pub(crate) fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// The next line that was typed while a turn ran.
    pub(crate) fn next_typed(&mut self) -> Option<String> {
        self.typed.pop_front()
    }

    /// Sends a command and shows events until it ends. Returns the event that ended it. The switch stops it, and so does
    /// the line `/stop`; other lines wait until it has ended.
    pub(crate) async fn run(
        &mut self,
        command: Command,
        screen: &mut Screen,
        person: Option<&AtTerminal>,
        stop: &StopSwitch,
        mut lines: Typed,
    ) -> Result<EventKind, CommandError> {
        let closes = command == Command::Close;
        let _attending = person.map(|_| self.session.attend());
        let (session, token) = (self.session.clone(), stop.token());
        let mut sending = Box::pin(session.send(command));
        let (mut sent, mut stopped) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                accepted = &mut sending, if !sent => {
                    accepted?;
                    sent = true;
                    continue;
                }
                // Before the events: a fast server always has the next one ready.
                () = token.cancelled(), if !stopped && !closes => {
                    stopped = true;
                    // Refused only if the command has already ended.
                    let _ = session.send(Command::Stop).await;
                    continue;
                }
                event = self.next() => event,
                line = lines.next(), if !closes => {
                    self.typed_line(line, screen, stop);
                    continue;
                }
            };
            let Some(event) = event else {
                screen.end_turn();
                return if closes { Ok(EventKind::Ended) } else { Err(CommandError::Closed) };
            };
            match &event.kind {
                // The user does not wait for the rest of a text that arrived before the stop.
                EventKind::Text { .. } | EventKind::Reasoning { .. } if stopped => continue,
                _ => screen.event(&event),
            }
            match &event.kind {
                EventKind::Asked { question, query: Query::Approval { question: details } } => {
                    if let Some(person) = person {
                        self.ask(person, *question, details, stop).await;
                    }
                }
                EventKind::Ended if closes => return Ok(EventKind::Ended),
                EventKind::TurnEnded { .. }
                | EventKind::CompressionEnded { .. }
                | EventKind::CompressionPreviewed { .. }
                | EventKind::PromptRebuilt { .. }
                    if !closes =>
                {
                    return Ok(event.kind.clone());
                }
                _ => {}
            }
        }
    }

    /// Sends a command that the session carries out before it accepts it, and shows its events.
    pub(crate) async fn send(&mut self, command: Command, screen: &mut Screen) -> Result<Accepted, CommandError> {
        let accepted = self.session.send(command).await;
        // The session publishes the events of such a command before it accepts the command.
        while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, self.next()).await {
            screen.event(&event);
        }
        accepted
    }

    /// Handles a line that was typed while a command runs.
    fn typed_line(&mut self, line: String, screen: &mut Screen, stop: &StopSwitch) {
        match Slash::parse(&line) {
            Some(Slash::Stop) => stop.trigger(),
            _ if line.trim().is_empty() => {}
            _ => {
                screen.line(Tone::Faint, "this waits until the turn has ended");
                self.typed.push_back(line);
            }
        }
    }

    async fn next(&mut self) -> Option<Arc<Event>> {
        match self.waiting.pop_front() {
            Some(event) => Some(event),
            None => self.events.next().await,
        }
    }

    /// Shows a question until a key answers it or the session closes it. Other events wait meanwhile.
    async fn ask(&mut self, person: &AtTerminal, id: QuestionId, question: &Question, stop: &StopSwitch) {
        let is_closed = |event: &Event| matches!(event.kind, EventKind::Closed { question, .. } if question == id);
        if self.waiting.iter().any(|event| is_closed(event)) {
            return;
        }
        let (events, waiting) = (&mut self.events, &mut self.waiting);
        let closed = async {
            while let Some(event) = events.next().await {
                let closed = is_closed(&event);
                waiting.push_back(event);
                if closed {
                    break;
                }
            }
        };
        let decision: Decision = tokio::select! {
            biased;
            () = closed => return,
            decision = person.ask(question) => decision,
        };
        let command = if stop.is_triggered() { Command::Stop } else { Command::Decide { question: id, decision } };
        if let Err(error) = self.session.send(command).await {
            tracing::debug!(%error, question = id.0, "the answer came too late");
        }
    }
}
