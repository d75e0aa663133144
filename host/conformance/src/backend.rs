//! Checks of plugins that use the web: failures of the backend become errors, and the plugin works again afterwards.

use std::time::Duration;

use hermes_plugin_host::{FaultKind, Limit, LimitSet};
use serde_json::Value;

use crate::arguments;
use crate::bench::{CallFailure, Session, Setup, TestBench};
use crate::error::ConformanceError;
use crate::memory;
use crate::report::{Checks, Fail, Verdict, passed};
use crate::rights::Rights;
use crate::script::web::{Answer, Fault};

const GROUP: &str = "backend";
/// The time of a call while the backend is slow, in milliseconds: enough to answer an error, and no longer than needed.
const SHORT: u64 = 1_500;

/// A failure of the backend.
struct Failure {
    what: &'static str,
    /// In the middle of a sentence.
    name: &'static str,
    answer: Answer,
    /// Whether the same request may succeed later.
    is_temporary: bool,
    is_slow: bool,
}

fn failures() -> Vec<Failure> {
    let failure = |what, name, answer, is_temporary| Failure { what, name, answer, is_temporary, is_slow: false };
    vec![
        failure(
            "answers an error when its backend limits requests",
            "answers 429 with `retry-after: 2`",
            Answer::error(429, &[("retry-after", "2")], "too many requests"),
            true,
        ),
        failure(
            "answers an error when its backend refuses the key",
            "answers 401",
            Answer::error(401, &[], "unauthorized"),
            true,
        ),
        failure(
            "answers an error when its backend forbids the key",
            "answers 403",
            Answer::error(403, &[], "forbidden"),
            true,
        ),
        failure(
            "answers an error when its backend fails",
            "answers 500",
            Answer::error(500, &[], "internal error"),
            true,
        ),
        failure(
            "answers an error when its backend refuses connections",
            "refuses connections",
            Answer::faulty(Fault::Refuse),
            true,
        ),
        failure(
            "answers an error when its backend sends garbage",
            "sends garbage",
            Answer::faulty(Fault::Garbage),
            false,
        ),
        Failure {
            what: "answers an error in time when its backend is slow",
            name: "does not answer in time",
            answer: Answer::late(Duration::from_secs(600)),
            is_temporary: true,
            is_slow: true,
        },
    ]
}

/// What a plugin did while its backend failed.
#[derive(Default)]
struct Observed {
    /// The calls that sent requests.
    asked: Vec<String>,
    /// The delays that errors name, in milliseconds.
    delays: Vec<u32>,
}

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    if !bench.exports.memory_provider && !bench.exports.tools {
        return Ok(());
    }
    let words = bench.subject.language.words();
    for failure in failures() {
        let advice = match bench.exports.memory_provider {
            true => {
                "answer an error of the kind `unavailable` (with `retry-after-ms`, if the server names a time), so that the host \
                 tries again later and no memory is lost"
            }
            false => "answer an error or a result that says what happened: the model reads it",
        };
        let fix = format!("{advice}; {} is a crash", words.crash);
        let verdict = survives(bench, &failure).await?;
        checks.add(GROUP, failure.what, fix, verdict);
    }
    if bench.exports.memory_provider {
        waits_for_the_user(bench, checks).await?;
    }
    Ok(())
}

/// What only the user can mend keeps a turn waiting: a secret that is not set, and an address that is not granted.
async fn waits_for_the_user(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    const PASS_ON: &str = "pass on the error of the import as it is: its code (`unset`, `grant`) tells the host that the user can mend it, and \
                           that the turn has to wait";
    // Only a provider whose calls send requests can miss anything.
    let session = bench.open(&bench.setup())?;
    let Some(web) = &session.web else { return Ok(()) };
    let asks = |served: u64| web.served() > served;
    let before = web.served();
    let _ = memory::sync_once(&session).await;
    let sync_asks = asks(before);
    let before = web.served();
    let _ = memory::recall_once(&session).await;
    let recall_asks = asks(before);
    let lacks = [
        (Rights::NoSecret, "keeps the turn while a secret is not set", "one of its secrets is not set"),
        (Rights::NoAddress, "keeps the turn while an address is not granted", "its address is not granted"),
    ];
    for (rights, what, name) in lacks {
        let has_secrets = !bench.subject.manifest.permissions.secrets.is_empty();
        if rights == Rights::NoSecret && !has_secrets {
            continue;
        }
        let verdict = keeps_the_turn(bench, rights, name, (sync_asks, recall_asks)).await?;
        checks.add(GROUP, what, PASS_ON, verdict);
    }
    Ok(())
}

