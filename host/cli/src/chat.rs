//! A conversation at a terminal, or one that is piped in line by line.

use std::process::ExitCode;
use std::sync::Arc;

use hermes_agent::{
    Accepted, Begin, Command, CommandError, Compression, CompressionEnd, EventKind, SessionRules, TurnEnd,
};
use hermes_conversation::{Message, Role};

use crate::approval::AtTerminal;
use crate::arguments::SessionArguments;
use crate::console::{Console, Tone};
use crate::editor::{Input, Lines};
use crate::failure::{Failure, Kind};
use crate::front::FrontEnd;
use crate::launch::{self, Launcher};
use crate::screen::{Screen, Show};
use crate::signals::CtrlC;
use crate::slash::{NAMES, Slash};
use crate::{approval, context, oneshot, status, text};

/// What follows from an input.
enum Next {
    GoOn,
    Leave,
}

struct Chat {
    launcher: Arc<Launcher>,
    front: FrontEnd,
    person: Option<AtTerminal>,
    screen: Screen,
    console: Console,
    ctrl_c: CtrlC,
    /// The last turn failed like this.
    failed: Option<Kind>,
}

/// Talks until the user leaves.
pub(crate) async fn run(session: &SessionArguments, verbose: u8, console: Console) -> Result<ExitCode, Failure> {
    let ctrl_c = CtrlC::listen();
    let setup = launch::read()?;
    let show = Show::Turn { reasoning: setup.config.settings().display.show_reasoning };
    let person = approval::at_terminal(console, ctrl_c.switch());
    let launcher = launch::launcher(setup, &session.model, false, verbose, console)?.asking(person.is_some());
    let launcher = Arc::new(launcher);
    let begin = launcher.choose(&session.choice())?;
    let front = FrontEnd::new(launcher.begin(begin, SessionRules::SINGLE).await?);
    let mut lines = Lines::open(launcher.setup().home.history()).map_err(|error| {
        let fix = "check the permissions of the home folder; `hermes -z TEXT` needs no terminal";
        Failure::new(Kind::General, "the terminal cannot be used", error.to_string(), fix)
    })?;
    let at_terminal = lines.is_terminal();
    let screen = Screen::new(console, show, ctrl_c.switch());
    let mut chat = Chat { launcher, front, person, screen, console, ctrl_c, failed: None };
    chat.greet(at_terminal).await;

    let mut interrupted = false;
    loop {
        let input;
        (lines, input) = chat.read(lines).await?;
        match input {
            Input::Text(text) => {
                interrupted = false;
                if let Next::Leave = chat.take(&text).await {
                    break;
                }
            }
            Input::Interrupted if interrupted => break,
            Input::Interrupted => {
                interrupted = true;
                chat.screen.line(Tone::Faint, "ctrl-c again leaves; /help lists the commands");
            }
            Input::End => break,
        }
        if chat.screen.reader_gone() {
            break;
        }
    }
    // At a terminal the failure has been read; a script reads the exit code.
    let code =
        chat.failed.filter(|_| !at_terminal && !chat.screen.reader_gone()).map_or(ExitCode::SUCCESS, ExitCode::from);
    chat.leave(at_terminal).await;
    Ok(code)
}

/// What `/compress` shows while it waits.
const COMPACTING: &str = "compacting; ctrl-c stops it";

/// Why the conversation is as it was, and what to do about it.
fn uncompressed(compression: Compression) -> String {
    match compression {
        Compression::Adopted => "the conversation was compacted".to_owned(),
        Compression::TooFew { messages, least } => format!(
            "there is nothing to compact yet: the conversation has {}, and a compaction needs at least {least}",
            text::counted(messages as u64, "message")
        ),
        Compression::Off => {
            "the conversation was not compacted: compression is switched off; set `compression.enabled` to \
             true to switch it on"
                .to_owned()
        }
        Compression::Nothing => {
            "a compaction would gain nothing: all old messages are compacted already, or are too short; /context shows \
             what fills the window"
                .to_owned()
        }
        Compression::Stopped => "stopped; the conversation is unchanged".to_owned(),
        Compression::Failed => "the conversation is unchanged, for the reason above; `context.engine` or --engine \
             selects another engine"
            .to_owned(),
    }
}

