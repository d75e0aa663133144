//! Every way in which a model's server fails, in each wire format: what the user reads, how often the request is sent, and that the
//! session goes on afterwards. `docs/use/model-failures.md` shows the result; run with `INSTA_UPDATE=always` to write it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_request, assert_valid_responses_request};
use hermes_tests::{Call, Home, Reply, Server, dead_endpoint};
use serde_json::{Value, json};

/// Text of a reply that must not be stored.
const HALF: &str = "Half an answer";
/// What a start of Hermes and a busy machine may add to the time of a failure.
const SLACK: Duration = Duration::from_secs(600);
/// `model.silence_timeout` of the silent servers, in seconds.
const SILENCE: u64 = 2;

/// A wire format: its name, how to select it, and events for a text and for the start of a call.
struct Mode {
    name: &'static str,
    /// Appended to the server's address.
    base: &'static str,
    /// Events of a stream that has said something and is not over.
    half: fn() -> String,
    /// Events that begin this call.
    call: fn(usize) -> String,
    /// An error in the middle of a stream.
    error: fn() -> String,
    check: fn(&Value),
}

const MODES: &[Mode] = &[
    Mode {
        name: "chat_completions",
        base: "/v1",
        half: chat_half,
        call: chat_call,
        error: chat_error,
        check: assert_valid_request,
    },
    Mode {
        name: "anthropic_messages",
        base: "",
        half: anthropic_half,
        call: anthropic_call,
        error: anthropic_error,
        check: assert_valid_anthropic_request,
    },
    Mode {
        name: "codex_responses",
        base: "/v1",
        half: responses_half,
        call: responses_call,
        error: responses_error,
        check: assert_valid_responses_request,
    },
];

fn event(name: &str, data: &Value) -> String {
    if name.is_empty() { format!("data: {data}\n\n") } else { format!("event: {name}\ndata: {data}\n\n") }
}

fn chat_half() -> String {
    event("", &json!({"choices": [{"index": 0, "delta": {"content": HALF}}]}))
}

fn chat_call(number: usize) -> String {
    let call = json!({"index": number, "id": format!("c{number}"), "type": "function",
        "function": {"name": "read_file", "arguments": "{}"}});
    event("", &json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
}

fn chat_error() -> String {
    event("", &json!({"error": {"message": "something broke", "type": "server_error", "code": "server_error"}}))
}

fn anthropic_half() -> String {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": HALF});
    [
        event("message_start", &json!({"type": "message_start", "message": message})),
        event("content_block_start", &json!({"type": "content_block_start", "index": 0, "content_block": block})),
        event("content_block_delta", &json!({"type": "content_block_delta", "index": 0, "delta": delta})),
    ]
    .concat()
}

fn anthropic_call(number: usize) -> String {
    let block = json!({"type": "tool_use", "id": format!("c{number}"), "name": "read_file", "input": {}});
    let start = json!({"type": "content_block_start", "index": number + 1, "content_block": block});
    event("content_block_start", &start)
}

fn anthropic_error() -> String {
    event("error", &json!({"type": "error", "error": {"type": "api_error", "message": "something broke"}}))
}

fn responses_half() -> String {
    let response = json!({"id": "r", "object": "response", "status": "in_progress", "model": "m", "output": []});
    let message = json!({"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []});
    let text = json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m",
        "delta": HALF});
    [
        event("response.created", &json!({"type": "response.created", "response": response})),
        responses_item(0, &message),
        event("response.output_text.delta", &text),
    ]
    .concat()
}

fn responses_call(number: usize) -> String {
    let call = json!({"type": "function_call", "id": format!("fc{number}"), "call_id": format!("c{number}"),
        "name": "read_file", "arguments": "", "status": "in_progress"});
    responses_item(number + 1, &call)
}

fn responses_item(at: usize, item: &Value) -> String {
    let added = json!({"type": "response.output_item.added", "output_index": at, "item": item});
    event("response.output_item.added", &added)
}

fn responses_error() -> String {
    let response = json!({"id": "r", "object": "response", "status": "failed", "model": "m", "output": [],
        "error": {"code": "server_error", "message": "something broke"}});
    event("response.failed", &json!({"type": "response.failed", "response": response}))
}

/// Bytes that are sent for a request. The connection is closed behind them, unless the server is silent from then on.
type Answer = Vec<u8>;

/// How long it takes until the user reads the error, from the first request on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    AtOnce,
    /// The waits that the server asks for: here, next to nothing.
    AsAsked,
    /// The waits that Hermes chooses: 2 s and 4 s, each with up to half of that on top.
    Chosen,
    /// A second try to connect.
    Reconnect,
    Silence,
}

