//! Checks of `lifecycle`, and that a plugin survives errors of its imports: it may return an error, but must not crash.

use std::sync::{Arc, Mutex, PoisonError};

use hermes_plugin_host::Start;
use serde_json::json;
use tracing::field::{Field, Visit};

use crate::bench::{CallFailure, Setup, TestBench, ignore_errors};
use crate::difference::difference;
use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict, counted, passed};
use crate::rights::Rights;
use crate::{arguments, embedder, engine, hooks, memory, schema, skills, tools};

const GROUP: &str = "lifecycle";
/// How the reason of a failed `session-end` begins if the plugin returned an error.
const ANSWERED: &str = "it answered an error";

/// Configures the plugin. Returns false if no further checks are possible.
pub(crate) async fn begins(bench: &TestBench<'_>, checks: &mut Checks) -> Result<bool, ConformanceError> {
    let works = configured(bench, checks).await?;
    let fix = format!("answer an error from `configure`: {} in it is a crash", bench.subject.language.words().crash);
    checks.add(GROUP, "answers a wrong configuration without a crash", fix, wrong_configuration(bench).await?);
    Ok(works)
}

/// Checks starts and ends of sessions, and the plugin without its rights.
pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let words = bench.subject.language.words();
    let fix = "take `fresh`, `resumed` and `continued` alike: an instance may be made anew at any time";
    checks.add(GROUP, "starts a session that is fresh, resumed or continued", fix, starts(bench).await?);
    let fix = format!(
        "keep nothing in {} that a second instance would miss; what is shared belongs into storage",
        words.globals
    );
    checks.add(GROUP, "is configured twice and says the same", fix, twice(bench).await?);
    let fix = "answer `session-end` without a crash: it is the last call before the instance goes";
    checks.add(GROUP, "ends a session", fix, ends(bench).await?);

    let denied = Setup { rights: Rights::Denied, ..bench.setup() };
    let fix = words.imports;
    let verdict = exercise(bench, &denied).await?.map(|()| String::new());
    checks.add("imports", "survives when every import is denied", fix, verdict);
    let unavailable = Setup { rights: Rights::NoModel, ..bench.setup() };
    let verdict = exercise(bench, &unavailable).await?.map(|()| String::new());
    checks.add("imports", "survives when no model answers", fix, verdict);
    Ok(())
}

async fn configured(bench: &TestBench<'_>, checks: &mut Checks) -> Result<bool, ConformanceError> {
    let session = bench.open(&bench.setup())?;
    let answer = session.start().await;
    let works = matches!(answer, Ok(()) | Err(CallFailure::Down(_)));
    let fix = match &answer {
        Err(CallFailure::Crashed(_)) => format!(
            "{} ends the instance; so does an answer that lacks a field of the contract or has a case that it does not know",
            bench.subject.language.words().crash
        ),
        _ => "give every key a default, or name what is needed under `required` in the manifest's `config` and test with \
              --config '{…}'"
            .to_owned(),
    };
    let what = if bench.config == "{}" { "is configured by an empty section" } else { "is configured as given" };
    checks.add(GROUP, what, fix, answer.map(|()| String::new()).map_err(Fail::from));

    let undefined = bench.subject.manifest.undefined_keys();
    if let Some(key) = undefined.first() {
        let fix = "correct the key, or define it in the manifest's `config`";
        let verdict =
            Err(format!("`permissions` names the address ${{config.{key}}}, and `config` has no such key").into());
        checks.add(GROUP, "takes addresses from keys of its configuration", fix, verdict);
    }
    let (Some(is_one), Some(defaults)) =
        (bench.subject.schema.as_ref().map(schema::of_configuration), bench.subject.defaults())
    else {
        return Ok(works);
    };
    let fix = "write `config` in plugin.yaml as a JSON Schema of an object, its defaults within it";
    checks.add(GROUP, "has a valid schema of its configuration", fix, is_one);
    // The host passes on only valid sections, so defaults that lack a required key are not tried.
    if works && bench.subject.schema.as_ref().is_some_and(|schema| schema::fits(schema, &defaults)) {
        let setup = Setup { config: defaults.to_string(), ..bench.setup() };
        let verdict = bench.open(&setup)?.start().await;
        let fix = "the defaults in the manifest's `config` must be values that `configure` takes";
        let verdict = verdict.map(|()| defaults.to_string()).map_err(Fail::from);
        checks.add(GROUP, "is configured by its schema's defaults", fix, verdict);
    }
    Ok(works)
}

async fn wrong_configuration(bench: &TestBench<'_>) -> Result<Verdict, ConformanceError> {
    let mut wrong: Vec<String> =
        ["", "null", "[]", "7", "\"text\"", "{", "{\"a\":", "\u{0}"].map(str::to_owned).to_vec();
    wrong.push(json!({ "no such key": { "at": ["all"] } }).to_string());
    wrong.push(json!({ "long": "ü".repeat(500_000) }).to_string());
    wrong.push(format!("{}1{}", "[".repeat(300), "]".repeat(300)));
    let properties = bench.subject.schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for (name, property) in properties.into_iter().flatten() {
        wrong.extend(arguments::invalid_values(property).into_iter().map(|value| json!({ name: value }).to_string()));
    }
    let tried = wrong.len();
    for config in wrong {
        let shown: String =
            if config.is_empty() { "an empty text".to_owned() } else { config.chars().take(60).collect() };
        let setup = Setup { config, ..bench.setup() };
        if let Err(crash) = ignore_errors(bench.open(&setup)?.start().await) {
            return Ok(Err(crash.of(&format!("configured with {shown}"))));
        }
    }
    Ok(Ok(counted(tried, "configuration")))
}

