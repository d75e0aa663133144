//! The chat: on a terminal, or line by line from a pipe.

mod conversations;
mod lists;
mod models;
mod own;
mod skills;

use std::process::ExitCode;
use std::sync::Arc;

use hermes_app::spending::Sum;
use hermes_app::{AppError, Beginning, Desk, Lifetime, ModelChoice, Opened, SessionHandle, SessionRequest};
use hermes_protocol::{
    Accepted, Command, CommandError, Compression, CompressionEnd, Effort, EventKind, Message, Mode, OnConflict, Part,
    Role, SessionId, TurnEnd, Turns, UserMessage,
};
use tokio::runtime::Handle;

use crate::approval::AtTerminal;
use crate::completion::Completion;
use crate::console::{Console, Tone};
use crate::editor::Lines;
use crate::failure::{Failure, Kind};
use crate::front::FrontEnd;
use crate::input::Input;
use crate::launch;
use crate::live::{CostOf, Live};
use crate::screen::{Screen, Show, task_line};
use crate::session_arguments::SessionArguments;
use crate::signals::CtrlC;
use crate::slash::{Slash, Think};
use crate::typed::Typed;
use crate::{approval, context, imported, oneshot, shell, spending, status, text, undo};

/// How many messages of the user, with the replies to them, are shown of a resumed conversation.
const RECENT: usize = 3;

/// Whether the chat continues after an input.
enum Next {
    Continue,
    Leave,
}

struct Chat {
    desk: Arc<Desk>,
    /// What every session of the chat has in common.
    request: SessionRequest,
    front: FrontEnd,
    person: Option<AtTerminal>,
    screen: Screen,
    console: Console,
    ctrl_c: CtrlC,
    /// Whether the input comes from a terminal.
    at_terminal: bool,
    /// The terminal, if it is drawn.
    live: Option<Live>,
    /// What can be completed in the input.
    completion: Completion,
    /// The failure of the last turn, if it failed.
    failed: Option<Kind>,
    /// The last message, if its turn failed before it was stored.
    unsent: Option<String>,
    /// Whether the user knows that the name of a skill is a command too.
    knows_clash: bool,
    /// Whether `!` runs a command: a person has typed the line into this chat.
    may_run: bool,
    /// What the model reads with the next message of the commands that the user ran.
    ran: Vec<String>,
    /// The provider whose model the user chose for this conversation; `None` for that of the configuration.
    provider: Option<String>,
    /// The model and the engine that the user chose last, and how much the model should think. A new conversation keeps them.
    chosen: ModelChoice,
    effort: Option<Effort>,
}

