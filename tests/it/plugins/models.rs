//! Plugins that ask models: pictures, streams and vectors of texts, through the binary. The guest `tests/guests/inquirer` asks what
//! the scripted model requests; the guest `tests/guests/mapper` is an embedder.

use std::time::Duration;

use hermes_tests::{Call, Home, Output, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::listener::{Listener, Received};

/// A model that makes these calls in its first reply, and answers plugins with `to_plugins`.
fn model(calls: &[(&str, Value)], to_plugins: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    let calls: Vec<Call> =
        (1..).zip(calls).map(|(at, (tool, how))| Call::new(&format!("call_{at}"), tool, how)).collect();
    Server::answering(move |body, _| {
        let has_results = body["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool");
        match () {
            () if is_auxiliary(body) => to_plugins(),
            () if has_results => Reply::text("Done."),
            () => Reply::calls(calls.clone()),
        }
    })
}

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.install_guest("inquirer", "inquirer", json!({}));
    home.set("plugins.enabled", json!(["inquirer"]));
    home
}

/// One turn. Returns the results of the calls, in order.
fn results(home: &Home, server: &Server) -> (Vec<String>, Output) {
    let output = home.hermes(&["-z", "go"]).run().success();
    let last = server.last_turn();
    let found = last.trailing_results().into_iter();
    let found = found.map(|(_, text)| text.trim_start_matches("ErrorKind::").to_owned()).collect();
    (found, output)
}

fn how(how: &str) -> Value {
    json!({ "how": how })
}

#[test]
fn a_plugin_shows_a_model_a_picture() {
    let hows = ["", "unknown-blob", "wrong-type", "no-picture", "many", "later", "assistant"];
    let calls: Vec<_> = hows.iter().map(|name| ("look", how(name))).collect();
    let server = model(&calls, || Reply::text("A lamp."));
    let home = home(&server);
    let (found, output) = results(&home, &server);
    let expected = [
        "A lamp.",
        "InvalidInput not-found: no message of this conversation has the picture 0000",
        "InvalidInput media-type: a picture has the type image/png, not `image/jpeg`",
        "InvalidInput image: a picture: it is not a PNG, JPEG, WebP or GIF image",
        "InvalidInput too-many: a request has at most 16 pictures",
        "Unsupported unsupported: this version of Hermes cannot send a part of the kind `hologram`",
        "InvalidInput role: only messages of the role `user` have pictures",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?} {output}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    let asked: Vec<_> = server.requests().into_iter().filter(|request| request.is_auxiliary()).collect();
    assert_eq!(asked.len(), 1);
    let content = &asked[0].messages()[0]["content"];
    assert_eq!(content[0]["text"], "What is this?");
    assert!(content[1]["image_url"]["url"].as_str().is_some_and(|url| url.starts_with("data:image/png;base64,")));
}

#[test]
fn a_plugin_shows_a_model_a_picture_of_the_conversation() {
    let server = model(&[("look", how("blob"))], || Reply::text("The harbour."));
    let home = home(&server);
    // The start of a PNG picture of 2 by 3 pixels.
    home.write_workspace("harbour.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0");
    let output = home.hermes(&["-z", "What is this?", "--image", "harbour.png"]).run().success();
    assert_eq!(server.last_turn().trailing_results(), [("call_1", "The harbour.")], "{output}");
    let asked = server.requests().into_iter().find(|request| request.is_auxiliary()).expect("the plugin asked");
    assert!(asked.body.to_string().contains("data:image/png;base64,"), "{}", asked.body);
}

#[test]
fn a_model_without_vision_is_named_to_the_plugin() {
    let server = model(&[("look", how(""))], || Reply::text("A lamp."));
    let home = home(&server);
    home.set("model.default", json!("deepseek-chat"));
    let (found, _) = results(&home, &server);
    assert!(found[0].starts_with("Unsupported no-vision: deepseek-chat of custom reads no pictures"), "{found:?}");
    assert!(found[0].contains("set `auxiliary.vision.model`"), "{found:?}");
}

