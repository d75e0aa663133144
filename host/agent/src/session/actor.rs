//! The task that owns a session and handles its commands, also during a turn.

use std::time::Duration;

use hermes_protocol::{Accepted, Command, CommandError, CompressionEnd, EventKind, Mode, Problem, Status, UserMessage};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::front::Front;
use crate::host_source::Choice;
use crate::offer::Offer;
use crate::session::core::Core;
use crate::skills::SkillCommands;
use crate::turn::Said;

/// The channel for the reply to a command.
pub(super) type Reply = oneshot::Sender<Result<Accepted, CommandError>>;

/// A message to the task.
pub(super) enum Message {
    Command(Command, Reply),
    Status(oneshot::Sender<Status>),
    Context(oneshot::Sender<Result<Option<Context>, Problem>>),
    Offer(oneshot::Sender<Result<Offer, Problem>>),
    Skills(oneshot::Sender<Result<SkillCommands, Problem>>),
}

/// The task of a session.
pub(super) struct Actor {
    core: Core,
    inbox: Inbox,
    idle_after: Duration,
}

/// The queue of commands, and the commands that a busy session can handle.
struct Inbox {
    messages: mpsc::Receiver<Message>,
    front: Front,
    /// Reply channels of `close` commands; the session closes when the running work has ended.
    closing: Option<Vec<Reply>>,
    status: Status,
}

impl Actor {
    pub(super) fn new(core: Core, messages: mpsc::Receiver<Message>, front: Front, idle_after: Duration) -> Self {
        let inbox = Inbox { messages, front, closing: None, status: core.status() };
        Self { core, inbox, idle_after }
    }

    /// Runs until the session is closed, or until the last handle is dropped.
    pub(super) async fn run(mut self) {
        // Published even if this task panics, so that front ends do not wait forever.
        let _ended = Ended(self.inbox.front.clone());
        while self.inbox.closing.is_none() {
            let message = tokio::select! {
                biased;
                message = tokio::time::timeout(self.idle_after, self.inbox.messages.recv()) => message,
                never = self.core.keep_warm() => match never {},
            };
            match message {
                Ok(Some(message)) => self.take(message).await,
                Ok(None) => break,
                Err(_) => {
                    if self.core.can_idle() {
                        // The next message interrupts it.
                        tokio::select! {
                            biased;
                            message = self.inbox.messages.recv() => match message {
                                Some(message) => {
                                    self.take(message).await;
                                    continue;
                                }
                                None => break,
                            },
                            () = self.core.upkeep() => {}
                        }
                        self.core.make_idle(Duration::ZERO).await;
                        if !self.inbox.front.feed.has_readers() {
                            self.inbox.front.feed.forget();
                        }
                    }
                }
            }
        }
        let Self { core, mut inbox, .. } = self;
        inbox.attend(&CancellationToken::new(), "close", core.close()).await;
        // The handles must report a closed session before the event is published.
        inbox.messages.close();
        inbox.front.feed.publish(EventKind::Ended);
        for reply in inbox.closing.into_iter().flatten() {
            answer(reply, Ok(Accepted::default()));
        }
    }

