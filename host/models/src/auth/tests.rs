//! Against a server on this machine that issues tokens, revokes them, and answers only to the newest one.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::future::join_all;
use hermes_conversation::{Role, Shown};
use hermes_diagnostic::Diagnose as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Breakpoints, Logins, ModelError, Persistence, Prefix, Provider, Request, System, ToolChoice, Wanted, connect,
    resolve,
};

/// Counts and rules of the server.
#[derive(Default)]
struct Rules {
    /// The number of the only valid access token and refresh token.
    newest: AtomicU64,
    /// What was asked of it.
    refreshes: AtomicU64,
    requests: AtomicU64,
    unauthorised: AtomicU64,
    /// The status of every refresh, where it is not 0.
    refuses: AtomicU64,
    lifetime: AtomicU64,
}

fn access(number: u64) -> String {
    format!("access-token-{number:04}")
}

fn refresh(number: u64) -> String {
    format!("refresh-token-{number:04}")
}

async fn token(State(rules): State<Arc<Rules>>, form: String) -> Response {
    rules.refreshes.fetch_add(1, SeqCst);
    // Everyone who does not wait for this refresh asks for one of their own meanwhile.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let refuses = rules.refuses.load(SeqCst);
    let newest = rules.newest.load(SeqCst);
    let expected = format!("grant_type=refresh_token&refresh_token={}&client_id=hermes-test", refresh(newest));
    if refuses != 0 || form != expected {
        let status = StatusCode::from_u16(if refuses == 0 { 400 } else { refuses as u16 }).unwrap();
        let words = format!("no such token: {form}");
        return (status, json!({"error": "invalid_grant", "error_description": words}).to_string()).into_response();
    }
    rules.newest.store(newest + 1, SeqCst);
    let body = json!({"access_token": access(newest + 1), "refresh_token": refresh(newest + 1), "token_type": "Bearer",
        "expires_in": rules.lifetime.load(SeqCst)});
    body.to_string().into_response()
}

async fn chat(State(rules): State<Arc<Rules>>, headers: HeaderMap) -> Response {
    rules.requests.fetch_add(1, SeqCst);
    let sent = headers.get(header::AUTHORIZATION).unwrap().to_str().unwrap().to_owned();
    if sent != format!("Bearer {}", access(rules.newest.load(SeqCst))) {
        rules.unauthorised.fetch_add(1, SeqCst);
        return (StatusCode::UNAUTHORIZED, json!({"error": {"message": format!("expired: {sent}")}}).to_string())
            .into_response();
    }
    json!({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}).to_string().into_response()
}

struct Fixture {
    rules: Arc<Rules>,
    address: String,
    folder: TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let rules = Arc::new(Rules::default());
        rules.lifetime.store(3600, SeqCst);
        let app = Router::new().route("/token", post(token)).route("/v1/chat/completions", post(chat));
        let app = app.with_state(Arc::clone(&rules));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { rules, address, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("auth.json")
    }

    /// A file with the tokens of this number, which expire in so many seconds.
    fn write(&self, number: u64, expires_in: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let login = json!({"token_url": format!("http://{}/token", self.address), "client_id": "hermes-test",
            "refresh_token": refresh(number), "access_token": access(number), "note": "mine",
            "expires_at": now.saturating_add_signed(expires_in)});
        let document = json!({"version": 7, "logins": {"work": login, "other": {"kept": true}}});
        fs::write(self.path(), document.to_string()).unwrap();
    }

    fn login(&self) -> Value {
        let document: Value = serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap();
        assert_eq!((&document["version"], &document["logins"]["other"]), (&json!(7), &json!({"kept": true})));
        document["logins"]["work"].clone()
    }

    /// What another process would have: nothing is shared but the file.
    fn logins(&self) -> Logins {
        Logins::new(self.path(), hermes_private_files::FileDocuments::below(self.path().parent().unwrap()))
    }

    fn session(&self, logins: &Logins) -> Arc<dyn Provider> {
        let config = Wanted {
            base_url: Some(format!("http://{}/v1", self.address)),
            model: Some("m".to_owned()),
            auth: Some("work".to_owned()),
            ..Wanted::default()
        };
        connect(&resolve(&Wanted::default(), &|_| None, &config).unwrap(), logins).unwrap()
    }

    fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.swap(0, SeqCst);
        (count(&self.rules.refreshes), count(&self.rules.requests), count(&self.rules.unauthorised))
    }
}

