//! A client and real servers: the scripted `server.py`, over its standard streams and over HTTP.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hermes_mcp::{
    Answer, Cause, Confinement, Endpoint, Found, Front, KeptListings, McpError, Program, Request, Said, Sampled,
    Sampling, Server, ServerDefinition, ToolChoice, WebAddress, limits, try_once,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");

#[derive(Default)]
struct Seen {
    questions: Mutex<Vec<String>>,
    /// The last one first.
    answers: Mutex<Vec<String>>,
    notices: Mutex<Vec<String>>,
    progress: Mutex<Vec<String>>,
    /// The tokens of the login, the first last.
    tokens: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl Front for Seen {
    fn notice(&self, text: String) {
        self.notices.lock().unwrap().push(text);
    }

    fn progress(&self, text: &str) {
        self.progress.lock().unwrap().push(text.to_owned());
    }

    fn log(&self, _: bool, _: &str) {}

    async fn ask(&self, question: String, _: Vec<String>, takes_values: bool) -> Option<String> {
        // Both fields of the form take a typed value.
        assert!(takes_values, "{question}");
        self.questions.lock().unwrap().push(question);
        // Longer than the limit of a call.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        self.answers.lock().unwrap().pop()
    }

    async fn token(&self, url: &url::Url, refused: Option<&str>) -> Result<Option<String>, String> {
        assert_eq!(url.path(), "/mcp");
        let mut tokens = self.tokens.lock().unwrap();
        if refused.is_some() {
            tokens.pop();
        }
        Ok(tokens.last().map(|token| (*token).to_owned()))
    }

    async fn sample(&self, request: Sampling) -> Result<Sampled, String> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let text = request.messages.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ");
        Ok(Sampled { text: format!("about {text}"), model: "scripted".to_owned(), is_cut: false })
    }

    fn is_attended(&self) -> bool {
        true
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("/work space")]
    }
}

struct Fixture {
    home: tempfile::TempDir,
    seen: Arc<Seen>,
    misbehaviour: Vec<&'static str>,
    timeout: Duration,
    connect_timeout: Duration,
}