/// Runs the chat until the user leaves. It begins with a message, if one is given.
pub(crate) async fn run(
    message: Option<String>,
    session: &SessionArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    let ctrl_c = CtrlC::listen();
    let setup = launch::read()?;
    let show = Show::Turn { reasoning: setup.config.settings().display.show_reasoning };
    let while_busy = setup.config.settings().input.while_busy;
    let person = approval::at_terminal(console, ctrl_c.switch());
    let request = launch::request(&session.model, Lifetime::UntilClosed)?;
    let request = SessionRequest { mode: session.mode, can_ask: person.is_some(), ..request };
    let desk = Arc::new(launch::desk(setup, &request, verbose, console).await?);
    let mut begin = session.choice();
    let (mut lines, completion) = (None, Completion::default());
    if session.chooses() {
        if !console.can_draw() {
            return Err(launch::no_session_named());
        }
        let listed = conversations::resumable(&desk, None).await?;
        let opened = open(&desk, &completion, &ctrl_c, console)?;
        let picked = match (opened.live(), listed.is_empty()) {
            (Some(live), false) => conversations::pick(live, listed, &request.workspace).await,
            _ => None,
        };
        let Some(picked) = picked else {
            drop(opened);
            console.note("no conversation was chosen; `hermes` starts a new one");
            return Ok(Kind::General.into());
        };
        begin = Beginning::Resume { id: picked.to_string(), branch: session.branch };
        lines = Some(opened);
    }
    let first = request.beginning(begin);
    // The question about an imported session is drawn, as the questions of the chat are.
    if lines.is_none() && console.can_draw() && imported::is_asking(&desk, &first, session.imported).await? {
        lines = Some(open(&desk, &completion, &ctrl_c, console)?);
    }
    let live = lines.as_ref().and_then(Lines::live);
    let first = imported::consent(&desk, first, session.imported, person.as_ref(), live).await?;
    let mut front = FrontEnd::new(desk.session(&first).await?.session, while_busy);
    let mut lines = match lines {
        Some(lines) => lines,
        None => open(&desk, &completion, &ctrl_c, console)?,
    };
    let at_terminal = lines.is_terminal();
    let live = lines.live().cloned();
    let mut screen = Screen::new(console, show, ctrl_c.switch());
    if let Some(live) = &live {
        screen.draw_on(live, cost_of(&desk));
        front.draw_on(live);
    }
    let mut chat = Chat {
        chosen: request.model.clone(),
        effort: None,
        desk,
        request,
        front,
        person,
        screen,
        console,
        ctrl_c,
        at_terminal,
        live,
        completion,
        failed: None,
        unsent: None,
        knows_clash: false,
        may_run: false,
        ran: Vec::new(),
        provider: None,
    };
    chat.greet(at_terminal).await;

    let mut message = message;
    let keys = chat.ctrl_c.clone();
    // Set while the next Ctrl-C leaves the chat. A second press counts even before the input is read again, because people press
    // it twice in a row.
    let mut leaving = None;
    loop {
        let given = message.take();
        chat.may_run = at_terminal && given.is_none();
        let typed = given.or_else(|| chat.front.next_typed());
        // On a terminal that is not drawn, Hermes cannot tell whether a line was typed or pasted during a turn. So a command is
        // shown to the user before it runs.
        let typed = match typed {
            Some(line) if chat.may_run && chat.live.is_none() && shell::command(&line).is_some() => {
                let begun = chat.front.take_begun();
                chat.front.begin_line(line + &begun);
                None
            }
            typed => typed,
        };
        let input = match typed {
            Some(line) => {
                if at_terminal {
                    chat.screen.said(&line);
                }
                Input::Text(line)
            }
            None => {
                let input;
                (lines, input) = chat.read(lines).await?;
                if let (Some(live), Input::Text(text)) = (&chat.live, &input) {
                    live.remember(text);
                    chat.screen.said(text);
                }
                input
            }
        };
        match input {
            Input::Text(text) => {
                leaving = None;
                if let Next::Leave = chat.handle(&text).await {
                    break;
                }
            }
            Input::NextMode(begun) => {
                chat.front.begin_line(begun);
                let mode = chat.mode_now().await.next();
                chat.choose_mode(mode).await;
            }
            Input::Editor => chat.edit().await,
            Input::Interrupted if leaving.is_some() => break,
            Input::Interrupted => {
                leaving = Some(keys.is_a_key());
                chat.screen.line(Tone::Faint, "press ctrl-c again to leave; /help lists the commands");
            }
            Input::End => break,
        }
        if chat.screen.reader_gone() {
            break;
        }
        if let Some(error) = chat.screen.take_unwritable() {
            chat.leave(at_terminal).await;
            return Err(error.into());
        }
    }
    // On a terminal the user saw the failure; a script needs the exit code.
    let code =
        chat.failed.filter(|_| !at_terminal && !chat.screen.reader_gone()).map_or(ExitCode::SUCCESS, ExitCode::from);
    chat.leave(at_terminal).await;
    Ok(code)
}

/// Reads from the store what a session has cost.
fn cost_of(desk: &Arc<Desk>) -> CostOf {
    let desk = Arc::clone(desk);
    Box::new(move |session| {
        // It is read after each reply, and one session is read quickly.
        let store = desk.store(None).ok()?;
        let rows = tokio::task::block_in_place(|| Handle::current().block_on(store.usage(0, Some(session))));
        rows.inspect_err(|error| tracing::warn!(%error, "the cost of the session cannot be read"))
            .ok()
            .and_then(|rows| rows.iter().collect::<Sum>().whole_cost())
    })
}

