//! The chat on a terminal that is drawn while it runs: what the user types, and what is shown.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hermes_app::files::append_file;
use hermes_protocol::{CallId, Mode, SessionId, Status};
use hermes_terminal::{
    Activity, Answer, Colours, Line, NotCopied, Outcome, Part, Paused, Picker, Question, Span, Ui, Written, painted,
    printable, rendered, wrapped,
};
use rustyline::history::{FileHistory, History as _};
use tokio::sync::{Mutex as Waiting, mpsc};

use crate::completion::Completion;
use crate::console::{self, Tone};
use crate::input::{HISTORY_LINES, Input};
use crate::signals::CtrlC;
use crate::text::dollars;
use crate::{silence, status, text};

/// The terminal of a chat. All clones are the same one.
#[derive(Clone)]
pub(crate) struct Live(Arc<Shared>);

struct Shared {
    ui: Arc<Ui>,
    inputs: Waiting<mpsc::UnboundedReceiver<Input>>,
    /// What the user chose from a list.
    picks: Waiting<mpsc::UnboundedReceiver<Option<usize>>>,
    /// The answers to questions, with the number of the question.
    answers: Waiting<mpsc::UnboundedReceiver<(u64, Answer)>>,
    history: Mutex<FileHistory>,
    path: PathBuf,
}

impl Live {
    /// Takes over the terminal.
    pub(crate) fn open(path: PathBuf, completion: &Completion, ctrl_c: &CtrlC, colours: Colours) -> io::Result<Self> {
        // Create the file here, with permissions for its owner only.
        drop(append_file(&path)?);
        let config = rustyline::Config::builder().max_history_size(HISTORY_LINES).map_err(io::Error::other)?;
        let mut history = FileHistory::with_config(&config.history_ignore_space(true).build());
        if let Err(error) = history.load(&path) {
            tracing::warn!(%error, path = %path.display(), "the history cannot be read");
        }
        let (send, inputs) = mpsc::unbounded_channel();
        let (pick, picks) = mpsc::unbounded_channel();
        let (answer, answers) = mpsc::unbounded_channel();
        #[cfg(unix)]
        let at_signals = ctrl_c.clone();
        let ctrl_c = ctrl_c.clone();
        let report = move |outcome| {
            let input = match outcome {
                Outcome::Submitted(text) => Input::Text(Written { text, is_command: false }.as_line()),
                Outcome::Command(text) => Input::Text(text),
                Outcome::Interrupted if !ctrl_c.pressed() => return,
                Outcome::Interrupted => Input::Interrupted,
                Outcome::Ended => {
                    // The terminal may be gone while a list is shown.
                    let _ = pick.send(None);
                    Input::End
                }
                Outcome::Picked(row) => {
                    let _ = pick.send(row);
                    return;
                }
                Outcome::Answered(number, given) => {
                    let _ = answer.send((number, given));
                    return;
                }
                Outcome::Editor => Input::Editor,
                // What is written stays in the input.
                Outcome::NextMode => Input::NextMode(String::new()),
                Outcome::Edited | Outcome::Unseen(_) => return,
            };
            // Sending fails only when the chat is over.
            let _ = send.send(input);
        };
        let earlier = history.iter().cloned().collect();
        let of_menu = completion.clone();
        let complete = move |typed: &str| of_menu.complete(typed);
        let ui = Arc::new(Ui::open(colours, earlier, Box::new(complete), report)?);
        let drawn = Arc::downgrade(&ui);
        completion.files().listen(move || {
            if let Some(ui) = drawn.upgrade() {
                ui.look_again();
            }
        });
        console::draw_notes_with(Some(&ui));
        #[cfg(unix)]
        restore_at_signals(&at_signals);
        Ok(Self(Arc::new(Shared {
            ui,
            inputs: Waiting::new(inputs),
            picks: Waiting::new(picks),
            answers: Waiting::new(answers),
            history: Mutex::new(history),
            path,
        })))
    }

    pub(crate) fn ui(&self) -> &Arc<Ui> {
        &self.0.ui
    }

    /// Waits for the next input. The future may be dropped at any time.
    pub(crate) async fn next(&self) -> Input {
        self.0.inputs.lock().await.recv().await.unwrap_or(Input::End)
    }