impl Time {
    /// What the table says.
    fn words(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::AsAsked => "2 waits, each as asked",
            Self::Chosen => "2 waits, 9 s at most",
            Self::Reconnect => "1 wait, 0.3 s",
            Self::Silence => "`model.silence_timeout`",
        }
    }

    /// The shortest and the longest time that these words allow.
    fn bounds(self) -> (Duration, Duration) {
        let (least, most) = match self {
            Self::AtOnce | Self::AsAsked => (0, 0),
            Self::Chosen => (6_000, 9_000),
            Self::Reconnect => (300, 300),
            Self::Silence => (SILENCE * 1_000, SILENCE * 1_000),
        };
        (Duration::from_millis(least), Duration::from_millis(most))
    }

    /// How many waits the user reads of, and their seconds at most, together.
    fn announced(self) -> (usize, u32) {
        match self {
            // The same line is shown once.
            Self::AsAsked => (1, 0),
            Self::Chosen => (2, 9),
            Self::AtOnce | Self::Reconnect | Self::Silence => (0, 0),
        }
    }

    #[track_caller]
    fn assert_kept(self, fault: &str, took: Duration, stderr: &str) {
        let (least, most) = self.bounds();
        assert!(took >= least && took <= most + SLACK, "{fault}: took {took:?}, not {}", self.words());
        let waits: Vec<u32> = stderr
            .lines()
            .filter_map(|line| line.split_once("trying again in ")?.1.split_once(": "))
            .map(|(wait, _)| wait.trim_end_matches(" s").parse().unwrap_or(0))
            .collect();
        let (count, seconds) = self.announced();
        assert!(waits.len() == count && waits.iter().sum::<u32>() <= seconds, "{fault}: {waits:?} in {stderr}");
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A refusal in JSON that names no wait.
fn refused(status: &str, code: &str, message: &str) -> Answer {
    let body = json!({"error": {"message": message, "code": code}}).to_string();
    answer(status, "content-type: application/json\r\n", body.as_bytes())
}

/// A refusal that asks for a very short wait.
fn shortly(status: &str, message: &str) -> Answer {
    let body = json!({"error": {"message": message}}).to_string();
    answer(status, "content-type: application/json\r\nretry-after-ms: 1\r\n", body.as_bytes())
}

/// A stream that ends with the connection.
fn stream(body: &[u8]) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    [head.as_bytes(), body].concat()
}