impl Chat {
    async fn greet(&mut self, at_terminal: bool) {
        if !at_terminal {
            return;
        }
        let Ok(status) = self.front.session().status().await else { return };
        let version = env!("CARGO_PKG_VERSION");
        let greeting =
            format!("hermes {version} · {} · {} · /help", text::line(&status.model), text::line(&status.engine));
        self.screen.line(Tone::Faint, &greeting);
        if let Some(session) = self.front.session().session() {
            let messages = text::counted(u64::try_from(status.messages).unwrap_or(u64::MAX), "message");
            let told = format!("session {session} · {messages}");
            self.screen.line(Tone::Faint, &told);
        }
    }

    /// Waits for input on a thread that may block.
    async fn read(&self, mut lines: Lines) -> Result<(Lines, Input), Failure> {
        // A pipe is read as it comes, and Ctrl-C ends that like any program.
        let _during = lines.is_terminal().then(|| self.ctrl_c.is_a_key());
        let read = tokio::task::spawn_blocking(move || {
            let input = lines.read();
            (lines, input)
        });
        let failed = |why: String| {
            Failure::new(Kind::General, "no more input can be read", why, "go on with `hermes --continue`")
        };
        let (lines, input) = read.await.map_err(|error| failed(error.to_string()))?;
        Ok((lines, input.map_err(|error| failed(error.to_string()))?))
    }

    async fn take(&mut self, text: &str) -> Next {
        if text.trim().is_empty() {
            return Next::GoOn;
        }
        match Slash::parse(text) {
            None => self.turn(text).await,
            Some(Slash::Exit) => return Next::Leave,
            Some(Slash::Help) => {
                for (name, meaning) in NAMES {
                    self.screen.line(Tone::Plain, &format!("{name:<16} {meaning}"));
                }
                self.screen.line(Tone::Faint, "a backslash at the end of a line asks for the next one");
            }
            Some(Slash::New) => self.new_session().await,
            Some(Slash::Context) => match self.front.session().context().await {
                Ok(Some(context)) => {
                    let shown = context::shown(&context, self.console);
                    self.screen.line(Tone::Plain, shown.trim_end());
                }
                Ok(None) => {
                    if let Ok(status) = self.front.session().status().await {
                        let line = status::line(&status);
                        self.screen.line(Tone::Faint, &format!("the conversation has no message yet; {line}"));
                    }
                }
                Err(problem) => self.fail(&problem.into()),
            },
            Some(Slash::Compress { preview: false, focus }) => self.compress(focus).await,
            Some(Slash::Compress { preview: true, focus }) => self.preview(focus).await,
            Some(Slash::Rewind { turns }) => self.rewind(turns).await,
            Some(Slash::Branch) => self.branch().await,
            Some(Slash::Model(Some(model))) => self.switch(Command::ChooseModel { model }).await,
            Some(Slash::Engine(Some(engine))) => self.switch(Command::ChooseEngine { engine }).await,
            Some(Slash::Model(None) | Slash::Engine(None)) => self.show_status().await,
            Some(Slash::Misused { usage }) => {
                self.console.warning(&format!("the usage is `{usage}`; nothing was changed"));
            }
            Some(Slash::Unknown { name, nearest }) => {
                let near = nearest
                    .map_or_else(|| "/help lists all commands".to_owned(), |near| format!("did you mean {near}?"));
                self.console
                    .warning(&format!("there is no command {name}; a space before it sends it to the model; {near}"));
            }
        }
        Next::GoOn
    }

    /// Runs a command that Ctrl-C stops.
    async fn run(&mut self, command: Command) -> Result<EventKind, CommandError> {
        let _during = self.ctrl_c.stops_the_turn();
        self.front.run(command, &mut self.screen, self.person.as_ref(), self.ctrl_c.switch()).await
    }

    async fn turn(&mut self, text: &str) {
        let ended = self.run(Command::Say { text: text.to_owned(), attached: Vec::new() }).await;
        self.failed = None;
        let status = match ended {
            Ok(EventKind::TurnEnded { end, status }) => {
                match end {
                    TurnEnd::Answered { .. } => {}
                    TurnEnd::Interrupted => self.screen.line(Tone::Faint, "stopped"),
                    TurnEnd::OutOfBudget { steps } => self.fail(&oneshot::out_of_budget(steps)),
                    TurnEnd::Failed { problem } => self.fail(&problem.into()),
                }
                status
            }
            Ok(_) => return,
            Err(error) => return self.fail(&error.into()),
        };
        self.screen.line(Tone::Faint, &status::line(&status));
    }

