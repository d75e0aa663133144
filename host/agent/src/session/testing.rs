//! Sessions for tests: a scripted model, scripted plugins, and a store in a temporary folder.
#![allow(clippy::unwrap_used)]

mod memory;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Message, MessageId, Model, Plan, ToolCall, Usage};
use hermes_diagnostic::{Diagnostic, Notice};
use hermes_models::{
    ApiMode, Delta, Finish, Logins, Marks, ModelError, Prices, Provider, Reply, Request, Style, ToolChoice, Ttl,
    TtlChoice, WindowSource,
};
use hermes_plugin_host::{
    Advice, CallError, Cause, Change, ContextEngine, Effect, Generations, Halt, Identity, Invocation, MemoryProvider,
    OfferedSchema, OnFailure, Outcome, Output, PlanRequest, PluginsError, Pressure, Progress, Serving, SessionInfo,
    SessionPlugins, Skill, SkillDocument, Skills, Start, Surroundings, Timing, Tool, Tools,
};
use hermes_protocol::{Command, Event, EventKind, Problem, TurnEnd};
use hermes_store::{SqliteSessions, Store};

use crate::approval::Approvals;
use crate::auxiliary::AuxiliaryModels;
use crate::chain::ModelChain;
use crate::checkpoints::CheckpointSettings;
use crate::clock::Clock;
use crate::cooldowns::ModelCooldowns;
use crate::delegation::settings::DelegationSettings;
use crate::embedding::EmbeddingSource;
use crate::ephemeral::Ephemeral;
use crate::feed::Subscription;
use crate::host::{Host, PromptSettings, SearchSettings, Settings};
use crate::host_source::{Choice, HostSource};
use crate::plugin_set::PluginSet;
use crate::served::ServedModel;
use crate::session::{Begin, SessionHandle, SessionRules};

pub(super) use memory::ScriptedMemory;

/// A model that reacts to words in the newest message of the user.
///
/// `hang` streams a word and never ends; `call NAME` calls a tool once and answers after its result; `fail` gives an error
/// of the provider; `decline` and `decline silently` give refusals; `slow` streams ten words with pauses; `toil` calls a
/// tool as long as it may, and then does what the rest of the message says; `calls: NAME N, NAME N` makes these calls in one
/// reply, each with its number; every other message is answered with `done`.
pub(super) struct ScriptedModel {
    /// The shared prefixes of all requests.
    pub(super) requests: Mutex<Vec<String>>,
    /// The caps on the replies.
    pub(super) caps: Mutex<Vec<Option<u32>>>,
    /// Whether it takes cache marks and reports that it reads from its cache.
    caches: bool,
    streaming: AtomicUsize,
    most_streaming: AtomicUsize,
}

impl ScriptedModel {
    fn new(caches: bool) -> Self {
        let (streaming, most_streaming) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { requests: Mutex::default(), caps: Mutex::default(), caches, streaming, most_streaming }
    }

    /// The highest number of replies that streamed at once.
    pub(super) fn most_streaming(&self) -> usize {
        self.most_streaming.load(Ordering::SeqCst)
    }
}

fn reply(text: &str, calls: Vec<ToolCall>) -> Reply {
    let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    let usage = Some(Usage { input: 100, output: 5, ..Usage::default() });
    Reply {
        text: text.to_owned(),
        reasoning: None,
        tool_calls: calls,
        finish,
        usage,
        model: "scripted".to_owned(),
        parts: Vec::new(),
    }
}

/// A call such as `note 7`.
fn numbered_call((at, wanted): (usize, &str)) -> ToolCall {
    let (name, number) = wanted.split_once(' ').unwrap_or((wanted, "0"));
    ToolCall { id: format!("call-{at}"), name: name.to_owned(), arguments: format!("{{\"n\":{number}}}") }
}

#[async_trait]
impl Provider for ScriptedModel {
    fn style(&self) -> Style {
        if self.caches { Style::new(ApiMode::ChatCompletions, Marks::Envelope) } else { Style::PLAIN }
    }

    async fn complete(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        let mut reply = self.answer(request, on_delta).await?;
        if let Some(usage) = reply.usage.as_mut().filter(|_| self.caches) {
            usage.cache_read = 90;
        }
        Ok(reply)
    }

    fn is_offline(&self) -> bool {
        false
    }
}

