//! A plugin's first start, before it may serve: with nobody's conversation, without models, files or network, and with
//! storage that is forgotten. What does not come through this would fail in a session.

use std::sync::Arc;

use hermes_capabilities::sql::Database;
use hermes_runtime::{CallError, Cause, Exports, Instance, Limits, Loaded, Recipe, Services, Tool};

/// What a plugin turned out to be.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What it exports, by the contract's names.
    pub exports: Vec<&'static str>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// Names of its skills.
    pub skills: Vec<String>,
    /// Events that it watches.
    pub events: Vec<String>,
    /// Why it does not start as it is configured now, or could not say what it offers; none where all is well.
    pub complaint: Option<String>,
    /// Whether it started. What it complains of then may be that it has no right here.
    pub has_started: bool,
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

/// Every kind has something that it is asked for first; the first question also starts it.
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
    Ok(())
}
