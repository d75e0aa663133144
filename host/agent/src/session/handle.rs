//! A front end's handle of a session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::SessionId;
use hermes_protocol::{Accepted, Command, CommandError, Position, Problem, Snapshot, Status};
use tokio::sync::{mpsc, oneshot};

use crate::approval::SessionMode;
use crate::context::Context;
use crate::error::AgentError;
use crate::feed::{FeedLimits, Subscription};
use crate::front::Front;
use crate::host::Host;
use crate::host_source::{Choice, HostSource};
use crate::offer::Offer;
use crate::questions::Attendance;
use crate::session::Begin;
use crate::session::actor::{Actor, Message};
use crate::session::core::Core;
use crate::skills::SkillCommands;

/// The size of the command queue. Further senders wait.
const QUEUE_SIZE: usize = 32;

/// Limits for the sessions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRules {
    /// How many past events a session keeps.
    pub feed: FeedLimits,
    /// The time without commands after which a session becomes idle.
    pub idle_after: Duration,
}

impl SessionRules {
    /// For many sessions in one process.
    pub const SHARED: Self = Self { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(120) };
    /// For the only session of a process: it never becomes idle.
    pub const SINGLE: Self = Self { feed: FeedLimits::SINGLE, idle_after: Duration::from_secs(1 << 32) };
}

/// A handle to a session. It sends commands and reads events. Clones are cheap and refer to the same session.
///
/// The session runs in its own task, which ends with [`Command::Close`] or when the last handle is dropped.
#[derive(Clone)]
pub struct SessionHandle {
    messages: mpsc::Sender<Message>,
    front: Front,
}

impl SessionHandle {
    /// Opens a session and starts its task. A new session is stored with its first message; if that message is refused, no session
    /// is left when this one closes.
    /// `chosen` is the source that builds another host when a command switches the model or the engine, and the choice
    /// from which `host` was built.
    pub async fn open(
        host: Host,
        chosen: (Arc<dyn HostSource>, Choice),
        begin: Begin,
        workspace: PathBuf,
        rules: SessionRules,
    ) -> Result<Self, AgentError> {
        let mode = SessionMode::new(&host.approvals, host.settings.sandbox.mode);
        let front = Front::new(rules.feed, mode);
        front.tell_shortfall();
        front.tasks.connect(host.settings.delegation.max_concurrent_children, &chosen);
        let core = Core::begin(host, chosen, begin, workspace, front.clone()).await?;
        Ok(Self::start(core, front, rules.idle_after))
    }

    /// Opens a new session whose agent works on a task of another session's agent. It never becomes idle.
    pub(crate) async fn delegate(
        host: Host,
        chosen: (Arc<dyn HostSource>, Choice),
        parent: SessionId,
        workspace: PathBuf,
        front: Front,
    ) -> Result<Self, AgentError> {
        front.tasks.connect(host.settings.delegation.max_concurrent_children, &chosen);
        let core = Core::delegate(host, chosen, parent, workspace, front.clone()).await?;
        Ok(Self::start(core, front, SessionRules::SINGLE.idle_after))
    }

    fn start(core: Core, front: Front, idle_after: Duration) -> Self {
        let (messages, inbox) = mpsc::channel(QUEUE_SIZE);
        tokio::spawn(Actor::new(core, inbox, front.clone(), idle_after).run());
        Self { messages, front }
    }

    /// Sends a command and waits until it is accepted or refused.
    pub async fn send(&self, command: Command) -> Result<Accepted, CommandError> {
        let (reply, answer) = oneshot::channel();
        let closed = |_| CommandError::Closed;
        self.messages.send(Message::Command(command, reply)).await.map_err(|_| CommandError::Closed)?;
        answer.await.map_err(closed)?
    }

    /// Events after a position; a snapshot comes first if the position is missing, too old, or of another epoch.
    pub fn subscribe(&self, after: Option<&Position>) -> Subscription {
        self.front.feed.subscribe(after)
    }

    /// The position before the first event. A subscription from here gets all buffered events.
    pub fn beginning(&self) -> Position {
        self.front.feed.beginning()
    }

    /// The session's state after all events so far.
    pub fn snapshot(&self) -> Snapshot {
        self.front.feed.snapshot()
    }

    /// The session's id, once it is stored; `None` again if it was closed without a message.
    pub fn session(&self) -> Option<SessionId> {
        self.front.feed.session()
    }

    /// Allows the session to ask questions until the returned guard is dropped.
    pub fn attend(&self) -> Attendance {
        self.front.questions.attend()
    }

    /// Asks the user a text question, for tools of the application; `None` if no front end can answer. With choices, only these
    /// are answers.
    pub async fn ask(&self, text: impl Into<String>, choices: Vec<String>) -> Option<String> {
        self.front.questions.text(text.into(), choices, false).await
    }

    /// The numbers of a status line. During a turn they are those of its start.
    pub async fn status(&self) -> Result<Status, CommandError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Status(reply)).await.map_err(|_| CommandError::Closed)?;
        answer.await.map_err(|_| CommandError::Closed)
    }

    /// What fills the window; `None` before the first message. Refused during a turn.
    pub async fn context(&self) -> Result<Option<Context>, Problem> {
        let (reply, answer) = oneshot::channel();
        let closed = || Problem { what: "the context cannot be shown".into(), ..CommandError::Closed.problem() };
        self.messages.send(Message::Context(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// What the model can work with: before the first message, what it will have. Refused during a turn.
    pub async fn offer(&self) -> Result<Offer, Problem> {
        let (reply, answer) = oneshot::channel();
        let closed = || Problem { what: "the tools cannot be shown".into(), ..CommandError::Closed.problem() };
        self.messages.send(Message::Offer(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// The skills that the user can call in it, and why the others cannot be called. Refused during a turn.
    pub async fn skills(&self) -> Result<SkillCommands, Problem> {
        let (reply, answer) = oneshot::channel();
        let closed = || Problem { what: "the skills cannot be listed".into(), ..CommandError::Closed.problem() };
        self.messages.send(Message::Skills(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Whether the session was closed.
    pub fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }
}