impl ScriptedModel {
    async fn answer(
        &self,
        request: &Request<'_>,
        on_delta: &mut (dyn for<'d> FnMut(Delta<'d>) + Send),
    ) -> Result<Reply, ModelError> {
        self.caps.lock().unwrap().push(request.max_tokens);
        let body = String::from_utf8_lossy(request.prefix.bytes()).into_owned();
        self.requests.lock().unwrap().push(body.clone());
        let said = body.rsplit("\"role\":\"user\"").next().unwrap_or_default();
        let answered = said.contains("\"role\":\"tool\"");
        let word = |word: &str| said.contains(word);
        if let Some(name) =
            ["wipe", "note", "stuck"].into_iter().find(|name| word(&format!("call {name}")) && !answered)
        {
            let call = |id: &str| ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: "{}".to_owned() };
            let calls = if word("twice") { vec![call("call-1"), call("call-2")] } else { vec![call("call-1")] };
            return Ok(reply("", calls));
        }
        if word("toil") && (request.tool_choice == ToolChoice::Auto || word("stubborn")) {
            let call = ToolCall { id: "call-1".to_owned(), name: "note".to_owned(), arguments: "{}".to_owned() };
            return Ok(reply("", vec![call]));
        }
        if let Some((_, wanted)) = said.split_once("calls: ").filter(|_| !answered) {
            let wanted = wanted.split('"').next().unwrap_or_default();
            let calls: Vec<ToolCall> = wanted.split(", ").enumerate().map(numbered_call).collect();
            calls.iter().for_each(|call| on_delta(Delta::Call(&call.name)));
            return Ok(reply("", calls));
        }
        if word("fail") {
            return Err(ModelError::Unreachable { url: "http://nowhere".to_owned(), why: "scripted".to_owned() });
        }
        if word("decline") {
            let text = if word("decline silently") { "" } else { "I cannot." };
            return Ok(Reply { finish: Finish::Refused, reasoning: Some("Hm.".to_owned()), ..reply(text, Vec::new()) });
        }
        if word("slow") || word("hang") {
            let now = self.streaming.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_streaming.fetch_max(now, Ordering::SeqCst);
            let _guard = StreamGuard(&self.streaming);
            on_delta(Delta::Text("begun "));
            if word("hang") {
                std::future::pending::<()>().await;
            }
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                on_delta(Delta::Text("more "));
            }
            return Ok(reply("begun more", Vec::new()));
        }
        on_delta(Delta::Text("done"));
        Ok(reply("done", Vec::new()))
    }
}

