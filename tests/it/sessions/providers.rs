//! One conversation over two providers in turn, with pictures, reasoning, results and a refusal. The payloads of a provider
//! go back to that provider and to no other.

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_reasoning_request, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Request, Server, unmarked};
use serde_json::{Value, json};

/// The start of a GIF picture of so many pixels.
fn picture(width: u8) -> Vec<u8> {
    vec![b'G', b'I', b'F', b'8', b'9', b'a', width, 0, 1, 0, 0, 0, 0]
}

fn thinking(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature})
}

fn redacted() -> Value {
    json!({"type": "redacted_thinking", "data": "aGlkZGVu"})
}

/// What the second provider returns and wants back.
fn details() -> [Value; 2] {
    [
        json!({"type": "reasoning.text", "text": "The gate.", "signature": "beta-signature", "format": "x-v1", "index": 0}),
        json!({"type": "reasoning.encrypted", "data": "beta-sealed", "id": "e1", "index": 1}),
    ]
}

fn replies() -> Vec<Reply> {
    let calls = |id: &str| {
        [
            Call::new(&format!("{id}_1"), "snap", &json!({})),
            Call::new(&format!("{id}_2"), "read_file", &json!({"path": "notes.txt"})),
        ]
    };
    vec![
        // The first provider.
        Reply::calls(calls("a")).saying("I look.").thinking([thinking("Two pictures.", "alpha-1"), redacted()]),
        Reply::text("A harbour.").thinking([thinking("", "alpha-2")]),
        Reply::refusal("I cannot tell who that is.").thinking([thinking("A person.", "alpha-3")]),
        Reply::text("It would name a person."),
        // The second one.
        Reply::calls(calls("b")).thinking(details()),
        Reply::refusal("I do not open gates."),
        Reply::text("Very well."),
        // The first one again, then the second one again.
        Reply::text("Back.").thinking([thinking("Again.", "alpha-4")]),
        Reply::text("Forth."),
    ]
}

/// The bytes of the messages up to the point where the next request goes on.
fn open(request: &Request) -> String {
    let messages = unmarked(request.raw_member("messages"));
    messages.strip_suffix(']').unwrap().to_owned()
}

/// How many payloads each request sent back, and how many it left out.
fn payloads(home: &Home) -> Vec<(u32, u32)> {
    let store = rusqlite::Connection::open(home.state_db()).unwrap();
    let mut rows = store.prepare("SELECT payloads_replayed, payloads_dropped FROM requests ORDER BY number").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn payloads_go_back_to_their_provider_and_every_request_is_valid() {
    let server = Server::scripted(replies());
    let home = Home::with_anthropic(&server);
    home.install_guest("camera", "camera", json!({}));
    home.set("plugins.enabled", json!(["camera"]));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    home.write_workspace("one.gif", picture(1));
    home.write_workspace("two.gif", picture(2));
    let alpha = |home: &Home| {
        home.set("model.provider", json!("alpha"));
        home.set("model.api_mode", json!("anthropic_messages"));
        home.set("model.base_url", json!(server.anthropic_url()));
    };
    let beta = |home: &Home| {
        home.set("model.provider", json!("beta"));
        home.set("model.api_mode", json!("chat_completions"));
        home.set("model.base_url", json!(server.url()));
    };
    let say = |text: &str, more: &[&str]| home.hermes(&[&["-z", text], more].concat()).run().success().stdout;

    // Every turn is a process of its own.
    alpha(&home);
    assert_eq!(say("What is this?", &["--image", "one.gif", "--image", "two.gif"]), "A harbour.\n");
    assert_eq!(say("Who is that?", &["--continue"]), "I cannot tell who that is.\n");
    assert_eq!(say("Why not?", &["--continue"]), "It would name a person.\n");
    beta(&home);
    assert_eq!(say("Open the gate.", &["--continue"]), "I do not open gates.\n");
    assert_eq!(say("Leave it, then.", &["--continue"]), "Very well.\n");
    alpha(&home);
    assert_eq!(say("Are you back?", &["--continue"]), "Back.\n");
    beta(&home);
    assert_eq!(say("And forth?", &["--continue"]), "Forth.\n");

    let turns = server.turns();
    let [first, .., back, forth] = &turns[..] else { panic!("{} requests", turns.len()) };
    let (alphas, betas) = (&turns[..4], &turns[4..7]);

    // Valid, each of them.
    alphas.iter().chain([back]).for_each(|request| assert_valid_anthropic_request(&request.body));
    assert_valid_request(&betas[0].body);
    betas[1..].iter().chain([forth]).for_each(|request| assert_valid_reasoning_request(&request.body));

    // The same bytes again, from every process, and after the other provider.
    for pair in alphas.windows(2).chain(betas.windows(2)).chain([&[alphas[3].clone(), back.clone()][..]]) {
        assert!(open(&pair[1]).starts_with(&open(&pair[0])), "{}\n{}", open(&pair[0]), open(&pair[1]));
    }
    assert!(open(forth).starts_with(&open(&betas[2])));

    // The payloads are where they belong, unchanged.
    let data = r#"{"type":"image","source":{"type":"base64","media_type":"image/"#;
    assert_eq!(first.raw_member("messages").matches(data).count(), 2);
    let sent = back.raw_member("messages");
    assert_eq!(sent.matches(data).count(), 4, "two of the user and one of each call");
    for payload in
        [thinking("Two pictures.", "alpha-1"), redacted(), thinking("", "alpha-2"), thinking("A person.", "alpha-3")]
    {
        assert!(sent.contains(&payload.to_string()), "{payload} is not in {sent}");
    }
    assert!(!sent.contains("beta-") && !sent.contains("reasoning_details"), "{sent}");
    for request in betas.iter().chain([forth]) {
        let sent = request.raw_member("messages");
        assert!(!sent.contains("alpha-") && !sent.contains("thinking") && !sent.contains("aGlkZGVu"), "{sent}");
        assert_eq!(sent.contains("reasoning_details"), request.raw != betas[0].raw);
    }
    let replayed = betas[1].messages().iter().find(|message| message.get("reasoning_details").is_some()).unwrap();
    assert_eq!(replayed["reasoning_details"], json!(details()));

    let counted = [(0, 0), (2, 0), (3, 0), (4, 0), (0, 4), (1, 4), (1, 4), (4, 1), (1, 5)];
    assert_eq!(payloads(&home), counted);

    // The refusals are refusals in the log.
    let log = home.hermes(&["sessions", "export", &home.newest_session()]).run().success().stdout;
    assert_eq!(log.matches(r#""kind":"refusal""#).count(), 2, "{log}");
}
