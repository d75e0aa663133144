//! One delegated task: it waits for its turn, works in a session of its own, and ends with an outcome in any case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use hermes_conversation::{SessionId, one_line_within};
use hermes_prompt::PlatformHint;
use hermes_protocol::{Command, EventKind, TaskStatus, TurnEnd};
use hermes_session_store::{Delegation, DelegationState};
use tokio_util::sync::CancellationToken;

use super::outcome::{INTERRUPTED, Outcome};
use super::{Parent, ToolLimits, report};
use crate::front::Front;
use crate::host_source::Choice;
use crate::one_command::{CommandEnd, CutOff};
use crate::session::SessionHandle;

/// The front end of delegated sessions, for the store and the prompt.
const PLATFORM: &str = "subagent";
/// The most bytes of a goal in a line.
const SHOWN_GOAL: usize = 80;
/// How long the session of a task may take to close.
const PATIENCE: Duration = Duration::from_secs(10);
/// What follows the task in the message to the subagent.
const INSTRUCTIONS: &str = "[You are a subagent: another agent delegated this task to you. You do not see its conversation, and nobody \
                            answers questions. Your last reply is all that the other agent gets. Say in it what you did and \
                            found, which files you changed, and what is left or uncertain, as briefly as the task allows.]";

/// A task that was started.
pub(super) struct Job {
    pub(super) parent: Arc<Parent>,
    pub(super) stored: Delegation,
    pub(super) context: Option<String>,
    pub(super) choice: Choice,
    pub(super) limits: ToolLimits,
    pub(super) max_iterations: u32,
    pub(super) stop: CancellationToken,
}

/// How the work of a session ended.
struct Ended {
    state: DelegationState,
    text: String,
}

impl Ended {
    fn failed(why: impl ToString) -> Self {
        Self { state: DelegationState::Failed, text: why.to_string() }
    }

    fn cut(state: DelegationState) -> Self {
        let text = match state {
            DelegationState::TimedOut => "it took longer than delegation.child_timeout_seconds",
            DelegationState::Interrupted => INTERRUPTED,
            _ => "the user stopped it",
        };
        Self { state, text: text.to_owned() }
    }
}

impl From<TurnEnd> for Ended {
    fn from(end: TurnEnd) -> Self {
        let (state, text) = match end {
            TurnEnd::Answered { text } => (DelegationState::Done, text),
            TurnEnd::Cut { text, .. } => (DelegationState::Cut, text),
            TurnEnd::OutOfBudget { steps, summary, .. } => {
                let without = || format!("it made {steps} requests, which is its limit, and gave no summary");
                (DelegationState::OutOfBudget, summary.unwrap_or_else(without))
            }
            TurnEnd::Interrupted => return Self::cut(DelegationState::Stopped),
            TurnEnd::Failed { problem } => (DelegationState::Failed, problem.to_string()),
        };
        Self { state, text }
    }
}

/// Runs a task to its end. Boxed, because a session can run tasks, and each is a session.
pub(super) fn run(job: Job) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let tasks = Arc::clone(&job.parent.front.tasks);
        let mut line = Line::begin(&job);
        let permit = tokio::select! {
            biased;
            () = job.stop.cancelled() => None,
            permit = tasks.permit() => permit,
        };
        let ended = match permit {
            Some(_) => job.work(&mut line).await,
            None => Ended::cut(DelegationState::Stopped),
        };
        let is_closed = job.stored.background && tasks.is_closing() && ended.state == DelegationState::Stopped;
        line.end(if is_closed { Ended::cut(DelegationState::Interrupted) } else { ended }).await
    })
}

impl Job {
    /// Opens the session and runs its turn.
    async fn work(&self, line: &mut Line<'_>) -> Ended {
        line.begun = Instant::now();
        let handle = match self.open(line).await {
            Ok(handle) => handle,
            Err(ended) => return ended,
        };
        let ended = self.turn(&handle, line).await;
        let closed = tokio::time::timeout(PATIENCE, handle.send(Command::Close)).await;
        if closed.is_err() {
            tracing::warn!(task = self.stored.number, "the session of a task was not closed in time");
        }
        ended
    }

    async fn open(&self, line: &mut Line<'_>) -> Result<SessionHandle, Ended> {
        let parent = &self.parent;
        let source = parent.front.tasks.source().ok_or_else(|| Ended::failed("the session cannot delegate"))?;
        let mut host = source.host(&self.choice).await.map_err(Ended::failed)?;
        // Never more rights than the parent has.
        host.approvals = parent.approvals.clone();
        host.settings.platform = PLATFORM.to_owned();
        host.settings.prompt.platform_hint = PlatformHint::default();
        host.settings.one_shot = true;
        host.settings.delegation.max_iterations = self.max_iterations;
        let front = parent.front.for_delegate(&format!("subagent {}", self.stored.number), self.limits.clone());
        line.front = Some(front.clone());
        let chosen = (source, self.choice.clone());
        let (session, workspace) = (parent.session.clone(), parent.workspace.clone());
        let handle = SessionHandle::delegate(host, chosen, session, workspace, front).await.map_err(Ended::failed)?;
        line.opened(handle.session()).await;
        Ok(handle)
    }

