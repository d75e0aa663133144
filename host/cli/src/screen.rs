//! Where the events of turns are shown: what is written to standard output, or drawn.

mod events;
mod excerpt;
mod lines;

use std::io::{self, Write};

use hermes_protocol::{CallId, SessionId, Status, Usage};
use hermes_terminal::{are_lettered, choice_mark};

use self::lines::quoted;
pub(crate) use self::lines::task_line;
use crate::approval::drawn::{AskedText, FOREIGN};
use crate::console::{self, Console, Tone};
use crate::live::{CostOf, Drawn, Live};
use crate::signals::StopSwitch;
use crate::text::{self, Cleaner, counted};

/// Where the further rows of a line of others begin.
const HANGING: usize = 4;

/// The most lines of a message that is shown again, or that the user has written.
const MOST_LINES: usize = 12;

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
        // A call that was stopped has no result line, so the screen names it here.
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

    /// Says that a line waits. On a terminal that is not drawn nothing of it was shown yet.
    pub(crate) fn waits(&mut self, typed: &str) {
        const WAITS: &str = "waits until the turn has ended";
        match self.drawn.is_some() {
            true => self.aside(Tone::Faint, &format!("{WAITS}: {}", text::shortened(&text::line(typed), 60))),
            false => {
                self.line(Tone::Plain, &quoted(typed));
                self.line(Tone::Faint, &format!("this {WAITS}"));
            }
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
            false => {
                self.line(Tone::Plain, &quoted(typed));
                self.line(Tone::Faint, &format!("{WHEN} this with the next tool result"));
            }
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

    /// Shows the first lines of a reply of an earlier turn, and which command prints all of it.
    pub(crate) fn earlier_reply(&mut self, text: &str, session: &SessionId) {
        self.end_line();
        let text = self.console.shown(text.trim());
        let more = match &self.drawn {
            Some(drawn) => drawn.begin(&text, MOST_LINES),
            None => {
                let (begin, more) = text::begin(&text, self.console.columns(), MOST_LINES);
                self.words(&begin);
                more
            }
        };
        self.end_line();
        if more > 0 {
            let more = counted(more as u64, "more line");
            self.line(Tone::Faint, &format!("… {more}; `hermes sessions show {session}` prints all"));
        }
    }

    /// Shows a question of the model, or of an MCP server. The next typed line answers it.
    pub(crate) fn question(&mut self, asked: &AskedText, choices: &[String], takes_values: bool) {
        self.end_line();
        self.line(Tone::Warning, &asked.title);
        // Each row is indented, also where the terminal would break a line, so that none looks like a line of Hermes.
        let columns = self.console.columns();
        let choices: Vec<String> = choices.iter().map(|choice| text::exact(choice)).collect();
        let marked = choices.iter().enumerate();
        let marked = marked.map(|(at, choice)| format!("  {} {choice}", choice_mark(at, &choices, takes_values)));
        let lines = asked.lines.iter().map(|line| format!("{FOREIGN}{line}"));
        for line in lines.chain(marked).flat_map(|line| text::hanging(&line, HANGING, columns)) {
            self.line(Tone::Plain, &line);
        }
        let how = match (choices.is_empty(), are_lettered(&choices, takes_values)) {
            (true, _) => "your answer",
            (false, true) => "your own answer, or a letter such as a)",
            (false, false) => "a number, or your own answer",
        };
        self.line(Tone::Faint, &format!("type {how}, and enter; ctrl-c stops the turn"));
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
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
            screen.words("a");
            assert!(stop.is_triggered());
            assert_eq!(screen.reader_gone(), is_gone);
            assert_eq!(screen.take_unwritable().map(|error| error.kind()), (!is_gone).then_some(kind));
        }
    }

    #[test]
    fn an_earlier_reply_is_cut_after_twelve_lines_and_a_short_one_is_whole() {
        let shown = |lines: usize| {
            let text: Vec<String> = (1..=lines).map(|line| format!("line {line}")).collect();
            let mut out = Vec::new();
            let show = Show::Turn { reasoning: false };
            let mut screen = Screen::on(&mut out, Console::plain(true), show, &StopSwitch::default());
            screen.earlier_reply(&text.join("\n"), &SessionId("id".to_owned()));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(12).lines().last(), Some("line 12"));
        let long = shown(60);
        assert_eq!(long.lines().count(), 13);
        assert!(long.ends_with("line 12\n… 48 more lines; `hermes sessions show id` prints all\n"), "{long}");
    }
}