/// Opens the terminal, or the pipe.
fn open(desk: &Desk, completion: &Completion, ctrl_c: &CtrlC, console: Console) -> Result<Lines, Failure> {
    let history = desk.setup().home.history();
    let opened = match console.can_draw() {
        true => Live::open(history, completion, ctrl_c, console.colours()).map(Lines::Live),
        false => Lines::open(history, completion).inspect(|lines| {
            if lines.is_terminal() {
                // A turn makes the terminal silent, and a signal must not leave it so.
                #[cfg(unix)]
                crate::live::restore_at_signals(ctrl_c);
            }
        }),
    };
    opened.map_err(|error| {
        let fix = "check the permissions of the home folder, or use `hermes -z TEXT`, which needs no terminal";
        Failure::new(Kind::General, "the terminal cannot be used", error.to_string(), fix)
    })
}

/// The result of `/compress` for the user.
fn compression_result(compression: Compression) -> String {
    match compression {
        Compression::Adopted => "the conversation was compacted".to_owned(),
        Compression::TooFew { messages, least } => format!(
            "there is nothing to compact yet: the conversation has {}, and compaction needs at least {least}",
            text::counted(messages as u64, "message")
        ),
        Compression::Off => {
            "the conversation was not compacted: compression.enabled is false in config.yaml".to_owned()
        }
        Compression::Nothing => "the conversation was not compacted: compaction would save too little; /context shows \
             what fills the window"
            .to_owned(),
        Compression::Stopped => "stopped; the conversation is unchanged".to_owned(),
        Compression::Failed => {
            "compaction failed for the reason above, and the conversation is unchanged; `/engine NAME` switches to \
             another engine"
                .to_owned()
        }
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
        self.show_session("").await;
    }

    /// Shows the end of a conversation that is resumed: the last messages of the user with the replies.
    async fn show_recent(&mut self, session: SessionId) {
        // The session reads the same messages, and reports what it cannot read.
        let Ok(store) = self.desk.store(None) else { return };
        let Ok(messages) = store.conversation(&session).await else { return };
        let is_of_user = |message: &&Message| message.role == Role::User;
        let begin = messages.iter().enumerate().filter(|(_, message)| is_of_user(message)).map(|(at, _)| at);
        let begin = begin.rev().take(RECENT).last().unwrap_or(messages.len());
        for message in &messages[begin..] {
            let text = message.told();
            match message.role {
                Role::User => self.screen.said(&text),
                Role::Assistant if !text.trim().is_empty() => self.screen.earlier_reply(&text, &session),
                _ => {}
            }
        }
    }

    /// Waits for input on a thread that may block.
    async fn read(&mut self, mut lines: Lines) -> Result<(Lines, Input), Failure> {
        self.show_status_below().await;
        self.offer_skills();
        if self.at_terminal {
            self.completion.files().of(&self.folder().await);
        }
        // With piped input, and on a terminal that knows only lines, there are no keys; Ctrl-C ends the process as usual.
        let _during = (lines.is_terminal() && !self.console.is_dumb()).then(|| self.ctrl_c.is_a_key());
        let mut begun = self.front.take_begun();
        // There the prompt cannot begin with a text.
        if self.at_terminal && self.live.is_none() && self.console.is_dumb() && !begun.is_empty() {
            let begun = std::mem::take(&mut begun);
            self.screen.line(Tone::Faint, &format!("not sent: {}", text::line(&begun)));
        }
        let prompt = format!("{}> ", status::mode(self.mode_now().await).unwrap_or_default());
        let read = tokio::task::spawn_blocking(move || {
            let input = lines.read(&prompt, &begun);
            (lines, input)
        });
        let failed = |why: String| {
            let fix = "continue the session with `hermes --continue`";
            Failure::new(Kind::General, "no more input can be read", why, fix)
        };
        let (lines, input) = read.await.map_err(|error| failed(error.to_string()))?;
        Ok((lines, input.map_err(|error| failed(error.to_string()))?))
    }

    /// Opens the written text in the user's editor.
    async fn edit(&self) {
        let Some(live) = self.live.clone() else { return };
        // Ctrl-C is for the editor, which may ignore it. It must not end the chat.
        let _during = self.ctrl_c.is_for_another();
        let edited = tokio::task::spawn_blocking(move || live.edit()).await;
        if let Ok(Err(why)) = edited {
            self.console.warning(&format!("{why}; the text in the input is as before"));
        }
    }

    /// Carries out a command, or sends a message.
    async fn handle(&mut self, text: &str) -> Next {
        if text.trim().is_empty() {
            return Next::Continue;
        }
        if self.may_run
            && let Some(command) = shell::command(text)
        {
            if self.live.is_none() && self.console.is_dumb() {
                self.console.warning(
                    "this terminal does not tell typed lines from pasted ones, so `!` runs nothing here, and the line was \
                     not sent; with a space in front it is a message",
                );
                return Next::Continue;
            }
            self.run_own(command).await;
            return Next::Continue;
        }
        if self.use_skill(text).await {
            return Next::Continue;
        }
        match Slash::parse(text) {
            None => self.turn(shell::message(text)).await,
            Some(Slash::Exit) => return Next::Leave,
            Some(Slash::Help) => {
                self.help();
                self.list_skills().await;
            }
            Some(Slash::StopTask(task)) => match self.front.send(Command::StopTask { task }, &mut self.screen).await {
                Ok(_) => {}
                Err(error) => self.fail(&error.into()),
            },
            Some(Slash::Tasks) => {
                let tasks = self.front.session().snapshot().tasks;
                tasks.iter().for_each(|task| self.screen.line(Tone::Plain, &task_line(task)));
                if tasks.is_empty() {
                    self.screen.line(Tone::Faint, "no task of a subagent waits or runs");
                }
            }
            Some(Slash::Stop) => self.screen.line(Tone::Faint, "nothing runs, so there is nothing to stop"),
            Some(Slash::New) => self.new_session().await,
            Some(Slash::Context) => match self.front.session().context().await {
                Ok(Some(context)) => {
                    let shown = context::shown(&context, self.console);
                    self.screen.line(Tone::Plain, shown.trim_end());
                }
                Ok(None) => {
                    if let Ok(status) = self.front.session().status().await {
                        let line = status::line(&status);
                        self.screen.line(Tone::Faint, &format!("the conversation is empty, and its prompt and tools are counted with the first message; {line}"));
                    }
                }
                Err(problem) => self.fail(&problem.into()),
            },
            Some(Slash::Summary(number)) => self.show_summaries(number).await,
            Some(Slash::Compress { preview: false, focus }) => self.compress(focus).await,
            Some(Slash::Compress { preview: true, focus }) => self.preview(focus).await,
            Some(Slash::Retry) => self.retry().await,
            Some(Slash::Rewind { turns }) => self.rewind(turns).await,
            Some(Slash::Copy) => self.copy().await,
            Some(Slash::Title(title)) => self.title(title).await,
            Some(Slash::Export(file)) => self.export(file).await,
            Some(Slash::Resume(Some(name))) => self.resume(name).await,
            Some(Slash::Resume(None)) => self.choose_session().await,
            Some(Slash::Tools) => self.show_tools().await,
            Some(Slash::Skills) => self.show_skills().await,
            Some(Slash::Mcp) => self.show_servers().await,
            Some(Slash::Plugins) => self.show_plugins().await,
            Some(Slash::Memory) => self.show_memory().await,
            Some(Slash::Undo { turns, on_conflict }) => self.undo(turns, on_conflict).await,
            Some(Slash::Diff { turns }) => self.diff(turns).await,
            Some(Slash::Branch) => self.branch().await,
            Some(Slash::Model(Some(model))) => self.switch_model(model).await,
            Some(Slash::Engine(Some(engine))) => {
                if self.switch(Command::ChooseEngine { engine: engine.clone() }).await {
                    self.chosen.engine = Some(engine);
                }
            }
            Some(Slash::Think(think)) => self.think(think).await,
            Some(Slash::Mode(Some(mode))) => self.choose_mode(mode).await,
            Some(Slash::Mode(None)) => {
                let mode = self.mode_now().await;
                self.show_mode(mode);
            }
            Some(Slash::Model(None)) => self.choose_model().await,
            Some(Slash::Engine(None)) => self.show_status().await,
            Some(Slash::Usage) => self.show_usage().await,
            Some(wrong @ (Slash::Misused { .. } | Slash::Unknown { .. })) => {
                self.console.warning(&wrong.mistake().unwrap_or_default());
            }
        }
        Next::Continue
    }

    /// Runs a command that Ctrl-C stops.
    async fn run(&mut self, command: Command) -> Result<EventKind, CommandError> {
        let _during = self.ctrl_c.stops_the_turn();
        let lines = match &self.live {
            Some(live) => Typed::drawn(live),
            None if self.at_terminal => Typed::silent(),
            None => Typed::none(),
        };
        if let Some(live) = &self.live {
            live.ui().set_busy(true);
        }
        let ended = self.front.run(command, &mut self.screen, self.person.as_ref(), self.ctrl_c.switch(), lines).await;
        if let Some(live) = &self.live {
            live.ui().set_busy(false);
        }
        ended
    }

    async fn turn(&mut self, text: &str) {
        let attached = self.attached(text).await;
        self.turn_with(text, attached).await;
    }

    async fn turn_with(&mut self, text: &str, attached: Vec<Part>) {
        self.say(Command::Say(UserMessage { attached, ..text.into() }), text).await;
    }

    /// Sends a message, which begins with this text of the user.
    async fn say(&mut self, message: Command, text: &str) {
        let before = self.front.session().status().await.map_or(0, |status| status.messages);
        let ended = self.run(message).await;
        (self.failed, self.unsent) = (None, None);
        let status = match ended {
            Ok(EventKind::TurnEnded { end, status, .. }) => {
                match end {
                    TurnEnd::Answered { .. } => {}
                    // The reply ends with a mark.
                    TurnEnd::Cut { .. } => {
                        self.failed = Some(Kind::Cut);
                        self.screen.line(Tone::Warning, "the answer is not complete; \"go on\" asks for the rest");
                    }
                    TurnEnd::Interrupted => {
                        self.screen.line(Tone::Faint, "stopped");
                        // The terminal drops what was typed before Ctrl-C as well.
                        if !self.front.is_replaced() {
                            self.show_unsent();
                        }
                    }
                    // A line before the summary has already named the exhausted budget.
                    TurnEnd::OutOfBudget { summary: Some(_), .. } => self.failed = Some(Kind::Budget),
                    TurnEnd::OutOfBudget { steps, setting, summary: None } => {
                        self.fail(&oneshot::out_of_budget(steps, &setting, false));
                    }
                    TurnEnd::Failed { problem } => {
                        self.unsent = (status.messages == before).then(|| text.to_owned());
                        self.fail(&problem.into());
                        if self.live.is_some() {
                            // More than the message is stored: replies with the results of their calls.
                            let way = match status.messages > before + 1 {
                                true => {
                                    "\"continue\" goes on from here and keeps everything; /retry begins the turn anew, and its changes of files stay"
                                }
                                false => "/retry sends the message again",
                            };
                            self.screen.line(Tone::Faint, way);
                        }
                    }
                }
                status
            }
            Ok(_) => return,
            Err(error) => return self.fail(&error.into()),
        };
        // A terminal that is drawn has it below the prompt.
        if self.live.is_none() {
            self.screen.line(Tone::Faint, &status::line(&status));
        }
    }

    /// Shows the status below the prompt.
    async fn show_status_below(&mut self) {
        if let Ok(status) = self.front.session().status().await {
            self.screen.status(status);
        }
    }

    /// Shows the lines that were typed and are not sent any more.
    fn show_unsent(&mut self) {
        while let Some(line) = self.front.next_typed() {
            self.screen.line(Tone::Faint, &format!("not sent: {}", text::line(&line)));
        }
    }

    async fn compress(&mut self, focus: Option<String>) {
        match self.run(Command::Compress { focus, preview: false }).await {
            Ok(EventKind::CompressionEnded { end, status }) => match end {
                CompressionEnd::Done { compression: Compression::Adopted } => {
                    self.screen.line(Tone::Faint, &status::line(&status));
                }
                CompressionEnd::Done { compression } => {
                    self.screen.line(Tone::Faint, &compression_result(compression));
                }
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
                self.screen.line(Tone::Faint, &compression_result(compression));
            }
            Ok(EventKind::CompressionEnded { end: CompressionEnd::Failed { problem }, .. }) => {
                self.fail(&problem.into());
            }
            Ok(_) => {}
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Removes the newest turns from the conversation.
    async fn rewind(&mut self, turns: usize) {
        let Some(to) = self.message_of_user(turns, "rewind").await else { return };
        match self.front.send(Command::Rewind { to: to.id }, &mut self.screen).await {
            Ok(_) => {
                let message = text::line(to.told().lines().next().unwrap_or_default());
                self.screen.line(Tone::Faint, &format!("removed `{message}` and everything after it"));
                self.show_status().await;
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// The user's message that begins the last `turns` turns. Without one, the user sees why.
    async fn message_of_user(&mut self, turns: usize, deed: &str) -> Option<Message> {
        let messages = self.messages(deed).await?;
        let of_user: Vec<Message> = messages.into_iter().filter(|message| message.role == Role::User).collect();
        let known = of_user.len();
        let found = of_user.into_iter().rev().nth(turns - 1);
        if found.is_none() {
            let known = text::counted(known as u64, "turn");
            self.console.warning(&format!("the conversation has only {known}, so nothing was rewound"));
        }
        found
    }

    /// All messages of the conversation. Without any, the user sees why nothing happens.
    async fn messages(&mut self, deed: &str) -> Option<Vec<Message>> {
        let Some(session) = self.front.session().session() else {
            self.console.warning(&format!("the conversation is empty, so there is nothing to {deed}"));
            return None;
        };
        let read = async { Ok(self.desk.store(None)?.conversation(&session).await?) };
        let read = read.await;
        self.done(read)
    }

    /// Does something that blocks, and reports its failure.
    async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Option<T> {
        let done = tokio::task::spawn_blocking(work).await.ok()?;
        self.done(done)
    }

    /// What was done, or nothing once its failure is reported.
    fn done<T>(&mut self, done: Result<T, Failure>) -> Option<T> {
        done.inspect_err(|failure| self.fail(failure)).ok()
    }

    /// Restores the files that the newest turns changed.
    async fn undo(&mut self, turns: usize, on_conflict: OnConflict) {
        if self.front.session().session().is_none() {
            self.console.warning("the conversation is empty, so there is nothing to undo");
            return;
        }
        let turns = Turns::Last(turns);
        match self.front.send(Command::Undo { turns, on_conflict }, &mut self.screen).await {
            Ok(Accepted { undone: Some(undo), .. }) => {
                for line in undo::lines(&undo) {
                    self.screen.line(Tone::Plain, &line);
                }
            }
            Ok(_) => {}
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Shows what the newest turns changed in files.
    async fn diff(&mut self, turns: usize) {
        let Some(session) = self.front.session().session() else {
            self.console.warning("the conversation is empty, so no file has changed");
            return;
        };
        let setup = self.desk.setup().clone();
        let read = move || setup.diff(&session, turns).map_err(|error| undo::failed_diff(&error));
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(text)) => self.screen.line(Tone::Plain, undo::painted(&text, self.console).trim_end()),
            Ok(Err(failure)) => self.fail(&failure),
            Err(_) => {}
        }
    }

    /// Continues in a copy of the conversation.
    async fn branch(&mut self) {
        let child = match self.front.send(Command::Branch { through: None }, &mut self.screen).await {
            Ok(Accepted { child: Some(child), .. }) => child,
            Ok(Accepted { child: None, .. }) => return,
            Err(error) => return self.fail(&error.into()),
        };
        let before = self.front.session().session();
        let begin = Beginning::Resume { id: child.to_string(), branch: false };
        match self.desk.session(&self.request.beginning(begin)).await {
            Ok(Opened { session, .. }) => {
                self.follow(session).await;
                let before = before.map(|before| format!("; `hermes --resume {before}` resumes the original"));
                let before = before.unwrap_or_default();
                self.screen.line(Tone::Faint, &format!("continuing in a copy, session {child}{before}"));
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Switches to another model or engine. Returns whether that worked.
    async fn switch(&mut self, command: Command) -> bool {
        let switched = self.front.send(command, &mut self.screen).await;
        match &switched {
            Ok(_) => self.show_status().await,
            Err(error) => self.fail(&error.clone().into()),
        }
        switched.is_ok()
    }

    async fn mode_now(&self) -> Mode {
        self.front.session().status().await.map(|status| status.mode).unwrap_or_default()
    }

    /// Switches what Hermes asks about.
    async fn choose_mode(&mut self, mode: Mode) {
        match self.front.send(Command::ChooseMode { mode }, &mut self.screen).await {
            Ok(_) => self.show_mode(mode),
            Err(error) => self.fail(&error.into()),
        }
    }

    fn show_mode(&mut self, mode: Mode) {
        self.screen.line(Tone::Faint, &format!("mode {mode}: {}", mode.meaning()));
    }

    /// Continues in another session, in the same mode.
    async fn follow(&mut self, session: SessionHandle) {
        let mode = self.mode_now().await;
        self.close().await;
        self.provider = None;
        self.front.follow(session);
        if mode != self.mode_now().await
            && let Err(error) = self.front.send(Command::ChooseMode { mode }, &mut self.screen).await
        {
            self.fail(&error.into());
        }
    }

    /// Lets the model think more or less, or shows its reasoning.
    async fn think(&mut self, think: Think) {
        match think {
            Think::Choose(effort) => {
                if let Err(error) = self.front.send(Command::ChooseEffort { effort }, &mut self.screen).await {
                    return self.fail(&error.into());
                }
                self.effort = Some(effort);
            }
            Think::Show(shown) => self.screen.show_reasoning(shown),
            Think::Tell => {}
        }
        let Ok(status) = self.front.session().status().await else { return };
        let effort = status.effort.map_or_else(|| "the provider's default".to_owned(), |effort| effort.to_string());
        let shown = if self.screen.shows_reasoning() { "shown" } else { "hidden" };
        self.screen.line(Tone::Faint, &format!("effort: {effort} · reasoning is {shown}"));
    }

    async fn show_status(&mut self) {
        if let Ok(status) = self.front.session().status().await {
            self.screen.line(Tone::Faint, &status::line(&status));
        }
    }

    async fn show_usage(&mut self) {
        let Some(session) = self.front.session().session() else {
            self.screen.line(Tone::Faint, "the conversation is empty, so it has used nothing");
            return;
        };
        let read = async { Ok::<_, AppError>(self.desk.store(None)?.usage(0, Some(&session)).await?) };
        match read.await {
            Ok(rows) => {
                let shown = spending::of_session(&rows, &self.desk.setup().prices().0.as_of(), self.console);
                self.screen.line(Tone::Plain, shown.trim_end());
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    async fn new_session(&mut self) {
        let request = SessionRequest { model: self.chosen.clone(), ..self.request.beginning(Beginning::New) };
        match self.desk.session(&request).await {
            Ok(Opened { session, .. }) => {
                let provider = self.provider.take();
                self.follow(session).await;
                self.provider = provider;
                if let Some(effort) = self.effort
                    && let Err(error) = self.front.send(Command::ChooseEffort { effort }, &mut self.screen).await
                {
                    self.fail(&error.into());
                }
                self.ran.clear();
                self.screen.line(Tone::Faint, "new conversation");
            }
            Err(error) => self.fail(&error.into()),
        }
    }

    /// The session, if the user can come back to it: one without messages is gone when it closes.
    async fn session_with_messages(&self) -> Option<SessionId> {
        let messages = self.front.session().status().await.map_or(0, |status| status.messages);
        self.front.session().session().filter(|_| messages > 0)
    }

    /// Closes the session, and shows the notices of plugins meanwhile.
    async fn close(&mut self) {
        // An error only says that the session has already ended.
        let _ = self.front.run(Command::Close, &mut self.screen, None, self.ctrl_c.switch(), Typed::none()).await;
    }

    fn fail(&mut self, failure: &Failure) {
        self.console.report(failure);
        self.failed = Some(failure.kind);
    }

    async fn leave(mut self, at_terminal: bool) {
        self.show_unsent();
        if let Some(session) = self.session_with_messages().await.filter(|_| at_terminal) {
            self.console.note(&format!("resume this session with `hermes --resume {session}`"));
        }
        self.close().await;
    }
}
