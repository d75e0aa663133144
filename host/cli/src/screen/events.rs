//! What a screen shows of each event.

use std::io::Write;

use hermes_protocol::{CallId, DelegationState, Event, EventKind, FileDiff, RefusedBy, Snapshot, TaskStatus, TurnEnd};

use super::excerpt::Excerpt;
use super::lines::{compacted, quoted, reason, refusal, task_line};
use super::{Running, Screen, Show};
use crate::console::Tone;
use crate::live::Drawn;
use crate::text;
use crate::wording;

/// How a call ended, with its result.
#[derive(Clone, Copy)]
enum CallEnd<'a> {
    Answered(&'a str),
    Failed(&'a str),
    Refused(RefusedBy, &'a str),
}

impl<W: Write + Send> Screen<W> {
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
            EventKind::ReplyCut => {
                let was_shown = !self.reply.is_empty() || self.in_reasoning;
                self.reply.clear();
                if self.is_turn() && was_shown {
                    self.line(Tone::Warning, "⌁ the reply broke off here");
                }
            }
            // Arguments such as the content of a file can take a while.
            EventKind::CallForming { name } => self.temporary_line(&format!("· {} …", text::line(name))),
            EventKind::ToolStarted { name, arguments } => {
                self.temporary_line(&format!("· {} {} …", text::line(name), text::arguments(arguments)));
                let (call, name, arguments) = (event.call.clone(), name.clone(), arguments.clone());
                self.running.push(Running { call, name, arguments });
            }
            EventKind::ToolFinished { name, content, failed, elapsed_ms, refused, changes } => {
                let end = match refused {
                    Some(by) => CallEnd::Refused(*by, content),
                    None if *failed => CallEnd::Failed(content),
                    None => CallEnd::Answered(content),
                };
                self.call_ended(event.call.as_ref(), name, end, changes, *elapsed_ms);
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
            EventKind::Progress { text } => self.temporary_line(&text::output(text)),
            EventKind::TaskChanged { task } => self.task(task),
            // A summary may take half a minute, without any sign of progress.
            EventKind::CompressionStarted if self.is_turn() => self.line(Tone::Faint, "compacting; ctrl-c stops it"),
            EventKind::Asked { .. } => self.end_line(),
            EventKind::TurnEnded {
                end:
                    TurnEnd::Answered { text }
                    | TurnEnd::Cut { text, .. }
                    | TurnEnd::OutOfBudget { summary: Some(text), .. },
                ..
            } if self.show == Show::Answer && !text.is_empty() => {
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
                let what = format!("{} {}", text::exact(name), text::arguments(arguments));
                drawn.begin_call(event.call.clone(), what.trim_end().to_owned());
            }
            EventKind::ToolFinished { .. } => {
                drawn.end_call(event.call.as_ref());
                drawn.does("waiting for the model");
            }
            EventKind::Progress { text } => drawn.progress(event.call.as_ref(), &text::line(&text::output(text))),
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

    fn call_ended(
        &mut self,
        call: Option<&CallId>,
        name: &str,
        end: CallEnd<'_>,
        changes: &[FileDiff],
        elapsed_ms: u64,
    ) {
        let at = self.running.iter().position(|running| running.call.as_ref() == call);
        let arguments = at.map(|at| self.running.remove(at).arguments).unwrap_or_default();
        if !self.is_turn() {
            return;
        }
        let (tone, line, content, is_success) = match end {
            CallEnd::Refused(by, content) => {
                let line = text::refused_call(name, &arguments, &refusal(by, content));
                (Tone::Warning, line, content, false)
            }
            CallEnd::Failed(content) => {
                (Tone::Bad, text::call(name, &arguments, Some(&reason(content)), elapsed_ms), content, false)
            }
            CallEnd::Answered(content) => {
                let line = text::call(name, &arguments, None, elapsed_ms);
                match text::end_of_command(name, content) {
                    // The tool has not failed, and the command has.
                    Some(end) => (Tone::Warning, format!("{line} · {end}"), content, false),
                    None => (Tone::Faint, line, content, true),
                }
            }
        };
        self.line(tone, &line);
        if let Some(excerpt) = Excerpt::of(&arguments, content, is_success, changes)
            && !matches!(end, CallEnd::Refused(..))
        {
            self.excerpt(&line, &excerpt);
        }
    }

    /// Shows the first or last rows below the line of a call. A key shows all of them, if the terminal is drawn.
    fn excerpt(&mut self, line: &str, excerpt: &Excerpt) {
        let columns = self.drawn.as_ref().map(Drawn::columns).or_else(|| self.console.columns());
        let (rows, hidden) = excerpt.begin(columns);
        let key = if self.drawn.is_some() { " · ctrl-o shows all" } else { "" };
        let more = (hidden > 0).then(|| (Tone::Faint, Excerpt::more(hidden, key)));
        let (before, after) = if excerpt.is_end() { (more, None) } else { (None, more) };
        for (tone, row) in before.into_iter().chain(rows).chain(after) {
            self.line(tone, &row);
        }
        if let Some(drawn) = &self.drawn
            && hidden > 0
        {
            drawn.fold(line, excerpt.whole());
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_protocol::{Epoch, Position, RunningCall, Status, Usage};

    use super::*;
    use crate::console::Console;
    use crate::screen::Used;
    use crate::signals::StopSwitch;

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
        let (refused, changes) = (None, Vec::new());
        event(Some(call), EventKind::ToolFinished { name, content, failed, elapsed_ms, refused, changes })
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
    fn the_line_of_a_command_says_how_it_ended_and_is_no_failure_of_the_tool() {
        let events = vec![
            started("1", "terminal", r#"{"command":"make test"}"#),
            finished("1", "terminal", "no\n[exit code 2: for make, a rule failed]", false, 3_000),
        ];
        let expected = "· terminal make test … 3.0 s · exit code 2\n";
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events), expected);
    }

    #[test]
    fn a_refused_call_looks_like_no_success_and_says_who_refused() {
        let refused = |by| {
            let (name, content) =
                ("patch".to_owned(), "error: `patch` was not run: `approvals.deny` has `x`".to_owned());
            let (refused, changes) = (Some(by), Vec::new());
            event(Some("1"), EventKind::ToolFinished { name, content, failed: false, elapsed_ms: 0, refused, changes })
        };
        for (by, expected) in [
            (RefusedBy::Mode, "the mode plan changes nothing"),
            (RefusedBy::User, "you refused"),
            (RefusedBy::Unattended, "nobody could be asked"),
            (RefusedBy::Rule, "by a rule: `patch` was not run: `approvals.deny` has `x`"),
            (RefusedBy::Hook, "by a hook: `patch` was not run: `approvals.deny` has `x`"),
        ] {
            let events = vec![started("1", "patch", r#"{"path":"a.rs"}"#), refused(by)];
            let shown = shown(false, Show::Turn { reasoning: false }, events);
            assert_eq!(shown, format!("⊘ patch a.rs … refused: {expected}\n"));
        }
    }

    #[test]
    fn the_lines_of_a_command_and_of_an_edit_are_below_their_calls() {
        let lines = ["-one", "+two"].map(str::to_owned).to_vec();
        let change = FileDiff { path: "a.rs".to_owned(), added: 1, removed: 1, lines, left_out: 0 };
        let (name, content) = ("patch".to_owned(), "done".to_owned());
        let edited = EventKind::ToolFinished {
            name,
            content,
            failed: false,
            elapsed_ms: 2,
            refused: None,
            changes: vec![change],
        };
        let events = vec![
            started("1", "terminal", r#"{"command":"make"}"#),
            finished("1", "terminal", "a\nb\nc\nd\ne", false, 3),
            started("2", "patch", r#"{"path":"a.rs"}"#),
            event(Some("2"), edited),
        ];
        let expected = "· terminal make … 3 ms\n    … 2 more lines\n    c\n    d\n    e\n\
                        · patch a.rs … 2 ms\n    a.rs +1 -1\n    -one\n    +two\n";
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events), expected);
    }

    #[test]
    fn a_reply_that_broke_off_is_marked_and_the_next_one_is_shown_whole() {
        let events = vec![text("It sa"), event(None, EventKind::ReplyCut), text("It says hello."), done()];
        let expected = "It sa\n⌁ the reply broke off here\nIt says hello.\n";
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events), expected);
    }

    #[test]
    fn foreign_control_sequences_are_escaped_on_a_terminal_only() {
        let events = || vec![text("a\u{1b}"), text("[31mb\r\u{7}"), done()];
        let shown = |screen| shown(screen, Show::Turn { reasoning: false }, events());
        assert_eq!(
            (shown(true).as_str(), shown(false).as_str()),
            ("a\\u{1b}[31mb\\r\\u{7}\n", "a\u{1b}[31mb\r\u{7}\n")
        );
    }

    #[test]
    fn foreign_control_sequences_of_an_answer_are_escaped_on_a_terminal_only() {
        let events = || vec![answered("a\u{1b}[31mb\r\u{7}")];
        assert_eq!(shown(true, Show::Answer, events()), "a\\u{1b}[31mb\\r\\u{7}\n");
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
    fn reasoning_is_shown_only_when_wanted() {
        let events = || {
            vec![event(None, EventKind::Reasoning { text: "Hm.".to_owned() }), text("Yes."), done(), answered("Yes.")]
        };
        assert_eq!(shown(false, Show::Turn { reasoning: false }, events()), "Yes.\n");
        assert_eq!(shown(false, Show::Turn { reasoning: true }, events()), "Hm.\nYes.\n");
        assert_eq!(shown(false, Show::Answer, events()), "Yes.\n");
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