/// The failures in the order of the table.
fn faults(mode: &Mode) -> Vec<(&'static str, Time, Answer)> {
    use Time::{AsAsked, AtOnce, Chosen, Silence};
    let half = (mode.half)();
    let too_many: String = (0..300).map(mode.call).collect();
    let page = b"<!doctype html><title>It works!</title>".as_slice();
    let html = "content-type: text/html\r\n";
    vec![
        ("401", AtOnce, refused("401 Unauthorized", "", "who are you")),
        ("402", AtOnce, refused("402 Payment Required", "", "your balance is empty")),
        ("403 for the key", AtOnce, refused("403 Forbidden", "", "this key may not use the model")),
        ("403 for the region", AtOnce, refused("403 Forbidden", "unsupported_country_region_territory", "not here")),
        ("403 for credit", AtOnce, refused("403 Forbidden", "", "Insufficient credits")),
        ("404", AtOnce, refused("404 Not Found", "", "no such model")),
        ("408", AsAsked, shortly("408 Request Timeout", "too slow")),
        ("413", AtOnce, refused("413 Content Too Large", "", "request entity too large")),
        ("429 with `Retry-After`", AsAsked, shortly("429 Too Many Requests", "slow down")),
        ("429 without `Retry-After`", Chosen, refused("429 Too Many Requests", "", "slow down")),
        ("500", AsAsked, shortly("500 Internal Server Error", "something broke")),
        ("501", AsAsked, shortly("501 Not Implemented", "not now")),
        ("520", AsAsked, answer("520 Unknown", "content-type: text/html\r\nretry-after-ms: 1\r\n", page)),
        ("529", AsAsked, shortly("529 Overloaded", "overloaded")),
        ("silence before a stream", Silence, Vec::new()),
        ("silence inside a stream", Silence, stream(half.as_bytes())),
        ("error inside a stream", AtOnce, stream(format!("{half}{}", (mode.error)()).as_bytes())),
        ("cut stream", AtOnce, stream(half.as_bytes())),
        ("garbage event", AtOnce, stream(format!("{half}data: {{\"nonsense\n\ndata: {{}}\n\n").as_bytes())),
        ("oversized line", AtOnce, stream(&[b"data: ".as_slice(), &vec![b'x'; 17 << 20]].concat())),
        // The five bytes are the beginning of a file of gzip.
        (
            "gzip",
            AtOnce,
            answer("200 OK", "content-type: application/json\r\ncontent-encoding: gzip\r\n", &[31, 139, 8, 0, 0]),
        ),
        ("redirect", AtOnce, answer("307 Temporary Redirect", "location: http://127.0.0.1:9/elsewhere\r\n", b"")),
        ("wrong content type", AtOnce, answer("200 OK", "content-type: image/png\r\n", b"\x89PNG and more")),
        ("web page with 200", AtOnce, answer("200 OK", html, page)),
        ("more calls than a turn can run", AtOnce, stream(format!("{half}{too_many}").as_bytes())),
    ]
}

/// When each request came.
type Arrivals = Arc<Mutex<Vec<Instant>>>;

/// A server that answers every request with the same bytes.
fn serve(bytes: Answer, is_silent: bool) -> (String, Arrivals) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let arrivals = Arrivals::default();
    let arrived = Arc::clone(&arrivals);
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut connection in listener.incoming().flatten() {
            if read_request(&mut connection) {
                arrived.lock().unwrap().push(Instant::now());
                // The client may hang up before it has everything.
                let _ = connection.write_all(&bytes);
                if is_silent {
                    held.push(connection);
                }
            }
        }
    });
    (address, arrivals)
}

/// The https address of a server that answers without TLS.
fn without_tls() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
            // Bytes that nobody has read would reset the connection before the client has read the answer.
            let _ = connection.read(&mut [0; 4096]);
        }
    });
    address
}

/// Reads a request to its end. False if the connection brought none.
fn read_request(connection: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if connection.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        } else {
            return false;
        }
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    connection.read_exact(&mut vec![0; length.unwrap_or(0)]).is_ok()
}

/// What the user reads: the code of the error and its cause.
fn outcome(stderr: &str) -> (String, String) {
    let error = stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("no error: {stderr}"));
    let code = error.rsplit_once('[').unwrap().1.trim_end_matches(']').to_owned();
    let why = stderr.lines().find_map(|line| line.strip_prefix("  why: ")).unwrap();
    let port = regex::Regex::new(r"127\.0\.0\.1:\d+").unwrap();
    let why = port.replace_all(why, "127.0.0.1:8000").replace(" (os error 111)", "");
    (code, why.replace('|', "\\|"))
}

