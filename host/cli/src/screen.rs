//! Shows the events of a turn.

use std::io::{self, Write};

use hermes_agent::{CallId, DelegationState, Event, EventKind, Snapshot, Status, TaskStatus, TurnEnd};
use hermes_conversation::Usage;

use crate::console::{self, Console, Tone};
use crate::live::{CostOf, Drawn, Live};
use crate::signals::StopSwitch;
use crate::spending::dollars;
use crate::text::{self, Cleaner, counted};
use crate::wording;

/// The first lines of a message behind a mark: it may be a long paste, or have files and outputs behind it.
fn quoted(text: &str) -> String {
    const MOST: usize = 12;
    let text = text::lines(text.trim_end());
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines[..lines.len().min(MOST)].join("\n  ");
    match lines.len().saturating_sub(MOST) {
        0 => format!("> {begin}"),
        more => format!("> {begin}\n  … ({} more)", counted(more as u64, "line")),
    }
}

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Only the text of the last reply, for scripts. What the model says before a tool call is left out.
    Answer,
    /// Nothing on standard output: the caller prints a report.
    Nothing,
    /// Every event as a line of JSON, for programs.
    Events,
    /// Also tool calls.
    Turn {
        /// Whether to show the model's reasoning.
        reasoning: bool,
    },
}

/// Shows the events of turns: the model's text on standard output, notices on standard error.
pub(crate) struct Screen<W = io::Stdout> {
    out: W,
    console: Console,
    show: Show,
    cleaner: Cleaner,
    /// Whether the cursor is in the middle of a line.
    in_line: bool,
    /// Line feeds that are written only before more text, so that an answer ends with a single one.
    held: String,
    /// Whether the current line is temporary: the next line overwrites it.
    temporary: bool,
    in_reasoning: bool,
    /// The part of the streaming reply that was shown.
    reply: String,
    running: Vec<Running>,
    /// Stops the turn when the reader closes standard output.
    stop: StopSwitch,
    reader_gone: bool,
    /// Why standard output cannot be written, if its reader did not close it.
    unwritable: Option<io::Error>,
    /// What the replies used so far.
    used: Used,
    /// The terminal, if it is drawn. Nothing is written to `out` then.
    drawn: Option<Drawn>,
}

/// A call that has no result yet.
struct Running {
    call: Option<CallId>,
    name: String,
    arguments: String,
}

/// The requests of a turn and their tokens.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// Requests with a complete reply.
    pub(crate) requests: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
}

impl Used {
    fn add(&mut self, usage: &Usage) {
        self.requests += 1;
        self.input += u64::from(usage.input);
        self.output += u64::from(usage.output);
        self.cache_read += u64::from(usage.cache_read);
        self.cache_write += u64::from(usage.cache_write);
        self.reasoning += u64::from(usage.reasoning);
    }
}

impl Screen {
    /// A screen on standard output.
    pub(crate) fn new(console: Console, show: Show, stop: &StopSwitch) -> Self {
        Self::on(io::stdout(), console, show, stop)
    }
}

impl<W: Write + Send> Screen<W> {
    fn on(out: W, console: Console, show: Show, stop: &StopSwitch) -> Self {
        Self {
            out,
            console,
            show,
            cleaner: Cleaner::default(),
            in_line: false,
            held: String::new(),
            temporary: false,
            in_reasoning: false,
            reply: String::new(),
            running: Vec::new(),
            stop: stop.clone(),
            reader_gone: false,
            unwritable: None,
            used: Used::default(),
            drawn: None,
        }
    }

    /// Draws from now on.
    pub(crate) fn draw_on(&mut self, live: &Live, cost: CostOf) {
        self.drawn = Some(Drawn::new(live.clone(), cost));
    }

    /// Shows or hides the model's reasoning from now on.
    pub(crate) fn show_reasoning(&mut self, reasoning: bool) {
        if let Show::Turn { reasoning: shown } = &mut self.show {
            *shown = reasoning;
        }
    }