async fn starts(bench: &TestBench<'_>) -> Result<Verdict, ConformanceError> {
    let mut setup = bench.setup();
    for start in [Start::Fresh, Start::Resumed, Start::Continued("an-earlier-one".to_owned())] {
        setup.start = start;
        if let Err(failure) = bench.open(&setup)?.start().await {
            return Ok(Err(failure.of(&format!("started as {:?}", setup.start))));
        }
    }
    Ok(passed())
}

/// The answers of all functions that only read, as text.
async fn reads(bench: &TestBench<'_>, setup: &Setup) -> Result<Result<String, CallFailure>, ConformanceError> {
    let session = bench.open(setup)?;
    let reads = async {
        let mut answers = String::new();
        if bench.exports.tools {
            answers.push_str(&format!("{:?}", session.call("catalog", session.instance.catalog()).await?));
        }
        if bench.exports.hooks {
            answers.push_str(&format!("{:?}", session.call("interests", session.instance.interests()).await?));
        }
        if bench.exports.skills {
            answers.push_str(&format!("{:?}", session.call("index", session.instance.skills()).await?));
        }
        if bench.exports.memory_provider {
            answers.push_str(&session.call("system-prompt", session.instance.system_prompt()).await?);
        }
        if bench.exports.context_engine {
            answers.push_str(&session.call("status", session.instance.status()).await?);
        }
        if bench.exports.embedder {
            answers.push_str(&format!("{:?}", session.call("describe", session.instance.describe()).await?));
        }
        Ok(answers)
    };
    Ok(reads.await)
}

async fn twice(bench: &TestBench<'_>) -> Result<Verdict, ConformanceError> {
    let setup = bench.setup();
    let first = reads(bench, &setup).await?;
    let second = reads(bench, &Setup { start: Start::Resumed, ..setup }).await?;
    Ok(match (first, second) {
        (Ok(first), Ok(second)) if first == second => passed(),
        (Ok(first), Ok(second)) => Err(difference(&first, &second).into()),
        (Err(failure), _) | (_, Err(failure)) => Err(failure.into()),
    })
}

/// The host sends `session-end` and waits for no answer; a failure appears only in the runtime's trace.
async fn ends(bench: &TestBench<'_>) -> Result<Verdict, ConformanceError> {
    let trace = Trace::default();
    let setup = bench.setup();
    let mut is_down = false;
    let started = {
        let _listening = tracing::subscriber::set_default(trace.clone());
        let session = bench.open(&setup)?;
        let started = session.start().await;
        let web = session.web.clone();
        drop(session);
        // The instance ends in its own task, in this thread.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        is_down |= web.is_some_and(|web| web.was_down());
        started
    };
    if let Err(failure) = started {
        return Ok(Err(failure.into()));
    }
    // The host ignores an error here, and with its backend down a plugin can do no better.
    if let Some(failure) = trace.failure().filter(|failure| !(is_down && failure.starts_with(ANSWERED))) {
        return Ok(Err(format!("`session-end`: {failure}").into()));
    }
    let again = bench.open(&Setup { start: Start::Resumed, ..setup })?;
    Ok(again.start().await.map(|()| String::new()).map_err(|failure| failure.of("resumed after the end")))
}

/// Records the runtime's message about the end of a session.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Option<String>>>);

impl Trace {
    fn failure(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Default)]
struct Words {
    is_end: bool,
    other: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.is_end = format!("{value:?}").contains("session-end"),
            "other" => self.other = format!("{value:?}"),
            _ => {}
        }
    }
}

impl tracing::Subscriber for Trace {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("hermes_runtime")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        if words.is_end {
            let failure = match words.other {
                answered if answered.starts_with("Ok(Ok(") => format!("{ANSWERED}: {answered}"),
                crashed if crashed.starts_with("Ok(") => "it crashed".to_owned(),
                _ => "it took too long".to_owned(),
            };
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Calls every exported function once. A returned error counts as an answer.
pub(crate) async fn exercise(bench: &TestBench<'_>, setup: &Setup) -> Result<Result<(), Fail>, ConformanceError> {
    let session = bench.open(setup)?;
    let exports = bench.exports;
    let everything = async {
        if exports.tools {
            tools::exercise(&session).await?;
        }
        if exports.skills {
            skills::exercise(&session).await?;
        }
        if exports.hooks {
            hooks::exercise(&session).await?;
        }
        if exports.memory_provider {
            memory::exercise(&session, &exports).await?;
        }
        if exports.context_engine {
            engine::exercise(&session, setup, exports.context_assist).await?;
        }
        if exports.embedder {
            embedder::exercise(&session).await?;
        }
        Ok(())
    };
    Ok(everything.await)
}
