#![allow(clippy::unwrap_used)]

use hermes_capabilities::http::{Http, HttpError, Request, Response, Value};
use hermes_plugin_host::{Permissions, scripted_web, stand_in};

use super::*;

const SITE: &str = "https://memory.example.org/v1/";

fn parse(text: &str) -> Result<HttpFixtures, Flaw> {
    HttpFixtures::parse(text, Path::new(env!("CARGO_MANIFEST_DIR")))
}

/// The web of a plugin with a grant for one site and a secret.
fn web(text: &str) -> (Arc<Web>, Arc<SessionWeb>, Http) {
    let permissions: Permissions = serde_json::from_value(serde_json::json!({
        "http": [{ "url": SITE, "methods": ["GET", "POST"] }],
        "secrets": [{ "name": "token", "env": "TOKEN", "audience": SITE }],
    }))
    .unwrap();
    let web = Web::new(Some(&parse(text).unwrap()));
    let session = web.open();
    let http = scripted_web("mine", &permissions, session.clone());
    (web, session, http)
}

async fn get(http: &Http, path: &str) -> Result<Response, HttpError> {
    send(http, "GET", path, "", Some(2_000)).await
}

async fn send(
    http: &Http,
    method: &str,
    path: &str,
    body: &str,
    timeout_ms: Option<u32>,
) -> Result<Response, HttpError> {
    let token = Value::Secret { name: "token".to_owned(), prefix: "Bearer ".to_owned() };
    let headers = vec![("authorization".to_owned(), token), ("x-kind".to_owned(), Value::Plain("tea".to_owned()))];
    let url = format!("{SITE}{path}");
    http.send(Request { method: method.to_owned(), url, query: Vec::new(), headers, body: body.into(), timeout_ms })
        .await
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

#[tokio::test]
async fn a_secret_reaches_the_fixture_and_not_the_plugin() {
    let rules = "- request: {method: GET, url: https://memory.example.org/v1/*, headers: {Authorization: Bearer stand-in-for-token}}\n  \
                 answer: {text: your key is stand-in-for-token, headers: {x-echo: c3RhbmQtaW4tZm9yLXRva2Vu}}\n";
    let (web, _, http) = web(rules);
    let answer = get(&http, "search?q=stand-in-for-token").await.unwrap();
    assert_eq!((answer.status, text(&answer).as_str()), (200, "your key is [REDACTED]"));
    assert!(!format!("{answer:?}").contains(&stand_in("token")), "{answer:?}");
    assert!(!format!("{answer:?}").contains("c3RhbmQtaW4tZm9yLXRva2Vu"), "{answer:?}");
    // A request without a rule is recorded without the secret.
    assert_eq!(send(&http, "POST", "stand-in-for-token", "", None).await.unwrap().status, 501);
    let found = web.usage(|request| http.redaction().text(request));
    assert_eq!(found.unmatched[0].request, "POST https://memory.example.org/v1/[REDACTED]");
    assert_eq!((found.requests, found.unused), (2, Vec::<String>::new()));
}

#[tokio::test]
async fn the_grant_holds_for_fixtures_too() {
    let (web, _, http) = web("- {request: '*', answer: 200}\n");
    assert!(matches!(send(&http, "GET", "../admin", "", None).await, Err(HttpError::NotGranted { .. })));
    let error = send(&http, "DELETE", "items/1", "", None).await.unwrap_err();
    assert!(
        matches!(error, HttpError::OtherMethod { .. }) && error.to_string().contains("which is for GET"),
        "{error}"
    );
    assert_eq!(web.usage(str::to_owned).requests, 0);
}

#[tokio::test]
async fn redirects_are_followed_within_the_grant() {
    let rules = "- {request: 'GET https://memory.example.org/v1/old', answer: {status: 302, headers: {location: new}}}\n\
                 - {request: 'GET https://memory.example.org/v1/new', answer: {json: {moved: true}}}\n\
                 - {request: 'GET https://memory.example.org/v1/out', answer: {status: 302, headers: {location: 'https://example.org/'}}}\n";
    let (_, _, http) = web(rules);
    let moved = get(&http, "old").await.unwrap();
    assert_eq!((text(&moved).as_str(), moved.url.as_str()), ("{\"moved\":true}", "https://memory.example.org/v1/new"));
    assert!(matches!(get(&http, "out").await, Err(HttpError::Redirected { .. })));
}

#[tokio::test]
async fn requests_match_by_method_address_body_and_headers() {
    let rules = "- {request: {method: POST, url: 'https://memory.example.org/v1/*', body: ferry}, answer: {text: body}}\n\
                 - {request: {url: 'https://memory.example.org/v1/items/*', headers: {x-kind: 't*a'}}, answer: {text: header}}\n\
                 - {request: 'GET https://memory.example.org/v1/search?q=*', answer: {text: query}}\n\
                 - {request: 'https://memory.example.org/v1/search', answer: {text: path}}\n";
    let (_, _, http) = web(rules);
    for (method, path, body, expected) in [
        ("POST", "search", "the ferry leaves", "body"),
        ("POST", "items/1", "the train", "header"),
        ("GET", "search?q=ferry", "", "query"),
        ("GET", "search?k=1", "", "path"),
        ("GET", "search", "", "path"),
    ] {
        assert_eq!(text(&send(&http, method, path, body, None).await.unwrap()), expected, "{method} {path}");
    }
    assert_eq!(get(&http, "elsewhere").await.unwrap().status, 501);
}

#[tokio::test]
async fn answers_have_every_kind_of_body_in_turn() {
    let rules = "- request: '*'\n  answer:\n  - {status: 429, headers: {retry-after: 2}}\n  - {json: {a: [1, null]}}\n  - \
                 {text: plain, headers: {content-type: text/markdown}}\n  - {base64: '/w ==', status: 201}\n  - {file: Cargo.toml}\n  - 404\n";
    let (_, _, http) = web(rules);
    let header = |answer: &Response, name: &str| {
        answer.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let answer = get(&http, "").await.unwrap();
    assert_eq!((answer.status, header(&answer, "retry-after").as_str()), (429, "2"));
    let answer = get(&http, "").await.unwrap();
    assert_eq!(
        (text(&answer).as_str(), header(&answer, "content-type").as_str()),
        ("{\"a\":[1,null]}", "application/json")
    );
    let answer = get(&http, "").await.unwrap();
    assert_eq!((text(&answer).as_str(), header(&answer, "content-type").as_str()), ("plain", "text/markdown"));
    let answer = get(&http, "").await.unwrap();
    assert_eq!((answer.status, answer.body), (201, vec![0xff]));
    assert!(text(&get(&http, "").await.unwrap()).contains("hermes-conformance"));
    for _ in 0..2 {
        assert_eq!(get(&http, "").await.unwrap().status, 404, "the last answer repeats");
    }
}

#[tokio::test]
async fn every_fault_reaches_the_plugin_as_an_error() {
    let fault = |name: &str| web(&format!("- {{request: '*', answer: {name}}}\n")).2;
    assert!(matches!(get(&fault("refuse"), "").await, Err(HttpError::Network { why, .. }) if why.contains("refused")));
    assert!(matches!(get(&fault("cut-off"), "").await, Err(HttpError::Network { why, .. }) if why.contains("closed")));
    assert!(matches!(get(&fault("over-long"), "").await, Err(HttpError::TooLong)));
    let answer = get(&fault("garbage"), "").await.unwrap();
    assert!(answer.status == 200 && String::from_utf8(answer.body).is_err());
    for slow in ["drip", "{delay: 60s}"] {
        let begun = std::time::Instant::now();
        let answer = send(&fault(slow), "GET", "", "", Some(300)).await;
        assert!(matches!(answer, Err(HttpError::Timeout(300))) && begun.elapsed() < Duration::from_secs(600), "{slow}");
    }
}

#[tokio::test]
async fn an_outage_replaces_every_answer_until_it_ends() {
    let (web, session, http) = web("- {request: '*', answer: [{text: one}, {text: two}]}\n");
    session.break_with(Some(Answer::error(500, &[], "down")));
    assert_eq!(get(&http, "").await.unwrap().status, 500);
    session.break_with(None);
    assert_eq!(text(&get(&http, "").await.unwrap()), "one");
    assert_eq!((session.served(), session.was_down(), web.usage(str::to_owned).requests), (2, false, 1));
    let down = Web::new(None).open();
    let request = SentRequest { method: "GET".into(), url: SITE.into(), headers: Vec::new(), body: Vec::new() };
    assert_eq!(down.send(request).await.map(|answer| answer.status), Ok(503));
    assert!(down.was_down());
}

#[test]
fn a_mistake_is_reported_with_its_line() {
    for (text, line, part) in [
        ("", 0, "no rules"),
        ("request: x\n", 1, ""),
        ("- {request: 'GET https://a.org/', answer: 200}\n- answer: 200\n", 2, "request"),
        ("- {request: '*', answer: 200}\n- {request: '*'}\n", 2, "answer"),
        ("- {request: 'get https://a.org/', answer: 200}\n", 1, "`get` is not a method"),
        ("- {request: 'GET a.org', answer: 200}\n", 1, "`a.org` is not an address"),
        ("- {request: 'GET ftp://a.org/', answer: 200}\n", 1, "not an address"),
        ("- {request: 7, answer: 200}\n", 1, "a request such as"),
        ("- request: '*'\n  answer: 99\n", 2, "from 200 to 599"),
        ("- request: '*'\n  answer: 99999999\n", 2, "from 200 to 599"),
        ("- request: '*'\n  answer: -1\n", 2, ""),
        ("- request: '*'\n  answer: broken\n", 2, "over-long"),
        ("- request: '*'\n  answer: {status: often}\n", 2, ""),
        ("- request: '*'\n  answer: [200, {text: a, json: b}]\n", 2, "answer 2: it has several bodies"),
        ("- request: '*'\n  answer: {base64: '*'}\n", 2, "base64"),
        ("- request: '*'\n  answer: {headers: {'a b': c}}\n", 2, "`a b`"),
        ("- request: '*'\n  answer: {headers: {a: \"b\\nc\"}}\n", 2, "`a`"),
        ("- request: '*'\n  answer: {headers: {a: [b]}}\n", 2, ""),
        ("- request: '*'\n  answer: {delay: 3 weeks}\n", 2, "3 weeks"),
        ("- request: '*'\n  answer: {delay: 601s}\n", 2, "601s"),
        ("- request: '*'\n  answer: {bdy: a}\n", 2, "bdy"),
        ("- request: '*'\n  answer: []\n", 2, "no answer"),
        ("- request: '*'\n  answer: [1, 2]\n", 2, "answer 1"),
        ("- request: '*'\n  answer: [200, 201]\n  times: 1\n", 3, "2 answers"),
        ("- request: '*'\n  answer: {file: /etc/passwd}\n", 2, "folder of the fixtures"),
        ("- request: '*'\n  answer: {file: ../runtime/Cargo.toml}\n", 2, "folder of the fixtures"),
        ("- request: '*'\n  answer: {file: nowhere.json}\n", 2, "nowhere.json"),
        ("- request: '*'\n  answer: {file: src}\n", 2, "src"),
    ] {
        let flaw = parse(text).unwrap_err();
        assert!(flaw.line == line && flaw.why.contains(part), "{text}: {flaw:?}");
        assert!(flaw.why.len() < 400, "{text}: {flaw:?}");
    }
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let bomb: String = std::iter::once("- a: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain((1..12).map(|at| format!("- b: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(", "))))
        .collect();
    let many = "- {request: '*', answer: 200}\n".repeat(200_000);
    for text in [
        bomb,
        many,
        format!("- request: {}\n", "[".repeat(100_000)),
        format!("- request: {}\n", "{a: ".repeat(100_000)),
        "- request: '*'\n  answer: {json: ".to_owned() + &"[".repeat(5_000) + &"]".repeat(5_000) + "}\n",
        "--- [1]\n--- [2]\n".to_owned(),
        "- \u{0}\n".to_owned(),
        "- !!binary x\n".to_owned(),
        "- &a *a\n".to_owned(),
    ] {
        let begun = std::time::Instant::now();
        assert!(parse(&text).is_err(), "{}", &text[..40.min(text.len())]);
        assert!(begun.elapsed() < Duration::from_secs(600), "{}", &text[..40.min(text.len())]);
    }
}

#[test]
fn a_file_that_is_no_text_or_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.yaml");
    for (bytes, part) in [(vec![0xff, 0xfe], "UTF-8"), (vec![b'#'; 5 << 20], "larger than 4 MiB")] {
        std::fs::write(&path, bytes).unwrap();
        assert!(HttpFixtures::read(&path).unwrap_err().to_string().contains(part));
    }
    assert!(HttpFixtures::read(folder.path()).is_err());
    assert!(matches!(HttpFixtures::read(&folder.path().join("none")), Err(ConformanceError::Read { .. })));
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(17 << 20).unwrap();
    std::fs::write(&path, "- request: '*'\n  answer: {file: large}\n").unwrap();
    assert!(HttpFixtures::read(&path).unwrap_err().to_string().contains("line 2, column"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        std::fs::write(&path, "- request: '*'\n  answer: {file: link}\n").unwrap();
        assert!(HttpFixtures::read(&path).unwrap_err().to_string().contains("folder of the fixtures"));
    }
}