/// Sends a message to a failing server, then one to a working server in the same session. Gives what the user reads.
fn tried(mode: &Mode, fault: &str, time: Time, address: &str, arrivals: &Arrivals) -> (String, String) {
    let works = Server::answering(|_, _| Reply::text("I am back."));
    let home = if mode.base.is_empty() { Home::with_anthropic(&works) } else { Home::with(&works) };
    home.set("model.api_mode", json!(mode.name));
    let working = if mode.base.is_empty() { works.anthropic_url() } else { works.url() };
    home.set("model.base_url", json!(address));
    if time == Time::Silence {
        home.set("model.silence_timeout", json!(SILENCE));
    }
    let started = Instant::now();
    let failed = home.hermes(&["-z", "first"]).run().refused();
    let begun = arrivals.lock().unwrap().first().copied().unwrap_or(started);
    time.assert_kept(fault, begun.elapsed(), &failed.stderr);
    assert_eq!(time == Time::Silence, failed.stderr.contains("model.silence_timeout"), "{failed}");
    let result = outcome(&failed.stderr);
    home.set("model.base_url", json!(working));
    home.set("model.silence_timeout", Value::Null);
    let next = home.hermes(&["-z", "second", "--continue"]).run().success();
    assert!(next.stdout.contains("I am back."), "{fault}: {next}");
    let request = works.last_turn();
    (mode.check)(&request.body);
    let sent = request.body.to_string();
    assert!(sent.contains("first") && sent.contains("second"), "{fault}: a message is lost: {sent}");
    let stored = json!(home.messages()).to_string();
    assert!(!stored.contains(HALF) && !sent.contains(HALF), "{fault}: half a reply is stored: {stored}");
    result
}

/// The row of each failure in a mode, and those in which no server answers at all.
fn rows(mode: &Mode) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = std::thread::scope(|scope| {
        let running: Vec<_> = faults(mode)
            .into_iter()
            .map(|(fault, time, bytes)| {
                scope.spawn(move || {
                    let (address, arrivals) = serve(bytes, time == Time::Silence);
                    let (code, why) = tried(mode, fault, time, &format!("{address}{}", mode.base), &arrivals);
                    let times = arrivals.lock().unwrap().len();
                    (fault.to_owned(), format!("{times} | {} | `{code}` | {why}", time.words()))
                })
            })
            .collect();
        running.into_iter().map(|row| row.join().unwrap()).collect()
    });
    let dead = dead_endpoint();
    for (fault, address) in
        [("refused connection", dead.trim_end_matches("/v1")), ("no TLS behind `https`", &without_tls())]
    {
        let time = Time::Reconnect;
        let (code, why) = tried(mode, fault, time, &format!("{address}{}", mode.base), &Arrivals::default());
        rows.push((fault.to_owned(), format!("0 | {} | `{code}` | {why}", time.words())));
    }
    rows
}

#[test]
fn every_failure_of_a_server_has_its_message_and_the_session_goes_on() {
    // Rows that are the same in every mode are one.
    let mut table: Vec<(String, BTreeMap<String, Vec<&str>>)> = Vec::new();
    for mode in MODES {
        for (at, (fault, row)) in rows(mode).into_iter().enumerate() {
            let row =
                row.replace("/v1/chat/completions", "/…").replace("/v1/messages", "/…").replace("/v1/responses", "/…");
            if table.len() <= at {
                table.push((fault, BTreeMap::new()));
            }
            table[at].1.entry(row).or_default().push(mode.name);
        }
    }
    let mut text =
        "| the server | modes | sent | time | code | what the user reads |\n|---|---|---|---|---|---|\n".to_owned();
    for (fault, outcomes) in table {
        for (row, modes) in outcomes {
            let modes = if modes.len() == MODES.len() { "all".to_owned() } else { modes.join(", ") };
            writeln!(text, "| {fault} | {modes} | {row} |").unwrap();
        }
    }
    let page = page();
    let old = std::fs::read_to_string(&page).unwrap();
    let start = old.find("| the server |").unwrap();
    let end = old[start..].find("\n\n").map_or(old.len(), |end| start + end + 1);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&page, format!("{}{text}{}", &old[..start], &old[end..])).unwrap();
        return;
    }
    assert_eq!(&old[start..end], text, "the table in {} is not what happens", page.display());
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/use/model-failures.md")
}