    /// Whether the model's reasoning is shown.
    pub(crate) fn shows_reasoning(&self) -> bool {
        self.show == Show::Turn { reasoning: true }
    }

    /// Whether the reader closed standard output.
    pub(crate) fn reader_gone(&self) -> bool {
        self.reader_gone
    }

    /// Why standard output cannot be written, such as a full disk.
    pub(crate) fn take_unwritable(&mut self) -> Option<io::Error> {
        self.unwritable.take()
    }

    /// What the replies used so far.
    pub(crate) fn used(&self) -> Used {
        self.used
    }

    /// Whether a person reads along.
    fn is_turn(&self) -> bool {
        matches!(self.show, Show::Turn { .. })
    }

    /// Ends the line and forgets the state of the turn.
    pub(crate) fn end_turn(&mut self) {
        self.end_line();
        // What was stopped has no result, and the user wants to know what it was.
        for Running { name, arguments, .. } in std::mem::take(&mut self.running) {
            if self.is_turn() {
                self.line(Tone::Warning, &text::stopped_call(&name, &arguments));
            }
        }
        self.reply.clear();
        if let Some(drawn) = &mut self.drawn {
            drawn.rest();
        }
    }

    /// Writes a separate line.
    pub(crate) fn line(&mut self, tone: Tone, text: &str) {
        self.end_line();
        if let Some(drawn) = &self.drawn {
            return drawn.line(tone, text);
        }
        let text = if self.console.screen { console::checked(text) } else { text.into() };
        let text = self.console.paint(tone, &text);
        self.write(&format!("{text}\n"));
    }

    /// Writes a line about what the user typed. A reply that is drawn goes on below it, and is not torn.
    pub(crate) fn aside(&mut self, tone: Tone, text: &str) {
        match &self.drawn {
            Some(drawn) => drawn.line(tone, text),
            None => self.line(tone, text),
        }
    }

    /// Says that a line waits. On a terminal that is not drawn it was typed into the text above.
    pub(crate) fn waits(&mut self, typed: &str) {
        const WAITS: &str = "waits until the turn has ended";
        match self.drawn.is_some() {
            true => self.aside(Tone::Faint, &format!("{WAITS}: {}", text::shortened(&text::line(typed), 60))),
            false => self.line(Tone::Faint, &format!("this {WAITS}")),
        }
    }

    /// The same about a line that the model reads during the turn.
    pub(crate) fn steers(&mut self, typed: &str) {
        const WHEN: &str = "the model reads";
        match self.drawn.is_some() {
            true => {
                let typed = text::shortened(&text::line(typed), 60);
                self.aside(Tone::Faint, &format!("{WHEN} with the next tool result: {typed}"));
            }
            false => self.line(Tone::Faint, &format!("{WHEN} this with the next tool result")),
        }
    }

    /// Says what a command does that takes a while, until [`Screen::end_turn`].
    pub(crate) fn does(&mut self, what: &str) {
        if let Some(drawn) = &mut self.drawn {
            drawn.does(what);
        }
    }

    /// Shows the status below the input, if the terminal is drawn.
    pub(crate) fn status(&mut self, status: Status) {
        if let Some(drawn) = &mut self.drawn {
            drawn.status(status);
        }
    }

    /// Shows what the user said.
    pub(crate) fn said(&mut self, text: &str) {
        let text = quoted(text);
        // An empty line on both sides, so that turns can be told apart.
        match self.drawn.is_some() {
            true => self.line(Tone::Plain, &format!("\n{text}\n")),
            false => self.line(Tone::Plain, &text),
        }
    }

    /// Shows a reply of an earlier turn.
    pub(crate) fn earlier_reply(&mut self, text: &str) {
        self.end_line();
        self.words(text);
        self.end_line();
    }

