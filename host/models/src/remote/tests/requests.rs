//! Whole requests, head and body, of every wire format: a refactoring must not change one byte of them.

use super::*;
use crate::wire::tests::{shown, turn};

const TOOLS: &str = concat!(
    r#"[{"type":"function","function":{"name":"a","description":"does \"a\"","#,
    r#""parameters":{"type":"object", "z":1, "big":12345678901234567890}}},"#,
    r#"{"type":"function","function":{"name":"b","description":"d","parameters":{"anyOf":[{}],"properties":{}}}}]"#,
);
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;

/// The requests of a route: a conversation with tools and marks, and a single request for a reply with a schema.
async fn requests(provider: &str, path: &str, api_mode: &str) -> String {
    let server = Server::start(vec![answer("418 Teapot", "", "{}")]).await;
    let config = Wanted {
        provider: Some(provider.to_owned()),
        base_url: Some(format!("http://{}{path}", server.address)),
        model: Some("anthropic/claude-sonnet-4.5".to_owned()),
        api_key: Some(KEY.to_owned()),
        api_mode: Some(api_mode.to_owned()),
        context_length: Some(200_000),
        ..Wanted::default()
    };
    let route = resolve(&Wanted::default(), &|_| None, &config).unwrap();
    let remote = Remote::new(&route, &logins(), BRIEF).unwrap();

    let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "only now" };
    let mut prefix = Prefix::new(remote.style(), TOOLS, system).unwrap();
    for message in turn().iter().chain([&shown(Role::Assistant, "done"), &shown(Role::User, "  ")]) {
        prefix.push(&remote.style().render(message));
    }
    let breakpoints = Breakpoints { previous: Some(1), ..Breakpoints::default() };
    let model = &*route.model.name;
    let conversation = Request { model, breakpoints, max_tokens: Some(9), temperature: Some(0.5), ..request(&prefix) };
    remote.complete_with(Persistence::Once, &conversation, &mut |_| {}).await.unwrap_err();
    let once = Prefix::of(remote.style(), System::plain("be brief"), &[shown(Role::User, "count")]).unwrap();
    remote
        .complete_with(Persistence::Once, &Request { model, schema: Some(SCHEMA), ..request(&once) }, &mut |_| {})
        .await
        .unwrap_err();

    let requests = server.requests().into_iter().map(|(head, body)| {
        let agent = concat!("hermes/", env!("CARGO_PKG_VERSION"));
        let head = head.replace(&server.address, "HOST").replace("\r\n", "\n").replace(agent, "hermes/VERSION");
        format!("{head}\n\n{}\n", body.replace("},{", "},\n{"))
    });
    requests.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn requests_of_chat_completions() {
    insta::assert_snapshot!(requests("plain", "/v1", "chat_completions").await);
}

#[tokio::test]
async fn requests_of_chat_completions_with_marks() {
    insta::assert_snapshot!(requests("openrouter", "/api/v1", "chat_completions").await);
}

#[tokio::test]
async fn requests_of_the_responses_api() {
    insta::assert_snapshot!(requests("plain", "/v1", "codex_responses").await);
}

#[tokio::test]
async fn requests_of_anthropic_messages() {
    insta::assert_snapshot!(requests("anthropic", "", "anthropic_messages").await);
}

#[tokio::test]
async fn requests_of_anthropic_messages_at_a_gateway() {
    insta::assert_snapshot!(requests("gateway", "/anthropic", "anthropic_messages").await);
}
