//! `lifecycle`, what every call of a kind needs, and what is asked of all imports: that their errors are answered with an
//! error, never with a crash.

use std::sync::{Arc, Mutex, PoisonError};

use hermes_plugin_host::Start;
use serde_json::json;
use tracing::field::{Field, Visit};

use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict, fine};
use crate::rights::Rights;
use crate::stand::{Ill, Scene, Stand, alive};
use crate::{arguments, engine, hooks, memory, schema, skills, tools};

const GROUP: &str = "lifecycle";

/// False where nothing else can be tried.
pub(crate) async fn check(stand: &Stand<'_>, checks: &mut Checks) -> Result<bool, ConformanceError> {
    let works = configured(stand, checks).await?;
    let fix = "answer an error from `configure`: a panic in it reads as a crash";
    checks.add(GROUP, "answers a wrong configuration without a crash", fix, wrong_configuration(stand).await?);
    if !works {
        return Ok(false);
    }
    let fix = "take `fresh`, `resumed` and `continued` alike: an instance may be made anew at any time";
    checks.add(GROUP, "starts a session that is fresh, resumed or continued", fix, starts(stand).await?);
    let fix = "keep nothing in statics that a second instance would miss; what is shared belongs into storage";
    checks.add(GROUP, "is configured twice and says the same", fix, twice(stand).await?);
    let fix = "answer `session-end` without a crash: it is the last call before the instance goes";
    checks.add(GROUP, "ends a session", fix, ends(stand).await?);

    let denied = Scene { rights: Rights::Denied, ..stand.scene() };
    let fix = "pass on the error of an import with `?`, or do without; `unwrap` on it is a crash";
    let verdict = exercise(stand, &denied).await?.map(|()| String::new()).map_err(Fail::from);
    checks.add("imports", "lives on where every import is denied", fix, verdict);
    let away = Scene { rights: Rights::ModelAway, ..stand.scene() };
    let verdict = exercise(stand, &away).await?.map(|()| String::new()).map_err(Fail::from);
    checks.add("imports", "lives on where no model answers", fix, verdict);
    Ok(true)
}

async fn configured(stand: &Stand<'_>, checks: &mut Checks) -> Result<bool, ConformanceError> {
    let worker = stand.put_on(&stand.scene())?;
    let answer = worker.wake().await;
    let works = answer.is_ok();
    let fix = "give every key a default, or name what is needed under `required` in the manifest's `config` and test \
               with --config '{…}'";
    let what = if stand.config == "{}" { "is configured by an empty section" } else { "is configured as given" };
    checks.add(GROUP, what, fix, answer.map(|()| String::new()).map_err(Fail::from));

    let (Some(is_one), Some(defaults)) =
        (stand.subject.schema.as_ref().map(schema::of_configuration), stand.subject.defaults())
    else {
        return Ok(works);
    };
    let fix = "write `config` in plugin.yaml as a JSON Schema of an object, its defaults within it";
    checks.add(GROUP, "has a schema of its configuration that is one", fix, is_one);
    if works {
        let scene = Scene { config: defaults.to_string(), ..stand.scene() };
        let verdict = stand.put_on(&scene)?.wake().await;
        let fix = "the defaults in the manifest's `config` must be values that `configure` takes";
        let verdict = verdict.map(|()| defaults.to_string()).map_err(Fail::from);
        checks.add(GROUP, "is configured by its schema's defaults", fix, verdict);
    }
    Ok(works)
}

async fn wrong_configuration(stand: &Stand<'_>) -> Result<Verdict, ConformanceError> {
    let mut wrong: Vec<String> =
        ["", "null", "[]", "7", "\"text\"", "{", "{\"a\":", "\u{0}"].map(str::to_owned).to_vec();
    wrong.push(json!({ "no such key": { "at": ["all"] } }).to_string());
    wrong.push(json!({ "long": "ü".repeat(500_000) }).to_string());
    wrong.push(format!("{}1{}", "[".repeat(300), "]".repeat(300)));
    let properties = stand.subject.schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for (name, property) in properties.into_iter().flatten() {
        wrong.extend(arguments::unfit(property).into_iter().map(|value| json!({ name: value }).to_string()));
    }
    let tried = wrong.len();
    for config in wrong {
        let shown: String = config.chars().take(60).collect();
        let scene = Scene { config, ..stand.scene() };
        if let Err(died) = alive(stand.put_on(&scene)?.wake().await) {
            return Ok(Err(format!("configured with {shown}: {died}").into()));
        }
    }
    Ok(Ok(format!("{tried} of them")))
}