    /// Shows a question of the model, or of an MCP server, which its text names. The next typed line answers it.
    pub(crate) fn question(&mut self, text: &str, choices: &[String], is_of_server: bool) {
        self.end_line();
        if !is_of_server {
            self.line(Tone::Warning, "the model asks:");
        }
        text.lines().for_each(|line| self.line(Tone::Plain, line));
        for (number, choice) in (1..).zip(choices) {
            self.line(Tone::Plain, &format!("  {number}) {choice}"));
        }
        let how = if choices.is_empty() { "your answer" } else { "a number, or your own answer" };
        self.line(Tone::Faint, &format!("type {how}, and enter; ctrl-c stops the turn"));
    }

    /// Shows a delegated task: one line when it has ended, and until then only where it is.
    fn task(&mut self, task: &TaskStatus) {
        let line = format!("· {}", task_line(task));
        match task.state {
            DelegationState::Waiting => {}
            DelegationState::Running => self.temporary_line(&format!("{line} …")),
            _ if !self.is_turn() => {}
            DelegationState::Done => self.aside(Tone::Faint, &line),
            _ => self.aside(Tone::Warning, &line),
        }
    }

    /// Says again how a question is answered.
    pub(crate) fn ask_again(&mut self) {
        self.line(Tone::Faint, "the model waits for an answer; ctrl-c stops the turn");
    }

    fn write(&mut self, text: &str) {
        if self.reader_gone || self.unwritable.is_some() {
            return;
        }
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            match error.kind() {
                io::ErrorKind::BrokenPipe => self.reader_gone = true,
                _ => self.unwritable = Some(error),
            }
            self.stop.trigger();
        }
    }

    fn words(&mut self, text: &str) {
        let text = if self.console.screen { self.cleaner.clean(text) } else { text.to_owned() };
        if text.is_empty() {
            return;
        }
        if let Some(drawn) = &mut self.drawn {
            return drawn.add(&text, false);
        }
        self.erase_temporary();
        // Line feeds before the first word are dropped.
        let text = if self.in_line { text.as_str() } else { text.trim_start_matches('\n') };
        let body = text.trim_end_matches('\n');
        if !body.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.write(&held);
            self.write(body);
            self.in_line = true;
        }
        self.held.push_str(&text[body.len()..]);
    }

    fn end_line(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.end();
            self.cleaner = Cleaner::default();
            return;
        }
        self.erase_temporary();
        if self.in_reasoning {
            self.in_reasoning = false;
            let (_, end) = self.console.around(Tone::Faint);
            self.write(end);
        }
        if self.in_line {
            self.write("\n");
        }
        self.in_line = false;
        self.held.clear();
        self.cleaner = Cleaner::default();
    }

    /// Shows a temporary line, on a terminal only.
    fn temporary_line(&mut self, text: &str) {
        if !self.console.screen || !self.is_turn() || self.drawn.is_some() {
            return;
        }
        self.end_line();
        let text = self.console.paint(Tone::Faint, &text::shortened(&text::line(text), 76));
        self.write(&text);
        self.temporary = true;
    }

    fn erase_temporary(&mut self) {
        if std::mem::take(&mut self.temporary) {
            self.write("\r\u{1b}[K");
        }
    }

    /// Ends the line before a write to standard error, so that the streams do not share a line of the terminal.
    fn before_stderr(&mut self) {
        if self.console.screen {
            self.end_line();
        }
    }

    fn call_ended(&mut self, call: Option<&CallId>, name: &str, content: &str, failed: bool, elapsed_ms: u64) {
        let at = self.running.iter().position(|running| running.call.as_ref() == call);
        let arguments = at.map(|at| self.running.remove(at).arguments).unwrap_or_default();
        if !self.is_turn() {
            return;
        }
        let failure = failed.then(|| reason(content));
        let line = text::call(name, &arguments, failure.as_deref(), elapsed_ms);
        self.line(if failed { Tone::Bad } else { Tone::Faint }, &line);
    }

    /// Shows the missed part of the streaming reply. Complete replies can be read in the session.
    fn catch_up(&mut self, snapshot: &Snapshot) {
        let running = snapshot.running.iter().cloned();
        self.running =
            running.map(|call| Running { call: Some(call.call), name: call.name, arguments: call.arguments }).collect();
        let rest = match snapshot.text.strip_prefix(&self.reply) {
            Some(rest) => rest,
            None => {
                self.end_line();
                &snapshot.text
            }
        };
        self.words(rest);
        self.reply.clone_from(&snapshot.text);
    }
}

