//! Against a scripted server on this machine: what it is sent, and what becomes of what it answers.

#![allow(clippy::unwrap_used)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hermes_conversation::{Role, Shown};
use hermes_diagnostic::Diagnose as _;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::*;
use crate::{Breakpoints, Finish, Prefix, System, ToolChoice, Wanted, connect, resolve};

mod attack;
mod messages;
mod requests;
mod responses;

/// What the server writes on one connection; it closes behind the last piece.
type Script = Vec<Vec<u8>>;

struct Server {
    address: String,
    /// Requests as they came: head and body.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    /// Answers each connection with the next script; the last one serves all that follow.
    async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            for turn in 0.. {
                let (mut socket, _) = listener.accept().await.unwrap();
                socket.set_nodelay(true).unwrap();
                let request = read_request(&mut socket).await;
                seen.lock().unwrap().push(request);
                for piece in &scripts[turn.min(scripts.len() - 1)] {
                    socket.write_all(piece).await.unwrap();
                    socket.flush().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }

    fn route(&self, pairs: &[(&str, &str)]) -> Route {
        route(&format!("http://{}/v1", self.address), pairs)
    }

    fn provider(&self) -> Remote {
        Remote::new(&self.route(&[("api_key", KEY)]), &logins(), BRIEF).unwrap()
    }
}

/// No route of these tests has a login.
fn logins() -> Logins {
    Logins::new("/nonexistent/auth.json".into(), hermes_private_files::FileDocuments::below("/nonexistent".as_ref()))
}

const KEY: &str = "sk-secret-0123456789abcdef";

/// The real limits, a thousand times shorter where a test has to reach them.
const BRIEF: Patience = Patience {
    connect: Duration::from_secs(10),
    // This limit is not shortened, so that a busy machine does not look like a silent server.
    silence: Duration::from_secs(60),
    rest: Duration::from_secs(2),
    reconnect: Duration::from_millis(5),
    retry: Duration::from_millis(2),
    keep_trying: Duration::ZERO,
};

fn route(base_url: &str, pairs: &[(&str, &str)]) -> Route {
    let mut config =
        Wanted { base_url: Some(base_url.to_owned()), model: Some("asked-model".to_owned()), ..Wanted::default() };
    for (name, value) in pairs {
        match *name {
            "api_key" => config.api_key = Some((*value).to_owned()),
            "api_mode" => config.api_mode = Some((*value).to_owned()),
            other => panic!("no field {other}"),
        }
    }
    resolve(&Wanted::default(), &|_| None, &config).unwrap()
}

async fn read_request(socket: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = socket.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return (head.to_ascii_lowercase(), body.to_owned());
            }
        }
        if read == 0 {
            return (text, String::new());
        }
    }
}

fn head(status: &str, kind: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n").into_bytes()
}

/// A stream of events that ends where the connection ends.
fn events(data: &[&str]) -> Script {
    let mut script = vec![head("200 OK", "text/event-stream; charset=utf-8")];
    script.extend(data.iter().map(|data| format!("data: {data}\n\n").into_bytes()));
    script
}

fn text(words: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {"content": words}}]}).to_string()
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const COUNTS: &str = r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}"#;

fn answer(status: &str, extra: &str, body: &str) -> Script {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{extra}\r\n",
        body.len()
    );
    vec![head.into_bytes(), body.as_bytes().to_vec()]
}

fn hello(provider: &dyn Provider) -> Prefix {
    let messages = [Shown::words(Role::User, "hello")];
    Prefix::of(provider.style(), System::plain("be brief"), &messages).unwrap()
}

fn request(prefix: &Prefix) -> Request<'_> {
    Request {
        model: "asked-model",
        prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    }
}

async fn ask(provider: &dyn Provider) -> (Result<Reply, ModelError>, Vec<String>) {
    let prefix = hello(provider);
    let mut shown = Vec::new();
    let reply = provider
        .complete(&request(&prefix), &mut |delta| {
            shown.push(match delta {
                Delta::Text(text) => text.to_owned(),
                Delta::Reasoning(text) => format!("reasoning:{text}"),
                Delta::Call(name) => format!("call:{name}"),
                Delta::Notice(text) => format!("notice:{text}"),
                Delta::Again => "again".to_owned(),
            });
        })
        .await;
    (reply, shown)
}