struct StreamGuard<'a>(&'a AtomicUsize);

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An engine without plans, and the tools `note` (writes), `wipe` (dangerous), `stuck` (runs into its deadline) and `look` (only
/// reads, beside other calls).
struct ScriptedPlugin {
    name: String,
    models: Arc<Mutex<Vec<String>>>,
    rewound: Arc<Mutex<Vec<MessageId>>>,
    seen: Arc<Seen>,
    memory: Option<Arc<ScriptedMemory>>,
}

/// What a plugin saw.
#[derive(Default)]
pub(super) struct Seen {
    /// What the engine assessed.
    pub(super) pressures: Mutex<Vec<Pressure>>,
    /// The sessions that it was started for, and how.
    pub(super) sessions: Mutex<Vec<(SessionInfo, Start)>>,
    /// The ids of tool calls.
    pub(super) invocations: Mutex<Vec<String>>,
    /// When calls with a number begin and end.
    pub(super) calls: Mutex<Vec<String>>,
    /// How often it was asked for its tools.
    pub(super) catalogs: AtomicUsize,
    /// The skills that it has.
    pub(super) skills: Mutex<Vec<Skill>>,
}

impl Seen {
    /// Returns the beginnings and ends so far, and forgets them.
    pub(super) fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl ScriptedPlugin {
    fn deadline(&self) -> CallError {
        let why = "it did not answer within its deadline".to_owned();
        CallError {
            plugin: self.name.clone(),
            version: "1.0.0".to_owned(),
            call: "call",
            cause: Cause::Trap(Box::new(why.into())),
        }
    }
}

#[async_trait]
impl ContextEngine for ScriptedPlugin {
    fn name(&self) -> &str {
        &self.name
    }

    async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        self.models.lock().unwrap().push(model.name.clone());
        Ok(())
    }

    async fn rewound(&self, first: MessageId) -> Result<(), CallError> {
        self.rewound.lock().unwrap().push(first);
        if let Some(memory) = &self.memory {
            memory.note("rewound".to_owned());
        }
        Ok(())
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        self.seen.pressures.lock().unwrap().push(pressure.clone());
        Ok(Advice { prepare: false, propose: Timing::NotNow, extra: Vec::new() })
    }

    async fn prepare(&self, _: &PlanRequest) -> Result<Progress, CallError> {
        Ok(Progress::Done)
    }

    async fn propose(&self, _: &PlanRequest) -> Result<Option<Plan>, CallError> {
        Ok(None)
    }

    async fn settled(&self, _: &Outcome) -> Result<(), CallError> {
        Ok(())
    }

    async fn status(&self) -> Result<String, CallError> {
        Ok("{}".to_owned())
    }
}

#[async_trait]
impl Tools for ScriptedPlugin {
    fn name(&self) -> &str {
        &self.name
    }

    async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        self.seen.catalogs.fetch_add(1, Ordering::SeqCst);
        let tool = |name: &str, effect| Tool {
            schema: OfferedSchema {
                name: name.to_owned(),
                description: format!("{name} something"),
                parameters: r#"{"type":"object"}"#.to_owned(),
                extra: Vec::new(),
            },
            title: None,
            output_schema: None,
            toolset: "scripted".to_owned(),
            parallel: effect == Effect::Reads,
            effect,
            idempotent: effect == Effect::Reads,
            open_world: false,
            extra: Vec::new(),
        };
        Ok(vec![
            tool("note", Effect::Writes),
            tool("wipe", Effect::Dangerous),
            tool("stuck", Effect::Writes),
            tool("look", Effect::Reads),
        ])
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, CallError> {
        self.seen.invocations.lock().unwrap().push(invocation.id.clone());
        if invocation.name == "stuck" {
            // The runtime ends a call at its deadline.
            tokio::time::sleep(DEADLINE).await;
            return Err(self.deadline());
        }
        let number = invocation.arguments.trim_matches(|c: char| !c.is_ascii_digit());
        if !number.is_empty() {
            let call = format!("{} {number}", invocation.name);
            self.seen.calls.lock().unwrap().push(format!("begin {call}"));
            // Long enough for the calls beside this one to begin.
            tokio::time::sleep(if number == "300" { LONG } else { Duration::from_millis(30) }).await;
            self.seen.calls.lock().unwrap().push(format!("end {call}"));
            return Ok(Output { content: format!("{call} did it"), ..Output::default() });
        }
        let content = format!("{} did it", invocation.name);
        Ok(Output { content, ..Output::default() })
    }
}

#[async_trait]
impl Skills for ScriptedPlugin {
    fn name(&self) -> &str {
        &self.name
    }

    async fn index(&self) -> Result<Vec<Skill>, CallError> {
        Ok(self.seen.skills.lock().unwrap().clone())
    }

    async fn view(&self, name: String, _: Option<String>) -> Result<SkillDocument, CallError> {
        Ok(SkillDocument { content: name, files: Vec::new() })
    }
}

/// The price of the scripted model.
const PRICES: &str = r#"{"as_of": "2026-11-20", "models": [{"vendor": "scripted", "model": "small", "input": 1, "output": 5,
    "cache_read": 0.1, "cache_write": 1.25, "cache_write_1h": 2}]}"#;

/// How long calls with the number 300 take.
pub(super) const LONG: Duration = Duration::from_secs(300);

/// The deadline of the plugin's calls.
pub(super) const DEADLINE: Duration = Duration::from_millis(400);

struct ScriptedPlugins {
    engine: String,
    started: Arc<AtomicUsize>,
    models: Arc<Mutex<Vec<String>>>,
    rewound: Arc<Mutex<Vec<MessageId>>>,
    seen: Arc<Seen>,
    memory: Option<Arc<ScriptedMemory>>,
}

