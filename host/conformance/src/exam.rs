//! The examination: which checks are made, and in which order.

use hermes_plugin_host::{Code, Limit, LimitSet, Limits};
use hermes_runtime::Runtime;
use serde_json::Value;

use crate::error::ConformanceError;
use crate::fixtures::Folders;
use crate::report::{Checks, Memory, Report};
use crate::stand::Stand;
use crate::subject::Subject;
use crate::{engine, hooks, lifecycle, memory, plans, skills, tools};

/// How a plugin is examined.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Conversations that are generated for a context engine.
    pub conversations: u64,
    /// The seed of the first one.
    pub seed: u64,
    /// Turns of each; by its seed where none is given.
    pub turns: Option<u32>,
    /// The plugin's section of the configuration, a JSON object; none for an empty one.
    pub config: Option<String>,
    /// Threads for conversations.
    pub jobs: usize,
}

/// Puts a plugin through the contract of its kinds. `progress` is told what comes next.
///
/// # Errors
///
/// What keeps it from being examined; what is wrong with the plugin is in the report.
pub fn examine(
    subject: &Subject,
    runtime: &Runtime,
    settings: &Settings,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Report, ConformanceError> {
    let config = match &settings.config {
        Some(text) => object(text)?,
        None => "{}".to_owned(),
    };
    let mut checks = Checks::default();
    let mut report = Report {
        plugin: subject.manifest.name.clone(),
        version: subject.manifest.version.to_string(),
        kinds: Vec::new(),
        seed: settings.seed,
        checks: Vec::new(),
        calls: Vec::new(),
        memory: None,
    };
    let loaded = match &subject.code {
        Code::Component(bytes) => {
            if !runtime.is_compiled(bytes) {
                progress("compiling");
            }
            runtime.load(bytes)
        }
        Code::Native(bytes) => runtime.load_native(bytes),
    };
    let fix = "build it for wasm32-wasip2 with the SDK, or as a component against the files of wit/";
    let verdict = match &loaded {
        Ok(loaded) => Ok(loaded.exports().names().join(", ")),
        Err(error) => Err(error.to_string().into()),
    };
    checks.add("code", "loads, and exports", fix, verdict);
    if let Ok(loaded) = loaded {
        report.kinds = loaded.exports().names();
        let folders = Folders::make()?;
        let stand = Stand::new(subject, loaded, &folders, config);
        let here = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let here = here.map_err(|error| ConformanceError::Surroundings(error.to_string()))?;
        let works = here.block_on(by_kind(&stand, &mut checks, progress))?;
        if works && stand.exports.context_engine {
            progress("generated conversations");
            plans::check(&here, &stand, settings, &mut checks)?;
            plans::losslessness(runtime, &stand, settings, &mut checks)?;
        }
        let overruns = stand.overruns();
        let fix = "answer sooner or keep less: `prepare` and `sync-turn` have 180 s and run in the background; \
                   docs/plugins.md has the limits";
        let seen = "every call, of all checks above".to_owned();
        let verdict = if overruns.is_empty() { Ok(seen) } else { Err(overruns.join("; ").into()) };
        checks.add("limits", "stays within the usual limits of time and memory", fix, verdict);
        // Nothing limits the memory of native code.
        if works && matches!(subject.code, Code::Component(_)) {
            report.memory = here.block_on(least_memory(&stand))?;
        }
        report.calls = stand.calls();
    }
    report.checks = checks.0;
    Ok(report)
}

/// The checks of the lifecycle and of each kind. False where it could not even be configured.
async fn by_kind(
    stand: &Stand<'_>,
    checks: &mut Checks,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<bool, ConformanceError> {
    progress("lifecycle");
    if !lifecycle::check(stand, checks).await? {
        return Ok(false);
    }
    let exports = stand.exports;
    if exports.tools {
        progress("tools");
        tools::check(stand, checks).await?;
    }
    if exports.skills {
        progress("skills");
        skills::check(stand, checks).await?;
    }
    if exports.hooks {
        progress("hooks");
        hooks::check(stand, checks).await?;
    }
    if exports.memory_provider {
        progress("memory");
        memory::check(stand, checks).await?;
    }
    if exports.context_engine {
        progress("context engine");
        engine::check(stand, checks).await?;
    }
    Ok(true)
}

/// How much memory the usual questions need: found by giving less and less.
async fn least_memory(stand: &Stand<'_>) -> Result<Option<Memory>, ConformanceError> {
    let limit = Limits::standard().get(Limit::Memory);
    let mut enough = None;
    let mut given = limit;
    while given >= 1 << 20 {
        let mut scene = stand.scene();
        scene.limits = scene.limits.with(&LimitSet::default().and(Limit::Memory, given));
        if lifecycle::exercise(stand, &scene).await?.is_err() {
            break;
        }
        enough = Some(Memory { enough_mib: given >> 20, limit_mib: limit >> 20 });
        given /= 2;
    }
    Ok(enough)
}

fn object(text: &str) -> Result<String, ConformanceError> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value.to_string()),
        Ok(other) => Err(ConformanceError::Config(other.to_string())),
        Err(error) => Err(ConformanceError::Config(error.to_string())),
    }
}