#[test]
fn a_reply_arrives_piece_by_piece_and_ends_with_its_call() {
    let hows = ["granted", "whole", "drop", "keep", "resume", "many"];
    let calls: Vec<_> = hows.iter().map(|name| ("stream", how(name))).collect();
    let server = model(&calls, || Reply::text("Once upon a time, there was a lamp.").every(Duration::from_millis(30)));
    let home = home(&server);
    let (found, output) = results(&home, &server);
    assert_eq!(found.len(), hows.len(), "{output}");
    assert_eq!(found[0], "true");
    let whole: Value = serde_json::from_str(&found[1]).unwrap_or_else(|error| panic!("{error}: {}", found[1]));
    let pieces: Vec<&str> = whole["pieces"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(pieces.len() > 1, "{whole}");
    assert_eq!(pieces.concat(), "Once upon a time, there was a lamp.");
    assert_eq!(
        (&whole["text"], &whole["nothing after"]),
        (&json!("Once upon a time, there was a lamp."), &json!(true))
    );
    for first in [&found[2], &found[3]] {
        assert!(first.starts_with("Some(Delta::Text(\"Once") || first.starts_with("Some(Text(\"Once"), "{first}");
    }
    assert!(found[4].starts_with("InvalidInput ended: the call that started this generation is over"), "{found:?}");
    assert!(found[5].starts_with("Exhausted generations: 8 generations are open already"), "{found:?}");
}

#[test]
fn a_stream_that_stops_ends_with_the_time_of_the_call() {
    let server =
        model(&[("stream", how("whole"))], || Reply::text("Once upon a time, there was a lamp.").hang_after(2));
    let home = home(&server);
    home.set("plugins.settings.inquirer.limits.tool_time", json!("2s"));
    let (found, _) = results(&home, &server);
    assert!(found[0].starts_with("Timeout "), "{found:?}");
}

/// A server of embeddings that records the bodies of requests.
struct Vectors(Listener);

impl Vectors {
    /// Answers each request with what the closure makes of its body.
    fn start(answer: impl Fn(&Value) -> Value + Send + 'static) -> Self {
        Self(Listener::start(move |Received { head, body }| {
            assert!(head.starts_with("POST /v1/embeddings "), "{head}");
            answer(&serde_json::from_str(body).unwrap_or_default()).to_string()
        }))
    }

    fn bodies(&self) -> Vec<Value> {
        let body = |request: &Received| serde_json::from_str(&request.body).unwrap_or_default();
        self.0.received().iter().map(body).collect()
    }

    fn select(&self, home: &Home) {
        let section = json!({ "base_url": self.0.url("/v1"), "model": "small", "api_key": "k" });
        home.set("auxiliary.embeddings", section);
    }
}

#[test]
fn a_plugin_gets_vectors_from_the_selected_model() {
    let vectors = Vectors::start(|body| {
        let rows = (0..).zip(body["input"].as_array().into_iter().flatten());
        // Out of order, as the API allows.
        let mut rows: Vec<Value> = rows
            .map(|(at, text)| json!({ "index": at, "embedding": [text.as_str().map_or(0, str::len), 1] }))
            .collect();
        rows.reverse();
        json!({ "data": rows, "model": "small", "usage": { "prompt_tokens": 3, "total_tokens": 3 } })
    });
    let texts = json!({ "texts": ["lamp", "", "lamplighter"] });
    let calls = [
        ("vectors", texts),
        ("vectors", how("resolve")),
        ("vectors", how("too-many")),
        ("vectors", how("too-long")),
        ("vectors", how("nothing")),
    ];
    let server = model(&calls, || Reply::text("unused"));
    let home = home(&server);
    vectors.select(&home);
    let (found, output) = results(&home, &server);
    assert_eq!(found.len(), calls.len(), "{output}");
    // An empty text is sent as a space.
    assert_eq!(found[0], "small 2 1.00 0.86 0.99");
    assert_eq!(found[1], "custom small Some(2)");
    assert!(found[2].starts_with("InvalidInput too-many: 257 texts"), "{found:?}");
    assert!(found[3].starts_with("InvalidInput too-long: text 0"), "{found:?}");
    assert!(found[4].starts_with("InvalidInput empty"), "{found:?}");
    assert_eq!(vectors.bodies(), [json!({ "model": "small", "input": ["lamp", " ", "lamplighter"] })]);
}

#[test]
fn vectors_that_break_the_promise_and_a_missing_model_are_errors_for_the_plugin() {
    let vectors = Vectors::start(|_| json!({ "data": [{ "index": 0, "embedding": [1, null] }] }));
    let server = model(&[("vectors", json!({ "texts": ["lamp"] }))], || Reply::text("unused"));
    let home = home(&server);
    let (unset, _) = results(&home, &server);
    assert!(unset[0].starts_with("Unavailable no-model: `auxiliary.embeddings` names no embedding model"), "{unset:?}");
    assert!(unset[0].contains("set `auxiliary.embeddings.model`"), "{unset:?}");
    vectors.select(&home);
    let (wrong, _) = results(&home, &server);
    assert!(wrong[0].starts_with("Failed malformed: the embedding model small returned a number"), "{wrong:?}");
}

/// The result of `vectors` with the guest `mapper` as the embedder.
fn mapped(flaw: &str, arguments: Value) -> (String, Output) {
    let server = model(&[("vectors", arguments)], || Reply::text("unused"));
    let home = home(&server);
    home.install_guest("mapper", "mapper", json!({ "flaw": flaw }));
    home.set("auxiliary.embeddings.plugin", json!("mapper"));
    home.set("plugins.settings.mapper.limits", json!({ "tool_time": "60s", "cpu": "2s" }));
    let (found, output) = results(&home, &server);
    (found.into_iter().next().unwrap_or_else(|| panic!("no result {output}")), output)
}

#[test]
fn a_plugin_gets_vectors_from_another_plugin() {
    let (found, output) = mapped("none", json!({ "texts": ["the lamp", "the lamp", "two spoons"] }));
    assert!(found.starts_with("mapper/words 32 1.00 1.00 0."), "{found} {output}");
    assert_eq!(mapped("none", how("resolve")).0, "plugin mapper/words Some(32)");
}

#[test]
fn an_embedder_that_breaks_its_promise_harms_nobody() {
    for (flaw, expected) in [
        ("not-a-number", "Failed malformed: the embedder `mapper` returned a number for text 0 that is not finite"),
        ("short", "Failed malformed: the embedder `mapper` returned 3 numbers for text 0, not 32"),
        ("few", "Failed malformed: the embedder `mapper` returned 1 vectors for 2 texts"),
        ("no-dimensions", "Failed malformed: the embedder `mapper` has vectors of 0 numbers"),
        ("crashes", "Failed embedder: "),
        ("hangs", "Failed embedder: "),
        ("floods", "Failed embedder: "),
        ("asks-itself", "Denied recursion: the embedder `mapper`: denied: this plugin is the embedder"),
    ] {
        let (found, output) = mapped(flaw, json!({ "texts": ["a lamp", "a spoon"] }));
        assert!(found.starts_with(expected), "{flaw}: {found} {output}");
    }
}

#[test]
fn a_missing_embedder_takes_only_the_vectors_away() {
    let server = model(&[("vectors", json!({ "texts": ["a lamp"] }))], || Reply::text("unused"));
    let home = home(&server);
    home.set("auxiliary.embeddings.plugin", json!("inquirer"));
    let (other_kind, _) = results(&home, &server);
    assert!(other_kind[0].starts_with("Denied recursion"), "{other_kind:?}");
    let (_, output) = results(&home, &server);
    assert!(output.stderr.contains("the plugin `inquirer` is not a text embedder: it exports tools"), "{output}");
    home.set("auxiliary.embeddings.plugin", json!("nobody"));
    let (missing, output) = results(&home, &server);
    assert!(missing[0].starts_with("Unavailable no-model: the plugin `nobody`"), "{missing:?}");
    assert!(output.stderr.contains("there is no text embedder `nobody`; no plugin gets vectors of texts"), "{output}");
}
