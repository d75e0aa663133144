//! What a front end holds of a session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::SessionId;
use tokio::sync::{mpsc, oneshot};

use crate::command::{Accepted, Command, CommandError};
use crate::context::Context;
use crate::error::AgentError;
use crate::event::Status;
use crate::feed::{FeedLimits, Subscription};
use crate::front::Front;
use crate::host::Host;
use crate::host_source::{Choice, HostSource};
use crate::id::Position;
use crate::problem::Problem;
use crate::questions::Attendance;
use crate::session::Begin;
use crate::session::actor::{Actor, Message};
use crate::session::core::Core;
use crate::snapshot::Snapshot;

/// Commands that may wait. A front end that sends more waits itself.
const WAITING: usize = 32;

/// What the sessions of a process obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRules {
    /// How much of the past front ends can read again.
    pub feed: FeedLimits,
    /// How long a session without commands stays awake.
    pub idle_after: Duration,
}

impl SessionRules {
    /// For many sessions in one process.
    pub const SHARED: Self = Self { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(120) };
    /// For the only session of a process: it never rests.
    pub const SINGLE: Self = Self { feed: FeedLimits::SINGLE, idle_after: Duration::from_secs(1 << 32) };
}

/// A session: commands go in, events come out. Clones are cheap and mean the same session.
///
/// The session lives in a task of its own. It ends with [`Command::Close`], or when the last handle is dropped.
#[derive(Clone)]
pub struct SessionHandle {
    messages: mpsc::Sender<Message>,
    front: Front,
}

impl SessionHandle {
    /// Opens a session and starts its task. A new session leaves no trace before its first message.
    /// `chosen` builds another host when a command chooses a model or an engine, and says what `host` was built from.
    pub async fn open(
        host: Host,
        chosen: (Arc<dyn HostSource>, Choice),
        begin: Begin,
        workspace: PathBuf,
        rules: SessionRules,
    ) -> Result<Self, AgentError> {
        let front = Front::new(rules.feed);
        let core = Core::begin(host, chosen, begin, workspace, front.clone()).await?;
        let (messages, inbox) = mpsc::channel(WAITING);
        tokio::spawn(Actor::new(core, inbox, front.clone(), rules.idle_after).run());
        Ok(Self { messages, front })
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

    /// Where the events begin: a subscription from here gets all that are still kept.
    pub fn beginning(&self) -> Position {
        self.front.feed.beginning()
    }

    /// What the events so far have led to.
    pub fn snapshot(&self) -> Snapshot {
        self.front.feed.snapshot()
    }

    /// The session's id, once it is stored.
    pub fn session(&self) -> Option<SessionId> {
        self.front.feed.session()
    }

    /// As long as this lives, the session may ask questions: a front end is there to answer.
    pub fn attend(&self) -> Attendance {
        self.front.questions.attend()
    }

    /// Asks the user something in words, for tools of the application; none where no front end can answer.
    pub async fn ask(&self, text: impl Into<String>, choices: Vec<String>) -> Option<String> {
        self.front.questions.text(text.into(), choices).await
    }

    /// The numbers of a status line; while a turn runs, those of its beginning.
    pub async fn status(&self) -> Result<Status, CommandError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Status(reply)).await.map_err(|_| CommandError::Closed)?;
        answer.await.map_err(|_| CommandError::Closed)
    }

    /// What fills the window; none before anything was said. Refused while a turn runs.
    pub async fn context(&self) -> Result<Option<Context>, Problem> {
        let (reply, answer) = oneshot::channel();
        let closed = || Problem { what: "the context cannot be shown".into(), ..CommandError::Closed.problem() };
        self.messages.send(Message::Context(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Whether the session was closed.
    pub fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }
}
