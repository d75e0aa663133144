//! Tries a memory provider out: one recall, with the configuration and the grants of a home, as a turn would make it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_conversation::Model;
use hermes_plugin_host::services::{FileGuard, NoSession, SandboxRules, SystemRandom};
use hermes_plugin_host::{LimitSet, Plugins, QUIETLY, Query, Selection, SessionInfo, Start, Storage, Surroundings};

use crate::{AppError, CodeStorage, ModelChoice, Setup};

/// What the provider recalls for: a text that no memory contains.
const QUESTION: &str = "connection test of Hermes";
const BUDGET: u32 = 100;
const WINDOW: u32 = 100_000;

/// The answer of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// How long the recall took, with the start of the plugin.
    pub took: Duration,
    /// How many memories it found, or why it could not answer.
    pub outcome: Result<usize, String>,
}

/// Asks a memory provider once. Nothing that the plugin stores by itself stays in the home.
///
/// # Errors
///
/// When a session could not start the provider.
pub async fn probe_memory(setup: &Setup, provider: &str) -> Result<Probe, AppError> {
    let code = CodeStorage::of(&setup.home)?;
    let runtime = code.runtime(&setup.home, setup.compiler.clone());
    let selection = Selection { memory: Some(provider.to_owned()), ..setup.selection(&ModelChoice::default()) };
    let plugins = Plugins::select(&runtime, &setup.catalog(), &selection, QUIETLY)?;
    let home = setup.home.path().to_owned();
    let surroundings = Surroundings {
        session: SessionInfo {
            id: "connection-test".to_owned(),
            parent: None,
            platform: "cli".to_owned(),
            purpose: "primary".to_owned(),
            profile: "default".to_owned(),
            workspace: None,
            repository: None,
            model: Model { provider: "none".to_owned(), name: "none".to_owned(), context_length: WINDOW },
        },
        start: Start::Fresh,
        workspace: home.clone(),
        home,
        storage: Storage::Memory(Arc::default()),
        clock: Arc::new(setup.clock()?),
        random: Arc::new(SystemRandom),
        limits: LimitSet::default(),
        models: Arc::new(NoSession),
        embeddings: Arc::new(NoSession),
        history: Arc::new(NoSession),
        reporters: Box::new(|_| Arc::new(NoSession)),
        approvals: Box::new(|_| Arc::new(NoSession)),
        files: FileGuard::default(),
        sandbox: SandboxRules::default(),
    };
    let started = plugins.start(&surroundings)?;
    let begun = Instant::now();
    let query = Query { turn: 1, author: None, text: QUESTION.to_owned(), budget: BUDGET, extra: Vec::new() };
    let memory = started.memories.iter().find(|memory| memory.name() == provider);
    let outcome = match memory {
        Some(memory) => memory.recall(query).await.map(|found| found.len()).map_err(|error| error.cause.to_string()),
        None => Err("it was not started".to_owned()),
    };
    Ok(Probe { took: begun.elapsed(), outcome })
}
