//! The terminal as a front end of one session: it sends a command, shows the events that follow, and answers questions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hermes_app::{SessionHandle, Subscription};
use hermes_config::WhileBusy;
use hermes_protocol::{
    Accepted, Command, CommandError, Decision, Event, EventKind, Query, Question, QuestionEnd, QuestionId,
};
use hermes_terminal::{Answer, Written, named_choice};
use tokio_util::sync::CancellationToken;

use crate::approval::{AtTerminal, drawn};
use crate::console::Tone;
use crate::live::Live;
use crate::screen::{Screen, task_line};
use crate::shell;
use crate::signals::StopSwitch;
use crate::slash::Slash;
use crate::text;
use crate::typed::{SHIFT_TAB, Typed};

/// A session, and the terminal's subscription to its events.
pub(crate) struct FrontEnd {
    session: SessionHandle,
    events: Subscription,
    /// Events that arrived while a question was on the screen.
    waiting: VecDeque<Arc<Event>>,
    /// What happens to a message that is typed while a turn runs.
    while_busy: WhileBusy,
    /// Lines that the user typed while a turn ran, for the time after it.
    typed: VecDeque<String>,
    /// The begin of a line that the user continues at the next prompt.
    begun: String,
    /// Whether a message stopped the turn, and is the next one.
    is_replaced: bool,
    /// The question that the next typed line answers, on a terminal that is not drawn.
    asked: Option<Asked>,
    /// The terminal, if it is drawn.
    live: Option<Live>,
    /// The open questions on a terminal that is drawn. The first one is on the screen.
    open: VecDeque<Open>,
}

/// An open question on a terminal that is drawn.
struct Open {
    id: QuestionId,
    query: Query,
    /// Its number on the terminal, if it is on the screen.
    number: Option<u64>,
}

impl Open {
    fn new(id: QuestionId, query: &Query) -> Self {
        Self { id, query: query.clone(), number: None }
    }
}

/// A question of the model.
struct Asked {
    id: QuestionId,
    choices: Vec<String>,
    /// Whether a typed line is a value of a form.
    takes_values: bool,
    /// Whether lines were read before the question.
    was_listening: bool,
}

/// A command while it runs, with the user who sees its events and types meanwhile.
struct Running<'a> {
    screen: &'a mut Screen,
    person: Option<&'a AtTerminal>,
    stop: &'a StopSwitch,
    /// Cancelled when the user stops it.
    token: CancellationToken,
    lines: &'a mut Typed,
    /// Whether it closes the session. Nothing stops it then.
    closes: bool,
    is_turn: bool,
    /// Whether the session has accepted it.
    is_accepted: bool,
    /// Whether the session was asked to stop it.
    is_stopped: bool,
}

impl<'a> Running<'a> {
    fn new(
        command: &Command,
        screen: &'a mut Screen,
        person: Option<&'a AtTerminal>,
        stop: &'a StopSwitch,
        lines: &'a mut Typed,
    ) -> Self {
        let closes = *command == Command::Close;
        let is_turn = matches!(command, Command::Say(_) | Command::UseSkill { .. });
        Self {
            screen,
            person,
            stop,
            token: stop.token(),
            lines,
            closes,
            is_turn,
            is_accepted: false,
            is_stopped: false,
        }
    }

    /// Whether an event is not shown: the user does not wait for the rest of a text that arrived before the stop.
    fn skips(&self, event: &EventKind) -> bool {
        let is_of_reply =
            matches!(event, EventKind::Text { .. } | EventKind::Reasoning { .. } | EventKind::CallForming { .. });
        self.is_stopped && is_of_reply
    }

    /// Whether an event ends the command.
    fn is_ended_by(&self, event: &EventKind) -> bool {
        match event {
            EventKind::Ended => self.closes,
            EventKind::TurnEnded { .. }
            | EventKind::CompressionEnded { .. }
            | EventKind::CompressionPreviewed { .. }
            | EventKind::PromptRebuilt { .. } => !self.closes,
            _ => false,
        }
    }
}

/// What can happen while a command runs.
enum Happening {
    /// The session has accepted or refused the command.
    Accepted(Result<Accepted, CommandError>),
    /// The user stops the command.
    Stop,
    /// The question on the screen is answered.
    Answer(Answer),
    Event(Arc<Event>),
    /// The session has ended: there are no more events.
    Gone,
    /// The user typed a line.
    Line(String),
}

impl FrontEnd {
    /// Subscribes to all events of the session, from its opening on.
    pub(crate) fn new(session: SessionHandle, while_busy: WhileBusy) -> Self {
        let events = session.subscribe(Some(&session.beginning()));
        Self {
            session,
            events,
            waiting: VecDeque::new(),
            while_busy,
            typed: VecDeque::new(),
            begun: String::new(),
            is_replaced: false,
            asked: None,
            live: None,
            open: VecDeque::new(),
        }
    }