#[async_trait]
impl PluginSet for ScriptedPlugins {
    fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError> {
        self.seen.sessions.lock().unwrap().push((surroundings.session.clone(), surroundings.start.clone()));
        self.started.fetch_add(1, Ordering::SeqCst);
        let (name, models) = (self.engine.clone(), Arc::clone(&self.models));
        let rewound = Arc::clone(&self.rewound);
        let plugin =
            Arc::new(ScriptedPlugin { name, models, rewound, seen: self.seen.clone(), memory: self.memory.clone() });
        let complete = self.memory.as_ref().filter(|memory| memory.is_complete);
        let memory = self.memory.iter().map(|memory| Arc::clone(memory) as Arc<dyn MemoryProvider>);
        let halt = Halt::default();
        Ok(SessionPlugins {
            engine: plugin.clone(),
            assist: None,
            memories: memory.collect(),
            recall_times: HashMap::new(),
            memory_events: Vec::new(),
            memory_extras: complete.map(ScriptedMemory::extras).unwrap_or_default(),
            skills: match self.seen.skills.lock().unwrap().is_empty() {
                true => Vec::new(),
                false => vec![plugin.clone()],
            },
            tools: vec![plugin],
            previews: Vec::new(),
            hooks: Vec::new(),
            halt: halt.clone(),
            generations: Generations::fixed(halt),
            serving: Serving::default(),
        })
    }

    fn identities(&self) -> Vec<Identity> {
        vec![Identity {
            name: self.engine.clone(),
            version: "1.0.0".to_owned(),
            digest: "d".to_owned(),
            is_bundled: true,
        }]
    }

    fn foreign_sources(&self) -> Vec<String> {
        Vec::new()
    }

    fn conversation_readers(&self) -> Vec<String> {
        Vec::new()
    }

    fn engine_version(&self) -> String {
        format!("{}@1.0.0", self.engine)
    }

    fn on_engine_failure(&self) -> OnFailure {
        OnFailure::default()
    }

    async fn changes(&self, _: Duration) -> Vec<Change> {
        Vec::new()
    }

    async fn renew(&mut self, _: Duration) -> Vec<Notice> {
        Vec::new()
    }
}

/// A process with a store, a model, and any number of sessions.
pub(super) struct Process {
    pub(super) home: tempfile::TempDir,
    pub(super) store: Arc<Store>,
    pub(super) model: Arc<ScriptedModel>,
    /// How often plugins were started.
    pub(super) started: Arc<AtomicUsize>,
    /// The model changes that engines received.
    pub(super) models: Arc<Mutex<Vec<String>>>,
    /// The first removed message of each rewind that running engines received.
    pub(super) rewound: Arc<Mutex<Vec<MessageId>>>,
    pub(super) seen: Arc<Seen>,
    /// The memory provider of all sessions.
    memory: Option<Arc<ScriptedMemory>>,
    /// Whether the process serves a single turn.
    is_single: bool,
    /// What warmings may cost within 24 hours.
    warming: f64,
}

impl Process {
    pub(super) fn new() -> Arc<Self> {
        Self::with(None, false)
    }

    pub(super) fn with_single_turns() -> Arc<Self> {
        Self::with(None, true)
    }

    pub(super) fn with_memory(memory: &Arc<ScriptedMemory>) -> Arc<Self> {
        Self::with(Some(Arc::clone(memory)), false)
    }

    /// The same for a single turn, as `-z`.
    pub(super) fn single_with_memory(memory: &Arc<ScriptedMemory>) -> Arc<Self> {
        Self::with(Some(Arc::clone(memory)), true)
    }

    /// With a model that caches, and with a limit on the cost of warmings.
    pub(super) fn with_warming(dollars: f64) -> Arc<Self> {
        let process = Arc::into_inner(Self::new()).unwrap();
        Arc::new(Self { model: Arc::new(ScriptedModel::new(true)), warming: dollars, ..process })
    }

