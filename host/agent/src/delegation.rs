//! The host's tool `delegate_task`: subagents, each with a session of its own.
//!
//! A task becomes a stored session that is a delegate of the one that called. Its agent works like any other, with the tools and
//! the rights of its parent or fewer, and the parent's model gets its last reply. The tasks run in this process, beside each
//! other up to a limit, so none outlives the parent.

mod arguments;
mod background;
mod child;
pub(crate) mod limits;
mod outcome;
mod report;
pub(crate) mod settings;
pub(crate) mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use hermes_conversation::{SessionId, ToolSchema};
use hermes_session_store::{Delegation, DelegationState, Session, SessionStore, StoreError};
use serde_json::json;

pub(crate) use background::{Reports, settle};
use limits::{Listing, ToolLimits};
use settings::DelegationSettings;
use tasks::Tasks;

use crate::approval::Approvals;
use crate::chain::ModelChain;
use crate::clock::Clock;
use crate::front::Front;
use crate::host::Host;
use crate::host_source::Choice;
use arguments::{MOST_TASKS, Wanted};
use child::Job;

/// The tool's name.
pub(crate) const NAME: &str = "delegate_task";

/// Delegates tasks of one session.
pub(crate) struct Delegate {
    parent: Arc<Parent>,
}

/// What the tasks of a session need of it.
pub(super) struct Parent {
    session: SessionId,
    workspace: PathBuf,
    home: PathBuf,
    store: Arc<dyn SessionStore>,
    clock: Clock,
    approvals: Approvals,
    settings: DelegationSettings,
    chain: Arc<ModelChain>,
    front: Front,
    /// Whether the process ends after this turn.
    one_shot: bool,
}

impl Delegate {
    /// For a session; `None` if its agent may not delegate.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub(crate) async fn of(host: &Host, session: &Session, front: &Front) -> Result<Option<Self>, StoreError> {
        let settings = host.settings.delegation.clone();
        if depth(host.store.as_ref(), session, settings.max_spawn_depth).await? >= settings.max_spawn_depth {
            return Ok(None);
        }
        let parent = Parent {
            session: session.id.clone(),
            workspace: session.workspace.clone(),
            home: host.home.clone(),
            store: Arc::clone(&host.store),
            clock: host.settings.clock,
            approvals: host.approvals.clone(),
            settings,
            chain: Arc::clone(&host.chain),
            front: front.clone(),
            one_shot: host.settings.one_shot,
        };
        Ok(Some(Self { parent: Arc::new(parent) }))
    }

    /// The tool's schema. It changes only with the configuration.
    pub(crate) fn schema(&self) -> ToolSchema {
        let DelegationSettings { models, max_iterations, max_concurrent_children, .. } = &self.parent.settings;
        let text = |description: &str| json!({"type": "string", "description": description});
        let goal = || text("What to do, complete in itself.");
        let context = || text("What they must know: paths, facts, errors, limits.");
        let same = || json!({"type": "string"});
        let mut properties = json!({
            "goal": goal(),
            "context": context(),
            "tasks": {
                "type": "array",
                "maxItems": MOST_TASKS,
                "description": format!("Instead of goal: several tasks. {max_concurrent_children} run at once."),
                "items": {"type": "object", "properties": {"goal": same(), "context": same()}, "required": ["goal"]},
            },
            "toolsets": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Tools or toolsets for them; default: yours.",
            },
            "background": {"type": "boolean", "description": "Go on at once; results come later."},
            "max_iterations": {
                "type": "integer",
                "description": format!("Requests of each, at most {max_iterations}."),
            },
        });
        if !models.is_empty() {
            properties["model"] = json!({"type": "string", "enum": models});
        }
        ToolSchema {
            name: NAME.to_owned(),
            description: "Let subagents work on tasks, each in a conversation of its own. You get only their final answers, so \
                          delegate work with much intermediate output, or independent parts side by side. They know nothing of \
                          this conversation."
                .to_owned(),
            parameters: json!({"type": "object", "properties": properties}).to_string(),
        }
    }

    /// Runs the tasks of a call with this id, and returns their results as JSON. Dropping the future stops them, unless they run
    /// in the background.
    ///
    /// # Errors
    ///
    /// The text for the model, when nothing was started.
    pub(crate) async fn call(&self, arguments: &str, call: &str, tools: &Listing) -> Result<String, String> {
        let parent = &self.parent;
        let wanted = Wanted::read(arguments, &parent.settings)?;
        let limits = match &wanted.toolsets {
            Some(names) => parent.front.limits.narrowed(names, tools)?,
            None => parent.front.limits.clone(),
        };
        let choice = self.choice(wanted.model);
        let count = wanted.tasks.len();
        // A one-shot process ends with its turn, so a result that arrives later would be lost.
        let background = wanted.background && !parent.one_shot;
        // Stops what has been started if this future is dropped.
        let stop = parent.front.tasks.stop_of_call();
        let stops = stop.clone().drop_guard();
        let (mut started, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for task in wanted.tasks {
            let stored = Delegation {
                number: 0,
                child: None,
                call: call.to_owned(),
                goal: task.goal.clone(),
                background,
                state: DelegationState::Waiting,
                report: None,
                delivered_in: None,
                started_at: parent.clock.now(),
                ended_at: None,
            };
            let number = parent.store.put_delegation(&parent.session, &stored).await;
            let number = number.map_err(|error| format!("the task was not delegated: {error}"))?;
            let stop = stop.child_token();
            if !parent.front.tasks.begin(number, stop.clone()) {
                return Err("the task was not delegated: the session is being closed".to_owned());
            }
            let job = Job {
                parent: Arc::clone(parent),
                stored: Delegation { number, ..stored },
                context: task.context,
                choice: choice.clone(),
                limits: limits.clone(),
                max_iterations: wanted.max_iterations,
                stop,
            };
            numbers.push(number);
            started.push(tokio::spawn(child::run(job)));
        }
        if background {
            stops.disarm();
            let note = "The subagents work. Their results come with a later message: go on, and do not wait for them.";
            return Ok(json!({"started": numbers, "note": note}).to_string());
        }
        let mut outcomes = Vec::with_capacity(count);
        for task in started {
            outcomes.push(task.await.map_err(|error| format!("a task ended without a result: {error}"))?);
        }
        let budget = report::Budget::of(&parent.settings, parent.chain.window(), count);
        Ok(report::write(parent, &outcomes, budget).await)
    }

    /// The model for a call: the one it names, or the configured one, or the session's.
    fn choice(&self, named: Option<String>) -> Choice {
        let DelegationSettings { provider, model, .. } = &self.parent.settings;
        let of_session = self.parent.front.tasks.choice();
        match named.or_else(|| model.clone()) {
            Some(model) => Choice { model: Some(model), provider: provider.clone(), effort: None, ..of_session },
            None if provider.is_some() => {
                Choice { model: None, provider: provider.clone(), effort: None, ..of_session }
            }
            None => of_session,
        }
    }
}

/// How many delegations lead to a session; at most `most`.
async fn depth(store: &dyn SessionStore, session: &Session, most: u32) -> Result<u32, StoreError> {
    use hermes_session_store::ParentKind::Delegate;
    let mut depth = 0;
    let mut parent = session.parent.clone();
    while let Some(above) = parent.filter(|parent| parent.kind == Delegate && depth < most) {
        depth += 1;
        parent = store.session(&above.id).await?.parent;
    }
    Ok(depth)
}