async fn keeps_the_turn(
    bench: &TestBench<'_>,
    rights: Rights,
    name: &str,
    (sync_asks, recall_asks): (bool, bool),
) -> Result<Verdict, ConformanceError> {
    let session = bench.open(&Setup { rights, ..bench.setup() })?;
    let Some(web) = &session.web else { return Ok(passed()) };
    if memory::does_not_start(&session).await {
        return Ok(Ok("it does not start without, and the turn waits".to_owned()));
    }
    let mut seen = Vec::new();
    let synced = memory::sync_once(&session).await;
    let recalled = if web.served() == 0 { Some(memory::recall_once(&session).await.map(drop)) } else { None };
    // A call that reached its server did not need what is missing.
    let calls = [
        ("sync-turn", sync_asks && recalled.is_some(), Some(synced)),
        ("recall", recall_asks && web.served() == 0, recalled),
    ];
    for (call, judged, answer) in calls {
        let Some(answer) = answer.filter(|_| judged) else { continue };
        match answer {
            Ok(()) => return Ok(Err(format!("{name}, and `{call}` answers as if nothing had happened").into())),
            Err(failure @ CallFailure::Crashed(_)) => return Ok(Err(failure.of(name))),
            Err(CallFailure::Returned(fault) | CallFailure::Down(fault)) if !fault.may_pass() => {
                return Ok(Err(not_again(name, call, &fault)));
            }
            Err(CallFailure::Returned(fault) | CallFailure::Down(fault)) => {
                seen.push(format!("`{call}`: {} ({})", word(fault.kind), fault.code))
            }
        }
    }
    Ok(Ok(if seen.is_empty() { "no call missed it".to_owned() } else { seen.join(", ") }))
}

fn not_again(name: &str, call: &str, fault: &hermes_plugin_host::Fault) -> Fail {
    format!(
        "{name}, and `{call}` answers an error of the kind `{}`, after which the host does not try again: {}",
        word(fault.kind),
        fault.message
    )
    .into()
}

async fn survives(bench: &TestBench<'_>, failure: &Failure) -> Result<Verdict, ConformanceError> {
    let mut setup = bench.setup();
    if failure.is_slow {
        let short = |limits: LimitSet, limit| {
            let usual = bench.limits.get(limit);
            limits.and(limit, usual.min(SHORT))
        };
        let limits = [Limit::RecallTime, Limit::BackgroundTime, Limit::ToolTime].into_iter();
        setup.limits = setup.limits.with(&limits.fold(LimitSet::default(), short));
    }
    let mut observed = Observed::default();
    if bench.exports.memory_provider
        && let Err(fail) = memory_survives(bench, &setup, failure, &mut observed).await?
    {
        return Ok(Err(fail));
    }
    if bench.exports.tools
        && let Err(fail) = tools_survive(bench, &setup, failure, &mut observed).await?
    {
        return Ok(Err(fail));
    }
    if observed.asked.is_empty() {
        return Ok(Ok("no call sent a request".to_owned()));
    }
    let delay = match observed.delays.iter().max() {
        Some(delay) => format!("; tries again after {delay} ms"),
        None => String::new(),
    };
    Ok(Ok(format!("{}{delay}", observed.asked.join(", "))))
}

/// `sync-turn` and `recall` fail with an error that the host acts on, and work the next time.
async fn memory_survives(
    bench: &TestBench<'_>,
    setup: &Setup,
    failure: &Failure,
    observed: &mut Observed,
) -> Result<Result<(), Fail>, ConformanceError> {
    let session = bench.open(setup)?;
    let usual = session.until_answered(|| memory::recall_once(&session)).await;
    let Some(web) = &session.web else { return Ok(Ok(())) };
    web.break_with(Some(failure.answer.clone()));
    let before = web.served();
    let synced = memory::sync_once(&session).await;
    let between = web.served();
    let recalled = memory::recall_once(&session).await;
    let after = web.served();
    web.break_with(None);
    // A provider need not read what its backend answers to a stored turn.
    let may_succeed = !failure.is_temporary;
    if between > before
        && let Err(fail) = reacted("sync-turn", failure, synced.as_ref().copied(), may_succeed, observed)
    {
        return Ok(Err(fail));
    }
    if after > between
        && let Err(fail) = reacted("recall", failure, recalled.as_ref().map(|_| ()), false, observed)
    {
        return Ok(Err(fail));
    }
    if after == before {
        return Ok(Ok(()));
    }
    let again = session.until_answered(|| memory::recall_once(&session)).await;
    Ok(match (usual, again) {
        (_, Err(crash @ CallFailure::Crashed(_))) => Err(crash.of("afterwards")),
        (Ok(_), Err(still)) => {
            Err(format!("once its backend {} and works again, `recall` fails: {still}", failure.name).into())
        }
        _ => Ok(()),
    })
}

