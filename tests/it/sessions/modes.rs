//! One conversation of twelve turns in each wire format, before a server that refuses whatever the types of the official SDKs, or
//! the rules of the services, refuse. In the middle, the model's server is overloaded for two turns, and a model of
//! `fallback_providers` with another wire format answers them.

use std::path::PathBuf;

use hermes_tests::oracle::{assert_extends, check_anthropic_request, check_reasoning_request, check_responses_request};
use hermes_tests::wire::Wire;
use hermes_tests::{Call, Home, Output, Reply, Request, SdkTypes, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::texts;

/// The Python that `cargo xtask test` gives the packages of `tests/sdk/requirements.txt`.
const PYTHON: &str = "HERMES_SDK_PYTHON";

fn python() -> Option<PathBuf> {
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        let why = format!(
            "{PYTHON} names no Python with the official SDKs; `cargo xtask test` installs them from the Python package \
             index, and says why if it cannot"
        );
        hermes_test_data::missing("the official Python SDKs", &why);
    }
    python
}

/// A provider: the name of its reasoning, its model, and its wire format.
#[derive(Clone, Copy)]
struct Provider {
    name: &'static str,
    model: &'static str,
    wire: Wire,
}

impl Provider {
    fn url(self, server: &Server) -> String {
        if self.wire == Wire::AnthropicMessages { server.anthropic_url() } else { server.url() }
    }

    /// Makes it the provider of the session's model.
    fn select(self, home: &Home, server: &Server) {
        home.set("model.provider", json!(self.name));
        home.set("model.default", json!(self.model));
        home.set("model.api_mode", json!(self.wire.name()));
        home.set("model.base_url", json!(self.url(server)));
    }

    /// Lets it answer while the session's model fails.
    fn stand_by(self, home: &Home, server: &Server) {
        let entry = json!({"provider": self.name, "model": self.model, "api_mode": self.wire.name(),
            "base_url": self.url(server)});
        home.set("fallback_providers", json!([entry]));
    }

    /// Reasoning in the form that it wants back. Its number is in the part that nobody else may get.
    fn thought(self, number: u32) -> [Value; 1] {
        let secret = format!("{}-{number}", self.name);
        let text = format!("Thought {number}.");
        [match self.wire {
            Wire::ChatCompletions => {
                json!({"type": "reasoning.text", "text": text, "signature": secret, "format": "x-v1", "index": 0})
            }
            Wire::AnthropicMessages => json!({"type": "thinking", "thinking": text, "signature": secret}),
            Wire::Responses => json!({"type": "reasoning", "id": format!("rs_{number}"),
                "summary": [{"type": "summary_text", "text": text}], "encrypted_content": secret}),
        }]
    }

    /// Panics unless the rules of its API allow the request.
    #[track_caller]
    fn assert_valid(self, request: &Request) {
        assert_eq!(request.wire, self.wire);
        let checked = match self.wire {
            Wire::ChatCompletions => check_reasoning_request(&request.body),
            Wire::AnthropicMessages => check_anthropic_request(&request.body),
            Wire::Responses => check_responses_request(&request.body),
        };
        assert_eq!(checked, Ok(()), "{}", request.body);
    }
}

/// A turn of the conversation: what is said, what the server replies, and what the user reads.
struct Turn {
    said: &'static str,
    replies: Vec<Reply>,
    shown: &'static str,
}

fn turn(said: &'static str, replies: impl IntoIterator<Item = Reply>, shown: &'static str) -> Turn {
    Turn { said, replies: replies.into_iter().collect(), shown }
}

fn read(id: &str, path: &str) -> Call {
    Call::new(id, "read_file", &json!({"path": path}))
}

fn snap(id: &str) -> Call {
    Call::new(id, "snap", &json!({}))
}

fn blink(id: &str) -> Call {
    Call::new(id, "blink", &json!({}))
}

/// How often a request is sent to the overloaded server before the fallback answers.
const TRIES: usize = 3;

/// What the overloaded server says to each try.
fn overloaded() -> impl Iterator<Item = Reply> {
    std::iter::repeat_n(Reply::error(529, "overloaded").header("retry-after-ms", "1"), TRIES)
}

