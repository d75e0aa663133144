//! Secrets in the query and the body, and secrets that a plugin replaces.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hermes_capabilities::http::Piece;
use hermes_capabilities::http::{ScriptedAnswer, SecretStore, SentRequest, Transport};

use super::*;

const RENEWED: &str = "renewed/token+with=odd&signs";

fn secret(prefix: &str) -> Value {
    Value::Secret { name: "api_key".to_owned(), prefix: prefix.to_owned() }
}

fn plain(text: &str) -> Value {
    Value::Plain(text.to_owned())
}

fn post(url: String, body: Body) -> Request {
    Request { method: "POST".into(), body, ..get(url) }
}

/// A server that returns the request line, a header with it, and the body.
async fn echo() -> Server {
    Server::new(|received| {
        let body = [received.line.as_bytes(), b"\n", &received.body].concat();
        answer(200, &[("x-line", received.path())], body)
    })
    .await
}

#[tokio::test]
async fn a_secret_in_the_query_is_encoded_and_appears_in_no_answer() {
    let server = echo().await;
    let mut rights = rights(&[(&server.url("/v1/"), ALL)], &[&server.url("/")]);
    rights.secrets =
        vec![Secret::new("api_key".into(), "K".into(), server.url("/").parse().unwrap(), Some(RENEWED.into()))];
    let http = Http::new(rights, names(&[]));
    let query = vec![("q".to_owned(), plain("a&key=b c")), ("key".to_owned(), secret("t "))];
    let response = http.send(Request { query, ..get(server.url("/v1/items?page=2")) }).await.unwrap();
    let path = server.paths().remove(0);
    let sent = url::Url::parse(&server.url(&path)).unwrap();
    let pairs: Vec<(String, String)> = sent.query_pairs().into_owned().collect();
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(pairs, [of("page", "2"), of("q", "a&key=b c"), of("key", &format!("t {RENEWED}"))]);
    assert_eq!(response.url, server.url("/v1/items?page=2&q=a%26key%3Db+c"));
    for shown in [text(&response), format!("{:?}", response.headers)] {
        assert!(shown.contains("[REDACTED]") && !shown.contains("renewed"), "{shown}");
    }
}