    /// Uses a terminal that is drawn from now on.
    pub(crate) fn draw_on(&mut self, live: &Live) {
        self.live = Some(live.clone());
    }

    /// Follows another session from now on. Lines that were typed stay.
    pub(crate) fn follow(&mut self, session: SessionHandle) {
        self.events = session.subscribe(Some(&session.beginning()));
        self.session = session;
        self.waiting.clear();
    }

    pub(crate) fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// The next line that was typed while a turn ran.
    pub(crate) fn next_typed(&mut self) -> Option<String> {
        self.typed.pop_front()
    }

    /// The begin of a line that the user typed while a turn ran.
    pub(crate) fn take_begun(&mut self) -> String {
        std::mem::take(&mut self.begun)
    }

    /// The user continues this line at the next prompt.
    pub(crate) fn begin_line(&mut self, begun: String) {
        self.begun = begun;
    }

    /// Whether a message of the user stopped the last command.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Sends a command and shows events until it ends. Returns the event that ended it. The switch stops it, and so does
    /// the line `/stop`. Messages that are typed meanwhile stop a turn, steer it, or wait, as the user wants; other commands
    /// wait. No line is lost.
    pub(crate) async fn run(
        &mut self,
        command: Command,
        screen: &mut Screen,
        person: Option<&AtTerminal>,
        stop: &StopSwitch,
        mut lines: Typed,
    ) -> Result<EventKind, CommandError> {
        (self.is_replaced, self.asked) = (false, None);
        let mut running = Running::new(&command, screen, person, stop, &mut lines);
        let ended = self.attend(command, &mut running).await;
        self.withdraw(None, screen, "not answered");
        let (typed, begun) = lines.rest();
        self.typed.extend(typed);
        self.begun.push_str(&begun);
        if let Ok(EventKind::TurnEnded { unsent, .. }) = &ended {
            // They were typed before the lines that wait.
            let lines = unsent.iter().map(|text| Written { text: text.clone(), is_command: false }.as_line());
            lines.rev().for_each(|line| self.typed.push_front(line));
        }
        ended
    }

    async fn attend(&mut self, command: Command, running: &mut Running<'_>) -> Result<EventKind, CommandError> {
        let _attending = running.person.map(|_| self.session.attend());
        let session = self.session.clone();
        let mut sending = Box::pin(session.send(command));
        loop {
            match self.happens(&mut sending, running).await {
                Happening::Accepted(accepted) => {
                    accepted?;
                    running.is_accepted = true;
                }
                Happening::Stop => self.stop(running).await,
                Happening::Answer(answer) => self.answer(answer, running.screen, running.stop).await,
                Happening::Line(line) => self.typed_line(line, running).await,
                Happening::Event(event) if running.skips(&event.kind) => {}
                Happening::Event(event) => {
                    running.screen.event(&event);
                    self.follow_questions(&event.kind, running).await;
                    if running.is_ended_by(&event.kind) {
                        return Ok(event.kind.clone());
                    }
                }
                Happening::Gone => {
                    running.screen.end_turn();
                    return if running.closes { Ok(EventKind::Ended) } else { Err(CommandError::Closed) };
                }
            }
        }
    }

    /// Waits for what happens next while a command runs.
    async fn happens(
        &mut self,
        sending: &mut (impl Future<Output = Result<Accepted, CommandError>> + Unpin),
        running: &mut Running<'_>,
    ) -> Happening {
        let shown = self.live.clone().zip(self.open.front().and_then(|open| open.number));
        tokio::select! {
            biased;
            accepted = sending, if !running.is_accepted => Happening::Accepted(accepted),
            // Before the events: a fast server always has the next one ready.
            () = running.token.cancelled(), if !running.is_stopped && !running.closes => Happening::Stop,
            answer = answered(shown) => Happening::Answer(answer),
            event = self.next() => event.map_or(Happening::Gone, Happening::Event),
            line = running.lines.next(), if !running.closes => Happening::Line(line),
        }
    }

    /// Stops the command. Nobody answers its questions any more.
    async fn stop(&mut self, running: &mut Running<'_>) {
        running.is_stopped = true;
        self.withdraw(None, running.screen, "not answered");
        // Refused only if the command has already ended.
        let _ = self.session.send(Command::Stop).await;
    }

    /// Shows a question that was asked, and takes away one that is closed.
    async fn follow_questions(&mut self, event: &EventKind, running: &mut Running<'_>) {
        match event {
            EventKind::Asked { question, query } => self.show_question(*question, query, running).await,
            EventKind::Closed { question, how } => {
                let end = if *how == QuestionEnd::Answered { "answered elsewhere" } else { "withdrawn" };
                self.withdraw(Some(*question), running.screen, end);
                self.show_next(running.screen, running.stop).await;
                if let Some(asked) = self.asked.take_if(|asked| asked.id == *question) {
                    running.lines.shows(false);
                    running.lines.listen(asked.was_listening);
                }
            }
            _ => {}
        }
    }