    async fn turn(&self, handle: &SessionHandle, line: &mut Line<'_>) -> Ended {
        if self.stop.is_cancelled() {
            return Ended::cut(DelegationState::Stopped);
        }
        let mut events = handle.subscribe(Some(&handle.beginning()));
        let (say, most) = (Command::Say(self.message().into()), self.parent.settings.child_timeout);
        let ended = handle.carry_out(say, &mut events, &self.stop, most, |event| line.event(&event.kind)).await;
        match ended {
            Err(refused) => Ended::failed(refused),
            Ok(CommandEnd { cut: Some(CutOff::Stopped), .. }) => Ended::cut(DelegationState::Stopped),
            Ok(CommandEnd { cut: Some(CutOff::TimedOut), .. }) => Ended::cut(DelegationState::TimedOut),
            Ok(CommandEnd { event: Some(EventKind::TurnEnded { end, .. }), .. }) => end.into(),
            Ok(_) => Ended::failed("its session was closed"),
        }
    }

    fn message(&self) -> String {
        let context = self.context.as_ref().map(|context| format!("Context:\n{context}"));
        let parts = [Some(self.stored.goal.clone()), context, Some(INSTRUCTIONS.to_owned())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// The line of a task on the screen, and its row in the store. Ends the task when it is dropped.
struct Line<'j> {
    job: &'j Job,
    status: TaskStatus,
    begun: Instant,
    /// The front of its session.
    front: Option<Front>,
}

impl<'j> Line<'j> {
    fn begin(job: &'j Job) -> Self {
        let Delegation { number, goal, background, state, .. } = &job.stored;
        let status = TaskStatus {
            number: *number,
            goal: one_line_within(goal, SHOWN_GOAL),
            session: None,
            state: *state,
            background: *background,
            tool: None,
            requests: 0,
            tokens: 0,
            cost: None,
            elapsed_ms: 0,
            why: None,
        };
        let line = Self { job, status, begun: Instant::now(), front: None };
        line.publish();
        line
    }

    fn publish(&self) {
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let task = TaskStatus { elapsed_ms, ..self.status.clone() };
        self.job.parent.front.feed.publish(EventKind::TaskChanged { task });
    }

    async fn opened(&mut self, session: Option<SessionId>) {
        self.status.state = DelegationState::Running;
        self.status.session = session;
        self.publish();
        self.store(None, None).await;
    }

    fn event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { name, .. } => self.status.tool = Some(name.clone()),
            EventKind::Used { usage, .. } => {
                self.status.requests += 1;
                self.status.tokens += u64::from(usage.input) + u64::from(usage.output);
            }
            EventKind::Notice { text, .. } => {
                let text = format!("subagent {}: {text}", self.status.number);
                return self.job.parent.front.feed.notice(text);
            }
            _ => return,
        }
        self.publish();
    }

    /// Stores and shows how the task ended.
    async fn end(mut self, ended: Ended) -> Outcome {
        let Ended { state, text } = ended;
        self.status.state = state;
        self.status.why = match state {
            DelegationState::Cut => Some(report::CUT.to_owned()),
            state => (!state.has_answer()).then(|| text.clone()),
        };
        if let Some(session) = &self.status.session
            && let Ok(session) = self.job.parent.store.session(session).await
        {
            let totals = session.totals;
            self.status.requests = totals.requests;
            self.status.tokens = totals.input + totals.output;
            self.status.cost = Some(totals.cost).filter(|cost| *cost > 0.0);
        }
        let changed = self.front.as_ref().map(|front| front.seen.changed()).unwrap_or_default();
        let outcome = Outcome { state, session: self.status.session.clone(), text, changed };
        let parent = &self.job.parent;
        let report = match self.status.background {
            true => Some(report::of_background(parent, &self.job.stored, &outcome).await),
            false => None,
        };
        let waits = report.is_some();
        self.store(Some(parent.clock.now()), report).await;
        if waits {
            parent.front.tasks.set_reports(true);
        }
        self.publish();
        outcome
    }

    async fn store(&self, ended_at: Option<u64>, report: Option<String>) {
        let TaskStatus { state, session, .. } = &self.status;
        let task = Delegation { state: *state, child: session.clone(), ended_at, report, ..self.job.stored.clone() };
        if let Err(error) = self.job.parent.store.put_delegation(&self.job.parent.session, &task).await {
            tracing::warn!(%error, task = task.number, "what became of a task is not stored");
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.job.parent.front.tasks.end(self.status.number);
    }
}