/// Checks the answer to a call whose requests failed.
fn reacted(
    call: &str,
    failure: &Failure,
    answer: Result<(), &CallFailure>,
    may_succeed: bool,
    observed: &mut Observed,
) -> Result<(), Fail> {
    let name = failure.name;
    let kind = match answer {
        Ok(()) if may_succeed => "success".to_owned(),
        Ok(()) => {
            return Err(format!("its backend {name}, and `{call}` answers as if nothing had happened").into());
        }
        Err(crash @ CallFailure::Crashed(_)) => return Err(crash.clone().of(&format!("its backend {name}"))),
        Err(CallFailure::Returned(fault) | CallFailure::Down(fault)) => {
            if failure.is_temporary && !fault.may_pass() {
                return Err(not_again(&format!("its backend {name}"), call, fault));
            }
            observed.delays.extend(fault.retry_after_ms);
            word(fault.kind).to_owned()
        }
    };
    observed.asked.push(format!("`{call}`: {kind}"));
    Ok(())
}

/// Every tool that uses the web answers something, and works the next time as it did before.
async fn tools_survive(
    bench: &TestBench<'_>,
    setup: &Setup,
    failure: &Failure,
    observed: &mut Observed,
) -> Result<Result<(), Fail>, ConformanceError> {
    let session = bench.open(setup)?;
    let Some(web) = session.web.clone() else { return Ok(Ok(())) };
    // An error was reported by the checks of tools.
    let Ok(tools) = session.call("catalog", session.instance.catalog()).await else { return Ok(Ok(())) };
    let mut fails = Vec::new();
    for tool in tools.iter().filter(|tool| bench.works(tool)) {
        let name = &tool.schema.name;
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        let arguments = arguments::valid(&schema).to_string();
        let before = web.served();
        let usual = session.until_answered(|| session.call_tool(name, &arguments)).await.is_ok();
        if web.served() == before {
            continue;
        }
        web.break_with(Some(failure.answer.clone()));
        let broken = session.call_tool(name, &arguments).await;
        web.break_with(None);
        if let Err(crash @ CallFailure::Crashed(_)) = broken {
            fails.push(crash.of(&format!("its backend {}: tool `{name}`", failure.name)));
            continue;
        }
        observed.asked.push(format!("tool `{name}`: {}", if broken.is_ok() { "a result" } else { "an error" }));
        if let Err(fail) = works_again(&session, name, &arguments, usual).await {
            let why = format!("once its backend {} and works again: {}", failure.name, fail.why);
            fails.push(Fail { why, ..fail });
        }
    }
    Ok(if fails.is_empty() { Ok(()) } else { Err(Fail::of_tools(fails, tools.len())) })
}

async fn works_again(session: &Session<'_>, name: &str, arguments: &str, usual: bool) -> Result<(), Fail> {
    match session.until_answered(|| session.call_tool(name, arguments)).await {
        Err(crash @ CallFailure::Crashed(_)) => Err(crash.of(&format!("tool `{name}`"))),
        Err(still) if usual => Err(format!("tool `{name}` fails: {still}").into()),
        _ => Ok(()),
    }
}

/// The name of a kind in the contract.
fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::InvalidInput => "invalid-input",
        FaultKind::Unavailable => "unavailable",
        FaultKind::Denied => "denied",
        FaultKind::Timeout => "timeout",
        FaultKind::Cancelled => "cancelled",
        FaultKind::Conflict => "conflict",
        FaultKind::Exhausted => "exhausted",
        FaultKind::Unsupported => "unsupported",
        FaultKind::Failed => "failed",
    }
}
