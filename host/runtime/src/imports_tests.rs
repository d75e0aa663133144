//! Promises of the imports that need no component: their limits, and what they tell a plugin.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_bindings::imported;
use hermes_conversation::{Conversation, Draft, Header, Media, Message, MessageId, MessageRange, Part, Role};
use imported::history::Host as _;
use imported::info::Host as _;
use imported::llm::{self, Host as _};
use imported::random::Host as _;
use imported::task::Host as _;
use imported::types;

use crate::context::{Call, Context};
use crate::error::Fault;
use crate::limits::{Limits, Tier};
use crate::services::{History, HistoryHit, HistoryQuery, Level, Reporter, Services};

fn context(services: Services) -> Context {
    let limits = Limits::of(Tier::Tools);
    Context::new(services, limits, Arc::default(), Call::new(Duration::from_secs(5), &limits))
}

#[tokio::test]
async fn the_host_tells_its_version_and_limits_random_bytes() {
    let mut context = context(Services::nothing());
    assert_eq!(context.version().await, env!("CARGO_PKG_VERSION"));
    assert_eq!(context.bytes(70_000).await.len(), 65_536);
    let (one, other) = (context.bytes(16).await, context.bytes(16).await);
    assert_eq!(one.len(), 16);
    assert_ne!(one, other);
}

#[tokio::test]
async fn a_task_knows_its_time_and_whether_it_is_cancelled() {
    let mut context = context(Services::nothing());
    let left = context.time_left().await;
    assert!((1..=5_000).contains(&left) && !context.cancelled().await, "{left}");
    context.call.cancel();
    assert!(context.cancelled().await);
}

/// The lines of progress.
#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl Reporter for Shown {
    fn log(&self, _: Level, _: &str) {}

    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[tokio::test]
async fn progress_is_one_line() {
    let shown = Arc::new(Shown::default());
    let mut context = context(Services { reporter: shown.clone(), ..Services::nothing() });
    context.progress("halfway\nand more".to_owned()).await;
    assert_eq!(*shown.0.lock().unwrap(), ["halfway"]);
}

#[tokio::test]
async fn a_prompt_that_no_provider_takes_is_refused() {
    let mut context = context(Services { may_ask: true, ..Services::nothing() });
    let text = || vec![llm::Content::Text("hi".to_owned())];
    let message = |role, content| llm::PromptMessage { role, content, extra: Vec::new() };
    for (messages, code) in [
        (Vec::new(), "empty"),
        (vec![message(types::Role::User, Vec::new())], "empty"),
        (vec![message(types::Role::Tool, text())], "role"),
    ] {
        let request = llm::Request {
            task: "memory".to_owned(),
            messages,
            max_tokens: None,
            temperature: None,
            schema: None,
            extra: Vec::new(),
        };
        let error = context.complete(request).await.unwrap_err();
        assert!(matches!(error.kind, types::ErrorKind::InvalidInput), "{error:?}");
        assert_eq!(error.code, code);
    }
    // It needs no permission.
    assert!(context.count_tokens("some words".to_owned()).await > 0);
}

/// A conversation, and the searches in it.
#[derive(Default)]
struct Searched {
    conversation: Conversation,
    queries: Mutex<Vec<HistoryQuery>>,
}

#[async_trait]
impl History for Searched {
    fn whole(&self) -> Option<MessageRange> {
        self.conversation.whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        self.conversation.headers_after(after).to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        self.conversation.headers_in(range).to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        self.conversation.read(range, bytes)
    }

    async fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        self.queries.lock().unwrap().push(query.clone());
        Ok(Vec::new())
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}

fn reading(history: &Arc<Searched>) -> Context {
    context(Services { history: history.clone(), may_read: true, ..Services::nothing() })
}

#[tokio::test]
async fn a_search_of_a_long_text_is_refused_and_hits_are_limited() {
    let history = Arc::new(Searched::default());
    let mut context = reading(&history);
    let query = |text: String| imported::history::Query {
        text,
        matching: imported::history::Matching::Any,
        roles: Vec::new(),
        tools: Vec::new(),
        within: None,
        offset: 7,
        limit: 5_000,
        extra: Vec::new(),
    };
    let error = context.search(query("x".repeat((64 << 10) + 1))).await.unwrap_err();
    assert_eq!(error.code, "too-long");
    context.search(query("x".repeat(64 << 10))).await.unwrap();
    let queries = history.queries.lock().unwrap();
    assert_eq!(queries.iter().map(|query| (query.offset, query.limit)).collect::<Vec<_>>(), [(7, 100)]);
}

#[tokio::test]
async fn a_page_has_up_to_four_mebibytes_and_names_the_next_message() {
    let long = Draft::user("x".repeat(3 << 20), 1);
    let messages = [long.clone(), long, Draft::user("last", 1)].into_iter().zip(1..);
    let conversation = Conversation::new(messages.map(|(draft, id)| draft.numbered(MessageId(id))));
    let mut context = reading(&Arc::new(Searched { conversation, ..Searched::default() }));
    let whole = context.whole().await.unwrap().unwrap();
    assert_eq!((whole.first, whole.last), (1, 3));
    let page = context.read(whole).await.unwrap();
    assert_eq!((page.messages.len(), page.next), (1, Some(2)));
    let page = context.read(types::MessageRange { first: 2, last: 3 }).await.unwrap();
    assert_eq!((page.messages.len(), page.next), (2, None));
}

/// They are in no other message, so an engine that folds this one would lose them.
#[tokio::test]
async fn an_engine_reads_the_results_of_subagents_that_came_with_a_message() {
    let mut said = Draft::user("Go on.", 1);
    said.sent = Some(
        "Go on.\n\n<memory-context>\nTea.\n</memory-context>\n\n<subagent-results>\nFound.\n</subagent-results>"
            .to_owned(),
    );
    let conversation = Conversation::new([said.numbered(MessageId(1))]);
    let mut context = reading(&Arc::new(Searched { conversation, ..Searched::default() }));
    let page = context.read(types::MessageRange { first: 1, last: 1 }).await.unwrap();
    assert_eq!(page.messages[0].content, "Go on.\n\n<subagent-results>\nFound.\n</subagent-results>");
}

#[tokio::test]
async fn messages_with_pictures_have_parts_and_others_none() {
    let picture = Part::Image(Media::image_at("https://example.org/a.png").unwrap());
    let drafts = [Draft::user("plain", 1), Draft::of_parts(Role::User, vec![Part::text("look"), picture], 2)];
    let messages = drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id)));
    let conversation = Conversation::new(messages);
    let mut context = reading(&Arc::new(Searched { conversation, ..Searched::default() }));
    let page = context.parts(types::MessageRange { first: 1, last: 2 }).await.unwrap();
    let [described] = &page.messages[..] else { panic!("{page:?}") };
    assert_eq!((described.id, described.parts.len(), page.next), (2, 2, None));
    assert!(matches!(&described.parts[0], types::Part::Text(text) if text == "look"), "{described:?}");
    assert!(matches!(&described.parts[1], types::Part::Image(_)), "{described:?}");
}