    /// Whether the terminal is gone, and no input is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.inputs.try_lock().is_ok_and(|inputs| inputs.is_closed() && inputs.is_empty())
    }

    /// Tells the user something about a key.
    pub(crate) fn tell(&self, text: &str) {
        self.0.ui.print(&wrapped(&[Span::styled(text.to_owned(), Tone::Faint.style())], self.0.ui.columns(), &[], &[]));
    }

    /// The same with what the user has typed already, while the thread blocks.
    pub(crate) fn read(&self, begun: &str) -> Input {
        self.0.ui.offer(begun);
        self.0.inputs.blocking_lock().blocking_recv().unwrap_or(Input::End)
    }

    /// Lets the user choose a row of a list; `None` if the user wants none.
    pub(crate) async fn pick(&self, picker: Picker) -> Option<usize> {
        let mut picks = self.0.picks.lock().await;
        while picks.try_recv().is_ok() {}
        self.0.ui.pick(picker);
        picks.recv().await.flatten()
    }

    /// Asks a question in place of the input, and says its number; `None` if nobody can answer any more.
    pub(crate) fn ask(&self, question: Question) -> Option<u64> {
        self.0.ui.ask(question)
    }

    /// Waits for the answer to this question. The future may be dropped at any time.
    pub(crate) async fn answer(&self, number: u64) -> Answer {
        let mut answers = self.0.answers.lock().await;
        loop {
            match answers.recv().await {
                // An answer may be on its way while its question is withdrawn.
                Some((asked, _)) if asked != number => {}
                Some((_, answer)) => return answer,
                None => return Answer::Left,
            }
        }
    }

    /// Remembers an input for this chat and later ones.
    pub(crate) fn remember(&self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.0.ui.remember(text);
        let mut history = self.0.history.lock().unwrap_or_else(PoisonError::into_inner);
        // A history that cannot be written must not end the chat.
        if history.add(text).unwrap_or(false)
            && let Err(error) = history.append(&self.0.path)
        {
            tracing::warn!(%error, path = %self.0.path.display(), "the history cannot be written");
        }
    }

    /// Opens the text in the editor that the user has chosen.
    ///
    /// # Errors
    ///
    /// Why the text stays as it was: no editor is chosen, or it failed.
    pub(crate) fn edit(&self) -> Result<(), String> {
        const CHOOSE: &str = "set EDITOR to a command, such as `vi`";
        let chosen = ["VISUAL", "EDITOR"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
        let chosen = chosen.ok_or_else(|| format!("no editor is chosen; {CHOOSE}"))?;
        let words = chosen.to_str().and_then(shlex::split).unwrap_or_default();
        let Some((editor, arguments)) = words.split_first() else {
            return Err(format!("VISUAL or EDITOR is no command; {CHOOSE}"));
        };
        let no_file = |error: io::Error| format!("the text cannot be written to a temporary file: {error}");
        let mut file = tempfile::Builder::new().prefix("hermes-").suffix(".md").tempfile().map_err(no_file)?;
        let written = self.0.ui.take();
        let edited = (|| {
            // Editors expect a line feed at the end, and what they append would end up in the last line.
            let Written { text, .. } = &written;
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            write!(file, "{text}{end}").and_then(|()| file.flush()).map_err(no_file)?;
            let ended = {
                let _paused = self.pause();
                std::process::Command::new(editor).args(arguments).arg(file.path()).status()
            };
            match ended {
                // The editor may have replaced the file.
                Ok(status) if status.success() => std::fs::read_to_string(file.path())
                    .map_err(|error| format!("the file that {editor} wrote cannot be read: {error}")),
                // Some editors end so if the user does not want the changes, such as vi with `:cq`.
                Ok(status) => Err(format!("{editor} ended with {status}")),
                Err(error) => Err(format!("{editor} cannot be started: {error}; {CHOOSE}")),
            }
        })();
        // Text of an editor may be pasted, so it is a command only if it was one before.
        let text = edited.as_ref().map_or(written.text.as_str(), |text| text.trim_end_matches('\n')).to_owned();
        self.0.ui.put_back(&Written { text, ..written });
        edited.map(drop)
    }

    /// Hands a text to the terminal's clipboard.
    pub(crate) fn copy(&self, text: &str) -> Result<(), NotCopied> {
        self.0.ui.copy(text)
    }

    /// Gives the terminal to somebody else until the guard is dropped.
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.0.ui.pause()
    }
}