#[tokio::test]
async fn an_answer_streams_and_the_request_is_what_the_sdk_would_send() {
    let server = Server::start(vec![events(&[&text("Hel"), &text("lo"), STOP, COUNTS, "[DONE]"])]).await;
    let provider = connect(&server.route(&[("api_key", KEY)]), &logins()).unwrap();
    let (reply, shown) = ask(&*provider).await;
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish, &*reply.model), ("Hello", Finish::Stop, "asked-model"));
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((12, 3)));
    assert_eq!(shown, ["Hel", "lo"]);
    assert!(!provider.is_offline());

    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let (head, body) = &requests[0];
    assert!(head.starts_with("post /v1/chat/completions http/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: bearer {KEY}")), "{head}");
    assert_eq!(
        body,
        concat!(
            r#"{"model":"asked-model","stream":true,"stream_options":{"include_usage":true},"#,
            r#""messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}"#
        )
    );
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = Server::start(vec![events(&[&text("hi"), STOP, "[DONE]"])]).await;
    ask(&*connect(&server.route(&[]), &logins()).unwrap()).await.0.unwrap();
    assert!(!server.requests()[0].0.contains("authorization"));
}

#[tokio::test]
async fn letters_and_events_may_be_split_anywhere() {
    let stream: Vec<u8> = events(&[&text("größer 漢字 🦀"), STOP, "[DONE]"]).concat();
    let start = stream.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut script = vec![stream[..start].to_vec()];
    script.extend(stream[start..].iter().map(|byte| vec![*byte]));
    let server = Server::start(vec![script]).await;
    assert_eq!(ask(&server.provider()).await.0.unwrap().text, "größer 漢字 🦀");
}

#[tokio::test]
async fn servers_that_do_not_stream_or_stream_in_their_own_way_are_understood() {
    let whole = r#"{"model":"served","choices":[{"message":{"content":"all at once"},"finish_reason":"stop"}]}"#;
    let mislabelled = format!(": hi\n\ndata: {}\n\ndata: {STOP}\n\n", text("all at once"));
    let unterminated = format!("data:{}\r\n\r\ndata: {STOP}", text("all at once"));
    for script in [
        answer("200 OK", "", whole),
        answer("200 OK", "", &mislabelled),
        vec![head("200 OK", "text/event-stream"), unterminated.clone().into_bytes()],
        vec![head("200 OK", "text/event-stream"), b": still thinking\n\n".to_vec(), unterminated.clone().into_bytes()],
    ] {
        let server = Server::start(vec![script]).await;
        let (reply, shown) = ask(&server.provider()).await;
        assert_eq!(reply.unwrap().text, "all at once");
        assert_eq!(shown, ["all at once"]);
    }
}

#[tokio::test]
async fn a_whole_reply_needs_no_end_of_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let held = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(&events(&[&text("whole"), STOP]).concat()).await.unwrap();
        socket
    });
    let provider = Remote::new(&route(&base, &[]), &logins(), BRIEF).unwrap();
    assert_eq!(ask(&provider).await.0.unwrap().text, "whole");
    drop(held.await.unwrap());
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_an_error_and_not_asked_for_again() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"write_file","arguments":"{}"}}]}}]}"#;
    let mut short = answer("200 OK", "", "0123456789").concat();
    short.truncate(short.len() - 4);
    let chunked = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let event = format!("data: {}\n\n", text("half"));
    let chunk = format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
    for (script, partial) in [
        (events(&[&text("half")]), "half"),
        (events(&[&text("half"), call]), "half"),
        (events(&[&text("half"), "{\"choices\":[{\"del"]), "half"),
        (vec![chunked, chunk], "half"),
    ] {
        let server = Server::start(vec![script]).await;
        match ask(&server.provider()).await.0 {
            Err(ModelError::Cut { partial: said, .. }) => assert_eq!(said, partial),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 1, "something was shown already");
    }
    // Nothing was shown: what may pass is tried three times in all.
    for script in [events(&[]), vec![short], vec![Vec::new()]] {
        let server = Server::start(vec![script]).await;
        let (reply, shown) = ask(&server.provider()).await;
        assert!(matches!(reply, Err(ModelError::Cut { .. })), "{reply:?}");
        assert_eq!(server.requests().len(), 3);
        assert_eq!(shown.len(), 2, "{shown:?}");
    }
}

