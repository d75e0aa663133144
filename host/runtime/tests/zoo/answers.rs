//! A crash in each function of each kind is reported by name and ends only its call.

use std::sync::Arc;

use hermes_conversation::{MessageId, MessageRange, Model};
use hermes_runtime::services::{EmbeddingRequest, Purpose};
use hermes_runtime::{
    AssistDraft, CallError, Cause, Event, Instance, Invocation, Limit, LimitSet, MemoryAction, MemoryWrite, Outcome,
    Outlook, PlanRequest, Query, Tier, TurnRecord,
};
use hermes_zoo::{LOOP, Shell};

use crate::Fixture;
use crate::kept::pressure;

pub(crate) fn request() -> PlanRequest {
    PlanRequest { pressure: pressure(), view: Vec::new(), focus: None, memory_context: String::new() }
}

/// Calls a function; `None` if the host never calls it by itself.
async fn call(instance: &Instance, function: &str) -> Option<Result<(), CallError>> {
    let range = MessageRange::new(MessageId(1), MessageId(2));
    let turn = TurnRecord {
        session: "s".into(),
        number: 1,
        ended_at: 1,
        author: None,
        user: "u".into(),
        assistant: "a".into(),
        interrupted: false,
        messages: range,
    };
    let query = Query { turn: 1, author: None, text: "t".into(), budget: 10, extra: Vec::new() };
    let model = Model { provider: "p".into(), name: "m".into(), context_length: 9 };
    Some(match function {
        "context-engine/model-changed" => instance.model_changed(&model).await,
        "context-engine/rewound" => instance.rewound(MessageId(1)).await,
        "context-engine/assess" => instance.assess(&pressure()).await.map(drop),
        "context-engine/prepare" => instance.prepare(&request()).await.map(drop),
        "context-engine/propose" => instance.propose(&request()).await.map(drop),
        "context-engine/settled" => instance.settled(&Outcome::Adopted).await,
        "context-engine/status" => instance.status().await.map(drop),
        "context-assist/assist" => instance.assist(AssistDraft::User("u".into()), 10).await.map(drop),
        "memory-provider/system-prompt" => instance.system_prompt().await.map(drop),
        "memory-provider/recall" => instance.recall(query).await.map(drop),
        "memory-provider/sync-turn" => instance.sync_turn(&turn).await,
        "memory-events/before-compact" => instance.before_compact(range).await.map(drop),
        "memory-prefetch/prefetch" => {
            let outlook = Outlook { turn: 1, author: None, text: "t".into(), budget: 10, extra: Vec::new() };
            instance.recipe().prefetch(outlook).await.map(drop)
        }
        "memory-mirror/written" => {
            let write = MemoryWrite {
                provider: "p".into(),
                session_id: "s".into(),
                action: MemoryAction::Added,
                target: "user".into(),
                text: "t".into(),
                previous: None,
                at: 1,
                extra: Vec::new(),
            };
            instance.written(write).await
        }
        "memory-rewind/rewound" => instance.turns_rewound("s".into(), MessageId(1)).await,
        "memory-upkeep/upkeep" => instance.recipe().upkeep().await.map(drop),
        "tool-preview/preview" => instance.preview("t".into(), "{}".into()).await.map(drop),
        "tools/catalog" => instance.catalog().await.map(drop),
        "tools/call" => {
            let (id, name, arguments) = ("c".into(), "t".into(), "{}".into());
            instance.recipe().call_tool(Invocation { id, name, arguments, extra: Vec::new() }).await.map(drop)
        }
        "embedder/describe" => instance.describe().await.map(drop),
        "embedder/embed" => {
            let request = EmbeddingRequest { texts: vec!["t".into()], purpose: Purpose::Query };
            instance.embed(request).await.map(drop)
        }
        "skills/index" => instance.skills().await.map(drop),
        "skills/view" => instance.skill("s".into(), None).await.map(drop),
        "hooks/interests" => instance.interests().await.map(drop),
        "hooks/on-event" => instance.on_event(Event::BeforeModel("m".into())).await.map(drop),
        _ => return None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_any_function_is_named_and_the_next_call_works() {
    let shell = Shell::of("everything");
    let all = shell.exports();
    let mut crashed = 0;
    for function in &all {
        let fixture = Fixture::new(&shell.clone().body(function, "unreachable").build(), Tier::Session);
        let instance = Instance::new(Arc::clone(&fixture.recipe));
        let Some(result) = call(&instance, function).await else { continue };
        crashed += 1;
        let error = result.expect_err(function);
        let name = function.split_once('/').unwrap().1;
        assert!(error.to_string().starts_with(&format!("plugin `beast` 0.1.0, `{name}`: it crashed: ")), "{error}");
        let other = if function == "tools/catalog" { "skills/index" } else { "tools/catalog" };
        call(&instance, other).await.unwrap().unwrap_or_else(|error| panic!("after {function}: {error}"));
    }
    assert_eq!(crashed, 25, "{all:?}");
}

/// The limits of time by function, as `wit/README.md` and the comments of the contract say. `turn_time` limits all others.
const DEADLINES: [(&str, Limit); 11] = [
    ("context-engine/prepare", Limit::BackgroundTime),
    ("context-assist/assist", Limit::RecallTime),
    ("memory-provider/recall", Limit::RecallTime),
    ("memory-provider/sync-turn", Limit::BackgroundTime),
    ("memory-events/before-compact", Limit::BackgroundTime),
    ("memory-prefetch/prefetch", Limit::BackgroundTime),
    ("memory-mirror/written", Limit::BackgroundTime),
    ("memory-rewind/rewound", Limit::BackgroundTime),
    ("memory-upkeep/upkeep", Limit::BackgroundTime),
    ("tools/call", Limit::ToolTime),
    ("embedder/embed", Limit::ToolTime),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_function_has_the_deadline_of_the_contract() {
    let shell = Shell::of("everything");
    let mut checked = 0;
    let limits = LimitSet::default()
        .and(Limit::Cpu, 60_000)
        .and(Limit::TurnTime, 60)
        .and(Limit::RecallTime, 70)
        .and(Limit::ToolTime, 80)
        .and(Limit::BackgroundTime, 90);
    // One component for all: only the function under test loops.
    let shell = shell
        .exports()
        .iter()
        .filter(|function| !is_answered(function))
        .fold(shell, |shell, function| shell.body(function, LOOP));
    let component = shell.build();
    for function in shell.exports().iter().filter(|function| !is_answered(function)) {
        let fixture = Fixture::within(&component, Tier::Session, &limits);
        let instance = Instance::new(Arc::clone(&fixture.recipe));
        let Some(result) = call(&instance, function).await else { panic!("{function} is not called") };
        let expected = DEADLINES.iter().find(|(name, _)| name == function).map_or(Limit::TurnTime, |(_, limit)| *limit);
        let error = result.expect_err(function);
        assert!(matches!(error.cause, Cause::Deadline { limit, .. } if limit == expected), "{function}: {error}");
        checked += 1;
    }
    assert_eq!(checked, 25);
}

/// These answer before any other call: the host calls them by itself.
fn is_answered(function: &str) -> bool {
    function.starts_with("lifecycle/") || function == "context-engine/observe"
}
