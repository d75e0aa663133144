//! A plugin's first start, before it serves a session: without a conversation, models, files or network, and with temporary
//! storage within the limits of a session. It has a database only with the right to one. A plugin that fails here would fail in a session.

use std::sync::Arc;

use hermes_capabilities::documents::Documents;
use hermes_capabilities::sql::{Database, Quota};
use hermes_runtime::{CallError, Cause, Exports, Instance, Limit, Limits, Loaded, Recipe, Services, Tool};

use crate::storage::document_quota;

/// What a plugin offered in its rehearsal.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its exports, by the names of the contract.
    pub exports: Vec<&'static str>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// The names of its skills.
    pub skills: Vec<String>,
    /// The events that its hooks subscribe to.
    pub events: Vec<String>,
    /// Why it did not start with its configuration, or could not say what it offers; none if it did both.
    pub complaint: Option<String>,
    /// Whether it started. If so, a complaint may only mean that it has no permissions here.
    pub has_started: bool,
}

impl Shown {
    /// What a plugin without code offers: the skills in its folder.
    pub fn of_skills(names: Vec<String>) -> Self {
        Self {
            exports: vec!["skills"],
            tools: Vec::new(),
            skills: names,
            events: Vec::new(),
            complaint: None,
            has_started: true,
        }
    }
}

/// Starts a plugin once, with a database if it `may_sql`. An error that the plugin returns becomes a complaint; a crash or a limit is an error.
pub async fn rehearse(
    name: &str,
    version: &str,
    loaded: Arc<Loaded>,
    config: String,
    limits: Limits,
    may_sql: bool,
) -> Result<Shown, CallError> {
    let exports = loaded.exports();
    let recipe = Recipe {
        version: version.to_owned(),
        config,
        services: Services {
            database: may_sql
                .then(|| Arc::new(Database::in_memory_with(Quota::temporary(limits.get(Limit::SqlMemory))))),
            documents: vec![Arc::new(Documents::in_memory_within(document_quota(&limits)))],
            ..Services::nothing()
        },
        ..Recipe::alone(name, loaded, limits)
    };
    let instance = Instance::new(Arc::new(recipe));
    let mut shown = Shown {
        exports: exports.names(),
        tools: vec![],
        skills: vec![],
        events: vec![],
        complaint: None,
        has_started: true,
    };
    match ask(&instance, exports, &mut shown).await {
        Ok(()) => Ok(shown),
        Err(CallError { cause: Cause::Fault(fault), call, .. }) => {
            shown.complaint = Some(format!("`{call}` answers: {}", fault.message));
            Ok(shown)
        }
        Err(CallError { cause: Cause::Start(fault), .. }) => {
            shown.complaint = Some(fault.message.clone());
            shown.has_started = false;
            Ok(shown)
        }
        Err(error) => Err(error),
    }
}

/// Calls one function of each kind. The first call also starts the plugin.
async fn ask(instance: &Instance, exports: Exports, shown: &mut Shown) -> Result<(), CallError> {
    if exports.tools {
        shown.tools = instance.catalog().await?;
    }
    if exports.skills {
        shown.skills = instance.skills().await?.into_iter().map(|skill| skill.name).collect();
    }
    if exports.hooks {
        shown.events = instance.interests().await?;
    }
    if exports.memory_provider {
        instance.system_prompt().await?;
    }
    if exports.context_engine {
        instance.status().await?;
    }
    if exports.embedder {
        instance.describe().await?;
    }
    Ok(())
}