    /// Shows a question, if there is a person to answer it.
    async fn show_question(&mut self, id: QuestionId, query: &Query, running: &mut Running<'_>) {
        if self.live.is_some() {
            // After a stop, the session withdraws it.
            let is_shown = !running.is_stopped && running.person.is_some();
            self.open.extend(is_shown.then(|| Open::new(id, query)));
            return self.show_next(running.screen, running.stop).await;
        }
        let Some(person) = running.person else { return };
        match query {
            Query::Approval { question, agent } => {
                if let Some(agent) = agent {
                    running.screen.line(Tone::Warning, &format!("{} asks:", text::line(agent)));
                }
                self.ask(person, id, question, running.stop).await;
            }
            Query::Text { text, choices, by_host, server, agent, takes_values, .. } => {
                // Lines that were typed before the question must not answer it.
                let (typed, begun) = running.lines.set_aside();
                self.typed.extend(typed);
                self.begun.push_str(&begun);
                let asked = drawn::AskedText::of(text, *by_host, server.as_deref(), agent.as_deref());
                running.screen.question(&asked, choices, *takes_values);
                running.lines.shows(true);
                let (choices, was_listening) = (choices.clone(), running.lines.listen(true));
                self.asked = Some(Asked { id, choices, takes_values: *takes_values, was_listening });
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
    async fn typed_line(&mut self, line: String, running: &mut Running<'_>) {
        let Running { screen, stop, is_turn, .. } = running;
        let command = Slash::parse(&line);
        let mode = match &command {
            Some(Slash::Mode(mode)) => *mode,
            _ if line.trim() == SHIFT_TAB => self.session.status().await.ok().map(|status| status.mode.next()),
            _ => None,
        };
        if let Some(mode) = mode
            && self.session.send(Command::ChooseMode { mode }).await.is_ok()
        {
            return screen.aside(Tone::Faint, &format!("mode {mode}, from the next call on: {}", mode.meaning()));
        }
        if let Some(asked) = &self.asked
            && command.is_none()
        {
            let Some(text) = asked.answer(&line) else { return screen.ask_again() };
            let question = asked.id;
            if let Err(error) = self.session.send(Command::Answer { question, text }).await {
                tracing::debug!(%error, question = question.0, "the answer came too late");
                self.typed.push_back(line);
            }
            return;
        }
        match (&command, self.while_busy) {
            (Some(Slash::Stop), _) => return stop.trigger(),
            (Some(Slash::StopTask(task)), _) => {
                if let Err(error) = self.session.send(Command::StopTask { task: *task }).await {
                    screen.aside(Tone::Faint, &error.to_string());
                }
                return;
            }
            (Some(Slash::Tasks), _) => {
                let tasks = self.session.snapshot().tasks;
                return tasks.iter().for_each(|task| screen.aside(Tone::Faint, &task_line(task)));
            }
            _ if line.trim().is_empty() => return,
            (Some(wrong @ Slash::Misused { .. }), _) => {
                return screen.aside(Tone::Warning, &wrong.mistake().unwrap_or_default());
            }
            // It may be a skill, and the session lists its skills only when nothing runs.
            (Some(wrong @ Slash::Unknown { .. }), _) => {
                screen.aside(
                    Tone::Warning,
                    &format!("unless a skill has this name: {}", wrong.mistake().unwrap_or_default()),
                );
            }
            // It runs when the turn has ended, as commands do.
            _ if shell::command(&line).is_some() => {}
            (None, WhileBusy::Interrupt) if *is_turn && !stop.is_triggered() => {
                self.is_replaced = true;
                self.typed.push_back(line);
                return stop.trigger();
            }
            (None, WhileBusy::Steer)
                if *is_turn
                    && self.session.send(Command::Steer { text: shell::message(&line).to_owned() }).await.is_ok() =>
            {
                return screen.steers(&line);
            }
            _ => {}
        }
        screen.waits(&line);
        self.typed.push_back(line);
    }

    /// Puts the first open question on the screen.
    async fn show_next(&mut self, screen: &mut Screen, stop: &StopSwitch) {
        while let (Some(live), Some(open)) = (&self.live, self.open.front_mut().filter(|open| open.number.is_none())) {
            let question = match &open.query {
                Query::Approval { question, agent } => drawn::approval(question, agent.as_deref()),
                Query::Text { text, choices, open, by_host, server, agent, takes_values } => {
                    let asked = drawn::AskedText::of(text, *by_host, server.as_deref(), agent.as_deref());
                    drawn::text_question(asked, choices, *open || choices.is_empty(), *takes_values)
                }
            };
            open.number = live.ask(question);
            if open.number.is_some() {
                return;
            }
            // The terminal is gone.
            Box::pin(self.decide(Answer::Left, screen, stop)).await;
        }
    }

    /// The user has answered the question on the screen.
    async fn answer(&mut self, answer: Answer, screen: &mut Screen, stop: &StopSwitch) {
        self.decide(answer, screen, stop).await;
        self.show_next(screen, stop).await;
    }

    /// Sends the answer to the first open question.
    async fn decide(&mut self, answer: Answer, screen: &mut Screen, stop: &StopSwitch) {
        let Some(Open { id, query, .. }) = self.open.pop_front() else { return };
        let (command, record) = match query {
            Query::Approval { question, agent } => {
                let (decision, instead) = drawn::decision(&answer);
                let record = drawn::decided(&question, agent.as_deref(), decision, instead.as_deref());
                (Command::Decide { question: id, decision, instead }, record)
            }
            Query::Text { text, choices, .. } => {
                let words = match &answer {
                    Answer::Choice(at) => choices.get(*at).cloned(),
                    Answer::Line(line) => Some(line.clone()),
                    Answer::Key(_) | Answer::Left | Answer::Stopped => None,
                };
                let record = drawn::record_of_text(&text, words.as_deref().unwrap_or("not answered"));
                // Without the user there is nothing to tell the model.
                (words.map_or(Command::Stop, |text| Command::Answer { question: id, text }), record)
            }
        };
        screen.line(Tone::Faint, &record);
        if answer == Answer::Stopped || command == Command::Stop {
            return stop.trigger();
        }
        if let Err(error) = self.session.send(command).await {
            tracing::debug!(%error, question = id.0, "the answer came too late");
        }
    }

    /// Takes away a question that nobody answers any more, or all of them.
    fn withdraw(&mut self, id: Option<QuestionId>, screen: &mut Screen, end: &str) {
        let (gone, left) = self.open.drain(..).partition(|open| id.is_none_or(|id| id == open.id));
        self.open = left;
        let gone: VecDeque<Open> = gone;
        for Open { query, number, .. } in gone {
            // The user has not seen the others.
            let (Some(live), Some(number)) = (&self.live, number) else { continue };
            live.ui().withdraw(number);
            screen.line(
                Tone::Faint,
                &match query {
                    Query::Approval { question, agent } => drawn::record(&question, agent.as_deref(), end),
                    Query::Text { text, .. } => drawn::record_of_text(&text, end),
                },
            );
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
        let (decision, instead): (Decision, Option<String>) = tokio::select! {
            biased;
            () = closed => return,
            answer = person.ask(question) => answer,
        };
        let command =
            if stop.is_triggered() { Command::Stop } else { Command::Decide { question: id, decision, instead } };
        if let Err(error) = self.session.send(command).await {
            tracing::debug!(%error, question = id.0, "the answer came too late");
        }
    }
}

/// Waits for the answer to the question on the screen, for ever if there is none.
async fn answered(shown: Option<(Live, u64)>) -> Answer {
    match shown {
        Some((live, number)) => live.answer(number).await,
        None => std::future::pending().await,
    }
}

impl Asked {
    /// The answer of a line: the choice with this mark or these words, or the line itself. `None` for an empty line.
    fn answer(&self, line: &str) -> Option<String> {
        let line = line.trim();
        let answer = named_choice(line, &self.choices, self.takes_values).map_or(line, |at| self.choices[at].as_str());
        (!answer.is_empty()).then(|| answer.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_answers_with_a_number_a_choice_or_other_words() {
        let choices = vec!["staging".to_owned(), "Production".to_owned()];
        let asked = Asked { id: QuestionId(1), choices, takes_values: false, was_listening: true };
        for (line, answer) in [
            ("1", Some("staging")),
            (" 2) ", Some("Production")),
            ("production", Some("Production")),
            ("3", Some("3")),
            ("0", Some("0")),
            ("neither, wait", Some("neither, wait")),
            ("  ", None),
        ] {
            assert_eq!(asked.answer(line).as_deref(), answer, "{line:?}");
        }
        let form = Asked { choices: vec!["5".to_owned(), "decline".to_owned()], takes_values: true, ..asked };
        for (line, answer) in
            [("1", "1"), ("2", "2"), ("a)", "5"), ("b)", "decline"), ("b", "b"), ("decline", "decline")]
        {
            assert_eq!(form.answer(line).as_deref(), Some(answer), "{line:?}");
        }
        let open = Asked { choices: Vec::new(), ..form };
        assert_eq!(open.answer("1").as_deref(), Some("1"));
    }
}