    async fn take(&mut self, message: Message) {
        let (command, reply) = match message {
            Message::Command(command, reply) => (command, reply),
            Message::Status(reply) => return drop(reply.send(self.core.status())),
            Message::Context(reply) => return drop(reply.send(self.core.context().await)),
            Message::Offer(reply) => {
                self.inbox.status = self.core.status();
                let offer = self.inbox.attend(&CancellationToken::new(), "offer", self.core.offer()).await;
                return drop(reply.send(offer));
            }
            Message::Skills(reply) => return drop(reply.send(self.core.skills().await)),
        };
        let name = command.name();
        let (core, inbox) = (&mut self.core, &mut self.inbox);
        inbox.status = core.status();
        let stop = CancellationToken::new();
        match command {
            Command::Say(said) if said.text.trim().is_empty() && said.attached.is_empty() => {
                answer(reply, Err(CommandError::EmptyMessage));
            }
            Command::Say(UserMessage { reply_to: Some(message), .. }) if !core.has_message(message) => {
                answer(reply, Err(CommandError::UnknownMessage { message }));
            }
            Command::UseSkill { text, .. } if text.trim().is_empty() => answer(reply, Err(CommandError::EmptyMessage)),
            Command::Say(_) | Command::UseSkill { .. } => {
                answer(reply, Ok(Accepted::default()));
                inbox.front.steering.open();
                let said = match command {
                    Command::UseSkill { skill, text } => Said { message: text.into(), skill: Some(skill) },
                    Command::Say(message) => Said { message, skill: None },
                    _ => return,
                };
                let end = inbox.attend(&stop, name, core.turn(said, &stop)).await;
                let (status, unsent) = (core.status(), inbox.front.steering.close());
                inbox.front.feed.publish(EventKind::TurnEnded { end, status, unsent });
                inbox.front.feed.set_turn(None);
            }
            Command::Compress { focus, preview: false } => {
                answer(reply, Ok(Accepted::default()));
                let end = match inbox.attend(&stop, name, core.compress(focus.as_deref(), &stop)).await {
                    Ok(compression) => CompressionEnd::Done { compression },
                    Err(problem) => CompressionEnd::Failed { problem },
                };
                let status = core.status();
                inbox.front.feed.publish(EventKind::CompressionEnded { end, status });
            }
            Command::Compress { focus, preview: true } => {
                answer(reply, Ok(Accepted::default()));
                let previewed = inbox.attend(&stop, name, core.preview(focus.as_deref())).await;
                let status = core.status();
                let kind = match previewed {
                    Ok(Ok(outlook)) => EventKind::CompressionPreviewed { outlook },
                    Ok(Err(compression)) => {
                        EventKind::CompressionEnded { end: CompressionEnd::Done { compression }, status }
                    }
                    Err(problem) => EventKind::CompressionEnded { end: CompressionEnd::Failed { problem }, status },
                };
                inbox.front.feed.publish(kind);
            }
            Command::ChooseModel { model, provider } => {
                let choice = Choice { model: Some(model), provider, ..Choice::default() };
                let chosen = inbox.attend(&stop, name, core.choose(choice)).await;
                answer(reply, chosen.map(|()| Accepted::default()));
            }
            Command::ChooseEngine { engine } => {
                let choice = Choice { engine: Some(engine), ..Choice::default() };
                let chosen = inbox.attend(&stop, name, core.choose(choice)).await;
                answer(reply, chosen.map(|()| Accepted::default()));
            }
            Command::ChooseEffort { effort } => {
                core.choose_effort(effort);
                answer(reply, Ok(Accepted::default()));
            }
            Command::Rewind { to } => {
                let rewound = inbox.attend(&stop, name, core.rewind(to)).await;
                answer(reply, rewound.map(|()| Accepted::default()));
            }
            Command::Branch { through } => {
                let branched = inbox.attend(&stop, name, core.branch(through)).await;
                answer(reply, branched.map(|child| Accepted { child: Some(child), ..Accepted::default() }));
            }
            Command::Undo { turns, on_conflict } => {
                let undone = inbox.attend(&stop, name, core.undo(turns, on_conflict)).await;
                let accepted = |undo| Accepted { undone: Some(Box::new(undo)), ..Accepted::default() };
                answer(reply, undone.map(accepted));
            }
            Command::RebuildPrompt => {
                let rebuilt = inbox.attend(&stop, name, core.rebuild_prompt()).await;
                answer(reply, rebuilt.map(|()| Accepted::default()));
            }
            Command::ChooseMode { mode } => {
                inbox.choose_mode(mode);
                answer(reply, Ok(Accepted::default()));
            }
            Command::Stop | Command::Steer { .. } => answer(reply, Err(CommandError::NothingRuns)),
            Command::StopTask { task } => answer(reply, inbox.stop_task(task)),
            Command::Decide { .. } | Command::Answer { .. } | Command::Close => inbox.answer_or_close(command, reply),
        }
    }
}