/// A delegated task in one line: what it does, where it is, and what it used.
pub(crate) fn task_line(task: &TaskStatus) -> String {
    let TaskStatus { number, goal, state, tool, why, requests, tokens, cost, elapsed_ms, .. } = task;
    let detail = match (state.is_over(), tool, why) {
        (true, _, Some(detail)) => format!(": {}", text::line(detail)),
        (false, Some(tool), _) => format!(": {}", text::line(tool)),
        _ => String::new(),
    };
    let cost = cost.map_or_else(String::new, |cost| format!(", {}", dollars(cost)));
    let (requests, tokens, seconds) = (counted(*requests, "request"), text::grouped(*tokens), elapsed_ms / 1_000);
    format!(
        "subagent {number}: {} · {}{detail} ({requests}, {tokens} tokens{cost}, {seconds} s)",
        text::line(goal),
        state.as_str().replace('-', " "),
    )
}

/// One line for a compaction.
fn compacted(reason: &str, by: &str, before: u32, after: u32) -> String {
    let by = if by == "host" { "Hermes itself".to_owned() } else { format!("`{}`", text::line(by)) };
    let (before, after) = (text::grouped(before.into()), text::grouped(after.into()));
    let reason = if reason.trim().is_empty() { "no reason given" } else { reason };
    format!("compacted by {by}, messages from about {before} to {after} tokens: {reason}")
}

/// Why a tool failed. Many tools answer with a JSON object that has the member `error`.
fn reason(content: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(content).ok();
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(|error| error.as_str());
    let error = error.unwrap_or(content);
    error.strip_prefix("error: ").unwrap_or(error).to_owned()
}