#[tokio::test]
async fn an_error_of_a_request_names_no_secret() {
    let server = Server::new(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort".to_vec()).await;
    let closed = server.url("/").replace(&server.port.to_string(), "1");
    let http = http(&[(&server.url("/"), ALL), (&closed, ALL)], &[&server.url("/"), &closed]);
    let query = || vec![("key".to_owned(), secret(""))];
    for url in [server.url("/"), closed.clone(), format!("{closed}?{KEY}")] {
        let error = http.send(Request { query: query(), ..get(url) }).await.unwrap_err();
        assert!(!error.to_string().contains(KEY) && !format!("{error:?}").contains(KEY), "{error:?}");
        assert_eq!(class(error).1, "network");
    }
}

#[tokio::test]
async fn a_secret_in_a_body_reaches_its_audience_only() {
    let server = echo().await;
    let http = http(&[(&server.url("/"), ALL)], &[&server.url("/v1/")]);
    let form = || Body::Form(vec![("grant_type".into(), plain("refresh")), ("token".into(), secret(""))]);
    let json = || Body::Json {
        text: r#"{"auth": {"key": ""}, "n": 1}"#.into(),
        secrets: vec![("/auth/key".into(), secret("Bearer "))],
    };
    for body in [form(), json()] {
        let denied = http.send(post(server.url("/v2/"), body)).await.unwrap_err();
        assert_eq!(class(denied), (FaultKind::Denied, "secret".to_owned()));
    }
    assert!(server.received().is_empty());
    let response = http.send(post(server.url("/v1/form"), form())).await.unwrap();
    assert!(text(&response).ends_with("grant_type=refresh&token=[REDACTED]"), "{}", text(&response));
    http.send(post(server.url("/v1/json"), json())).await.unwrap();
    let received = server.received();
    assert_eq!(received[0].body, format!("grant_type=refresh&token={KEY}").as_bytes());
    assert_eq!(received[0].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(received[1].body, format!(r#"{{"auth": {{"key": "Bearer {KEY}"}}, "n": 1}}"#).as_bytes());
    assert_eq!(received[1].header("content-type"), Some("application/json"));
    let own =
        Request { headers: vec![header("content-type", "application/vnd.a+json")], ..post(server.url("/v1/"), json()) };
    http.send(own).await.unwrap();
    assert_eq!(server.received()[2].header("content-type"), Some("application/vnd.a+json"));
}

#[tokio::test]
async fn what_cannot_be_encoded_is_refused_before_anything_is_sent() {
    let server = echo().await;
    let http = http(&[(&server.url("/"), ALL)], &[&server.url("/")]);
    let unknown = Value::Secret { name: "other".into(), prefix: String::new() };
    let pair = |value: Value| vec![("a".to_owned(), value)];
    let get = || get(server.url("/"));
    for (request, code) in [
        (Request { query: pair(secret("a\r\nb")), ..get() }, "query"),
        (Request { query: pair(secret(&"x".repeat(65))), ..get() }, "query"),
        (Request { query: vec![("a".to_owned(), plain("b")); 65], ..get() }, "query"),
        (Request { query: pair(plain(&"x".repeat(9 << 10))), ..get() }, "query"),
        (Request { query: pair(unknown.clone()), ..get() }, "secret"),
        (Request { body: Body::Form(pair(unknown)), ..get() }, "secret"),
        (Request { body: Body::Form(pair(secret("ü"))), ..get() }, "body"),
        (Request { body: Body::Json { text: "{}".into(), secrets: vec![("/a".into(), secret(""))] }, ..get() }, "body"),
        (Request { headers: vec![header("range", "bytes=0-3")], query: pair(secret("")), ..get() }, "header"),
        (
            Request { headers: vec![header("range", "bytes=0-3")], body: Body::Form(pair(secret(""))), ..get() },
            "header",
        ),
    ] {
        assert_eq!(class(http.send(request).await.unwrap_err()).1, code);
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_redirect_repeats_no_query_and_takes_a_body_only_to_its_audience() {
    let server = Server::new(|received| match received.path().split('?').next().unwrap() {
        "/v1/moved" => redirect(302, "/v2/end"),
        "/v1/near" => redirect(307, "/v1/end"),
        "/v1/far" => redirect(307, "/v2/end"),
        "/v1/tell" => redirect(302, &format!("/v2/end?was={}", received.path().split('=').nth(1).unwrap())),
        _ => answer(200, &[], &received.body),
    })
    .await;
    let http = http(&[(&server.url("/"), ALL)], &[&server.url("/v1/")]);
    let query = || vec![("key".to_owned(), secret(""))];
    let moved = http.send(Request { query: query(), ..get(server.url("/v1/moved")) }).await.unwrap();
    assert_eq!(moved.url, server.url("/v2/end"));
    assert_eq!(server.paths(), [format!("/v1/moved?key={KEY}"), "/v2/end".to_owned()]);
    let told = http.send(Request { query: query(), ..get(server.url("/v1/tell")) }).await.unwrap_err();
    assert_eq!(class(told), (FaultKind::Denied, "secret".to_owned()));
    let form = || Body::Form(vec![("token".into(), secret(""))]);
    assert_eq!(text(&http.send(post(server.url("/v1/near"), form())).await.unwrap()), "token=[REDACTED]");
    let far = http.send(post(server.url("/v1/far"), form())).await.unwrap_err();
    assert_eq!(class(far), (FaultKind::Denied, "secret".to_owned()));
    assert!(!server.paths().last().unwrap().contains("/v2/"));
}

/// Answers with the last `Authorization` header and a new token.
struct Renewing(Mutex<Vec<String>>);

#[async_trait]
impl Transport for Renewing {
    async fn send(&self, request: SentRequest) -> Result<ScriptedAnswer, String> {
        let sent = request.headers.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.clone());
        let body = format!(r#"{{"token":"{RENEWED}","was":"{}"}}"#, sent.clone().unwrap_or_default());
        self.0.lock().unwrap().push(sent.unwrap_or_default());
        let piece = Piece { wait: Duration::ZERO, bytes: Ok(body.into_bytes()) };
        Ok(ScriptedAnswer { status: 200, headers: Vec::new(), body: Box::new(std::iter::once(piece)) })
    }
}

#[tokio::test]
async fn a_plugin_stores_a_renewed_token_that_it_never_reads_again() {
    const SITE: &str = "https://api.example.org/";
    let folder = tempfile::tempdir().unwrap();
    let store = SecretStore::Folder(folder.path().join("secrets"));
    let script = Arc::new(Renewing(Mutex::default()));
    let open = || {
        let mut rights = rights(&[(SITE, ALL)], &[SITE]);
        rights.secrets = rights.secrets.into_iter().map(|secret| secret.writable(store.clone())).collect();
        Http::scripted(rights, script.clone())
    };
    let asks = || Request { headers: vec![bearer()], ..get(SITE) };
    let (http, other) = (open(), open());
    // The new token is in the answer, because the host does not know it yet.
    let first = text(&http.send(asks()).await.unwrap());
    assert_eq!(first, format!(r#"{{"token":"{RENEWED}","was":"Bearer [REDACTED]"}}"#));
    http.replace_secret("api_key", RENEWED.to_owned()).await.unwrap();
    for http in [&http, &other, &open()] {
        let later = text(&http.send(asks()).await.unwrap());
        assert_eq!(later, r#"{"token":"[REDACTED]","was":"Bearer [REDACTED]"}"#);
        assert_eq!(http.redaction().text(&format!("{KEY} {RENEWED}")), "[REDACTED] [REDACTED]");
        assert!(http.has_secret("api_key").await);
    }
    let sent = script.0.lock().unwrap().clone();
    assert_eq!(
        sent,
        [
            format!("Bearer {KEY}"),
            format!("Bearer {RENEWED}"),
            format!("Bearer {RENEWED}"),
            format!("Bearer {RENEWED}")
        ]
    );
}

#[tokio::test]
async fn only_a_writable_secret_is_replaced_and_only_by_a_usable_value() {
    const SITE: &str = "https://api.example.org/";
    let fixed = http(&[(SITE, ALL)], &[SITE]);
    let refused = async |http: &Http, name: &str, value: &str| {
        class(http.replace_secret(name, value.to_owned()).await.unwrap_err()).1
    };
    assert_eq!(refused(&fixed, "api_key", RENEWED).await, "secret");
    assert_eq!(refused(&fixed, "other", RENEWED).await, "secret");
    let mut rights = rights(&[(SITE, ALL)], &[SITE]);
    rights.secrets = rights.secrets.into_iter().map(|secret| secret.writable(SecretStore::in_memory())).collect();
    let writable = Http::new(rights, names(&[]));
    for value in ["", "short", "with\nline breaks in it", "köpenick-köpenick", &"x".repeat(4097)] {
        assert_eq!(refused(&writable, "api_key", value).await, "value", "{value:?}");
    }
    // A flood of values leaves the user's own value redacted.
    for number in 0..200 {
        writable.replace_secret("api_key", format!("flooding-value-{number}")).await.unwrap();
    }
    assert_eq!(writable.redaction().text(&format!("{KEY} flooding-value-199")), "[REDACTED] [REDACTED]");
}

#[cfg(unix)]
#[tokio::test]
async fn a_value_that_cannot_be_stored_is_not_used() {
    const SITE: &str = "https://api.example.org/";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "a file").unwrap();
    let mut rights = rights(&[(SITE, ALL)], &[SITE]);
    let store = SecretStore::Folder(folder.path().join("taken"));
    rights.secrets = rights.secrets.into_iter().map(|secret| secret.writable(store.clone())).collect();
    let script = Arc::new(Renewing(Mutex::default()));
    let http = Http::scripted(rights, script.clone());
    let failed = http.replace_secret("api_key", RENEWED.to_owned()).await.unwrap_err();
    assert_eq!(class(failed), (FaultKind::Failed, "store".to_owned()));
    http.send(Request { headers: vec![bearer()], ..get(SITE) }).await.unwrap();
    assert_eq!(script.0.lock().unwrap().as_slice(), [format!("Bearer {KEY}")]);
}
