//! The providers with a server against what their vendors publish: `mem0` with the real library behind a small server, and the requests
//! of `honcho` beside those of the vendor's client. The programs are in `tests/memory-services`; `cargo xtask memory-services`
//! installs the packages and runs this.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermes_tests::{Call, Home, Output, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::service::{Answer, Service};
use crate::fixtures::{honcho, mem0};

const TODAY: &str = "2026-11-21T09:00:00Z";
const TOMORROW: &str = "2026-11-22T09:00:00Z";

/// A Python with the packages of `tests/memory-services/requirements.txt`.
fn python() -> PathBuf {
    std::env::var_os("HERMES_MEMORY_PYTHON").expect("`cargo xtask memory-services` sets it").into()
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("memory-services").join(name)
}

/// The library behind a server, and in front of it a service that loses answers.
struct Library {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Library {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(python())
            .arg(program("mem0_server.py"))
            .arg(folder.path())
            .env("MEM0_API_KEY", mem0::KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let port = address.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        Self { process, port: port.expect("the server prints its address"), _folder: folder }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The texts of memories that a search answered with.
fn memories(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    results.iter().map(|memory| memory["memory"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
#[ignore = "needs packages of Python: cargo xtask memory-services"]
fn mem0_works_with_the_vendors_library() {
    let library = Library::start();
    let port = library.port;
    let loses_answers = Arc::new(AtomicBool::new(false));
    let loses = Arc::clone(&loses_answers);
    let service = Service::start_at(0, move |asked| {
        let answer = asked.forwarded(port);
        let is_lost = asked.body["infer"] == true && loses.swap(false, Ordering::SeqCst);
        if is_lost { Answer::Broken } else { answer }
    });
    // The model calls tools if the user's message begins so; ids come from the result before.
    let server = Server::answering(|body, number| {
        let prompt = hermes_tests::wire::last_user_text(body).lines().next().unwrap_or_default().to_owned();
        let results = hermes_tests::wire::trailing_results(body);
        let last: Value = results.last().and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
        let call =
            |name: &str, arguments: Value| Reply::calls([Call::new(&format!("call_{number}"), name, &arguments)]);
        let id = last["results"][0]["id"].clone();
        match (prompt.as_str(), last.is_null()) {
            ("Search it." | "Change it." | "Delete it.", true) => call("mem0_search", json!({ "query": "ferry" })),
            ("Change it.", false) if id.is_string() => {
                call("mem0_update", json!({ "memory_id": id, "text": "The ferry leaves at 08:15." }))
            }
            ("Delete it.", false) if id.is_string() => call("mem0_delete", json!({ "memory_id": id })),
            ("Keep it.", true) => call("mem0_add", json!({ "content": "Ada rows on Sundays" })),
            ("Miss it.", true) => call("mem0_delete", json!({ "memory_id": "00000000-0000-4000-8000-000000000000" })),
            _ => Reply::text("Noted."),
        }
    });
    let home = Home::with(&server);
    home.set("memory.provider", json!("mem0"));
    home.set("plugins.entries.mem0", json!({ "host": service.url(), "user_id": "ada" }));
    let say_with = |key: &str, text: &str, at: &str, options: &[&str]| -> Output {
        home.hermes(&[&["-z", text][..], options].concat()).env("MEM0_API_KEY", key).at(at).run().success()
    };
    let say = |text: &str, at: &str, options: &[&str]| say_with(mem0::KEY, text, at, options);
    // What the library has, through its own interface.
    let stored = || -> Vec<String> {
        let mut texts = memories(&ask(port, "GET", "/memories?user_id=ada"));
        texts.sort();
        texts
    };
    let result = |text: &str| {
        say(text, TODAY, &[]);
        server.last_turn().trailing_results().last().map(|(_, text)| (*text).to_owned()).unwrap_or_default()
    };

    // A turn is extracted by the library's pipeline, and a later session recalls it.
    say("The ferry leaves at 07:45.", TODAY, &[]);
    assert_eq!(stored(), ["The ferry leaves at 07:45."]);
    say("When does the ferry leave?", TODAY, &[]);
    let sent = server.last_turn().last_user_text().to_owned();
    assert!(sent.contains("<memory-context ") && sent.contains("07:45"), "{sent}");

    // The tools.
    assert!(result("Search it.").contains("The ferry leaves at 07:45."));
    assert!(result("Change it.").contains("Memory updated."));
    assert!(result("Search it.").contains("The ferry leaves at 08:15."));
    assert!(result("Keep it.").contains("Fact stored."));
    assert!(result("Miss it.").contains("Memory not found"));
    assert!(stored().contains(&"Ada rows on Sundays".to_owned()));
    assert!(result("Delete it.").contains("Memory deleted."));
    let left = stored();
    assert!(!left.iter().any(|text| text.contains("ferry leaves")), "{left:?}");

    // The answer to a turn is lost: the library finds it by its metadata, and it is not stored twice.
    loses_answers.store(true, Ordering::SeqCst);
    say("My sister is called Grace.", TODAY, &[]).says(&["mem0", "1 turn waits"]);
    say("She lives in Youghal.", TOMORROW, &["--continue"]);
    let turns = stored();
    for text in ["My sister is called Grace.", "She lives in Youghal."] {
        assert_eq!(turns.iter().filter(|stored| *stored == text).count(), 1, "{turns:?}");
    }
    let writes = service.asked().into_iter().filter(|asked| asked.body.to_string().contains("Grace"));
    assert_eq!(writes.filter(|asked| asked.body["infer"] == true).count(), 1);

    // What the model refuses is set aside, and a wrong key costs no turn.
    say("This is unspeakable.", TOMORROW, &["--continue"]).says(&["mem0", "provider_bad_request", "set aside"]);
    say_with("m0-wrong-0123456789", "I have a dog.", TOMORROW, &["--continue"])
        .says(&["Invalid API key", "1 turn waits"]);
    say("It is called Nemo.", "2026-11-23T09:00:00Z", &["--continue"]);
    let all = stored();
    assert!(all.contains(&"I have a dog.".to_owned()) && all.contains(&"It is called Nemo.".to_owned()), "{all:?}");
    assert!(!all.iter().any(|text| text.contains("unspeakable")), "{all:?}");
    println!("mem0 with mem0ai: {} requests, {} memories in the end", service.asked().len(), all.len());
}

/// A request to the library's server, past Hermes.
fn ask(port: u16, method: &str, target: &str) -> Value {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "{method} {target} HTTP/1.0\r\nx-api-key: {}\r\n\r\n", mem0::KEY).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
#[ignore = "needs packages of Python: cargo xtask memory-services"]
fn honcho_sends_what_the_vendors_client_sends() {
    const KEY: &str = "honcho-key-0123456789abcdef";
    let backend = honcho::StandIn::default();
    let service = backend.serve(0);
    let calls = [
        ("honcho_search", json!({ "query": "albatross" })),
        ("honcho_conclude", json!({ "conclusion": "Ada rows on Sundays" })),
        ("honcho_conclude", json!({ "list": true })),
        ("honcho_conclude", json!({ "list": true, "query": "rowing" })),
        ("honcho_profile", json!({ "card": ["IDENTITY: Ada"] })),
        ("honcho_profile", json!({})),
        ("honcho_context", json!({})),
        ("honcho_reasoning", json!({ "query": "When does Ada row?", "reasoning_level": "minimal" })),
        ("honcho_conclude", json!({ "delete_id": "conclusion-0" })),
    ];
    let count = calls.len();
    let server = Server::answering(move |_, number| match calls.get(number) {
        Some((tool, arguments)) => Reply::calls([Call::new(&format!("call_{number}"), tool, arguments)]),
        None => Reply::text(format!("Answer {number}.")),
    });
    let home = Home::with(&server);
    home.set("memory.provider", json!("honcho"));
    home.set("plugins.entries.honcho", json!({ "baseUrl": service.url(), "peerName": "ada" }));
    let hermes = |arguments: &[&str], at: &str| home.hermes(arguments).env("HONCHO_API_KEY", KEY).at(at);
    // The turn is stored a day later, with its time.
    backend.state().refusal = Some((503, ("server", "honcho"), json!({ "detail": "not now" })));
    hermes(&["-z", "Use your memory."], TODAY).run().success();
    backend.state().refusal = None;
    // A second turn in a session that is there, and the user takes it back.
    let mut running = hermes(&["--continue"], TOMORROW).talking().spawn();
    running.say("My boat is the Albatross.");
    running.wait_for_stdout(&format!("Answer {}.", count + 1));
    service.wait_for("second turn", |asked| {
        asked.body.to_string().contains("Albatross.\"") && asked.path.ends_with("/messages")
    });
    running.say("/rewind");
    service.wait_for("mark", |asked| asked.method == "PUT" && asked.path.contains("/messages/"));
    running.wait().success();

    let requests: Vec<Value> = service
        .asked()
        .iter()
        .map(|asked| json!([asked.method, asked.path, asked.query, asked.body, asked.header("authorization")]))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.json");
    std::fs::write(&file, json!(requests).to_string()).unwrap();
    let compared = Command::new(python()).arg(program("honcho_client.py")).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(compared.status.success(), "{said}{}", String::from_utf8_lossy(&compared.stderr));
    println!("honcho with honcho-ai: {said}");
}