impl<W: Write + Send> Screen<W> {
    /// Says what the turn does now, on a terminal that is drawn.
    fn draw_activity(&mut self, event: &Event) {
        let Some(drawn) = &mut self.drawn else { return };
        match &event.kind {
            EventKind::TurnStarted => {
                drawn.begin_turn(event.session.as_ref());
                drawn.does("waiting for the model");
            }
            EventKind::StepStarted { .. } | EventKind::Thinking => drawn.does("waiting for the model"),
            EventKind::Reasoning { .. } => drawn.does("thinking"),
            EventKind::Text { .. } => drawn.does("answering"),
            EventKind::CallForming { name } => drawn.does(&format!("writing a call of {}", text::line(name))),
            EventKind::CompressionStarted => drawn.does("compacting"),
            EventKind::ToolStarted { name, arguments } => {
                let what = format!("{} {}", text::line(name), text::arguments(arguments));
                drawn.begin_call(event.call.clone(), what.trim_end().to_owned());
            }
            EventKind::ToolFinished { .. } => {
                drawn.end_call(event.call.as_ref());
                drawn.does("waiting for the model");
            }
            EventKind::Progress { text } => drawn.progress(event.call.as_ref(), &text::line(text)),
            EventKind::Used { usage, .. } => {
                drawn.used(u64::from(usage.output));
                drawn.count_cost(event.session.as_ref());
            }
            EventKind::TaskChanged { task } if task.state.is_over() => drawn.count_cost(event.session.as_ref()),
            EventKind::StatusChanged { status } | EventKind::TurnEnded { status, .. } => drawn.status(status.clone()),
            EventKind::ModeChosen { mode } => drawn.mode(*mode),
            _ => {}
        }
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, event: &Event) {
        if self.show == Show::Events {
            // Events have no maps with other keys than texts, so this cannot fail.
            let line = serde_json::to_string(event).unwrap_or_default();
            self.write(&format!("{line}\n"));
        }
        self.draw_activity(event);
        match &event.kind {
            EventKind::Used { usage, .. } => self.used.add(usage),
            EventKind::Text { .. } if !self.is_turn() => {}
            EventKind::Text { text } => {
                if self.in_reasoning {
                    self.end_line();
                }
                self.reply.push_str(text);
                self.words(text);
            }
            EventKind::Reasoning { text } => {
                if self.show == (Show::Turn { reasoning: true }) {
                    if let Some(drawn) = &mut self.drawn {
                        let text = self.cleaner.clean(text);
                        return drawn.add(&text, true);
                    }
                    if !self.in_reasoning {
                        self.end_line();
                        self.in_reasoning = true;
                        let (begin, _) = self.console.around(Tone::Faint);
                        self.write(&begin);
                    }
                    self.words(text);
                }
            }
            EventKind::ReplyDone => {
                self.end_line();
                self.reply.clear();
            }
            // Arguments such as the content of a file can take a while.
            EventKind::CallForming { name } => self.temporary_line(&format!("· {} …", text::line(name))),
            EventKind::ToolStarted { name, arguments } => {
                self.temporary_line(&format!("· {} {} …", text::line(name), text::arguments(arguments)));
                let (call, name, arguments) = (event.call.clone(), name.clone(), arguments.clone());
                self.running.push(Running { call, name, arguments });
            }
            EventKind::ToolFinished { name, content, failed, elapsed_ms } => {
                self.call_ended(event.call.as_ref(), name, content, *failed, *elapsed_ms);
            }
            EventKind::Steered { texts } => {
                let lines = if self.is_turn() { texts.as_slice() } else { &[] };
                lines.iter().for_each(|text| self.line(Tone::Faint, &quoted(text)));
            }
            EventKind::Compacted { reason, by, before, after } => {
                self.before_stderr();
                self.console.note(&compacted(reason, by, *before, *after));
            }
            EventKind::Notice { text, fix } => {
                self.before_stderr();
                self.console.note(&wording::with_fix(text, fix));
            }
            EventKind::Progress { text } => self.temporary_line(text),
            EventKind::TaskChanged { task } => self.task(task),
            // A summary may take half a minute, without any sign of progress.
            EventKind::CompressionStarted if self.is_turn() => self.line(Tone::Faint, "compacting; ctrl-c stops it"),
            EventKind::Asked { .. } => self.end_line(),
            EventKind::TurnEnded {
                end: TurnEnd::Answered { text } | TurnEnd::OutOfBudget { summary: Some(text), .. },
                ..
            } if self.show == Show::Answer => {
                self.words(text);
                self.end_turn();
            }
            EventKind::TurnEnded { .. }
            | EventKind::CompressionEnded { .. }
            | EventKind::CompressionPreviewed { .. }
            | EventKind::Ended => self.end_turn(),
            EventKind::Snapshot(snapshot) if self.is_turn() => self.catch_up(snapshot),
            EventKind::Snapshot(_)
            | EventKind::CompressionStarted
            | EventKind::Opened { .. }
            | EventKind::TurnStarted
            | EventKind::StepStarted { .. }
            | EventKind::Thinking
            | EventKind::StatusChanged { .. }
            | EventKind::PromptRebuilt { .. }
            | EventKind::Switched { .. }
            | EventKind::ModeChosen { .. }
            | EventKind::Rewound { .. }
            | EventKind::FilesRestored { .. }
            | EventKind::Branched { .. }
            | EventKind::Closed { .. } => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_agent::{Epoch, Position, RunningCall, Status};

    use super::*;

    fn event(call: Option<&str>, kind: EventKind) -> Event {
        let position = Position { epoch: Epoch("e".to_owned()), sequence: 1 };
        let call = call.map(|call| CallId(call.to_owned()));
        Event { position, session: None, turn: None, message: None, call, kind }
    }

    fn text(text: &str) -> Event {
        event(None, EventKind::Text { text: text.to_owned() })
    }

    fn done() -> Event {
        event(None, EventKind::ReplyDone)
    }

    fn started(call: &str, name: &str, arguments: &str) -> Event {
        event(Some(call), EventKind::ToolStarted { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    fn finished(call: &str, name: &str, content: &str, failed: bool, elapsed_ms: u64) -> Event {
        let (name, content) = (name.to_owned(), content.to_owned());
        event(Some(call), EventKind::ToolFinished { name, content, failed, elapsed_ms })
    }

    fn shown(screen: bool, show: Show, events: Vec<Event>) -> String {
        let console = Console::plain(screen);
        let mut out = Vec::new();
        let mut screen = Screen::on(&mut out, console, show, &StopSwitch::default());
        for event in events {
            screen.event(&event);
        }
        screen.end_turn();
        String::from_utf8(out).unwrap()
    }

    fn answered(text: &str) -> Event {
        let end = TurnEnd::Answered { text: text.to_owned() };
        event(None, EventKind::TurnEnded { end, status: Status::default(), unsent: Vec::new() })
    }

    fn turn() -> Vec<Event> {
        vec![
            text("\n\nLooking"),
            text(" it up.\n"),
            done(),
            started("1", "read_file", r#"{"path":"a.txt"}"#),
            started("2", "read_file", r#"{"path":"b.txt"}"#),
            finished("2", "read_file", r#"{"error":"no b.txt"}"#, true, 4),
            finished("1", "read_file", "text", false, 3),
            text("It says\n\nhello.\n\n"),
            done(),
            answered("It says\n\nhello.\n\n"),
        ]
    }

    #[test]
    fn a_subagent_has_one_line_that_says_where_it_is_and_what_it_used() {
        let task = TaskStatus {
            number: 3,
            goal: "count\u{1b}[2J".to_owned(),
            session: None,
            state: DelegationState::Running,
            background: false,
            tool: Some("read_file".to_owned()),
            requests: 1,
            tokens: 12_345,
            cost: None,
            elapsed_ms: 4_900,
            why: None,
        };
        let shown = task_line(&task);
        assert!(shown.ends_with(" · running: read_file (1 request, 12,345 tokens, 4 s)"), "{shown}");
        assert!(shown.starts_with("subagent 3: count") && !shown.contains('\u{1b}'), "{shown}");
        let why = Some("the model is gone".to_owned());
        let failed = TaskStatus { state: DelegationState::TimedOut, why, cost: Some(0.5), requests: 2, ..task };
        let shown = task_line(&failed);
        assert!(
            shown.ends_with(" · timed out: the model is gone (2 requests, 12,345 tokens, $0.5000, 4 s)"),
            "{shown}"
        );
    }

    #[test]
    fn a_script_gets_only_the_last_reply_and_one_line_feed() {
        assert_eq!(shown(false, Show::Answer, turn()), "It says\n\nhello.\n");
        assert_eq!(shown(false, Show::Answer, vec![text("a"), done(), answered("a")]), "a\n");
        assert_eq!(shown(false, Show::Answer, vec![done(), answered("")]), "");
        // A turn that fails has no answer.
        assert_eq!(shown(false, Show::Answer, vec![text("half of a"), done()]), "");
        assert_eq!(shown(false, Show::Nothing, turn()), "");
    }

    #[test]
    fn the_summary_of_a_turn_that_used_up_its_requests_is_its_answer() {
        let end = TurnEnd::OutOfBudget {
            steps: 2,
            setting: "agent.max_turns".to_owned(),
            summary: Some("So far".to_owned()),
        };
        let ended = event(None, EventKind::TurnEnded { end, status: Status::default(), unsent: Vec::new() });
        assert_eq!(shown(false, Show::Answer, vec![text("So far"), done(), ended]), "So far\n");
    }

    #[test]
    fn a_program_gets_every_event_as_a_line_of_json() {
        let lines = shown(false, Show::Events, turn());
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events, turn());
    }

    #[test]
    fn a_chat_has_a_line_for_each_call() {
        let expected = "Looking it up.\n× read_file b.txt … failed after 4 ms: no b.txt\n· read_file a.txt … 3 ms\nIt says\n\nhello.\n";
        assert_eq!(shown(false, Show::Turn { reasoning: false }, turn()), expected);
    }

    #[test]
    fn foreign_control_sequences_are_removed_on_a_terminal_only() {
        let events = || vec![text("a\u{1b}"), text("[31mb\r\u{7}"), done()];
        let shown = |screen| shown(screen, Show::Turn { reasoning: false }, events());
        assert_eq!((shown(true).as_str(), shown(false).as_str()), ("ab\n", "a\u{1b}[31mb\r\u{7}\n"));
    }

    #[test]
    fn foreign_control_sequences_of_an_answer_are_removed_on_a_terminal_only() {
        let events = || vec![answered("a\u{1b}[31mb\r\u{7}")];
        assert_eq!(shown(true, Show::Answer, events()), "ab\n");
        assert_eq!(shown(false, Show::Answer, events()), "a\u{1b}[31mb\r\u{7}\n");
    }

    #[test]
    fn on_a_terminal_a_running_call_has_a_temporary_line() {
        let events = vec![
            started("1", "find", "{}"),
            event(None, EventKind::Progress { text: "files: half way".to_owned() }),
            finished("1", "find", "", false, 1),
        ];
        let expected = "· find …\r\u{1b}[Kfiles: half way\r\u{1b}[K· find … 1 ms\n";
        assert_eq!(shown(true, Show::Turn { reasoning: false }, events), expected);
    }

    #[test]
    fn a_compaction_names_its_author() {
        assert_eq!(
            compacted("the window is full", "loss\u{1b}[1mless", 12_000, 900),
            "compacted by `lossless`, messages from about 12,000 to 900 tokens: the window is full"
        );
        assert!(
            compacted(" ", "host", 2, 1).starts_with("compacted by Hermes itself, messages from about 2 to 1 tokens: ")
        );
    }

    #[test]
    fn reasoning_is_shown_only_when_wanted() {
        let events = || {
            vec![event(None, EventKind::Reasoning { text: "Hm.".to_owned() }), text("Yes."), done(), answered("Yes.")]
        };
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events()), "Yes.\n");
        assert_eq!(shown(false, Show::Turn { reasoning: true }, events()), "Hm.\nYes.\n");
        assert_eq!(shown(false, Show::Answer, events()), "Yes.\n");
    }

    #[test]
    fn the_turn_stops_when_the_output_cannot_be_written() {
        struct Failing(io::ErrorKind);
        impl Write for Failing {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, is_gone) in [(io::ErrorKind::BrokenPipe, true), (io::ErrorKind::StorageFull, false)] {
            let stop = StopSwitch::default();
            let show = Show::Turn { reasoning: false };
            let mut screen = Screen::on(Failing(kind), Console::plain(false), show, &stop);
            screen.event(&text("a"));
            assert!(stop.is_triggered());
            assert_eq!(screen.reader_gone(), is_gone);
            assert_eq!(screen.take_unwritable().map(|error| error.kind()), (!is_gone).then_some(kind));
        }
    }

    #[test]
    fn the_tokens_of_all_requests_are_added_up() {
        let used = |input, output| {
            let usage = Usage { input, output, cache_read: 1, ..Usage::default() };
            event(None, EventKind::Used { model: "m".to_owned(), usage, elapsed_ms: 5 })
        };
        let mut screen = Screen::on(Vec::new(), Console::plain(false), Show::Nothing, &StopSwitch::default());
        [used(10, 2), used(20, 3)].iter().for_each(|event| screen.event(event));
        assert_eq!(screen.used(), Used { requests: 2, input: 30, output: 5, cache_read: 2, ..Used::default() });
    }

    #[test]
    fn after_a_gap_the_rest_of_the_reply_is_shown_once() {
        let running = RunningCall { call: CallId("1".to_owned()), name: "find".to_owned(), arguments: "{}".to_owned() };
        let snapshot = Snapshot { text: "one two".to_owned(), running: vec![running], ..Snapshot::default() };
        let gap = event(None, EventKind::Snapshot(Box::new(snapshot)));
        let events = vec![text("one"), gap, text(" three"), done(), finished("1", "find", "", false, 2)];
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events), "one two three\n· find … 2 ms\n");
    }
}