#[tokio::test]
async fn a_server_that_will_work_later_is_asked_again_and_the_user_is_told() {
    let busy = |extra: &str| answer("503 Service Unavailable", extra, r#"{"error":{"message":"warming up"}}"#);
    let server =
        Server::start(vec![busy(""), busy("retry-after-ms: 1\r\n"), events(&[&text("awake"), STOP, "[DONE]"])]).await;
    let (reply, shown) = ask(&server.provider()).await;
    assert_eq!(reply.unwrap().text, "awake");
    let notice = "notice:trying again in a moment: 127.0.0.1 failed (status 503): warming up";
    assert_eq!(shown, [notice, notice, "awake"]);
    let bodies: Vec<String> = server.requests().into_iter().map(|(_, body)| body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "the same bytes each time");

    let server = Server::start(vec![busy("")]).await;
    assert!(matches!(ask(&server.provider()).await.0, Err(ModelError::Server { status: 503, .. })));
    assert_eq!(server.requests().len(), 3);

    let in_stream = events(&[r#"{"error":{"code":429,"message":"slow down"}}"#]);
    let server = Server::start(vec![in_stream, events(&[&text("ok"), STOP])]).await;
    assert_eq!(ask(&server.provider()).await.0.unwrap().text, "ok");
}

#[tokio::test]
async fn a_patient_caller_waits_for_a_server_that_comes_back() {
    let busy = || answer("503 Busy", "retry-after-ms: 1\r\n", r#"{"error":{"message":"busy"}}"#);
    let scripts = vec![busy(), busy(), busy(), busy(), events(&[&text("back"), STOP, "[DONE]"])];
    let patient = |seconds| Patience { keep_trying: Duration::from_secs(seconds), ..BRIEF };
    for (seconds, sent) in [(60, 5), (0, 3)] {
        let server = Server::start(scripts.clone()).await;
        let provider = Remote::new(&server.route(&[]), &logins(), patient(seconds)).unwrap();
        let (result, _) = ask(&provider).await;
        assert_eq!(result.is_ok(), seconds > 0);
        assert_eq!(server.requests().len(), sent);
    }
}

#[tokio::test]
async fn a_patient_caller_begins_a_reply_again_that_was_cut_and_learns_that_the_beginning_is_void() {
    let whole = || events(&[&text("all of it"), STOP, "[DONE]"]);
    let server = Server::start(vec![events(&[&text("half")]), events(&[&text("half a")]), whole()]).await;
    let patience = Patience { keep_trying: Duration::from_secs(60), ..BRIEF };
    let provider = Remote::new(&server.route(&[]), &logins(), patience).unwrap();
    let (reply, shown) = ask(&provider).await;
    assert_eq!(reply.unwrap().text, "all of it");
    let notice = shown[2].as_str();
    assert!(notice.starts_with("notice:trying again in ") && notice.contains("broke off"), "{notice}");
    let kinds: Vec<&str> = shown.iter().map(|shown| shown.split(':').next().unwrap()).collect();
    assert_eq!(kinds, ["half", "again", "notice", "half a", "again", "notice", "all of it"]);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_caller_with_another_model_waits_only_briefly() {
    let busy = |after: &str| answer("429 Busy", &format!("retry-after{after}\r\n"), r#"{"error":{"message":"busy"}}"#);
    for (after, sent) in [("-ms: 1", 3), (": 11", 1)] {
        let server = Server::start(vec![busy(after)]).await;
        let patience = Patience { keep_trying: Duration::from_secs(60), ..BRIEF };
        let provider = Remote::new(&server.route(&[]), &logins(), patience).unwrap();
        let prefix = hello(&provider);
        let error = provider.complete_with(Persistence::Brief, &request(&prefix), &mut |_| {}).await.unwrap_err();
        let ModelError::RateLimited { wait: Some(wait), .. } = &error else { panic!("{error:?}") };
        assert_eq!(wait.as_secs() >= 11, sent == 1);
        assert!(error.is_of_place() && error.may_pass());
        assert_eq!(server.requests().len(), sent);
    }
}

#[tokio::test]
async fn a_key_that_is_refused_or_limited_rests_and_the_next_one_is_used_at_once() {
    const KEYS: &str = "sk-one-0123456789abcdef, sk-two-0123456789abcdef,sk-three-0123456789abcd";
    let no = |status: &str| answer(status, "", r#"{"error":{"message":"not with sk-one-0123456789abcdef"}}"#);
    let ok = || events(&[&text("in"), STOP, "[DONE]"]);
    let server = Server::start(vec![no("429 Slow"), no("402 Pay"), ok(), ok()]).await;
    let provider = Remote::new(&server.route(&[("api_key", KEYS)]), &logins(), BRIEF).unwrap();
    let (reply, shown) = ask(&provider).await;
    assert_eq!(reply.unwrap().text, "in");
    let [first, second, _] = &shown[..] else { panic!("{shown:?}") };
    assert!(first.ends_with("; key 1 of 3 is on cooldown for 60 min, and key 2 is used"), "{first}");
    assert!(second.ends_with("; key 2 of 3 is on cooldown for 60 min, and key 3 is used"), "{second}");
    assert!(!shown.concat().contains("sk-"), "{shown:?}");
    // The others still rest.
    ask(&provider).await.0.unwrap();
    let sent: Vec<String> = server.requests().into_iter().map(|(head, _)| head).collect();
    for (head, name) in sent.iter().zip(["one", "two", "three", "three"]) {
        assert!(head.contains(&format!("authorization: bearer sk-{name}-")), "{head}");
    }

    // If all rest, the error is that of the last one, and the first to be ready is used.
    let server = Server::start(vec![no("401 No")]).await;
    let provider = Remote::new(&server.route(&[("api_key", KEYS)]), &logins(), BRIEF).unwrap();
    assert!(matches!(ask(&provider).await.0, Err(ModelError::Auth { status: 401, .. })));
    assert!(matches!(ask(&provider).await.0, Err(ModelError::Auth { status: 401, .. })));
    assert_eq!(server.requests().len(), 4);
    assert!(server.requests()[3].0.contains("sk-one-"));

    // A failure for another reason does not put the key on cooldown.
    let server = Server::start(vec![no("404 Not Found")]).await;
    let provider = Remote::new(&server.route(&[("api_key", KEYS)]), &logins(), BRIEF).unwrap();
    assert!(matches!(ask(&provider).await.0, Err(ModelError::NotFound { .. })));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_key_is_read_again_once() {
    let no = || answer("401 Unauthorized", "", r#"{"error":{"message":"the key sk-another-0123456789 is unknown"}}"#);
    for (scripts, works, sent) in
        [(vec![no(), events(&[&text("in"), STOP, "[DONE]"])], true, 2), (vec![no()], false, 2)]
    {
        let server = Server::start(scripts).await;
        let route = server.route(&[("api_key", KEY)]);
        let read: crate::ReadKey = Arc::new(|| crate::Secret::new("sk-another-0123456789"));
        let provider = Remote::new(&route, &logins(), BRIEF).unwrap().rereading(&route, &logins(), read).unwrap();
        let (result, _) = ask(&provider).await;
        assert_eq!(result.is_ok(), works);
        let requests = server.requests();
        assert_eq!(requests.len(), sent);
        assert!(requests[0].0.contains(&format!("bearer {}", KEY.to_lowercase())));
        assert!(requests[1].0.contains("bearer sk-another-0123456789"));
        assert!(!format!("{result:?}").contains("sk-another"), "{result:?}");
    }
}

#[tokio::test]
async fn a_cap_on_output_that_the_server_names_is_asked_for_once() {
    let message = "Range of max_tokens should be [1, 8192]";
    let refused = answer("400 Bad Request", "", &serde_json::json!({"error": {"message": message}}).to_string());
    let server = Server::start(vec![refused.clone(), events(&[&text("fits"), STOP, "[DONE]"])]).await;
    let (result, shown) = ask(&server.provider()).await;
    assert_eq!(result.unwrap().text, "fits");
    assert!(server.requests()[1].1.contains("8192"), "{:?}", server.requests()[1]);
    assert!(shown.iter().any(|line| line.contains("at most 8192 tokens")), "{shown:?}");

    let server = Server::start(vec![refused]).await;
    assert!(matches!(ask(&server.provider()).await.0, Err(ModelError::BadRequest { .. })));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_attempt_is_sent_once_whatever_comes_of_it() {
    for refusal in [answer("503 Service Unavailable", "", "{}"), answer("429 Too Many Requests", "", "{}"), events(&[])]
    {
        let server = Server::start(vec![refusal, events(&[&text("later"), STOP])]).await;
        let provider = server.provider();
        let prefix = hello(&provider);
        assert!(provider.complete_with(Persistence::Once, &request(&prefix), &mut |_| {}).await.is_err());
        assert_eq!(server.requests().len(), 1);
        assert_eq!(
            provider.complete_with(Persistence::Once, &request(&prefix), &mut |_| {}).await.unwrap().text,
            "later"
        );
    }
}

#[tokio::test]
async fn what_will_not_pass_is_said_at_once() {
    for (status, body, expected) in [
        (
            "401 Unauthorized",
            r#"{"error":{"message":"wrong key sk-secret-0123456789abcdef"}}"#,
            "check the key in model.api_key",
        ),
        ("402 Payment Required", "{}", "no credit or quota left"),
        ("404 Not Found", r#"{"error":"model 'asked-model' not found"}"#, "has no model `asked-model`"),
        (
            "400 Bad Request",
            r#"{"error":{"code":"context_length_exceeded","message":"too big"}}"#,
            "longer than the model's window",
        ),
        ("422 Unprocessable", r#"{"detail":[{"msg":"no"}]}"#, "does not accept the request (status 422)"),
    ] {
        let server = Server::start(vec![answer(status, "", body)]).await;
        let (reply, shown) = ask(&server.provider()).await;
        let error = reply.unwrap_err().sentence();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("0123456789"), "{error}");
        assert!(shown.is_empty());
        assert_eq!(server.requests().len(), 1, "{status}");
    }
    for (kind, body) in [("text/html", "<html>hi</html>"), ("application/json", r#"{"hello":1}"#), ("text/plain", "hi")]
    {
        let server = Server::start(vec![vec![head("200 OK", kind), body.as_bytes().to_vec()]]).await;
        assert!(matches!(ask(&server.provider()).await.0, Err(ModelError::Malformed { .. })), "{body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::start(vec![events(&[&text("stolen"), STOP])]).await;
    let location = format!("location: http://{}/v1/chat/completions?token=x\r\n", other.address);
    let server = Server::start(vec![answer("307 Temporary Redirect", &location, "")]).await;
    match ask(&server.provider()).await.0 {
        Err(ModelError::Moved { to, .. }) => {
            assert_eq!(to, format!("http://{}/v1/chat/completions", other.address));
        }
        other => panic!("{other:?}"),
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_said_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = Remote::new(&route(&format!("http://{address}/v1?secret=x"), &[]), &logins(), BRIEF).unwrap();
    let error = ask(&provider).await.0.unwrap_err().to_string();
    assert!(error.contains(&format!("no connection to http://{address}/v1/chat/completions: ")), "{error}");
    assert!(error.contains("refused") && !error.contains("secret"), "{error}");
}

/// The remedy was to check that the server is running.
#[tokio::test]
async fn a_name_that_cannot_be_looked_up_is_told_from_a_server_that_is_down() {
    // No resolver has to be asked: a part of a name has at most 63 letters.
    let host = format!("{}.invalid", "a".repeat(64));
    let provider = Remote::new(&route(&format!("http://{host}/v1"), &[]), &logins(), BRIEF).unwrap();
    let error = ask(&provider).await.0.unwrap_err();
    assert!(matches!(&error, ModelError::UnknownHost { url, .. } if url.contains(&host)), "{error:?}");
    assert!(error.to_string().contains("the name of the server was not found ("), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_unreachable_by_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let provider = Remote::new(&route(&format!("https://{address}/v1"), &[]), &logins(), BRIEF).unwrap();
    assert!(matches!(ask(&provider).await.0, Err(ModelError::Unreachable { .. })));
}

#[tokio::test]
async fn silence_is_an_error_before_and_within_a_reply() {
    for begin in [Vec::new(), head("200 OK", "text/event-stream")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let held = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await;
            socket.write_all(&begin).await.unwrap();
            socket
        });
        let brief = Patience { silence: Duration::from_millis(400), ..BRIEF };
        let provider = Remote::new(&route(&base, &[]), &logins(), brief).unwrap();
        assert!(matches!(ask(&provider).await.0, Err(ModelError::Stalled { .. })));
        drop(held.await.unwrap());
    }
}

#[tokio::test]
async fn a_dropped_request_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (streaming, began) = oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(&events(&[&text("a"), &text("b")]).concat()).await.unwrap();
        streaming.send(()).unwrap();
        // Nothing, or an error: either way the other side is gone.
        let mut rest = [0; 16];
        socket.read(&mut rest).await.unwrap_or(0)
    });
    let provider =
        Remote::new(&route(&base, &[]), &logins(), Patience { silence: Duration::from_secs(600), ..BRIEF }).unwrap();
    let asking = tokio::spawn(async move { ask(&provider).await.0.is_ok() });
    began.await.unwrap();
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert_eq!(server.await.unwrap(), 0);
}
