//! Shows the events of a turn.

use std::io::{self, Write};

use hermes_agent::{CallId, Event, EventKind, Snapshot};

use crate::console::{self, Console, Tone};
use crate::signals::StopSwitch;
use crate::text::{self, Cleaner};
use crate::wording;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Only the model's answer, for scripts.
    Answer,
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
    /// Running calls, with their arguments.
    running: Vec<(Option<CallId>, String)>,
    /// Stops the turn when the reader closes standard output.
    stop: StopSwitch,
    reader_gone: bool,
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
        }
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

    /// Ends the line and forgets the state of the turn.
    pub(crate) fn end_turn(&mut self) {
        self.end_line();
        self.running.clear();
        self.reply.clear();
    }

    /// Writes a separate line.
    pub(crate) fn line(&mut self, tone: Tone, text: &str) {
        self.end_line();
        let text = if self.console.screen { console::checked(text) } else { text.into() };
        let text = self.console.paint(tone, &text);
        self.write(&format!("{text}\n"));
    }

    fn write(&mut self, text: &str) {
        if self.reader_gone {
            return;
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if written.is_err() {
            self.reader_gone = true;
            self.stop.trigger();
        }
    }

    fn words(&mut self, text: &str) {
        let text = if self.console.screen { self.cleaner.clean(text) } else { text.to_owned() };
        if text.is_empty() {
            return;
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
        if !self.console.screen || self.show == Show::Answer {
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
        let at = self.running.iter().position(|(running, _)| running.as_ref() == call);
        let arguments = at.map(|at| self.running.remove(at).1).unwrap_or_default();
        if self.show == Show::Answer {
            return;
        }
        let failure = failed.then(|| reason(content));
        let line = text::call(name, &arguments, failure.as_deref(), elapsed_ms);
        self.line(if failed { Tone::Bad } else { Tone::Faint }, &line);
    }

    /// Shows the missed part of the streaming reply. Complete replies can be read in the session.
    fn catch_up(&mut self, snapshot: &Snapshot) {
        self.running = snapshot.running.iter().map(|call| (Some(call.call.clone()), call.arguments.clone())).collect();
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

/// One line for a compaction.
fn compacted(reason: &str, by: &str, before: u32, after: u32) -> String {
    let by = if by == "host" { "Hermes itself".to_owned() } else { format!("`{}`", text::line(by)) };
    let (before, after) = (text::grouped(before.into()), text::grouped(after.into()));
    let reason = if reason.trim().is_empty() { "no reason given" } else { reason };
    format!("compacted by {by}, from about {before} to {after} tokens: {reason}")
}

/// Why a tool failed. Many tools answer with a JSON object that has the member `error`.
fn reason(content: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(content).ok();
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(|error| error.as_str());
    let error = error.unwrap_or(content);
    error.strip_prefix("error: ").unwrap_or(error).to_owned()
}

impl<W: Write + Send> Screen<W> {
    /// Shows an event.
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Text { text } => {
                if self.in_reasoning {
                    self.end_line();
                }
                self.reply.push_str(text);
                self.words(text);
            }
            EventKind::Reasoning { text } => {
                if self.show == (Show::Turn { reasoning: true }) {
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
                self.running.push((event.call.clone(), arguments.clone()));
                self.temporary_line(&format!("· {} {} …", text::line(name), text::arguments(arguments)));
            }
            EventKind::ToolFinished { name, content, failed, elapsed_ms } => {
                self.call_ended(event.call.as_ref(), name, content, *failed, *elapsed_ms);
            }
            EventKind::Steered { texts } => {
                let lines = if self.show == Show::Answer { &[] } else { texts.as_slice() };
                lines.iter().for_each(|text| self.line(Tone::Faint, &format!("> {}", text::line(text))));
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
            // A summary may take half a minute, without any sign of progress.
            EventKind::CompressionStarted => self.line(Tone::Faint, "compacting; ctrl-c stops it"),
            EventKind::Asked { .. } => self.end_line(),
            EventKind::TurnEnded { .. }
            | EventKind::CompressionEnded { .. }
            | EventKind::CompressionPreviewed { .. }
            | EventKind::Ended => self.end_turn(),
            EventKind::Snapshot(snapshot) => self.catch_up(snapshot),
            EventKind::Opened { .. }
            | EventKind::TurnStarted
            | EventKind::StepStarted { .. }
            | EventKind::Thinking
            | EventKind::Used { .. }
            | EventKind::StatusChanged { .. }
            | EventKind::PromptRebuilt { .. }
            | EventKind::Switched { .. }
            | EventKind::Rewound { .. }
            | EventKind::Branched { .. }
            | EventKind::Closed { .. } => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_agent::{Epoch, Position, RunningCall};

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
        ]
    }

    #[test]
    fn a_script_gets_only_the_text_and_one_line_feed_after_each_reply() {
        assert_eq!(shown(false, Show::Answer, turn()), "Looking it up.\nIt says\n\nhello.\n");
        assert_eq!(shown(false, Show::Answer, vec![text("a"), done()]), "a\n");
        assert_eq!(shown(false, Show::Answer, vec![done()]), "");
    }

    #[test]
    fn a_chat_has_a_line_for_each_call() {
        let expected = "Looking it up.\n× read_file b.txt … failed after 4 ms: no b.txt\n· read_file a.txt … 3 ms\nIt says\n\nhello.\n";
        assert_eq!(shown(false, Show::Turn { reasoning: false }, turn()), expected);
    }

    #[test]
    fn foreign_control_sequences_are_removed_on_a_terminal_only() {
        let events = || vec![text("a\u{1b}"), text("[31mb\r\u{7}"), done()];
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
            "compacted by `lossless`, from about 12,000 to 900 tokens: the window is full"
        );
        assert!(compacted(" ", "host", 2, 1).starts_with("compacted by Hermes itself, from about 2 to 1 tokens: "));
    }

    #[test]
    fn reasoning_is_shown_only_when_wanted() {
        let events = || vec![event(None, EventKind::Reasoning { text: "Hm.".to_owned() }), text("Yes."), done()];
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events()), "Yes.\n");
        assert_eq!(shown(false, Show::Turn { reasoning: true }, events()), "Hm.\nYes.\n");
        assert_eq!(shown(false, Show::Answer, events()), "Yes.\n");
    }

    #[test]
    fn the_turn_stops_when_the_reader_closes_the_output() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let stop = StopSwitch::default();
        let mut screen = Screen::on(Gone, Console::plain(false), Show::Answer, &stop);
        screen.event(&text("a"));
        assert!(screen.reader_gone() && stop.is_triggered());
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