impl Fixture {
    fn new(misbehaviour: &[&'static str]) -> Self {
        let seen = Arc::<Seen>::default();
        let patient = Duration::from_secs(60);
        let home = tempfile::tempdir().unwrap();
        Self { home, seen, misbehaviour: misbehaviour.to_vec(), timeout: patient, connect_timeout: patient }
    }

    fn definition(&self) -> ServerDefinition {
        let mut arguments = vec![SCRIPT.to_owned(), "--log".to_owned(), self.path("log").display().to_string()];
        arguments.extend(self.misbehaviour.iter().flat_map(|word| ["--do".to_owned(), (*word).to_owned()]));
        self.defined(Endpoint::Program(Program {
            command: "python3".to_owned(),
            arguments,
            variables: BTreeMap::from([("OWN".to_owned(), "value".to_owned())]),
            folder: self.home.path().to_owned(),
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            confinement: Confinement::off(),
        }))
    }

    fn defined(&self, endpoint: Endpoint) -> ServerDefinition {
        ServerDefinition {
            name: "fixture".to_owned(),
            endpoint,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            tools: ToolChoice::default(),
            trusts_hints: false,
            accepts_defaults: false,
            sampling: 0,
            instructions: 0,
            is_shared: false,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn kept(&self) -> KeptListings {
        KeptListings::new(hermes_private_files::FileDocuments::below(self.home.path()))
    }

    /// The kept list is as old as one that has to be asked for again.
    fn age_kept_list(&self) {
        let file = std::fs::File::options().write(true).open(self.path("mcp/fixture.json")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(10 * 24 * 60 * 60)).unwrap();
    }

    fn start(&self) -> Server {
        Server::start(self.definition(), Arc::clone(&self.seen) as Arc<dyn Front>, self.kept())
    }

    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn notices(&self) -> Vec<String> {
        self.seen.notices.lock().unwrap().clone()
    }

    async fn until_logged(&self, line: &str) {
        self.until(|| self.log().iter().any(|logged| logged == line)).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(600);
        while !is_so() {
            assert!(Instant::now() < until, "{:?} {:?}", self.log(), self.notices());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

async fn live(server: &Server) -> Arc<hermes_mcp::Listing> {
    match server.find(soon()).await {
        Found::Live(listing) => listing,
        other => panic!("{other:?}"),
    }
}

async fn call(server: &Server, tool: &str, arguments: Value) -> Result<Answer, McpError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    server.call(Request::Tool(tool.to_owned(), arguments)).await
}

async fn text(server: &Server, tool: &str) -> String {
    call(server, tool, json!({})).await.unwrap().text
}

#[tokio::test]
async fn a_program_lists_its_tools_and_answers_calls() {
    let fixture = Fixture::new(&["noise"]);
    let server = fixture.start();
    let listing = live(&server).await;
    assert_eq!((listing.software.as_str(), listing.tools.len()), ("fixture 1", 14));
    let echo = listing.tools.iter().find(|tool| tool.name == "echo").unwrap();
    assert!(echo.claims_to_read && echo.description == "Returns a text.");
    assert_eq!(echo.parameters, r#"{"type":"object","properties":{"text":{"type":"string"}}}"#);
    assert_eq!(call(&server, "echo", json!({"text": "hé"})).await.unwrap().text, "hé");
    let picture = call(&server, "picture", json!({})).await.unwrap();
    assert!(picture.images.len() == 1 && picture.images[0].starts_with(b"\x89PNG"));
    let failed = call(&server, "fail", json!({})).await.unwrap_err();
    assert_eq!(failed.cause, Cause::Refused("the disk is full".to_owned()));
    let unknown = call(&server, "nothing", json!({})).await.unwrap_err();
    assert_eq!(unknown.cause, Cause::Refused("unknown tool nothing".to_owned()));
    assert_eq!(text(&server, "roots").await, r#"["file:///work%20space"]"#);
    assert_eq!(fixture.notices(), [""; 0]);
    server.close().await;
    fixture.until_logged("input ended").await;
}

#[tokio::test]
async fn a_program_gets_only_the_variables_that_it_is_given_and_its_own_folder() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    let names: Vec<String> = serde_json::from_str(&text(&server, "environment").await).unwrap();
    assert!(!names.iter().any(|name| name.starts_with("CARGO") || name == "HOME"), "{names:?}");
    assert!(names.contains(&"OWN".to_owned()));
    assert_eq!(Path::new(&text(&server, "folder").await), fixture.home.path().canonicalize().unwrap());
}

#[tokio::test]
async fn resources_and_prompts_are_read() {
    let fixture = Fixture::new(&["library"]);
    let server = fixture.start();
    let listing = live(&server).await;
    assert!(listing.resources && listing.prompts);
    let text = async |request| server.call(request).await.unwrap().text;
    let listed: Value = serde_json::from_str(&text(Request::ListResources).await).unwrap();
    assert_eq!(listed["resources"][0]["uri"], "note://1");
    assert_eq!(text(Request::ReadResource("note://1".to_owned())).await, "[resource note://1]\nthe first note");
    let listed: Value = serde_json::from_str(&text(Request::ListPrompts).await).unwrap();
    assert_eq!(listed["prompts"][0]["name"], "greet");
    let Value::Object(arguments) = json!({"name": "Ada"}) else { panic!("it is an object") };
    assert_eq!(text(Request::GetPrompt("greet".to_owned(), arguments)).await, "[user]\nSay hello to Ada.");
}

#[tokio::test]
async fn a_server_asks_the_user_during_a_call_and_the_time_does_not_count() {
    let mut fixture = Fixture::new(&[]);
    fixture.timeout = Duration::from_secs(1);
    let server = fixture.start();
    live(&server).await;
    *fixture.seen.answers.lock().unwrap() = ["7", "much", "main"].map(str::to_owned).to_vec();
    let answer = text(&server, "ask").await;
    assert_eq!(answer, r#"{"action": "accept", "content": {"branch": "main", "count": 7}}"#);
    let questions = fixture.seen.questions.lock().unwrap().clone();
    assert!(questions[0].starts_with("the MCP server `fixture` asks: Which branch?\nBranch"), "{questions:?}");
    assert!(questions[2].ends_with("(the answer must be a whole number)"), "{questions:?}");
    // Nobody answers.
    assert_eq!(text(&server, "ask").await, r#"{"action": "cancel"}"#);
}

#[tokio::test]
async fn progress_is_shown_while_a_call_runs() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    assert_eq!(text(&server, "work").await, "worked");
    fixture.until(|| fixture.seen.progress.lock().unwrap().len() == 3).await;
    let progress = fixture.seen.progress.lock().unwrap().clone();
    assert_eq!(progress, ["step 1 (1 of 3)", "step 2 (2 of 3)", "step 3 (3 of 3)"]);
}

#[tokio::test]
async fn a_server_that_dies_costs_one_line_and_is_started_again_by_the_next_call() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    live(&server).await;
    let died = call(&server, "die", json!({})).await.unwrap_err();
    assert_eq!(died.cause, Cause::Ended("it ended with exit code 3: MemoryError: on purpose".to_owned()));
    assert_eq!(call(&server, "echo", json!({"text": "again"})).await.unwrap().text, "again");
    let notices = fixture.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("`fixture`") && notices[0].contains("exit code 3") && notices[0].contains("tries again")
    );
    assert_eq!(fixture.log().iter().filter(|line| *line == "initialize").count(), 2);
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone_for_a_while() {
    let mut fixture = Fixture::new(&["refuse"]);
    fixture.timeout = Duration::from_secs(1);
    let server = fixture.start();
    let mut causes = Vec::new();
    for _ in 0..5 {
        causes.push(call(&server, "echo", json!({})).await.unwrap_err().cause);
    }
    let resting = causes.iter().position(|cause| matches!(cause, Cause::Resting { .. })).unwrap();
    assert!(causes[..resting].iter().all(|cause| *cause == Cause::Refused("no thanks".to_owned())), "{causes:?}");
    let started = fixture.log().len();
    assert!(matches!(call(&server, "echo", json!({})).await.unwrap_err().cause, Cause::Resting { .. }));
    assert_eq!(fixture.log().len(), started);
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_limit_and_is_cancelled() {
    let mut fixture = Fixture::new(&[]);
    fixture.timeout = Duration::from_secs(1);
    let server = fixture.start();
    live(&server).await;
    let hung = call(&server, "hang", json!({})).await.unwrap_err();
    assert!(matches!(&hung.cause, Cause::Timeout { what, .. } if what == "a call of `hang`"), "{hung:?}");
    fixture.until_logged("cancelled").await;
    assert_eq!(call(&server, "echo", json!({"text": "still here"})).await.unwrap().text, "still here");
    for _ in 0..2 {
        call(&server, "hang", json!({})).await.unwrap_err();
    }
    // It has not answered twice in a row, so it was ended, and starts again.
    assert_eq!(call(&server, "echo", json!({"text": "new"})).await.unwrap().text, "new");
    assert_eq!(fixture.log().iter().filter(|line| *line == "initialize").count(), 2);
}

#[tokio::test]
async fn a_call_that_the_session_gives_up_is_cancelled() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    live(&server).await;
    let given_up = tokio::time::timeout(Duration::from_millis(500), call(&server, "hang", json!({}))).await;
    assert!(given_up.is_err());
    fixture.until_logged("cancelled").await;
}

#[tokio::test]
async fn a_server_that_floods_is_ended() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    live(&server).await;
    let flooded = call(&server, "flood", json!({})).await.unwrap_err();
    assert_eq!(flooded.cause, Cause::Flood(format!("more than {} messages without a pause", limits::MESSAGES)));
    for word in ["garbage", "endless_line"] {
        let fixture = Fixture::new(&[word]);
        let server = fixture.start();
        let Found::Missing(error) = server.find(soon()).await else { panic!("{word}") };
        assert!(matches!(error.cause, Cause::Flood(_)), "{word}: {error:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_call_with_the_reason() {
    let fixture = Fixture::new(&["huge"]);
    let server = fixture.start();
    live(&server).await;
    let error = call(&server, "echo", json!({})).await.unwrap_err();
    assert_eq!(error.cause, Cause::Flood("a message of more than 16 MiB".to_owned()));
}

#[tokio::test]
async fn junk_in_a_stream_over_http_ends_the_connection() {
    let fixture = Fixture::new(&["junk"]);
    let web = Web::start(&fixture);
    let definition = fixture.defined(web.at("/mcp", &[]));
    let server = Server::start(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    live(&server).await;
    let error = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(matches!(error.cause, Cause::Flood(_)), "{error:?}");
}

/// Answers that servers have given, and the text or the error that a call ends with.
const ODD_ANSWERS: [(&str, Result<&str, &str>); 20] = [
    (
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}{"id":ID,"result":{"content":"behind"}}"#,
        Ok("behind"),
    ),
    ("\0\0{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":\"nul\"}}\0", Ok("nul")),
    (r#"{"jsonrpc":"2.0","id":"ID.0","result":{"content":"id"}}"#, Ok("id")),
    (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost"}}"#, Err("lost")),
    (r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"lost"}}"#, Err("lost")),
    (r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32603,"message":"lost"}}"#, Err("lost")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"a text"}}"#, Ok("a text")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":{"type":"text","text":"an object"}}}"#, Ok("an object")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":"bare"}"#, Ok("bare")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"toolResult":{"a":1}}}"#, Ok(r#"{"toolResult":{"a":1}}"#)),
    (
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"video"},{"type":"text","text":"beside"}]}}"#,
        Ok("[content of the unknown type `video` is left out]\nbeside"),
    ),
    (r#"{"id":"ID","result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"v":NaN}}}"#, Ok("x")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"half \ud83d"}}"#, Ok("half \u{fffd}")),
    (r#"[{"jsonrpc":"2.0","id":ID,"result":{"content":"in a batch"}}]"#, Ok("in a batch")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"x" "y"}}"#, Err("its answer cannot be read: ")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":null}"#, Err("the tool answered with nothing")),
    (r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"E1","message":"who is required"}}"#, Err("who is required (E1)")),
    (r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":null}}"#, Err("the error -32000 and no message")),
    (r#"{"jsonrpc":"2.0","id":ID,"error":"full"}"#, Err("full")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"x","serverInfo":{}}}"#, Err("as if it were another one")),
];

/// Not one of them waits for its time limit, and none costs more than itself.
#[tokio::test]
async fn an_odd_answer_ends_its_call_at_once_over_both_transports() {
    let fixture = Fixture::new(&["raw"]);
    let web = Web::start(&fixture);
    let over_http = Server::start(
        fixture.defined(web.at("/mcp", &[])),
        Arc::clone(&fixture.seen) as Arc<dyn Front>,
        fixture.kept(),
    );
    let program = Fixture::new(&["raw"]);
    let over_streams = program.start();
    for (server, as_json) in [(&over_streams, false), (&over_http, false), (&over_http, true)] {
        live(server).await;
        for (raw, expected) in ODD_ANSWERS {
            let answer = call(server, "raw", json!({ "raw": raw, "as_json": as_json })).await;
            match (answer, expected) {
                (Ok(answer), Ok(text)) => assert_eq!(answer.text, text, "{raw}"),
                (Err(error), Err(why)) => assert!(error.cause.to_string().contains(why), "{raw}: {error:?}"),
                (answer, _) => panic!("{raw}: {answer:?}"),
            }
        }
        // Bytes that are no text.
        let latin =
            json!({ "raw": r#"{"id":ID,"result":{"content":"café"}}"#, "encoding": "latin-1", "as_json": as_json });
        assert_eq!(call(server, "raw", latin).await.unwrap().text, "caf\u{fffd}");
        assert_eq!(call(server, "echo", json!({ "text": "still here" })).await.unwrap().text, "still here");
    }
}

#[tokio::test]
async fn an_odd_tool_costs_itself_and_is_named() {
    let fixture = Fixture::new(&["odd_tools"]);
    let server = fixture.start();
    let listing = live(&server).await;
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(["bare", "null_schema", "bad_hint", "echo", "flood"].iter().all(|name| names.contains(name)), "{names:?}");
    assert_eq!(listing.tools.len(), 17);
    assert_eq!(
        listing.left_out,
        [
            "its tool `text_schema` is left out: the schema of its arguments is a text",
            "its tool number 19 is left out: it has no name",
            "its tool number 20 is left out: it has no name",
            "it lists two different tools `echo`: only the first is used",
        ]
    );
    assert_eq!(call(&server, "echo", json!({ "text": "hé" })).await.unwrap().text, "hé");
}

#[tokio::test]
async fn a_server_without_tools_says_why() {
    let silent = "it has no tools: its capabilities name neither tools, resources nor prompts";
    for (word, tools, line) in [
        ("null_list", 0, Some("its list of tools is `null` and counts as empty")),
        ("empty_list", 0, Some("it has no tools: its list of them is empty")),
        // Hermes does not request lists that the server does not offer.
        ("null_capability", 0, Some(silent)),
        ("null_capabilities", 0, Some(silent)),
        ("no_capabilities", 0, Some(silent)),
        ("other_capability", 0, Some(silent)),
    ] {
        let listing = live(&Fixture::new(&[word]).start()).await;
        assert_eq!(listing.tools.len(), tools, "{word}");
        let lines: Vec<&str> = listing.left_out.iter().map(String::as_str).collect();
        assert_eq!(lines, Vec::from_iter(line), "{word}");
    }
}

#[tokio::test]
async fn a_cursor_that_comes_again_ends_a_list() {
    for (word, tools) in [("endless", 14), ("two_cursors", 14)] {
        let fixture = Fixture::new(&[word]);
        let server = fixture.start();
        let listing = live(&server).await;
        assert_eq!(listing.tools.len(), tools, "{word}: {:?}", listing.left_out);
        assert_eq!(listing.left_out, ["its list of tools names a page twice and is read up to there"], "{word}");
    }
}

#[tokio::test]
async fn a_stream_of_nothing_ends_the_connection_and_says_why() {
    for word in ["idle_blank", "idle_comment"] {
        let fixture = Fixture::new(&[word]);
        let web = Web::start(&fixture);
        let definition = fixture.defined(web.at("/mcp", &[]));
        let server = Server::start(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
        let _ = server.find(soon()).await;
        let flooded = || match server.condition() {
            hermes_mcp::Condition::Failed(error) => {
                error.cause.to_string().contains("lines of a stream without content")
            }
            _ => false,
        };
        fixture.until(flooded).await;
    }
}

#[tokio::test]
async fn a_server_that_wants_its_stream_opened_again_at_once_waits() {
    let fixture = Fixture::new(&["idle_retry"]);
    let web = Web::start(&fixture);
    let definition = fixture.defined(web.at("/mcp", &[]));
    let begun = Instant::now();
    let server = Server::start(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    live(&server).await;
    let opened = || fixture.log().iter().filter(|line| *line == "stream").count();
    fixture.until(|| opened() >= 4).await;
    // Two at once, and then one after one second, two, four, and eight.
    let most = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    assert!(opened() <= most, "{} in {:?}", opened(), begun.elapsed());
    assert_eq!(call(&server, "echo", json!({ "text": "works" })).await.unwrap().text, "works");
}

#[tokio::test]
async fn a_program_that_ends_at_once_always_says_why() {
    let fixture = Fixture::new(&[]);
    let mut definition = fixture.definition();
    if let Endpoint::Program(program) = &mut definition.endpoint {
        program.command = "sh".to_owned();
        program.arguments = ["-c", "exec <&-; echo boom >&2; exit 3"].map(str::to_owned).to_vec();
    }
    for _ in 0..10 {
        let error = try_once(definition.clone(), Arc::<Seen>::default(), &Said::default()).await.unwrap_err();
        assert_eq!(error.cause, Cause::Ended("it ended with exit code 3: boom".to_owned()));
    }
}

#[tokio::test]
async fn empty_lists_of_resources_and_prompts_are_none() {
    for (word, has) in [("bare", false), ("library", true)] {
        let listing = live(&Fixture::new(&[word]).start()).await;
        assert_eq!((listing.resources, listing.prompts), (has, has), "{word}");
    }
}

#[tokio::test]
async fn lists_without_end_are_bounded() {
    let fixture = Fixture::new(&["many"]);
    let listing = live(&fixture.start()).await;
    assert_eq!(listing.tools.len(), limits::TOOLS);
    assert!(listing.left_out[0].starts_with("it offers 1014 tools"), "{:?}", listing.left_out);
}

#[tokio::test]
async fn a_session_does_not_wait_and_uses_the_last_list() {
    let mut fixture = Fixture::new(&["mute"]);
    fixture.connect_timeout = hermes_mcp::limits::PATIENCE + Duration::from_secs(1);
    let server = fixture.start();
    // Without a list it waits for a moment.
    let Found::Missing(error) = server.find(Instant::now()).await else { panic!("there is no list") };
    assert!(matches!(error.cause, Cause::Slow { .. }), "{error:?}");
    // The session uses none of its tools, so its failure needs no line.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(fixture.notices(), [""; 0]);

    let mut fixture = Fixture::new(&[]);
    let first = live(&fixture.start()).await;
    // The same program days later, which does not answer this time.
    fixture.age_kept_list();
    fixture.connect_timeout = Duration::from_millis(1);
    let server = fixture.start();
    let Found::Kept(listing, failure) = server.find(soon()).await else { panic!("there is a list") };
    assert_eq!(
        (&listing, failure.map(|error| error.cause.to_string())),
        (&first, Some("it did not answer within 0.0 s (connecting and listing its tools)".to_owned()))
    );
}

#[tokio::test]
async fn a_server_with_a_list_of_these_days_starts_at_its_first_call() {
    let fixture = Fixture::new(&[]);
    let first = live(&fixture.start()).await;
    let begun = || fixture.log().iter().filter(|line| *line == "initialize").count();
    assert_eq!(begun(), 1);
    let server = fixture.start();
    let Found::Kept(listing, None) = server.find(soon()).await else { panic!("its list is kept") };
    assert_eq!((&listing, begun()), (&first, 1));
    assert!(matches!(server.condition(), hermes_mcp::Condition::Idle(_)));
    text(&server, "folder").await;
    assert_eq!(begun(), 2);
    server.close().await;
    // A session refreshes an old kept list in the background.
    fixture.age_kept_list();
    let server = fixture.start();
    assert_eq!(live(&server).await, first);
    assert!(fixture.kept().read_fresh(server.definition()).is_some());
    // A list whose server lets it hold for a millisecond is refreshed, too.
    let fixture = Fixture::new(&["short_list"]);
    let server = fixture.start();
    live(&server).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let kept = fixture.kept();
    assert!(kept.read(server.definition()).is_some() && kept.read_fresh(server.definition()).is_none());
}

#[tokio::test]
async fn a_list_that_comes_late_is_kept_and_one_that_never_comes_is_waited_for_once() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    assert!(server.keep_list(soon()).await);
    assert!(fixture.kept().read(server.definition()).is_some());
    let fixture = Fixture::new(&["mute"]);
    let server = fixture.start();
    assert!(server.is_worth_waiting().await);
    assert!(!server.keep_list(Instant::now()).await);
    assert!(!server.is_worth_waiting().await);
    // A server that was corrected is waited for, as any new one.
    let mut corrected = fixture.definition();
    let Endpoint::Program(program) = &mut corrected.endpoint else { panic!("a program") };
    program.arguments.push("--do".to_owned());
    program.arguments.push("noise".to_owned());
    let server = Server::start(corrected, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    assert!(server.is_worth_waiting().await);
}

#[tokio::test]
async fn a_server_of_later_versions_only_is_greeted_in_their_way_and_that_is_remembered() {
    let fixture = Fixture::new(&["later"]);
    let server = fixture.start();
    let listing = live(&server).await;
    assert_eq!((listing.software.as_str(), listing.is_later, listing.tools.is_empty()), ("fixture 2", true, false));
    assert_eq!(call(&server, "echo", json!({"text": "now"})).await.unwrap().text, "now");
    server.close().await;
    let greeted = || fixture.log().iter().filter(|line| *line == "discover").count();
    assert_eq!(greeted(), 1);
    // A later connection greets it in the new way at once.
    let server = fixture.start();
    assert_eq!(call(&server, "echo", json!({"text": "again"})).await.unwrap().text, "again");
    assert_eq!(greeted(), 2);
    // Another server of the same definition, which speaks the earlier versions, is greeted as those.
    server.close().await;
    let mut earlier = fixture.definition();
    let Endpoint::Program(program) = &mut earlier.endpoint else { panic!("a program") };
    program.arguments.retain(|argument| argument != "later");
    program.arguments.retain(|argument| argument != "--do");
    let tried = try_once(earlier, Arc::<Seen>::default(), &Said::default()).await.unwrap();
    assert!(!tried.is_later);
}

#[tokio::test]
async fn a_server_of_later_versions_is_used_whatever_it_answers_to_another_greeting() {
    for misbehaviour in [&["later", "knows_no_other_era"], &["later", "ends_at_other_era"]] {
        let fixture = Fixture::new(misbehaviour);
        let server = fixture.start();
        assert!(live(&server).await.is_later, "{misbehaviour:?}");
        assert_eq!(call(&server, "echo", json!({"text": "now"})).await.unwrap().text, "now");
    }
    // If a server takes no greeting at all, its first reason counts.
    let fixture = Fixture::new(&["refuse"]);
    let error = try_once(fixture.definition(), Arc::<Seen>::default(), &Said::default()).await.unwrap_err();
    assert!(error.to_string().contains("no thanks"), "{error}");
}

#[tokio::test]
async fn a_server_of_later_versions_gets_what_it_asks_for_in_its_results() {
    let mut fixture = Fixture::new(&["later", "library"]);
    fixture.timeout = Duration::from_secs(1);
    fixture.seen.answers.lock().unwrap().extend(["3".to_owned(), "main".to_owned()]);
    let server = Server::start(
        ServerDefinition { sampling: 1_000, ..fixture.definition() },
        Arc::clone(&fixture.seen) as Arc<dyn Front>,
        fixture.kept(),
    );
    live(&server).await;
    // The time in which the user answers does not count.
    assert_eq!(text(&server, "ask").await, r#"{"action": "accept", "content": {"branch": "main", "count": 3}}"#);
    assert_eq!(text(&server, "ask").await, r#"{"action": "cancel"}"#);
    assert_eq!(text(&server, "roots").await, r#"["file:///work%20space"]"#);
    // Each round brings back the server's state with the answers of earlier ones.
    let sampled = call(&server, "sample", json!({"times": 3})).await.unwrap();
    let sampled: Vec<Value> = serde_json::from_str(&sampled.text).unwrap();
    assert!(sampled.len() == 3 && sampled.iter().all(|it| it["content"]["text"] == "about penguins"), "{sampled:?}");
    let read = server.call(Request::ReadResource("note://1".to_owned())).await.unwrap();
    assert_eq!(read.text, "[resource note://1]\nthe first note");
    let name = json!({"name": "Ada"}).as_object().cloned().unwrap();
    let prompt = server.call(Request::GetPrompt("greet".to_owned(), name)).await.unwrap();
    assert!(prompt.text.contains("Say hello to Ada."), "{prompt:?}");
    let fixture = Fixture::new(&["later"]);
    let server = fixture.start();
    for (odd, why) in [
        (json!({}), "it asks for input and does not say which"),
        (
            json!({"inputRequests": {"a": {"method": "files/read"}}}),
            "it asks for an input of the unknown kind `files/read`",
        ),
        (json!({"inputRequests": {"a": {"method": "elicitation/create"}}}), "it asks for an input that cannot be read"),
        (json!({"requestState": "{}"}), "it asked for further input 10 times in a row"),
        (json!({"requestState": "x".repeat(2 << 20)}), "its `requestState` is longer than"),
    ] {
        let error = call(&server, "odd", odd.clone()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{odd}: {error}");
    }
    assert!(fixture.log().iter().all(|line| line != "cancelled"), "{:?}", fixture.log());
}

#[tokio::test]
async fn sessions_share_a_server_if_the_user_allows_it() {
    let fixture = Fixture::new(&[]);
    let shared = ServerDefinition { is_shared: true, ..fixture.definition() };
    let start = || Server::start(shared.clone(), Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    let count = |line: &str| fixture.log().iter().filter(|logged| *logged == line).count();
    let (one, other) = (start(), start());
    let both = tokio::join!(live(&one), live(&other));
    assert_eq!(both.0, both.1);
    let pid = |answer: Result<Answer, McpError>| answer.unwrap().text;
    let calls = tokio::join!(call(&one, "process", json!({})), call(&other, "process", json!({})));
    assert_eq!(pid(calls.0), pid(calls.1));
    assert_eq!(count("initialize"), 1);
    // A shared server's question is cancelled, because it does not name a session.
    fixture.seen.answers.lock().unwrap().push("main".to_owned());
    assert_eq!(text(&one, "ask").await, r#"{"action": "cancel"}"#);
    assert!(fixture.seen.questions.lock().unwrap().is_empty());
    // The server ends with the last session that uses it.
    one.close().await;
    assert_eq!(text(&other, "echo").await, "");
    assert_eq!(count("input ended"), 0);
    other.close().await;
    fixture.until(|| count("input ended") == 1).await;
    // A later session starts it again.
    let later = start();
    assert_eq!(text(&later, "echo").await, "");
    assert_eq!(count("initialize"), 2);
    // Without the user's word, each session has its own.
    let own = fixture.start();
    assert_eq!(text(&own, "echo").await, "");
    assert_eq!(count("initialize"), 3);
}

#[tokio::test]
async fn a_changed_list_is_for_the_next_session() {
    let fixture = Fixture::new(&[]);
    let server = fixture.start();
    let listing = live(&server).await;
    text(&server, "change").await;
    fixture.until(|| fixture.notices().len() == 1).await;
    assert_eq!(
        fixture.notices()[0],
        "the MCP server `fixture` offers other tools now (new: added); this session keeps those it began with, and new \
         sessions get the new ones"
    );
    let kept = fixture.kept().read(server.definition()).unwrap();
    assert_eq!(kept.tools.len(), listing.tools.len() + 1);
}

#[tokio::test]
async fn a_server_that_ignores_its_end_is_killed() {
    let fixture = Fixture::new(&["deaf"]);
    let server = fixture.start();
    let folder = format!("/proc/{}", pid_of(&fixture, &server).await);
    assert!(Path::new(&folder).exists());
    server.close().await;
    fixture.until(|| !Path::new(&folder).exists()).await;
    let dropped = fixture.start();
    let folder = format!("/proc/{}", pid_of(&fixture, &dropped).await);
    drop(dropped);
    fixture.until(|| !Path::new(&folder).exists()).await;
}

/// The process of the server: its log is open to no other.
async fn pid_of(fixture: &Fixture, server: &Server) -> u32 {
    text(server, "folder").await;
    let log = fixture.path("log").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains(&log).then_some(pid)
    });
    processes.last().unwrap()
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why() {
    let fixture = Fixture::new(&[]);
    let mut definition = fixture.definition();
    if let Endpoint::Program(program) = &mut definition.endpoint {
        program.command = "no-such-program".to_owned();
    }
    let error = try_once(definition.clone(), Arc::<Seen>::default(), &Said::default()).await.unwrap_err();
    assert!(matches!(&error.cause, Cause::NotStarted { program, .. } if program == "no-such-program"), "{error:?}");
    if let Endpoint::Program(program) = &mut definition.endpoint {
        program.folder = "/no/such/folder".into();
    }
    let error = try_once(definition, Arc::<Seen>::default(), &Said::default()).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/folder does not exist"), "{error}");
}

/// The fixture as a web server; it ends with this value.
struct Web(Child, String);

impl Web {
    fn start(fixture: &Fixture) -> Self {
        let port = fixture.path("port");
        let mut command = Command::new("python3");
        command.args([SCRIPT, "--http"]).arg(&port).arg("--log").arg(fixture.path("log"));
        command.args(fixture.misbehaviour.iter().flat_map(|word| ["--do", word]));
        let child = command.spawn().unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(600);
        while !port.exists() {
            assert!(std::time::Instant::now() < until, "the server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(child, format!("http://127.0.0.1:{}", std::fs::read_to_string(port).unwrap()))
    }

    fn at(&self, path: &str, headers: &[(&str, &str)]) -> Endpoint {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Endpoint::Web(WebAddress { url: format!("{}{path}", self.1).parse().unwrap(), headers })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_on_the_web_lists_its_tools_and_answers_calls() {
    let fixture = Fixture::new(&["token"]);
    let web = Web::start(&fixture);
    let definition = fixture.defined(web.at("/mcp", &[("Authorization", "Bearer right")]));
    let server = Server::start(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    assert_eq!(live(&server).await.tools.len(), 14);
    assert_eq!(call(&server, "echo", json!({"text": "over HTTP"})).await.unwrap().text, "over HTTP");
    assert_eq!(text(&server, "work").await, "worked");
    server.close().await;
    fixture.until_logged("session deleted").await;
}

#[tokio::test]
async fn a_token_that_the_server_refuses_is_renewed_once() {
    let fixture = Fixture::new(&["token"]);
    let web = Web::start(&fixture);
    *fixture.seen.tokens.lock().unwrap() = vec!["right", "old"];
    let definition = fixture.defined(web.at("/mcp", &[]));
    let server = Server::start(definition.clone(), Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept());
    assert_eq!(call(&server, "echo", json!({"text": "with a login"})).await.unwrap().text, "with a login");
    server.close().await;
    let sent: Vec<String> =
        fixture.log().into_iter().filter(|line| line.starts_with("authorization")).take(2).collect();
    assert_eq!(sent, ["authorization Bearer old", "authorization Bearer right"]);
    // Without another token, the refusal is final.
    *fixture.seen.tokens.lock().unwrap() = vec!["old"];
    let refused =
        try_once(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, &Said::default()).await.unwrap_err();
    assert!(matches!(refused.cause, Cause::NotAuthorized { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_server_asks_a_model_only_if_the_user_allows_it_and_so_often() {
    let mut fixture = Fixture::new(&[]);
    fixture.timeout = Duration::from_secs(3);
    let asking = |sampling| {
        let definition = ServerDefinition { sampling, ..fixture.definition() };
        Server::start(definition, Arc::clone(&fixture.seen) as Arc<dyn Front>, fixture.kept())
    };
    let answers = async |server: &Server, times: u32| -> Vec<Value> {
        serde_json::from_str(&call(server, "sample", json!({ "times": times })).await.unwrap().text).unwrap()
    };
    let server = asking(0);
    let refused = answers(&server, 1).await.remove(0);
    assert!(refused["message"].as_str().unwrap().contains("`mcp_servers.fixture.sampling` allows it"), "{refused}");
    server.close().await;
    let server = asking(1_000);
    // Together they take longer than a call may, but this time does not count.
    let replies = answers(&server, 21).await;
    assert_eq!(replies[19]["content"]["text"], "about penguins");
    assert_eq!(replies[19]["model"], "scripted");
    assert_eq!(replies[20]["message"], "a model is asked at most 20 times for a connection");
    server.close().await;
    let said: Vec<String> = fixture.log().into_iter().filter(|line| line.starts_with("sampling")).collect();
    assert_eq!(said, ["sampling False", "sampling True"]);
}

#[tokio::test]
async fn a_server_on_the_web_that_cannot_be_used_says_why() {
    let fixture = Fixture::new(&["token"]);
    let web = Web::start(&fixture);
    let said = Said::default();
    let tried = |endpoint| try_once(fixture.defined(endpoint), Arc::<Seen>::default(), &said);
    let refused = tried(web.at("/mcp", &[("Authorization", "Bearer wrong")])).await.unwrap_err();
    assert_eq!(refused.cause, Cause::NotAuthorized { address: format!("{}/mcp", web.1) });
    let before = fixture.log().len();
    // Its key must not follow a redirect to another origin.
    let moved = tried(web.at("/moved", &[("Authorization", "Bearer right")])).await.unwrap_err();
    assert!(matches!(moved.cause, Cause::NotReached { .. }), "{moved:?}");
    assert_eq!(fixture.log().len(), before);
    let endpoint = web.at("/mcp?key=secret", &[]);
    drop(web);
    let gone = tried(endpoint).await.unwrap_err();
    assert!(matches!(gone.cause, Cause::NotReached { .. }) && !gone.to_string().contains("secret"), "{gone}");
}
