//! The components in `tests/kept`, which name version 1.0.0 and are never rebuilt, and calls of each of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_bindings::exported::hooks::Notice;
use hermes_capabilities::documents::Documents;
use hermes_conversation::{Header, Item, Message, MessageId, MessageRange, Role};
use hermes_runtime::services::{EmbeddingRequest, History, HistoryHit, HistoryQuery, Purpose};
use hermes_runtime::{
    CacheState, Event, Fault, Instance, Invocation, Limits, Loaded, Moment, PlanRequest, Pressure, Query, Recipe,
    Runtime, Services, ToolEvent, TurnRecord, Verdict,
};

/// The plugins, by the names of their archives.
pub(crate) const KEPT: [&str; 10] = [
    "c-engine",
    "c-tools",
    "js-memory",
    "js-tools",
    "rust-embedder",
    "rust-engine",
    "rust-hooks",
    "rust-memory",
    "rust-skills",
    "rust-tools",
];

/// When each message of [`TwoMessages`] was written.
pub(crate) const WRITTEN_AT: u64 = 77;

/// A conversation of two messages. A search finds the first.
pub(crate) struct TwoMessages;

#[async_trait]
impl History for TwoMessages {
    fn whole(&self) -> Option<MessageRange> {
        Some(MessageRange::new(MessageId(1), MessageId(2)))
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        let header = |id: u64, role: Role| Header {
            id: MessageId(id),
            role,
            turn: 1,
            group: id,
            tool_name: None,
            tokens: 10,
            bytes: 40,
            images: 0,
            created_at: WRITTEN_AT,
        };
        let all = [header(1, Role::User), header(2, Role::Assistant)];
        all.into_iter().filter(|header| after.is_none_or(|after| header.id > after)).collect()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        self.headers_after(None).into_iter().filter(|header| range.contains(header.id)).collect()
    }

    fn read(&self, _: MessageRange, _: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        (Vec::new(), None)
    }

    async fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    async fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        let hit = HistoryHit { id: MessageId(1), session: "s".into(), excerpt: "a lamp".into(), score: 1.0 };
        Ok(vec![hit])
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}

/// Services for any plugin: two messages, and documents in memory.
pub(crate) fn services() -> Services {
    let documents = vec![Arc::new(Documents::in_memory())];
    Services { history: Arc::new(TwoMessages), may_read: true, may_hook: true, documents, ..Services::nothing() }
}

/// The component in an archive.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/kept/{name}-0.1.0.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().extension().is_some_and(|ending| ending == "wasm") {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            return bytes;
        }
    }
    panic!("{} contains no component", path.display());
}

/// Loads a kept plugin and calls what it exports.
pub(crate) async fn works(name: &str, runtime: &Runtime) {
    let loaded = runtime.load(&component(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serves(name, loaded).await;
}

/// Calls what a plugin exports.
pub(crate) async fn serves(name: &str, loaded: Arc<Loaded>) {
    let exports = loaded.exports();
    let limits = Limits::of(exports.tier());
    let recipe = Arc::new(Recipe { services: services(), ..Recipe::alone(name, loaded, limits) });
    let instance = Instance::new(recipe.clone());
    if exports.tools {
        let offered = instance.catalog().await.unwrap();
        assert_eq!(offered.iter().map(|tool| tool.schema.name.as_str()).collect::<Vec<_>>(), ["count"], "{name}");
        let arguments = r#"{"text": "two lamps"}"#.into();
        let invocation = Invocation { id: "1".into(), name: "count".into(), arguments, extra: Vec::new() };
        assert_eq!(recipe.call_tool(invocation).await.unwrap().content, "2 words", "{name}");
    }
    if exports.skills {
        let skills = instance.skills().await.unwrap();
        let document = instance.skill(skills[0].name.clone(), None).await.unwrap();
        assert!(!document.content.is_empty(), "{name}");
    }
    if exports.hooks {
        hooks(name, &instance).await;
    }
    if exports.memory_provider {
        memory(name, &instance).await;
    }
    if exports.context_engine {
        instance.assess(&pressure()).await.unwrap();
        let view = vec![(Item::Messages(MessageRange::new(MessageId(1), MessageId(2))), 20)];
        let request = PlanRequest { pressure: pressure(), view, focus: None, memory_context: String::new() };
        instance.propose(&request).await.unwrap();
        let status: serde_json::Value = serde_json::from_str(&instance.status().await.unwrap()).unwrap();
        assert!(status.is_object(), "{name}: {status}");
    }
    if exports.embedder {
        let model = instance.describe().await.unwrap();
        let request = EmbeddingRequest { purpose: Purpose::Query, texts: vec!["a lamp".into(), String::new()] };
        let vectors = instance.embed(request).await.unwrap();
        let lengths: Vec<_> = vectors.iter().map(|vector| u32::try_from(vector.len()).ok()).collect();
        assert_eq!(lengths, [model.dimensions; 2], "{name}");
    }
}

/// The hook asks about dangerous words, and lets an event pass that only a later version has.
async fn hooks(name: &str, instance: &Instance) {
    assert!(instance.interests().await.unwrap().contains(&"before-tool".to_owned()), "{name}");
    let call = ToolEvent {
        call_id: "1".into(),
        name: "terminal".into(),
        arguments: r#"{"command": "rm -rf /"}"#.into(),
        plugin: "hermes".into(),
        extra: Vec::new(),
    };
    assert!(matches!(instance.on_event(Event::BeforeTool(call)).await.unwrap(), Verdict::Ask(_)), "{name}");
    let titled = Notice { name: "session-titled".into(), json: r#"{"title": "lamps"}"#.into() };
    assert!(matches!(instance.on_event(Event::Other(titled)).await.unwrap(), Verdict::Proceed), "{name}");
}

/// The provider stores a note and recalls it.
async fn memory(name: &str, instance: &Instance) {
    let turn = TurnRecord {
        session: "s".into(),
        number: 1,
        ended_at: 1,
        author: None,
        user: "remember that the lamp is green".into(),
        assistant: "noted".into(),
        interrupted: false,
        messages: MessageRange::new(MessageId(1), MessageId(2)),
    };
    instance.sync_turn(&turn).await.unwrap();
    let text = "which colour has the lamp?".to_owned();
    let query = Query { turn: 2, author: None, text, budget: 100, extra: Vec::new() };
    let recalled = instance.recall(query).await.unwrap();
    assert!(recalled.iter().any(|note| note.text.contains("green")), "{name}: {recalled:?}");
}

pub(crate) fn pressure() -> Pressure {
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