impl Inbox {
    /// Runs work, and handles the commands that arrive meanwhile.
    async fn attend<T>(&mut self, stop: &CancellationToken, busy_with: &str, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut orphaned = false;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                message = self.messages.recv(), if !orphaned => match message {
                    Some(message) => self.handle_while_busy(message, stop, busy_with),
                    None => {
                        // No handle is left to answer a question or to read an event.
                        orphaned = true;
                        stop.cancel();
                    }
                },
            }
        }
    }

    fn handle_while_busy(&mut self, message: Message, stop: &CancellationToken, busy_with: &str) {
        let busy = |command: &str| CommandError::Busy { command: command.to_owned(), busy_with: busy_with.to_owned() };
        match message {
            Message::Status(reply) => drop(reply.send(self.status.clone())),
            Message::Context(reply) => {
                let problem = Problem { what: "the context cannot be shown".into(), ..busy("context").problem() };
                drop(reply.send(Err(problem)));
            }
            Message::Offer(reply) => {
                let problem = Problem { what: "the tools cannot be shown".into(), ..busy("offer").problem() };
                drop(reply.send(Err(problem)));
            }
            Message::Skills(reply) => {
                let problem = Problem { what: "the skills cannot be listed".into(), ..busy("skills").problem() };
                drop(reply.send(Err(problem)));
            }
            Message::Command(Command::Stop, reply) => {
                let stopped =
                    if stop.is_cancelled() { Err(CommandError::NothingRuns) } else { Ok(Accepted::default()) };
                stop.cancel();
                answer(reply, stopped);
            }
            Message::Command(Command::StopTask { task }, reply) => answer(reply, self.stop_task(task)),
            Message::Command(Command::Steer { text }, reply) if text.trim().is_empty() => {
                answer(reply, Err(CommandError::EmptyMessage));
            }
            Message::Command(Command::Steer { text }, reply) => {
                let is_taken = self.front.steering.add(text);
                answer(reply, if is_taken { Ok(Accepted::default()) } else { Err(busy("steer")) });
            }
            Message::Command(Command::Close, reply) => {
                stop.cancel();
                self.closing.get_or_insert_default().push(reply);
            }
            Message::Command(Command::ChooseMode { mode }, reply) => {
                self.choose_mode(mode);
                answer(reply, Ok(Accepted::default()));
            }
            Message::Command(command @ (Command::Decide { .. } | Command::Answer { .. }), reply) => {
                self.answer_or_close(command, reply);
            }
            Message::Command(command, reply) if self.closing.is_some() => {
                tracing::debug!(command = command.name(), "refused a command to a closing session");
                answer(reply, Err(CommandError::Closed));
            }
            Message::Command(command, reply) => answer(reply, Err(busy(command.name()))),
        }
    }

    fn choose_mode(&mut self, mode: Mode) {
        self.status.mode = mode;
        self.front.choose_mode(mode);
    }

    fn stop_task(&self, task: u32) -> Result<Accepted, CommandError> {
        match self.front.tasks.stop(task) {
            true => Ok(Accepted::default()),
            false => Err(CommandError::UnknownTask { task }),
        }
    }

    fn answer_or_close(&mut self, command: Command, reply: Reply) {
        let questions = &self.front.questions;
        let done = match command {
            Command::Decide { question, decision, instead } => questions.decide(question, decision, instead),
            Command::Answer { question, text } => questions.answer(question, text),
            Command::Close => return self.closing.get_or_insert_default().push(reply),
            other => Err(CommandError::Busy { command: other.name().to_owned(), busy_with: String::new() }),
        };
        answer(reply, done.map(|()| Accepted::default()));
    }
}

/// Sends a reply. A front end that has gone does not receive it.
fn answer(reply: Reply, result: Result<Accepted, CommandError>) {
    let _ = reply.send(result);
}

/// Publishes the end of a session when its task is over.
struct Ended(Front);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.feed.publish(EventKind::Ended);
    }
}
