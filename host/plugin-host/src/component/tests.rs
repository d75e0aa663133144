//! On which instance each function of the contract runs, what is repeated, and who learns of the end.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::time::Duration;

use hermes_conversation::{MessageId, MessageRange, Model};
use hermes_runtime::services::{Level, NoSession, Purpose, Reporter};
use hermes_runtime::{CacheState, Limits, MemoryAction, Moment, Runtime, Tier};
use hermes_zoo::{Offered, Shell};

use super::*;
use crate::record::Recorder;
use crate::settings::OnFailure;
use crate::supervision::Halt;

/// The log of the plugin.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Reporter for Log {
    fn log(&self, level: Level, text: &str) {
        // The host's own lines have other levels.
        if level == Level::Debug {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    fn progress(&self, _: &str) {}
}

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A plugin with a log of its own.
struct Scene {
    log: Arc<Log>,
    component: SessionComponent,
}

impl Scene {
    fn new(shell: &Shell) -> Self {
        let home = tempfile::tempdir().unwrap();
        let loaded = Runtime::new(home.path().join("code")).load(&shell.build()).unwrap();
        let log = Arc::new(Log::default());
        let alone = Recipe::alone("beast", loaded, Limits::of(Tier::Session));
        let services = Services { reporter: log.clone(), may_hook: true, ..Services::nothing() };
        let recorder = Recorder::new(None, "beast", "s", Arc::default(), Arc::new(NoSession));
        let supervisor =
            Supervisor::new(("beast", "0.1.0"), OnFailure::Fallback, log.clone(), recorder, Halt::default());
        Self { log, component: SessionComponent::new(Recipe { services, ..alone }, supervisor) }
    }

    /// Calls a function of the contract as the host does.
    async fn call(&self, function: &str) -> Result<(), CallError> {
        let plugin = &self.component;
        let range = MessageRange::new(MessageId(1), MessageId(2));
        match function {
            "context-engine/model-changed" => ContextEngine::model_changed(plugin, &model()).await,
            "context-engine/rewound" => ContextEngine::rewound(plugin, MessageId(1)).await,
            "context-engine/assess" => plugin.assess(&pressure()).await.map(drop),
            "context-engine/prepare" => plugin.prepare(&request()).await.map(drop),
            "context-engine/propose" => plugin.propose(&request()).await.map(drop),
            "context-engine/settled" => plugin.settled(&Outcome::Adopted).await,
            "context-engine/status" => plugin.status().await.map(drop),
            "context-assist/assist" => plugin.assist(AssistDraft::User("u".into()), 10).await.map(drop),
            "memory-provider/system-prompt" => plugin.system_prompt().await.map(drop),
            "memory-provider/recall" => plugin.recall(query()).await.map(drop),
            "memory-provider/sync-turn" => plugin.sync_turn(&turn(range)).await,
            "memory-events/before-compact" => plugin.before_compact(range).await.map(drop),
            "memory-prefetch/prefetch" => {
                let outlook = Outlook { turn: 1, author: None, text: "t".into(), budget: 10, extra: Vec::new() };
                plugin.prefetch(outlook).await.map(drop)
            }
            "memory-mirror/written" => plugin.written(write()).await,
            "memory-rewind/rewound" => plugin.turns_rewound("s".into(), MessageId(1)).await,
            "memory-upkeep/upkeep" => plugin.upkeep().await.map(drop),
            "tool-preview/preview" => plugin.preview("t".into(), "{}".into()).await.map(drop),
            "tools/catalog" => plugin.catalog().await.map(drop),
            "skills/index" => plugin.index().await.map(drop),
            "skills/view" => plugin.view("s".into(), None).await.map(drop),
            "hooks/interests" => plugin.interests().await.map(drop),
            "hooks/on-event" => plugin.on_event(Event::BeforeModel("m".into())).await.map(drop),
            "embedder/describe" => plugin.describe().await.map(drop),
            "embedder/embed" => {
                let request = EmbeddingRequest { texts: vec!["t".into()], purpose: Purpose::Query };
                plugin.embed(request).await.map(drop)
            }
            tool => self.call_tool(tool.strip_prefix("tools/call ").unwrap()).await,
        }
    }

    async fn call_tool(&self, name: &str) -> Result<(), CallError> {
        let (name, arguments) = (name.to_owned(), "{}".to_owned());
        let invocation = Invocation { id: format!("id of {name}"), name, arguments, extra: Vec::new() };
        Tools::call(&self.component, invocation).await.map(drop)
    }
}

fn model() -> Model {
    Model { provider: "p".into(), name: "m".into(), context_length: 9 }
}

fn query() -> Query {
    Query { turn: 1, author: None, text: "t".into(), budget: 10, extra: Vec::new() }
}

fn turn(messages: MessageRange) -> TurnRecord {
    let (user, assistant) = ("u".to_owned(), "a".to_owned());
    TurnRecord {
        session: "s".into(),
        number: 1,
        ended_at: 1,
        author: None,
        user,
        assistant,
        interrupted: false,
        messages,
    }
}

fn write() -> MemoryWrite {
    MemoryWrite {
        provider: "p".into(),
        session_id: "s".into(),
        action: MemoryAction::Added,
        target: "user".into(),
        text: "t".into(),
        previous: None,
        at: 1,
        extra: Vec::new(),
    }
}

fn pressure() -> Pressure {
    Pressure {
        moment: Moment::TurnStart,
        prompt_tokens: 10,
        estimated: true,
        fixed_tokens: 1,
        context_length: 1_000,
        reserve: 10,
        room: 989,
        expected_requests: 1,
        cache: CacheState { warm_tokens: 0, warm_until: None, read_price: 0.1, write_price: 1.0, breaking: false },
        last: None,
    }
}

fn request() -> PlanRequest {
    PlanRequest { pressure: pressure(), view: Vec::new(), focus: None, memory_context: String::new() }
}

/// Functions that the host calls before others, so that their names say nothing about their instance.
const LIFECYCLE: [&str; 3] = ["lifecycle/configure", "lifecycle/session-start", "context-engine/observe"];

/// Whose instance a function uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Main,
    Background,
    /// The two above.
    Both,
    /// The one that computes vectors for other plugins.
    Vectors,
    Own,
}