/// The turns before the fallback answers.
fn first_half(own: Provider) -> Vec<Turn> {
    let missing = [read("c4", "missing.txt"), read("c5", "notes.txt")];
    vec![
        turn("What is this?", [Reply::text("A chart.").thinking(own.thought(1))], "A chart.\n"),
        turn(
            "Look at both.",
            [
                Reply::calls([snap("c1"), read("c2", "notes.txt")]).saying("I look.").thinking(own.thought(2)),
                Reply::text("Both are fine."),
            ],
            "Both are fine.\n",
        ),
        turn("Blink.", [Reply::calls([blink("c3")]), Reply::text("Nothing came.")], "Nothing came.\n"),
        turn(
            "Read what is missing.",
            [Reply::calls(missing).thinking(own.thought(3)), Reply::text("It is not there.")],
            "It is not there.\n",
        ),
        turn("Who is that?", [Reply::refusal("I cannot tell.")], "I cannot tell.\n"),
        turn("Why not, 友よ? 🌊", [Reply::text("Grüße! 🌊").thinking(own.thought(4))], "Grüße! 🌊\n"),
    ]
}

/// The turns in which the first provider fails. It rests then, for every process of the home, so the next turn does not ask it.
fn turns_of_the_fallback(other: Provider) -> Vec<Turn> {
    let calls = Reply::calls([read("c6", "notes.txt"), snap("c7")]).thinking(other.thought(5));
    let still = Reply::text("Still here.").thinking(other.thought(6));
    vec![
        turn("Who are you?", overloaded().chain([calls, Reply::text("A stand-in.")]), "A stand-in.\n"),
        turn("Still here?", [still], "Still here.\n"),
    ]
}

/// The turns after them. The third of the replies breaks off.
fn second_half(own: Provider) -> Vec<Turn> {
    let wrong = [Call::new("c11", "read_file", &json!("notes.txt")), Call::new("c12", "no_such_tool", &json!({}))];
    let many = (0..20).map(|number| read(&format!("d{number}"), "notes.txt"));
    vec![
        turn(
            "Are you back?",
            [
                Reply::calls([snap("c8")]).thinking(own.thought(7)),
                Reply::calls([snap("c9"), blink("c10")]).thinking(own.thought(8)),
                Reply::text("I am."),
            ],
            "I am.\n",
        ),
        turn("Go on.", [Reply::text("Half an answer").in_steps_of(4).disconnect_after(5)], ""),
        turn("Once more.", [Reply::calls(wrong), Reply::text("Neither worked.")], "Neither worked.\n"),
        turn("Thank you.", [Reply::calls(many).thinking(own.thought(9)), Reply::text("Gladly.")], "Gladly.\n"),
    ]
}

/// Says each turn in a process of its own.
fn say(home: &Home, turns: &[Turn]) -> Vec<Output> {
    let say_one = |turn: &Turn| {
        let begins = home.sessions_json().is_empty();
        let more = if begins { &["--image", "chart.gif"][..] } else { &["--continue"] };
        let output = home.hermes(&[&["-z", turn.said], more].concat()).run();
        if turn.shown.is_empty() {
            let refused = output.refused();
            assert!(refused.stderr.contains("model.cut"), "{refused}");
            return refused;
        }
        let output = output.success();
        assert_eq!(output.stdout, turn.shown, "{}", turn.said);
        output
    };
    turns.iter().map(say_one).collect()
}

