#![allow(clippy::unwrap_used)]

use hermes_conversation::{Shown, ToolSchema};

use super::*;
use crate::{Breakpoints, System, ToolChoice, tools_json};

fn user(text: &str) -> Shown {
    Shown::words(Role::User, text)
}

fn tools() -> String {
    let schema = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: String::new(),
        parameters: r#"{"type":"object"}"#.to_owned(),
    };
    tools_json(&[schema("memory"), schema("read_file")])
}

async fn ask(messages: &[Shown], tools: &str, window: u32) -> (Result<Reply, ModelError>, Vec<String>) {
    let model = Model { provider: OFFLINE.to_owned(), name: OFFLINE.to_owned(), context_length: window };
    let mut prefix = Prefix::new(Style::PLAIN, tools, System::plain("s")).unwrap();
    for message in messages {
        prefix.push(&Style::PLAIN.render(message));
    }
    let request = Request {
        model: OFFLINE,
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    let mut shown = Vec::new();
    let reply = Offline::new(&model)
        .complete(&request, &mut |delta| {
            shown.push(match delta {
                Delta::Text(text) => text.to_owned(),
                other => panic!("{other:?}"),
            });
        })
        .await;
    (reply, shown)
}

async fn reply(messages: &[Shown]) -> Reply {
    ask(messages, &tools(), 32_000).await.0.unwrap()
}

#[tokio::test]
async fn several_commands_make_one_reply_with_several_calls() {
    let mut messages = vec![user("read a.txt\nremember tea is green\nsay done")];
    let (first, shown) = ask(&messages, &tools(), 32_000).await;
    let first = first.unwrap();
    let calls: Vec<(&str, &str)> = first.tool_calls.iter().map(|call| (&*call.id, &*call.name)).collect();
    assert_eq!(calls, [("offline_1_1", "read_file"), ("offline_1_2", "memory")]);
    assert_eq!((first.finish, &*first.text), (Finish::ToolCalls, ""));
    assert!(shown.is_empty(), "{shown:?}");

    messages.push(Shown { role: Role::Assistant, tool_calls: first.tool_calls.clone(), ..user("") });
    for (call, content) in first.tool_calls.iter().zip(["line one\nline two".to_owned(), "x".repeat(500)]) {
        messages.push(Shown { role: Role::Tool, tool_call_id: Some(call.id.clone()), ..user(&content) });
    }
    let second = reply(&messages).await;
    assert_eq!(second.finish, Finish::Stop);
    assert_eq!(second.text, format!("`read_file`: line one line two\n`memory`: {}…\ndone", "x".repeat(200)));
    assert_eq!(second, reply(&messages).await, "the same conversation gives the same reply");
}

#[tokio::test]
async fn a_missing_tool_is_named_and_not_called() {
    let reply = reply(&[user("search x\nwhatever")]).await;
    assert!(reply.tool_calls.is_empty());
    assert_eq!(
        reply.text,
        "The tool `search_files` is missing in this session, so I do not call it.\n\
         (1 of the lines are none of my commands; `help` lists them.)"
    );
    let (without, _) = ask(&[user("read x")], "", 32_000).await;
    assert!(without.unwrap().text.contains("`read_file` is missing"));
}

#[tokio::test]
async fn anything_else_is_answered_with_what_it_is() {
    for text in ["hello", "help", ""] {
        let reply = reply(&[user(text)]).await;
        assert!(reply.text.starts_with("I am the offline partner built into Hermes: no model is configured"), "{text}");
        assert!(reply.text.contains("call TOOL {JSON}") && reply.text.contains("run `hermes setup`"));
    }
}

#[tokio::test]
async fn words_stream_one_by_one_and_add_up() {
    let (reply, shown) = ask(&[user("say one two\tthree")], "[]", 32_000).await;
    assert_eq!(shown, ["one ", "two\t", "three"]);
    let usage = reply.unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.output), (1 + tokens::of_text("say one two\tthree") + 5, 3));
}

#[tokio::test(start_paused = true)]
async fn slow_pauses_between_words() {
    let begin = tokio::time::Instant::now();
    let (reply, shown) = ask(&[user("slow 250\nsay a b c")], "", 32_000).await;
    assert_eq!((reply.unwrap().text.as_str(), shown.len()), ("a b c", 3));
    assert_eq!(begin.elapsed(), Duration::from_millis(500));
    let (alone, _) = ask(&[user("slow 1")], "", 32_000).await;
    assert!(alone.unwrap().text.starts_with("Sentence 1"));
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_refused_as_a_real_provider_would() {
    let long = user(&format!("say {}", grammar::filler(3_000)));
    assert!(matches!(ask(&[long], "", 2_000).await.0, Err(ModelError::TooLong { .. })));
}

#[test]
fn a_text_of_strangers_is_told_without_its_marks() {
    let fenced = fence::Marks::repeatable().enclose(fence::UNTRUSTED_TEXT, "the sea is calm");
    assert_eq!(echo(&fenced), "the sea is calm");
    assert_eq!(echo("the sea\nis calm"), "the sea is calm");
}