    fn with(memory: Option<Arc<ScriptedMemory>>, is_single: bool) -> Arc<Self> {
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(home.path()).unwrap());
        let model = Arc::new(ScriptedModel::new(false));
        let (started, models, rewound) = (Arc::default(), Arc::default(), Arc::default());
        let (seen, warming) = (Arc::default(), 0.0);
        Arc::new(Self { home, store, model, started, models, rewound, seen, memory, is_single, warming })
    }

    pub(super) async fn open(self: &Arc<Self>, begin: Begin, rules: SessionRules) -> SessionHandle {
        let host = self.host(&Choice::default()).await.unwrap();
        let chosen = (Arc::clone(self) as Arc<dyn HostSource>, Choice::default());
        SessionHandle::open(host, chosen, begin, self.workspace(), rules).await.unwrap()
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// The log of a session as lines of `role: text` with the names of calls.
    pub(super) fn log(&self, session: &SessionHandle) -> Vec<String> {
        let id = session.session().unwrap();
        self.store.conversation(&id).unwrap().iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
    let calls = if calls.is_empty() { String::new() } else { format!(" [{}]", calls.join(", ")) };
    format!("{:?}: {}{calls}", message.role, message.content).to_lowercase()
}

#[async_trait]
impl HostSource for Process {
    async fn host(&self, choice: &Choice) -> Result<Host, Problem> {
        let engine = choice.engine.clone().unwrap_or_else(|| "scripted".to_owned());
        if engine == "missing" {
            let code = hermes_plugin_host::codes::MISSING;
            return Err(Diagnostic::new(code, "no engine", "there is no engine `missing`", "choose another").into());
        }
        let name = choice.model.clone().unwrap_or_else(|| "small".to_owned());
        let model = Model { provider: "scripted".to_owned(), name, context_length: 64_000 };
        Ok(Host {
            home: self.home.path().to_owned(),
            documents: hermes_private_files::FileDocuments::below(self.home.path()),
            store: Arc::new(SqliteSessions::new(self.store.clone())),
            plugins: Box::new(ScriptedPlugins {
                engine: engine.clone(),
                started: Arc::clone(&self.started),
                models: Arc::clone(&self.models),
                rewound: Arc::clone(&self.rewound),
                seen: Arc::clone(&self.seen),
                memory: self.memory.clone(),
            }),
            chain: Arc::new(ModelChain::new(
                ServedModel {
                    provider: self.model.clone(),
                    model: model.clone(),
                    address: String::new(),
                    window_source: WindowSource::Family,
                    overridden: None,
                    cooldown: hermes_models::CooldownId::model(&hermes_models::Route::offline()),
                },
                Vec::new(),
                Arc::new(ModelCooldowns::new(
                    Duration::ZERO,
                    hermes_models::Cooldowns::new(hermes_private_files::FileDocuments::below("/nonexistent".as_ref())),
                )),
            )),
            model,
            effort: choice.effort,
            engine,
            settings: Settings {
                max_turns: 8,
                author: None,
                delegation: DelegationSettings { max_iterations: 2, ..DelegationSettings::default() },
                tool_owners: std::collections::BTreeMap::new(),
                compression: true,
                platform: "test".to_owned(),
                one_shot: self.is_single,
                auxiliary_models: AuxiliaryModels::new(0),
                embeddings: EmbeddingSource::none("no embedding model is configured"),
                prompt: PromptSettings::default(),
                ephemeral: Ephemeral::default(),
                cache_ttl: TtlChoice::Always(Ttl::FiveMinutes),
                warming: self.warming,
                prices: Prices::of_file(PRICES).unwrap(),
                clock: Clock::default(),
                marks: hermes_conversation::fence::Marks::repeatable(),
                shelf: crate::ShelfSettings::default(),
                session_search: SearchSettings { enabled: true, summaries: false, expansion: false },
                skills: crate::SkillSettings::default(),
                sandbox: hermes_capabilities::process::SandboxRules::default(),
                checkpoints: CheckpointSettings::off(),
                mcp: Vec::new(),
                shell_hooks: Vec::new(),
                logins: Logins::new(
                    "/nonexistent/auth.json".into(),
                    hermes_private_files::FileDocuments::below("/nonexistent".as_ref()),
                ),
            },
            approvals: Approvals { can_ask: true, ..Approvals::default() },
        })
    }
}

/// Sends a message and waits for the end of the turn.
pub(super) async fn say(session: &SessionHandle, text: &str) -> TurnEnd {
    let mut events = from_here(session);
    session.send(Command::Say(text.into())).await.unwrap();
    turn_end(&mut events).await
}

/// Subscribes to the following events.
pub(super) fn from_here(session: &SessionHandle) -> Subscription {
    let mut events = session.subscribe(None);
    while events.try_next().is_some() {}
    events
}

/// Reads up to a matching event.
pub(super) async fn until(events: &mut Subscription, matches: impl Fn(&EventKind) -> bool) -> Arc<Event> {
    let found = async {
        loop {
            let event = events.next().await.expect("the session ended");
            if matches(&event.kind) {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), found).await.expect("the event did not come")
}

pub(super) async fn turn_end(events: &mut Subscription) -> TurnEnd {
    let event = until(events, |kind| matches!(kind, EventKind::TurnEnded { .. })).await;
    let EventKind::TurnEnded { end, .. } = &event.kind else { unreachable!() };
    end.clone()
}