/// The contract, function by function: its instance, and whether the host calls it again after a crash.
const CONTRACT: [(&str, On, bool); 26] = [
    ("context-engine/model-changed", On::Both, false),
    ("context-engine/rewound", On::Both, false),
    ("context-engine/assess", On::Main, true),
    ("context-engine/prepare", On::Background, false),
    ("context-engine/propose", On::Main, false),
    ("context-engine/settled", On::Main, false),
    ("context-engine/status", On::Main, true),
    ("context-assist/assist", On::Main, true),
    ("memory-provider/system-prompt", On::Main, true),
    ("memory-provider/recall", On::Main, true),
    ("memory-provider/sync-turn", On::Background, false),
    ("memory-events/before-compact", On::Background, true),
    ("memory-prefetch/prefetch", On::Own, true),
    ("memory-mirror/written", On::Background, false),
    ("memory-rewind/rewound", On::Background, false),
    ("memory-upkeep/upkeep", On::Own, false),
    ("tools/catalog", On::Main, true),
    ("tools/call reader", On::Own, true),
    ("tools/call writer", On::Own, false),
    ("tool-preview/preview", On::Main, true),
    ("skills/index", On::Main, true),
    ("skills/view", On::Main, true),
    ("hooks/interests", On::Main, true),
    ("hooks/on-event", On::Main, false),
    ("embedder/describe", On::Vectors, true),
    ("embedder/embed", On::Vectors, true),
];

/// A plugin that logs at each call the function that its instance was called with first, and then runs this WAT.
fn telling(wat: &str) -> Shell {
    let mut shell = Shell::of("everything").import("log", "write").fields("(global $first (mut i32) (i32.const 0))");
    let memory = shell.memory();
    let catalog = memory.catalog(&[Offered::new("reader"), Offered::new("writer").writes()]);
    for function in shell.exports() {
        if LIFECYCLE.contains(&function.as_str()) {
            continue;
        }
        let [at, length] = shell.memory().bytes(function.as_bytes());
        // A text's address and length in one number.
        let name = at << 8 | length;
        let is_end = function == "lifecycle/session-end";
        let mut body = String::new();
        if !is_end {
            let claim = format!("(global.set $first (i32.const {name}))");
            write!(body, "(if (i32.eqz (global.get $first)) (then {claim}))").unwrap();
        }
        // The level `trace` marks the end of a session.
        let say = "(i32.shr_u (global.get $first) (i32.const 8)) (i32.and (global.get $first) (i32.const 255))";
        write!(body, "(call $log/write (i32.const 1) {say})").unwrap();
        if is_end {
            let [at, length] = shell.memory().bytes(b"end");
            write!(body, "(call $log/write (i32.const 1) (i32.const {at}) (i32.const {length}))").unwrap();
        } else if function != "tools/catalog" {
            body.push_str(wat);
        }
        let answer = if function == "tools/catalog" { catalog } else { 1024 };
        shell = shell.body(&function, &format!("{body} (i32.const {answer})"));
    }
    shell
}

