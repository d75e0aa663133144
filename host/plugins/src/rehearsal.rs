//! A plugin's first start, before it may serve: with nobody's conversation, without models, files or network, and with
//! storage that is forgotten. What does not come through this would fail in a session.

use std::sync::Arc;

use hermes_runtime::sql::Database;
use hermes_runtime::{CallError, Cause, Exports, Instance, Limits, Loaded, Recipe, Services};

/// What a plugin turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What it exports, by the contract's names.
    pub exports: Vec<&'static str>,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Names of its skills.
    pub skills: Vec<String>,
    /// Events that it watches.
    pub events: Vec<String>,
    /// Why it does not start as it is configured now; none where it does.
    pub complaint: Option<String>,
}

/// Starts it once. What it answers as an error is its right, and is handed on; what ends it is an error here.
pub async fn rehearse(
    name: &str,
    version: &str,
    loaded: Arc<Loaded>,
    config: String,
    limits: Limits,
) -> Result<Shown, CallError> {
    let exports = loaded.exports();
    let recipe = Recipe {
        version: version.to_owned(),
        config,
        services: Services { database: Some(Arc::new(Database::in_memory())), ..Services::nothing() },
        ..Recipe::alone(name, loaded, limits)
    };
    let instance = Instance::new(Arc::new(recipe));
    let mut shown = Shown { exports: exports.names(), tools: vec![], skills: vec![], events: vec![], complaint: None };
    match ask(&instance, exports, &mut shown).await {
        Ok(()) => Ok(shown),
        Err(CallError { cause: Cause::Fault(fault) | Cause::Start(fault), call, .. }) => {
            shown.complaint = Some(format!("`{call}` answers: {}", fault.message));
            Ok(shown)
        }
        Err(error) => Err(error),
    }
}

/// Every kind has something that it is asked for first; the first question also starts it.
async fn ask(instance: &Instance, exports: Exports, shown: &mut Shown) -> Result<(), CallError> {
    if exports.tools {
        shown.tools = instance.catalog().await?.into_iter().map(|tool| tool.schema.name).collect();
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
    Ok(())
}