/// Restores the terminal before a signal ends the process. All messages are stored already, and what has arrived of a reply
/// is stored first.
#[cfg(unix)]
pub(crate) fn restore_at_signals(ctrl_c: &CtrlC) {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::terminate(), SignalKind::hangup()] {
        let Ok(mut signals) = signal(kind) else { continue };
        let ctrl_c = ctrl_c.clone();
        tokio::spawn(async move {
            signals.recv().await;
            ctrl_c.end_the_turn().await;
            if console::is_drawing() {
                hermes_terminal::give_back();
            }
            silence::give_back();
            hermes_app::process::end_programs();
            std::process::exit(128 + kind.as_raw_value());
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        console::draw_notes_with(None);
    }
}

/// The columns before the other rows of a line: behind its mark, or below its last cell.
fn indent(line: &str) -> usize {
    if ["> ", "· ", "× ", "⊘ ", "■ "].iter().any(|mark| line.starts_with(mark)) {
        return 2;
    }
    let text = line.trim_start();
    text.rfind("  ").map_or(0, |at| text::columns(&line[..line.len() - text.len() + at + 2]))
}

/// The drawn part of a turn: the streaming text, and the activities that run.
pub(crate) struct Drawn {
    live: Live,
    /// What the turn does while no tool runs.
    doing: Option<Activity>,
    running: Vec<(Option<CallId>, Activity)>,
    /// The tokens of the turn's replies so far.
    tokens: u64,
    /// What the session has cost, if the prices of all its requests are known.
    cost: CostOf,
    /// The cost of the session now and before the turn.
    spent: Option<(f64, f64)>,
    status: Option<Status>,
}

/// Finds what a session has cost so far.
pub(crate) type CostOf = Box<dyn Fn(&SessionId) -> Option<f64> + Send>;

impl Drawn {
    pub(crate) fn new(live: Live, cost: CostOf) -> Self {
        Self { live, cost, spent: None, doing: None, running: Vec::new(), tokens: 0, status: None }
    }

    /// Adds a piece of a reply, or of the reasoning before it.
    pub(crate) fn add(&mut self, piece: &str, is_reasoning: bool) {
        let tone = if is_reasoning { Tone::Faint } else { Tone::Plain };
        self.live.ui().write(piece, tone.style());
    }

    /// Prints the first rows of a text in Markdown. Returns how many more it has.
    pub(crate) fn begin(&self, text: &str, most: usize) -> usize {
        let ui = self.live.ui();
        let rows = rendered(text, ui.columns());
        let shown = rows.len().min(most);
        ui.print(&rows[..shown]);
        rows.len() - shown
    }

    /// Ends the text.
    pub(crate) fn end(&mut self) {
        self.live.ui().end_text();
    }

    /// Prints lines, broken between words. Text that is painted already keeps its colours.
    pub(crate) fn line(&self, tone: Tone, text: &str) {
        let ui = self.live.ui();
        let columns = ui.columns();
        let is_painted = text.contains('\u{1b}');
        let rows = text.split('\n').flat_map(|line| {
            let spans = match is_painted {
                true => painted(&console::checked(line)),
                false => vec![Span::styled(printable(line).into_owned(), tone.style())],
            };
            let shown: String = spans.iter().map(|span| span.content.as_ref()).collect();
            let indent = " ".repeat(indent(&shown));
            wrapped(&spans, columns, &[], &[indent.into()])
        });
        ui.print(&rows.collect::<Vec<_>>());
    }

    /// The columns for text.
    pub(crate) fn columns(&self) -> usize {
        self.live.ui().columns()
    }

    /// Keeps rows that a key shows.
    pub(crate) fn fold(&self, title: &str, rows: impl Iterator<Item = (Tone, String)>) {
        let rows = std::iter::once((Tone::Faint, title.to_owned())).chain(rows);
        let line = |(tone, row): (Tone, String)| Line::styled(printable(&row).into_owned(), tone.style());
        self.live.ui().fold(rows.map(line).collect());
    }

    /// The turn, or another command, does something from now on.
    pub(crate) fn does(&mut self, what: &str) {
        if self.doing.as_ref().is_none_or(|doing| doing.text != what) {
            self.doing = Some(Activity { text: what.to_owned(), since: Instant::now() });
        }
        self.show();
    }

    pub(crate) fn begin_call(&mut self, call: Option<CallId>, what: String) {
        self.running.push((call, Activity { text: what, since: Instant::now() }));
        self.show();
    }

    pub(crate) fn end_call(&mut self, call: Option<&CallId>) {
        if let Some(at) = self.running.iter().position(|(running, _)| running.as_ref() == call) {
            self.running.remove(at);
        }
        self.show();
    }

    /// Shows the progress of a running call. A report begins with the plugin's name and may name no call. Then it belongs to the
    /// only call that runs, to the first call of a tool with this name, or to the newest call.
    pub(crate) fn progress(&mut self, call: Option<&CallId>, text: &str) {
        let plugin = text.split(':').next();
        let is_named = |activity: &Activity| activity.text.split([' ', ':']).next() == plugin;
        let at = match call {
            Some(_) => self.running.iter().position(|(running, _)| running.as_ref() == call),
            None => {
                let named = self.running.iter().position(|(_, activity)| is_named(activity));
                named.or_else(|| self.running.len().checked_sub(1))
            }
        };
        match at.and_then(|at| self.running.get_mut(at)) {
            Some((_, activity)) => text.clone_into(&mut activity.text),
            None => return self.does(text),
        }
        self.show();
    }

    pub(crate) fn used(&mut self, tokens: u64) {
        self.tokens += tokens;
        self.show();
    }

    /// A turn of a session begins.
    pub(crate) fn begin_turn(&mut self, session: Option<&SessionId>) {
        self.spent = session.and_then(|session| (self.cost)(session)).map(|cost| (cost, cost));
    }

    /// The session may have cost more.
    pub(crate) fn count_cost(&mut self, session: Option<&SessionId>) {
        let now = session.and_then(|session| (self.cost)(session));
        self.spent = now.zip(self.spent).map(|(now, (_, before))| (now, before));
        self.show();
    }

    /// Shows the status below the input.
    pub(crate) fn status(&mut self, status: Status) {
        self.live.ui().set_status(status::parts(&status));
        self.status = Some(status);
        self.show();
    }

    /// The user has chosen another mode.
    pub(crate) fn mode(&mut self, mode: Mode) {
        if let Some(mut status) = self.status.take() {
            status.mode = mode;
            self.status(status);
        }
    }

    /// Nothing runs any more.
    pub(crate) fn rest(&mut self) {
        self.doing = None;
        self.running.clear();
        self.tokens = 0;
        self.show();
    }

    fn show(&self) {
        let activities: Vec<Activity> = match self.running.is_empty() {
            true => self.doing.iter().cloned().collect(),
            false => self.running.iter().map(|(_, activity)| activity.clone()).collect(),
        };
        self.live.ui().set_activities(activities, self.hints());
    }

    /// What is beside the activities: the tokens and the cost of the turn, the cost of the session, how full the window is.
    fn hints(&self) -> Vec<Part> {
        let mut hints = Vec::new();
        if self.tokens > 0 {
            hints.push(Part::new(format!("{} tokens", text::grouped(self.tokens)), 2));
        }
        if let Some((now, before)) = self.spent.filter(|(now, _)| *now > 0.0) {
            hints.push(Part::new(dollars(now - before), 4));
            if before > 0.0 {
                hints.push(Part::new(format!("session {}", dollars(now)), 1));
            }
        }
        if let Some(status) = self.status.as_ref().filter(|status| status.prompt_tokens > 0) {
            hints.push(Part::new(format!("context {} %", status::percent(status)), 3));
        }
        hints.push(Part::new("ctrl-c stops", 5));
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_continue_behind_a_mark_and_below_the_last_cell() {
        for (line, expected) in [
            ("words and words", 0),
            ("> said  so", 2),
            ("· read_file x … 12 ms", 2),
            ("/help            show this list", 17),
            ("  1) staging", 0),
            ("a  b  c", 6),
        ] {
            assert_eq!(indent(line), expected, "{line:?}");
        }
    }
}