const MAIN: &str = "tools/catalog";
const BACKGROUND: &str = "memory-provider/sync-turn";
const VECTORS: &str = "embedder/describe";

#[tokio::test]
async fn each_function_runs_on_the_instance_that_the_contract_names_and_only_two_learn_of_the_end() {
    let scene = Scene::new(&telling(""));
    for function in [MAIN, BACKGROUND, VECTORS] {
        scene.call(function).await.unwrap();
    }
    scene.log.take();
    for (function, on, _) in CONTRACT {
        let _ = scene.call(function).await;
        let name = function.split(' ').next().unwrap();
        let expected: &[&str] = match on {
            On::Main => &[MAIN],
            On::Background => &[BACKGROUND],
            On::Both => &[MAIN, BACKGROUND],
            On::Vectors => &[VECTORS],
            On::Own => &[name],
        };
        assert_eq!(scene.log.take(), expected, "{function}");
    }
    let Scene { log, component } = scene;
    drop(component);
    let mut ended = Vec::new();
    while ended.len() < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ended.extend(log.take());
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    ended.extend(log.take());
    let mut ended: Vec<_> = ended.chunks(2).collect();
    ended.sort();
    assert_eq!(ended, [[BACKGROUND, "end"], [MAIN, "end"]]);
}

#[tokio::test]
async fn a_crashed_call_is_made_again_only_where_the_contract_says_so() {
    let shell = telling("unreachable");
    for (function, on, again) in CONTRACT {
        // This one does not crash here.
        if function == MAIN {
            continue;
        }
        // Each has its own failures, and no running instances but the main one.
        let scene = Scene::new(&shell);
        scene.call(MAIN).await.unwrap();
        scene.log.take();
        scene.call(function).await.unwrap_err();
        let attempts = scene.log.take().len();
        assert_eq!(attempts, if again { 2 } else { 1 }, "{function} on {on:?}");
    }
}

#[tokio::test]
async fn both_instances_learn_of_a_change_even_if_it_fails_in_the_first() {
    let mut shell = telling("");
    let why = shell.memory().bytes(b"no");
    let error = shell.memory().error(8, why);
    let mut bodies = Vec::new();
    for function in ["context-engine/model-changed", "context-engine/rewound"] {
        let [at, length] = shell.memory().bytes(function.as_bytes());
        let log = format!("(call $log/write (i32.const 1) (i32.const {at}) (i32.const {length}))");
        bodies.push((function, format!("{log} (i32.const {error})")));
    }
    let shell = bodies.into_iter().fold(shell, |shell, (function, body)| shell.body(function, &body));
    let scene = Scene::new(&shell);
    scene.call(MAIN).await.unwrap();
    scene.call(BACKGROUND).await.unwrap();
    scene.log.take();
    for function in ["context-engine/model-changed", "context-engine/rewound"] {
        scene.call(function).await.unwrap_err();
        assert_eq!(scene.log.take(), [function, function]);
    }
}

#[tokio::test]
async fn a_tool_call_that_is_made_again_has_the_same_id() {
    let log = "(call $log/write (i32.const 1) (local.get $p0) (local.get $p1)) unreachable";
    let scene = Scene::new(&telling("").body("tools/call", log));
    scene.call(MAIN).await.unwrap();
    scene.log.take();
    for (tool, ids) in [("reader", &["id of reader"; 2][..]), ("writer", &["id of writer"])] {
        scene.call_tool(tool).await.unwrap_err();
        assert_eq!(scene.log.take(), ids);
    }
}