fn converse(own: Wire, other: Wire) {
    let Some(python) = python() else { return };
    let own = Provider { name: "alpha", model: "gpt-5.4", wire: own };
    let other = Provider { name: "beta", model: "grok-4", wire: other };
    let [first, middle, last] = [first_half(own), turns_of_the_fallback(other), second_half(own)];
    let said: Vec<&str> = first.iter().chain(&middle).chain(&last).map(|turn| turn.said).collect();
    let replies = || first.iter().chain(&middle).chain(&last).flat_map(|turn| turn.replies.clone());
    let types = SdkTypes::start(&python);
    let server = Server::scripted(replies()).checking(move |wire, body| types.check(wire, body));
    let home = Home::with(&server);
    home.install_guest("camera", "camera", json!({}));
    home.set("plugins.enabled", json!(["camera"]));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    home.write_workspace("chart.gif", b"GIF89a\x01\0\x01\0\0\0\0");
    own.select(&home, &server);
    other.stand_by(&home, &server);

    for (turns, falls_back) in [(&first, false), (&middle, true), (&last, false)] {
        if !falls_back {
            // A minute later.
            let _ = std::fs::remove_file(home.path().join("rests.json"));
        }
        for output in say(&home, turns) {
            let told = output.stderr.matches("`grok-4` of beta answers").count();
            assert_eq!(told, usize::from(falls_back), "{output}");
        }
    }

    // Not one refusal: each request took a reply of the script.
    let requests = server.turns();
    assert_eq!(requests.len(), replies().count());
    let (owns, others): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(|request| request.wire == own.wire);
    assert_eq!(others.len(), 3, "the fallback answered other requests than those of its two turns");
    others.iter().for_each(|request| other.assert_valid(request));
    owns.iter().for_each(|request| own.assert_valid(request));
    owns.windows(2).for_each(|pair| assert_extends(&pair[0].body, &pair[1].body));
    others.windows(2).for_each(|pair| assert_extends(&pair[0].body, &pair[1].body));

    // Reasoning goes back to the provider that sent it, and to no other.
    let last = String::from_utf8_lossy(&owns.last().unwrap().raw).into_owned();
    for number in [1, 2, 3, 4, 7, 8, 9] {
        assert!(last.contains(&format!("\"alpha-{number}\"")), "thought {number} is missing: {last}");
    }
    assert!(!last.contains("beta-"), "{last}");
    let last = String::from_utf8_lossy(&others.last().unwrap().raw).into_owned();
    assert!(last.contains("\"beta-5\"") && !last.contains("alpha-"), "{last}");

    assert_eq!(said.len(), 12);
    assert_eq!(texts(&home.messages(), "user"), said);
    home.hermes(&["sessions", "check"]).run().success();
}

#[test]
fn twelve_turns_over_chat_completions_are_never_refused() {
    converse(Wire::ChatCompletions, Wire::AnthropicMessages);
}

#[test]
fn twelve_turns_over_anthropics_messages_are_never_refused() {
    converse(Wire::AnthropicMessages, Wire::Responses);
}

#[test]
fn twelve_turns_over_the_responses_api_are_never_refused() {
    converse(Wire::Responses, Wire::ChatCompletions);
}

/// A small valid request, and where its list of messages is.
fn small(wire: Wire) -> (Value, &'static str) {
    let user = json!([{"role": "user", "content": "hi"}]);
    match wire {
        Wire::ChatCompletions => (json!({"model": "m", "stream": true, "messages": user}), "messages"),
        Wire::AnthropicMessages => {
            (json!({"model": "m", "stream": true, "max_tokens": 9, "messages": user}), "messages")
        }
        Wire::Responses => (json!({"model": "m", "stream": true, "store": false, "input": user}), "input"),
    }
}

#[test]
fn the_types_of_the_sdks_refuse_what_a_provider_refuses() {
    let Some(python) = python() else { return };
    let types = SdkTypes::start(&python);
    for wire in [Wire::ChatCompletions, Wire::AnthropicMessages, Wire::Responses] {
        let (good, messages) = small(wire);
        assert_eq!(types.check(wire, &good), Ok(()));
        for (place, key, value, rule) in [
            ("", "session", json!("x"), "session"),
            ("/0", "id_of_log", json!(1), "id_of_log"),
            ("/0", "content", json!(1), "content"),
            ("", messages, json!([]), "nothing to answer"),
        ] {
            let mut bad = good.clone();
            let place = if place.is_empty() { String::new() } else { format!("/{messages}{place}") };
            bad.pointer_mut(&place).unwrap()[key] = value;
            let refused = types.check(wire, &bad).unwrap_err();
            assert!(refused.contains(rule), "{wire:?}: {refused} for {bad}");
        }
    }
}