async fn ask(session: &dyn Provider) -> Result<String, ModelError> {
    let hi = Shown::words(Role::User, "hi".to_owned());
    let prefix = Prefix::of(session.style(), System::plain("be brief"), &[hi]).unwrap();
    let request = Request {
        model: "m",
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    Ok(session.complete_with(Persistence::Once, &request, &mut |_| {}).await?.text)
}

async fn ask_all(sessions: &[Arc<dyn Provider>]) -> Vec<Result<String, ModelError>> {
    join_all(sessions.iter().map(|session| ask(&**session))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_expiry_costs_one_refresh_across_sessions_and_processes() {
    let fixture = Fixture::start().await;
    fixture.write(0, -5);
    let processes = [fixture.logins(), fixture.logins()];
    let sessions: Vec<_> = processes.iter().flat_map(|logins| (0..8).map(|_| fixture.session(logins))).collect();

    // It expired by the clock, before anyone asked.
    let replies = ask_all(&sessions).await;
    assert!(replies.iter().all(|reply| reply.as_deref() == Ok("hello")), "{replies:?}");
    assert_eq!(fixture.counts(), (1, 16, 0));
    assert_eq!((&fixture.login()["refresh_token"], &fixture.login()["note"]), (&json!(refresh(1)), &json!("mine")));

    // The server revokes it in mid-session: all sixteen requests meet 401 or wait, and are sent again once.
    fixture.rules.newest.store(9, SeqCst);
    let mut login: Value = serde_json::from_slice(&fs::read(fixture.path()).unwrap()).unwrap();
    login["logins"]["work"]["refresh_token"] = json!(refresh(9));
    fs::write(fixture.path(), login.to_string()).unwrap();
    let replies = ask_all(&sessions).await;
    assert!(replies.iter().all(|reply| reply.as_deref() == Ok("hello")), "{replies:?}");
    let (refreshes, requests, unauthorised) = fixture.counts();
    assert_eq!((refreshes, requests - unauthorised), (1, 16));
    assert!((2..=16).contains(&unauthorised), "{unauthorised}");

    // A token that lives shorter than the usual margin is not refreshed by each session in turn.
    fixture.rules.lifetime.store(20, SeqCst);
    fixture.write(10, -1);
    fixture.rules.newest.store(10, SeqCst);
    let fresh = [fixture.logins(), fixture.logins()];
    let sessions: Vec<_> = fresh.iter().flat_map(|logins| (0..4).map(|_| fixture.session(logins))).collect();
    assert!(ask_all(&sessions).await.iter().all(Result::is_ok));
    assert_eq!(fixture.counts(), (1, 8, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_login_that_has_ended_is_reported_once_with_what_to_do() {
    let fixture = Fixture::start().await;
    fixture.rules.refuses.store(400, SeqCst);
    fixture.write(3, -5);
    let logins = fixture.logins();
    let sessions: Vec<_> = (0..8).map(|_| fixture.session(&logins)).collect();
    for _ in 0..2 {
        for reply in ask_all(&sessions).await {
            let error = reply.unwrap_err();
            assert!(matches!(error, ModelError::Login { .. }), "{error:?}");
            let text = format!("{} {error:?}", error.sentence());
            assert!(text.contains("status 400") && text.contains("log in to `work`"), "{text}");
            assert!(!text.contains("token-0003"), "{text}");
        }
    }
    assert_eq!(fixture.counts(), (1, 0, 0), "the server is not asked again for a login that it refused");
    fixture.rules.refuses.store(0, SeqCst);
    fixture.rules.newest.store(4, SeqCst);
    fixture.write(4, -5);
    assert_eq!(ask(&*sessions[0]).await.as_deref(), Ok("hello"), "a new login is used at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_token_server_that_fails_is_asked_once_for_all_who_wait() {
    let fixture = Fixture::start().await;
    fixture.rules.refuses.store(503, SeqCst);
    fixture.write(0, -5);
    let logins = fixture.logins();
    let sessions: Vec<_> = (0..8).map(|_| fixture.session(&logins)).collect();
    let replies = ask_all(&sessions).await;
    assert!(replies.iter().all(|reply| matches!(reply, Err(ModelError::LoginUnavailable { .. }))), "{replies:?}");
    assert_eq!(fixture.counts(), (1, 0, 0));
    // Within the margin before its end, the old token serves.
    fixture.write(0, 30);
    assert_eq!(ask(&*sessions[0]).await.as_deref(), Ok("hello"));
    assert_eq!(fixture.counts(), (1, 1, 0));
    // Afterwards the same session recovers.
    fixture.rules.refuses.store(0, SeqCst);
    fixture.write(0, -5);
    assert_eq!(ask(&*fixture.session(&fixture.logins())).await.as_deref(), Ok("hello"));
}

/// An address before a server, whose first connections break: so many before the request is read, and after that.
async fn breaking(address: String, breaks: u64) -> (String, Arc<AtomicU64>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (mut inward, _) = listener.accept().await.unwrap();
            if counted.fetch_add(1, SeqCst) < breaks {
                continue;
            }
            let address = address.clone();
            tokio::spawn(async move {
                let mut outward = tokio::net::TcpStream::connect(address).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut inward, &mut outward).await;
            });
        }
    });
    (own, connections)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refresh_is_tried_again_where_the_network_fails_three_times_at_most() {
    for (breaks, refreshed) in [(2, true), (9, false)] {
        let fixture = Fixture::start().await;
        fixture.write(0, -5);
        let (address, connections) = breaking(fixture.address.clone(), breaks).await;
        let text = fs::read_to_string(fixture.path()).unwrap();
        fs::write(fixture.path(), text.replace(&fixture.address, &address)).unwrap();
        let logins = fixture.logins();
        let sessions: Vec<_> = (0..4).map(|_| fixture.session(&logins)).collect();
        for reply in ask_all(&sessions).await {
            match reply {
                Ok(text) => assert!(refreshed && text == "hello"),
                Err(error) => assert!(!refreshed && matches!(error, ModelError::LoginUnavailable { .. }), "{error:?}"),
            }
        }
        assert_eq!(connections.load(SeqCst), 3, "all sessions together");
        assert_eq!(fixture.counts().0, u64::from(refreshed));
    }
}

#[tokio::test]
async fn a_new_token_that_is_refused_too_ends_the_request_and_no_secret_is_shown() {
    let fixture = Fixture::start().await;
    fixture.write(0, 3600);
    let session = fixture.session(&fixture.logins());
    assert_eq!(ask(&*session).await.as_deref(), Ok("hello"));
    fixture.counts();
    // The token server renews what the model's server refuses.
    let elsewhere = Fixture::start().await;
    let text = fs::read_to_string(fixture.path()).unwrap().replace(&fixture.address, &elsewhere.address);
    fs::write(fixture.path(), text).unwrap();
    fixture.rules.newest.store(7, SeqCst);
    let error = ask(&*session).await.unwrap_err();
    assert!(matches!(error, ModelError::Auth { status: 401, .. }), "{error:?}");
    assert!(error.sentence().contains("the login `work`") && !format!("{error:?}").contains("token-"), "{error:?}");
    assert_eq!((fixture.counts(), elsewhere.counts()), ((0, 2, 2), (1, 0, 0)), "refreshed once, sent twice");
}

#[tokio::test]
async fn a_turn_that_is_stopped_loses_no_refresh_token() {
    let fixture = Fixture::start().await;
    fixture.write(0, -5);
    let session = fixture.session(&fixture.logins());
    let stopped = tokio::time::timeout(Duration::from_millis(60), ask(&*session)).await;
    assert!(stopped.is_err(), "the token server takes longer");
    let mut tries = 0;
    while fixture.login()["refresh_token"] != json!(refresh(1)) {
        tries += 1;
        assert!(tries < 500, "the refreshed tokens were not saved");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&*session).await.as_deref(), Ok("hello"));
    assert_eq!(fixture.counts().0, 1);
}

#[tokio::test]
async fn a_file_without_the_login_says_what_is_missing_and_becomes_private() {
    let fixture = Fixture::start().await;
    let session = fixture.session(&fixture.logins());
    let message = async || ask(&*session).await.unwrap_err().to_string();
    assert!(message().await.contains("there is no "), "{}", message().await);
    fs::write(fixture.path(), r#"{"logins": {"work": {"refresh_token": "secret-value"}}}"#).unwrap();
    let error = message().await;
    assert!(error.contains("token_url and client_id are missing") && !error.contains("secret-value"), "{error}");
    fs::write(fixture.path(), r#"{"logins": {"work": {"refresh_token": "secret-value" oops"#).unwrap();
    let error = message().await;
    assert!(error.contains("is not valid JSON at line 1") && !error.contains("secret-value"), "{error}");
    fixture.write(0, 3600);
    let text = fs::read_to_string(fixture.path()).unwrap().replace("http://127.0.0.1", "http://tokens.test");
    fs::write(fixture.path(), text.replace(r#""expires_at""#, r#""expires_at":1,"was""#)).unwrap();
    let error = message().await;
    assert!(error.contains("does not begin with https://"), "{error}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o644)).unwrap();
        fixture.write(0, -5);
        ask(&*session).await.unwrap();
        assert_eq!(fs::metadata(fixture.path()).unwrap().permissions().mode() & 0o777, 0o600);
        let names: Vec<_> =
            fs::read_dir(fixture.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "the file and its lock, and nothing temporary: {names:?}");
    }
}
