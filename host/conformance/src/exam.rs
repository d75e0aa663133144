//! The order of the checks.

use std::ops::ControlFlow;

use hermes_plugin_host::{Code, Limit, LimitSet};
use hermes_runtime::Runtime;
use serde_json::Value;

use crate::bench::TestBench;
use crate::error::ConformanceError;
use crate::fixtures::Folders;
use crate::report::{Checks, Crashed, Fail, Memory, Report};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::{backend, embedder, engine, hooks, lifecycle, memory, plans, skills, tools};

/// Tests a plugin against the contract of its kinds. `progress` gets the name of each next step.
///
/// # Errors
///
/// Only what prevents the test; defects of the plugin are in the report.
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
        not_judged: Vec::new(),
        calls: Vec::new(),
        http: None,
        model: None,
        memory: None,
    };
    let later = subject.manifest.later_versions();
    let loaded = match &subject.code {
        Code::Component(bytes) => {
            if !runtime.is_compiled(bytes) {
                progress("compiling");
            }
            runtime.load_watched(bytes, later, &|_| ControlFlow::Continue(()))
        }
        Code::Native(bytes) => runtime.load_native(bytes, later),
    };
    let fix = match subject.code {
        Code::Component(_) => subject.language.words().toolchain,
        Code::Native(_) => "build the library again with the SDK's feature `native`, and copy it whole",
    };
    let verdict = match &loaded {
        Ok(loaded) => {
            let exports = loaded.exports().names();
            // Skills can be files beside the code.
            let claims = subject.manifest.claims_beyond(&exports).into_iter().filter(|claim| claim != "skills");
            match &claims.collect::<Vec<_>>()[..] {
                [] => Ok(exports.join(", ")),
                claims => Err(Fail {
                    fix: Some(
                        "correct `provides` in plugin.yaml, or export what it names: no host installs the plugin as it is",
                    ),
                    ..format!(
                        "plugin.yaml says that it provides {}, which the component does not export",
                        claims.join(", ")
                    )
                    .into()
                }),
            }
        }
        Err(error) => Err(error.to_string().into()),
    };
    checks.add("code", "loads, and exports", fix, verdict);
    if let Ok(loaded) = loaded {
        report.kinds = loaded.exports().names();
        let folders = Folders::make()?;
        let bench = TestBench::new(subject, loaded, &folders, config, settings);
        let tokio_runtime = hermes_runtime::executor::single()
            .map_err(|error| ConformanceError::Surroundings(format!("the system starts no thread: {error}")))?;
        let works = tokio_runtime.block_on(by_kind(&bench, &mut checks, progress))?;
        if works && bench.exports.context_engine {
            progress("generated conversations");
            plans::check(&tokio_runtime, &bench, settings, &mut checks)?;
            plans::losslessness(runtime, &bench, settings, &mut checks)?;
            plans::sessions(runtime, &bench, &mut checks, progress);
        }
        let overruns = bench.overruns();
        let fix = "answer sooner or keep less, or raise the limit below `limits` in plugin.yaml; `prepare` and `sync-turn` have \
                   180 s and run in the background";
        let seen = "every call, of all checks above".to_owned();
        let crash = |why: &String| Crashed { why: why.clone(), cause: why.clone(), raw: None, fix: None };
        let verdict = match overruns.as_slice() {
            [] => Ok(seen),
            some => Err(Fail { crashes: some.iter().map(crash).collect(), ..overruns.join("; ").into() }),
        };
        checks.add("limits", "stays within its limits of time and memory", fix, verdict);
        // The memory of native code is not limited.
        if works && matches!(subject.code, Code::Component(_)) {
            report.memory = tokio_runtime.block_on(least_memory(&bench))?;
        }
        report.calls = bench.calls();
        (report.http, report.model) = (bench.http_use(), bench.model_use());
    }
    (report.checks, report.not_judged) = (checks.list, checks.not_judged);
    Ok(report)
}

/// Checks the lifecycle and each kind. Returns false if the plugin could not even be configured.
async fn by_kind(
    bench: &TestBench<'_>,
    checks: &mut Checks,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<bool, ConformanceError> {
    progress("lifecycle");
    if !lifecycle::begins(bench, checks).await? {
        return Ok(false);
    }
    // Ordinary calls come first: what already fails there needs no explanation by denied imports or strange values.
    let exports = bench.exports;
    if exports.tools {
        progress("tools");
        tools::check(bench, checks).await?;
    }
    if exports.skills {
        progress("skills");
        skills::check(bench, checks).await?;
    }
    if exports.hooks {
        progress("hooks");
        hooks::check(bench, checks).await?;
    }
    if exports.memory_provider {
        progress("memory");
        memory::check(bench, checks).await?;
    }
    if exports.context_engine {
        progress("context engine");
        engine::check(bench, checks).await?;
    }
    if exports.embedder {
        progress("embedder");
        embedder::check(bench, checks).await?;
    }
    if bench.web.is_some() {
        progress("failures of the web");
        backend::check(bench, checks).await?;
    }
    progress("lifecycle and imports");
    lifecycle::check(bench, checks).await?;
    Ok(true)
}

/// How much memory the usual calls need, found by halving the limit.
async fn least_memory(bench: &TestBench<'_>) -> Result<Option<Memory>, ConformanceError> {
    let limit = bench.limits.get(Limit::Memory);
    let mut enough = None;
    let mut given = limit;
    while given >= 1 << 20 {
        let mut setup = bench.setup();
        setup.limits = setup.limits.with(&LimitSet::default().and(Limit::Memory, given));
        if lifecycle::exercise(bench, &setup).await?.is_err() {
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