async fn starts(stand: &Stand<'_>) -> Result<Verdict, ConformanceError> {
    let mut scene = stand.scene();
    for start in [Start::Fresh, Start::Resumed, Start::Continued("an-earlier-one".to_owned())] {
        scene.start = start;
        if let Err(ill) = stand.put_on(&scene)?.wake().await {
            return Ok(Err(format!("started as {:?}: {ill}", scene.start).into()));
        }
    }
    Ok(fine())
}

/// What its reads say, in text.
async fn reads(stand: &Stand<'_>, scene: &Scene) -> Result<Result<String, Ill>, ConformanceError> {
    let worker = stand.put_on(scene)?;
    let reads = async {
        let mut said = String::new();
        if stand.exports.tools {
            said.push_str(&format!("{:?}", worker.ask("catalog", worker.instance.catalog()).await?));
        }
        if stand.exports.hooks {
            said.push_str(&format!("{:?}", worker.ask("interests", worker.instance.interests()).await?));
        }
        if stand.exports.skills {
            said.push_str(&format!("{:?}", worker.ask("index", worker.instance.skills()).await?));
        }
        if stand.exports.memory_provider {
            said.push_str(&worker.ask("system-prompt", worker.instance.system_prompt()).await?);
        }
        if stand.exports.context_engine {
            said.push_str(&worker.ask("status", worker.instance.status()).await?);
        }
        Ok(said)
    };
    Ok(reads.await)
}

async fn twice(stand: &Stand<'_>) -> Result<Verdict, ConformanceError> {
    let scene = stand.scene();
    let first = reads(stand, &scene).await?;
    let second = reads(stand, &Scene { start: Start::Resumed, ..scene }).await?;
    Ok(match (first, second) {
        (Ok(first), Ok(second)) if first == second => fine(),
        (Ok(first), Ok(second)) => Err(differing(&first, &second).into()),
        (Err(ill), _) | (_, Err(ill)) => Err(ill.into()),
    })
}

/// Where two texts part.
pub(crate) fn differing(first: &str, second: &str) -> String {
    let at = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| {
        let begin = text.floor_char_boundary(at.saturating_sub(30));
        text[begin..text.floor_char_boundary((at + 60).min(text.len()))].to_owned()
    };
    format!("first `{}`, then `{}`", around(first), around(second))
}

/// The host tells a plugin of the end and waits for no answer; what went wrong stands in its trace.
async fn ends(stand: &Stand<'_>) -> Result<Verdict, ConformanceError> {
    let trace = Trace::default();
    let scene = stand.scene();
    let woken = {
        let _listening = tracing::subscriber::set_default(trace.clone());
        let worker = stand.put_on(&scene)?;
        let woken = worker.wake().await;
        drop(worker);
        // The instance goes in a task of its own, in this thread.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        woken
    };
    if let Err(ill) = woken {
        return Ok(Err(ill.into()));
    }
    if let Some(heard) = trace.heard() {
        return Ok(Err(format!("`session-end`: {heard}").into()));
    }
    let again = stand.put_on(&Scene { start: Start::Resumed, ..scene })?;
    Ok(again.wake().await.map(|()| String::new()).map_err(|ill| format!("resumed after the end: {ill}").into()))
}

/// Hears what the runtime says of a session's end.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Option<String>>>);

impl Trace {
    fn heard(&self) -> Option<String> {
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
            let heard = match words.other {
                answered if answered.starts_with("Ok(Ok(") => format!("it answered an error: {answered}"),
                crashed if crashed.starts_with("Ok(") => "it crashed".to_owned(),
                _ => "it took too long".to_owned(),
            };
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Calls everything that it exports once. Errors that it answers are as good as results.
pub(crate) async fn exercise(stand: &Stand<'_>, scene: &Scene) -> Result<Result<(), Ill>, ConformanceError> {
    let worker = stand.put_on(scene)?;
    let exports = stand.exports;
    let everything = async {
        if exports.tools {
            tools::exercise(&worker).await?;
        }
        if exports.skills {
            skills::exercise(&worker).await?;
        }
        if exports.hooks {
            hooks::exercise(&worker).await?;
        }
        if exports.memory_provider {
            memory::exercise(&worker, exports.memory_events).await?;
        }
        if exports.context_engine {
            engine::exercise(&worker, scene, exports.context_assist).await?;
        }
        Ok(())
    };
    Ok(everything.await)
}