#[test]
fn unattended_work_goes_on_after_three_attempts_and_says_for_how_long() {
    let server = Server::answering(|_, number| match number {
        0..3 => Reply::error(503, "a break").header("retry-after-ms", "1"),
        _ => Reply::text("Back at work."),
    });
    let home = Home::with(&server);
    home.set("model.retry_for", json!(120));
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert!(output.stdout.contains("Back at work."), "{output}");
    let waits: Vec<&str> = output.stderr.lines().filter(|line| line.contains("trying again in")).collect();
    // The third wait is Hermes's own: the server asks for next to nothing, again and again.
    let last = waits.last().unwrap_or_else(|| panic!("no wait is shown: {output}"));
    let seconds = last.split_once("trying again in ").and_then(|(_, rest)| rest.split_once(" s ")?.0.parse().ok());
    assert!(seconds.is_some_and(|seconds: u32| (8..=12).contains(&seconds)), "{output}");
    assert!(last.contains("s more if it fails; Ctrl-C stops"), "{output}");
    assert_eq!(server.turns().len(), 4);
}

#[test]
fn a_key_that_was_replaced_while_a_session_runs_is_used_after_one_refusal() {
    const NEW: &str = "sk-replaced-0123456789abcdef";
    let server = Server::answering(|body, _| {
        if body["messages"].to_string().contains("second") {
            return Reply::error(401, "this key has expired");
        }
        Reply::text("Welcome.")
    });
    let home = Home::with(&server);
    home.set("model.api_key", json!("${SCRIPTED_KEY}"));
    home.write(".env", "SCRIPTED_KEY=sk-first-0123456789abcdef\n");
    let mut chat = home.hermes(&["chat"]).talking().spawn();
    chat.say("first");
    chat.wait_for_stdout("Welcome.");
    home.write(".env", format!("SCRIPTED_KEY={NEW}\n"));
    chat.say("second");
    chat.wait_for_stderr("this key has expired");
    chat.say("/quit");
    let output = chat.wait();
    let keys: Vec<String> =
        server.turns().iter().map(|request| request.header("authorization").unwrap_or_default().to_owned()).collect();
    let [first, second, third] = keys.as_slice() else { panic!("{keys:?}\n{output}") };
    assert!(first.contains("sk-first") && second.contains("sk-first"), "{keys:?}");
    assert!(third.contains(NEW), "{keys:?}");
    assert!(!output.stderr.contains(NEW) && !output.stdout.contains(NEW), "{output}");
}

/// One step of the task: it moves the end of the list down by a line, so that a step that runs twice shows.
fn step(number: usize) -> Reply {
    let edit = json!({"path": "list.txt", "old_string": "END", "new_string": format!("{number}\nEND")});
    Reply::calls([Call::new(&format!("call{number}"), "patch", &edit)])
}

/// Each request of a task of seven steps fails once: it is cut, refused, limited or left without an answer.
fn survives(seed: usize) {
    let tried: Mutex<BTreeSet<usize>> = Mutex::default();
    let server = Server::answering(move |body, _| {
        let done = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
        let reply = if done < 7 { step(done + 1) } else { Reply::text("All seven steps are done.") };
        if !tried.lock().unwrap().insert(done) {
            return reply;
        }
        match (seed + done) % 4 {
            0 => reply.saying("Now the next").disconnect_after(2),
            1 => Reply::error(529, "overloaded").header("retry-after-ms", "1"),
            2 => Reply::error(429, "slow down").header("retry-after-ms", "1"),
            _ => reply.saying("Now the").hang_after(1),
        }
    });
    let home = Home::with(&server);
    home.set("model.retry_for", json!(300));
    home.set("model.silence_timeout", json!(1));
    home.write_workspace("list.txt", "END\n");
    let output = home.hermes(&["-z", "Do the seven steps."]).run().success();
    assert!(output.stdout.contains("All seven steps are done."), "{output}");
    assert_eq!(
        std::fs::read_to_string(home.workspace().join("list.txt")).unwrap(),
        "1\n2\n3\n4\n5\n6\n7\nEND\n",
        "{output}"
    );
    assert_eq!(server.turns().len(), 16, "each of eight requests failed once\n{output}");
}

#[test]
fn a_task_survives_a_server_that_cuts_stalls_and_refuses_at_every_step() {
    let (short, long) = (0..2, 0..200);
    let seeds: Vec<usize> = hermes_test_data::at_length(short, long).collect();
    for some in seeds.chunks(8) {
        std::thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|seed| scope.spawn(move || survives(*seed))).collect();
            runs.into_iter().for_each(|run| run.join().unwrap());
        });
    }
}