    async fn compress(&mut self, focus: Option<String>) {
        // The summary may take half a minute, without any sign of progress.
        self.screen.line(Tone::Faint, COMPACTING);
        match self.run(Command::Compress { focus, preview: false }).await {
            Ok(EventKind::CompressionEnded { end, status }) => match end {
                CompressionEnd::Done { compression: Compression::Adopted } => {
                    self.screen.line(Tone::Faint, &status::line(&status));
                }
                CompressionEnd::Done { compression } => self.screen.line(Tone::Faint, &uncompressed(compression)),
                CompressionEnd::Failed { problem } => self.fail(&problem.into()),
            },
            Ok(_) => {}
            Err(error) => self.fail(&error.into()),
        }
    }

    async fn preview(&mut self, focus: Option<String>) {
        match self.run(Command::Compress { focus, preview: true }).await {
            Ok(EventKind::CompressionPreviewed { outlook }) => {
                let shown = context::outlook(&outlook, self.console);
                self.screen.line(Tone::Plain, shown.trim_end());
            }
            Ok(EventKind::CompressionEnded { end: CompressionEnd::Done { compression }, .. }) => {
                self.screen.line(Tone::Faint, &uncompressed(compression));
            }
            Ok(EventKind::CompressionEnded { end: CompressionEnd::Failed { problem }, .. }) => {
                self.fail(&problem.into());
            }
            Ok(_) => {}
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Takes back the newest turns, so many as are named.
    async fn rewind(&mut self, turns: usize) {
        let Some(to) = self.message_of_user(turns).await else { return };
        match self.front.send(Command::Rewind { to: to.id }, &mut self.screen).await {
            Ok(_) => {
                let said = text::line(to.told().lines().next().unwrap_or_default());
                self.screen.line(Tone::Faint, &format!("took back `{said}` and everything after it"));
                self.show_status().await;
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// The message with which the last so many turns begin. Without one, the user reads why.
    async fn message_of_user(&mut self, turns: usize) -> Option<Message> {
        let Some(session) = self.front.session().session() else {
            self.console.warning("the conversation has no message yet, so nothing can be taken back");
            return None;
        };
        let launcher = Arc::clone(&self.launcher);
        let read = tokio::task::spawn_blocking(move || launcher.store().conversation(&session));
        let messages = match read.await {
            Ok(Ok(messages)) => messages,
            Ok(Err(error)) => {
                self.fail(&error.into());
                return None;
            }
            Err(_) => return None,
        };
        let of_user: Vec<Message> = messages.into_iter().filter(|message| message.role == Role::User).collect();
        let known = of_user.len();
        let found = of_user.into_iter().rev().nth(turns - 1);
        if found.is_none() {
            let known = text::counted(known as u64, "turn");
            self.console.warning(&format!("the conversation has {known}; nothing was taken back"));
        }
        found
    }

    /// Continues in a copy of the conversation.
    async fn branch(&mut self) {
        let child = match self.front.send(Command::Branch { through: None }, &mut self.screen).await {
            Ok(Accepted { child: Some(child) }) => child,
            Ok(Accepted { child: None }) => return,
            Err(error) => return self.fail(&error.into()),
        };
        let before = self.front.session().session();
        match self.launcher.begin(Begin::Resume(child.clone()), SessionRules::SINGLE).await {
            Ok(session) => {
                self.close().await;
                self.front = FrontEnd::new(session);
                let before = before.map(|before| format!("; `hermes --resume {before}` opens the other one"));
                let before = before.unwrap_or_default();
                self.screen.line(Tone::Faint, &format!("this is now the session {child}{before}"));
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Another model or another engine.
    async fn switch(&mut self, command: Command) {
        match self.front.send(command, &mut self.screen).await {
            Ok(_) => self.show_status().await,
            Err(error) => self.fail(&error.into()),
        }
    }

    async fn show_status(&mut self) {
        if let Ok(status) = self.front.session().status().await {
            self.screen.line(Tone::Faint, &status::line(&status));
        }
    }

    async fn new_session(&mut self) {
        match self.launcher.begin(Begin::New, SessionRules::SINGLE).await {
            Ok(session) => {
                self.close().await;
                self.front = FrontEnd::new(session);
                self.screen.line(Tone::Faint, "a new conversation");
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Closes the session; what plugins say meanwhile is shown.
    async fn close(&mut self) {
        // It may have ended by itself.
        let _ = self.front.run(Command::Close, &mut self.screen, None, self.ctrl_c.switch()).await;
    }

    fn fail(&mut self, failure: &Failure) {
        self.console.report(failure);
        self.failed = Some(failure.kind);
    }

    async fn leave(mut self, at_terminal: bool) {
        if let Some(session) = self.front.session().session().filter(|_| at_terminal) {
            self.console.note(&format!("`hermes --resume {session}` goes on from here"));
        }
        self.close().await;
    }
}
