//! Requests of plugins to malicious servers, host names and redirects.
#![allow(clippy::unwrap_used)]

mod attack;
mod secrets;
mod server;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_capabilities::http::{
    Body, Grant, Http, HttpError, Request, Resolver, Response, Rights, Secret, Traffic, Value,
};
use hermes_capabilities::{Fault, FaultKind};

use server::{HANG, Server, answer, redirect};

const KEY: &str = "sk-0123456789abcdef";

/// A resolver that returns the next answer of its script, and then the last one for ever. Records the queried names.
#[derive(Default)]
struct ScriptedResolver {
    script: Mutex<Vec<Vec<IpAddr>>>,
    queries: Mutex<Vec<String>>,
}

#[async_trait]
impl Resolver for ScriptedResolver {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.queries.lock().unwrap().push(host.to_owned());
        let mut script = self.script.lock().unwrap();
        if script.len() > 1 {
            return Ok(script.remove(0));
        }
        script.first().cloned().ok_or_else(|| std::io::Error::other("there is no such host"))
    }
}

fn names(script: &[&[&str]]) -> Arc<ScriptedResolver> {
    let addresses = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
    Arc::new(ScriptedResolver { script: Mutex::new(script.iter().map(addresses).collect()), queries: Mutex::default() })
}

fn rights(grants: &[(&str, &[&str])], audiences: &[&str]) -> Rights {
    let grant = |(site, methods): &(&str, &[&str])| Grant {
        site: site.parse().unwrap(),
        methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        local: false,
    };
    let secret = |audience: &&str| {
        Secret::new("api_key".into(), "EXAMPLE_API_KEY".into(), audience.parse().unwrap(), Some(KEY.into()))
    };
    Rights {
        grants: grants.iter().map(grant).collect(),
        secrets: audiences.iter().map(secret).collect(),
        denial: "denied: the plugin may not send this request".into(),
    }
}

fn http(grants: &[(&str, &[&str])], audiences: &[&str]) -> Http {
    Http::new(rights(grants, audiences), names(&[]))
}

fn get(url: impl Into<String>) -> Request {
    Request {
        method: "GET".into(),
        url: url.into(),
        query: Vec::new(),
        headers: Vec::new(),
        body: Body::default(),
        timeout_ms: Some(20_000),
    }
}

fn header(name: &str, value: &str) -> (String, Value) {
    (name.to_owned(), Value::Plain(value.to_owned()))
}

fn bearer() -> (String, Value) {
    ("authorization".to_owned(), Value::Secret { name: "api_key".to_owned(), prefix: "Bearer ".to_owned() })
}

fn class(error: HttpError) -> (FaultKind, String) {
    let fault = Fault::from(error);
    assert!(!fault.message.contains(KEY), "{fault}");
    (fault.kind, fault.code)
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

/// All methods that the tests use.
const ALL: &[&str] = &["GET", "POST", "PUT"];

#[tokio::test]
async fn any_status_is_a_response_and_the_traffic_is_counted() {
    let server = Server::new(|received| match received.path() {
        "/missing" => answer(404, &[], "nothing here"),
        _ => answer(200, &[("X-Kind", "tea"), ("X-Kind", "green")], &received.body),
    })
    .await;
    let http = http(&[(&server.url("/"), ALL)], &[]);
    let missing = http.send(get(server.url("/missing#fragment"))).await.unwrap();
    assert_eq!((missing.status, text(&missing).as_str()), (404, "nothing here"));
    let post = Request {
        method: "POST".into(),
        headers: vec![header("X-A", "b")],
        body: b"hello".into(),
        ..get(server.url("/echo?q=1"))
    };
    let echo = http.send(post).await.unwrap();
    assert_eq!((echo.status, text(&echo), echo.url), (200, "hello".to_owned(), server.url("/echo?q=1")));
    let kinds = echo.headers.iter().filter(|(name, _)| name == "x-kind").map(|(_, value)| value.as_str());
    assert_eq!(kinds.collect::<Vec<_>>(), ["tea", "green"]);
    assert_eq!(server.paths(), ["/missing", "/echo?q=1"]);
    let received = &server.received()[1];
    assert_eq!((received.header("x-a"), received.header("accept-encoding")), (Some("b"), Some("identity")));
    let Traffic { requests, sent, received } = http.traffic();
    assert_eq!((requests, received), (2, 12 + 5));
    assert!(sent >= (server.url("/missing").len() + server.url("/echo?q=1").len() + 4 + 5) as u64, "{sent}");
}

#[tokio::test]
async fn nothing_is_sent_outside_the_grant() {
    let server = Server::new(|_| answer(200, &[], "")).await;
    let http = http(&[(&server.url("/v1/"), &["GET"])], &[]);
    let port = server.port;
    for (method, url, code) in [
        ("POST", server.url("/v1/"), "grant"),
        ("OPTIONS", server.url("/v1/"), "grant"),
        ("GET", server.url("/"), "grant"),
        ("GET", server.url("/v10"), "grant"),
        ("GET", server.url("/v1/../admin"), "grant"),
        ("GET", server.url("/v1/%2e%2e/admin"), "grant"),
        ("GET", server.url("/v1/..%2fadmin"), "grant"),
        ("GET", server.url("/v1\\..\\admin"), "grant"),
        ("GET", format!("http://localhost:{port}/v1/"), "grant"),
        ("GET", format!("http://[::ffff:127.0.0.1]:{port}/v1/"), "grant"),
        ("GET", format!("https://127.0.0.1:{port}/v1/"), "grant"),
        ("GET", "http://127.0.0.1/v1/".to_owned(), "grant"),
        ("GET", "http://169.254.169.254/latest/meta-data/".to_owned(), "grant"),
        ("GET", format!("http://user:password@127.0.0.1:{port}/v1/"), "url"),
        ("GET", "file:///etc/passwd".to_owned(), "url"),
        ("GET", "/v1/".to_owned(), "url"),
        ("GET", server.url(&format!("/v1/{}", "a".repeat(9000))), "url"),
        ("get", server.url("/v1/"), "method"),
        ("TRACE", server.url("/v1/"), "method"),
        ("CONNECT", server.url("/v1/"), "method"),
        ("GET /v1/ HTTP/1.1\r\nX: ", server.url("/v1/"), "method"),
        ("", server.url("/v1/"), "method"),
    ] {
        let request = Request { method: method.into(), ..get(url.clone()) };
        assert_eq!(class(http.send(request).await.unwrap_err()).1, code, "{method} {url}");
    }
    assert!(server.received().is_empty() && http.traffic() == Traffic::default());
    for method in ["GET", "HEAD"] {
        let request = Request { method: method.into(), ..get(server.url("/v1/a")) };
        assert_eq!(http.send(request).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn headers_cannot_be_smuggled() {
    let server = Server::new(|_| answer(200, &[], "")).await;
    let http = http(&[(&server.url("/"), ALL)], &[&server.url("/")]);
    let secret = |name: &str, prefix: &str| {
        (name.to_owned(), Value::Secret { name: "api_key".to_owned(), prefix: prefix.to_owned() })
    };
    let many = (0..65).map(|number| header(&format!("x-{number}"), "a")).collect();
    for headers in [
        vec![header("x-a", "b\r\nx-evil: 1")],
        vec![header("x-a", "b\nx-evil: 1")],
        vec![header("x-a", "b\0")],
        vec![header("x-a\r\nx-evil", "1")],
        vec![header("x a", "1")],
        vec![header("", "1")],
        vec![secret("authorization", "Bearer \r\nx-evil: ")],
        vec![secret("authorization", &"x".repeat(65))],
        vec![secret("host", "")],
        vec![header("Host", "evil.example")],
        vec![header("Content-Length", "0")],
        vec![header("Transfer-Encoding", "chunked")],
        vec![header("Connection", "authorization")],
        vec![header("Upgrade", "h2c")],
        vec![header("Accept-Encoding", "gzip")],
        vec![header("Proxy-Authorization", "Basic YTpi")],
        vec![header("X-HTTP-Method-Override", "DELETE")],
        vec![header("X_Http_Method_Override", "DELETE")],
        vec![header("X-Original-URL", "/admin")],
        vec![header("X-Forwarded-Host", "evil.example")],
        vec![bearer(), header("range", "bytes=0-3")],
        vec![header("x-a", &"b".repeat(33 << 10))],
        many,
    ] {
        let shown = format!("{headers:?}");
        let error = http.send(Request { headers, ..get(server.url("/")) }).await.unwrap_err();
        assert!(!error.to_string().contains(['\r', '\n']), "{error}");
        assert_eq!(class(error).1, "header", "{shown}");
    }
    let body = Body::from(vec![0; (8 << 20) + 1]);
    let error = http.send(Request { method: "POST".into(), body, ..get(server.url("/")) }).await.unwrap_err();
    assert_eq!(class(error).1, "body");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn redirects_inside_the_grant_are_followed_like_in_browsers() {
    let server = Server::new(|received| match received.path() {
        "/see-other" => redirect(303, "/end"),
        "/found" => redirect(302, "end"),
        "/temporary" => {
            redirect(307, "//127.0.0.1:PORT/end".replace("PORT", received.header("x-port").unwrap()).as_str())
        }
        "/not-modified" => redirect(304, "/end"),
        "/loop" => redirect(302, "/loop"),
        "/nowhere" => redirect(302, "http://"),
        _ => answer(
            200,
            &[],
            received.line.split(' ').next().unwrap().to_owned() + &String::from_utf8_lossy(&received.body),
        ),
    })
    .await;
    let http = http(&[(&server.url("/"), ALL)], &[]);
    let port = server.port.to_string();
    for (method, path, expected) in [
        ("POST", "/see-other", "GET"),
        ("PUT", "/see-other", "GET"),
        ("POST", "/found", "GET"),
        ("PUT", "/found", "PUTbody"),
        ("POST", "/temporary", "POSTbody"),
    ] {
        let headers = vec![header("x-port", &port)];
        let request = Request { method: method.into(), body: b"body".into(), headers, ..get(server.url(path)) };
        let response = http.send(request).await.unwrap();
        assert_eq!((text(&response), response.url), (expected.to_owned(), server.url("/end")), "{method} {path}");
    }
    assert_eq!(http.send(get(server.url("/not-modified"))).await.unwrap().status, 304);
    let before = server.received().len();
    assert_eq!(class(http.send(get(server.url("/loop"))).await.unwrap_err()).1, "redirect");
    assert_eq!(server.received().len() - before, 6);
    assert_eq!(class(http.send(get(server.url("/nowhere"))).await.unwrap_err()).1, "redirect");
}

#[tokio::test]
async fn no_redirect_leads_out_of_the_grant() {
    let other = Server::at("127.0.0.2", |_| answer(200, &[], "out")).await;
    let targets = [
        other.url("/v1/"),
        "/v2/".to_owned(),
        "/v1/../admin".to_owned(),
        "..%2fadmin".to_owned(),
        "%2e%2e/admin".to_owned(),
        format!("//127.0.0.2:{}/v1/", other.port),
        format!("/\\127.0.0.2:{}/v1/", other.port),
        format!("http://127.0.0.1:{}/v1/", other.port),
        "http://169.254.169.254/v1/".to_owned(),
        "http://[::1]/v1/".to_owned(),
        "https://example.org/v1/".to_owned(),
    ];
    for target in targets {
        let to = target.clone();
        let server = Server::new(move |_| redirect(302, &to)).await;
        let http = http(&[(&server.url("/v1/"), &["GET"])], &[]);
        let error = http.send(get(server.url("/v1/start"))).await.unwrap_err();
        assert_eq!(class(error), (FaultKind::Denied, "grant".to_owned()), "{target}");
        assert_eq!(server.paths(), ["/v1/start"], "{target}");
    }
    for target in ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user:password@127.0.0.1/v1/", "data:,a"] {
        let server = Server::new(move |_| redirect(301, target)).await;
        let http = http(&[(&server.url("/"), &["GET"])], &[]);
        assert_eq!(class(http.send(get(server.url("/"))).await.unwrap_err()).1, "url", "{target}");
    }
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn a_redirect_that_keeps_its_method_needs_a_grant_for_it() {
    let server =
        Server::new(|received| if received.path() == "/a" { redirect(307, "/b") } else { answer(200, &[], "") }).await;
    let http = http(&[(&server.url("/a"), &["POST"]), (&server.url("/b"), &["GET"])], &[]);
    let request = Request { method: "POST".into(), ..get(server.url("/a")) };
    assert_eq!(class(http.send(request).await.unwrap_err()).1, "grant");
    assert_eq!(server.paths(), ["/a"]);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused() {
    let server = Server::new(|_| answer(200, &[], "private")).await;
    let site = format!("http://*.example.org:{}/", server.port);
    for addresses in [
        &["127.0.0.1"][..],
        &["0.0.0.0"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["100.64.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["fd00::1"],
        &["fe80::1"],
        &["3ffe::1", "127.0.0.1"],
        &["127.0.0.1", "3ffe::1"],
    ] {
        let names = names(&[addresses]);
        let http = Http::new(rights(&[(&site, &["GET"])], &[]), names.clone());
        let error = http.send(get(format!("http://a.example.org:{}/", server.port))).await.unwrap_err();
        assert_eq!(class(error), (FaultKind::Denied, "address".to_owned()), "{addresses:?}");
        assert_eq!(*names.queries.lock().unwrap(), ["a.example.org"], "{addresses:?}");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_name_that_was_granted_as_local_leads_home_and_nowhere_else() {
    let server = Server::new(|_| answer(200, &[], "home")).await;
    let url = format!("http://nas.lan:{}/", server.port);
    let local = |other: Option<&str>| {
        let mut rights = rights(&[(&url, &["GET"])], &[]);
        rights.grants[0].local = true;
        // Another name, which was not granted as local.
        let other = other.map(|site| Grant { site: site.parse().unwrap(), local: false, ..rights.grants[0].clone() });
        rights.grants.extend(other);
        rights
    };
    let send = async |rights: Rights, addresses: &[&str], url: &str| {
        Http::new(rights, names(&[addresses])).send(get(url)).await
    };
    assert_eq!(text(&send(local(None), &["127.0.0.1"], &url).await.unwrap()), "home");
    for addresses in [
        &["169.254.169.254"][..],
        &["0.0.0.0"],
        &["fe80::1"],
        &["fd00:ec2::254"],
        &["::ffff:169.254.169.254"],
        &["64:ff9b::7f00:1"],
        &["127.0.0.1", "169.254.169.254"],
        &["224.0.0.1"],
    ] {
        let error = send(local(None), addresses, &url).await.unwrap_err();
        assert_eq!(class(error), (FaultKind::Denied, "address".to_owned()), "{addresses:?}");
    }
    let other = format!("http://other.lan:{}/", server.port);
    let error = send(local(Some(&other)), &["127.0.0.1"], &other).await.unwrap_err();
    assert_eq!(class(error), (FaultKind::Denied, "address".to_owned()));
    let outside = send(local(None), &["127.0.0.1"], &format!("http://nas.lan:{}/", server.port - 1)).await.unwrap_err();
    assert_eq!(class(outside).1, "grant");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_a_granted_name_with_a_private_address_is_refused() {
    let inner = Server::new(|_| answer(200, &[], "private")).await;
    let to = format!("http://inner.example.org:{}/", inner.port);
    let outer = {
        let to = to.clone();
        Server::new(move |_| redirect(302, &to)).await
    };
    let grants: &[(&str, &[&str])] = &[(&outer.url("/"), &["GET"]), (&to, &["GET"])];
    let http = Http::new(rights(grants, &[]), names(&[&["127.0.0.1"]]));
    assert_eq!(class(http.send(get(outer.url("/"))).await.unwrap_err()).1, "address");
    assert_eq!((outer.received().len(), inner.received().len()), (1, 0));
}

/// The first address is in a public block, but not in use.
#[tokio::test]
async fn every_public_host_means_no_host_of_the_users_own_network() {
    const EVERY: &[(&str, &[&str])] = &[("http://*/", &["GET"]), ("https://*/", &["GET"])];
    for address in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "::1", "fd00::1", "::ffff:192.168.0.1"] {
        for url in ["http://inside.example/", "https://inside.example/"] {
            let resolver = names(&[&["93.184.216.34", address]]);
            let error = Http::new(rights(EVERY, &[]), resolver).send(get(url)).await.unwrap_err();
            assert_eq!(class(error), (FaultKind::Denied, "address".to_owned()), "{url} {address}");
        }
    }
    let resolver = names(&[&["93.184.216.34"]]);
    let http = Http::new(rights(EVERY, &[]), Arc::clone(&resolver) as Arc<dyn Resolver>);
    for url in
        ["http://localhost/", "http://127.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://0/"]
    {
        assert_eq!(class(http.send(get(url)).await.unwrap_err()), (FaultKind::Denied, "grant".to_owned()), "{url}");
    }
    assert_eq!((http.traffic().requests, resolver.queries.lock().unwrap().len()), (0, 0));
    // A redirect from a host that is granted by its number.
    for target in ["http://127.0.0.1:1/", "http://169.254.169.254/", "http://localhost/"] {
        let server = Server::new(move |_| redirect(302, target)).await;
        let own = format!("http://127.0.0.1:{}/", server.port);
        let http = Http::new(rights(&[EVERY, &[(own.as_str(), &["GET"])]].concat(), &[]), names(&[]));
        let error = http.send(get(own.as_str())).await.unwrap_err();
        assert_eq!(class(error), (FaultKind::Denied, "grant".to_owned()), "{target}");
    }
}

#[tokio::test]
async fn a_rebound_name_is_checked_again() {
    let server = Server::new(|_| answer(200, &[], "private")).await;
    let names = names(&[&["3ffe::1"], &["127.0.0.1"]]);
    let url = format!("http://rebind.example.org:{}/", server.port);
    let http = Http::new(rights(&[(&url, &["GET"])], &[]), names.clone());
    let first = http.send(Request { timeout_ms: Some(2_000), ..get(&url) }).await.unwrap_err();
    assert!(matches!(first, HttpError::Network { .. } | HttpError::Timeout(_)), "{first:?}");
    assert_eq!(names.queries.lock().unwrap().len(), 1);
    let second = http.send(get(&url)).await.unwrap_err();
    assert_eq!(class(second).1, "address");
    assert_eq!(names.queries.lock().unwrap().len(), 2);
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn localhost_is_reached_if_the_grant_names_it_and_without_a_lookup() {
    let server = Server::new(|_| answer(200, &[], "home")).await;
    let names = names(&[&["3ffe::1"]]);
    let url = format!("http://localhost:{}/", server.port);
    let http = Http::new(rights(&[(&url, &["GET"])], &[]), names.clone());
    assert_eq!(text(&http.send(get(&url)).await.unwrap()), "home");
    assert!(names.queries.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_secret_is_sent_only_to_its_audience() {
    let server = Server::new(|_| answer(200, &[], "")).await;
    let mut of_server = rights(&[(&server.url("/"), ALL)], &[&server.url("/v1/")]);
    let audience = server.url("/").parse().unwrap();
    of_server.secrets.push(Secret::new("empty".into(), "EXAMPLE_EMPTY".into(), audience, None));
    let http = Http::new(of_server, names(&[]));
    assert!(http.has_secret("api_key").await && !http.has_secret("empty").await && !http.has_secret("other").await);
    let with = |name: &str| vec![("x-key".to_owned(), Value::Secret { name: name.into(), prefix: String::new() })];
    let ok = http.send(Request { headers: with("api_key"), ..get(server.url("/v1/a")) }).await.unwrap();
    assert_eq!((ok.status, server.received()[0].header("x-key")), (200, Some(KEY)));
    for (name, path, kind, code) in [
        ("api_key", "/v2/a", FaultKind::Denied, "secret"),
        ("api_key", "/v1/..%2fv2", FaultKind::Denied, "secret"),
        ("other", "/v1/a", FaultKind::Denied, "secret"),
        ("empty", "/v1/a", FaultKind::Failed, "unset"),
    ] {
        let error = http.send(Request { headers: with(name), ..get(server.url(path)) }).await.unwrap_err();
        assert_eq!(class(error), (kind, code.to_owned()), "{name} {path}");
    }
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_redirect_keeps_a_secret_only_inside_its_audience() {
    let elsewhere = {
        let back = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&back);
        (Server::at("127.0.0.2", move |_| redirect(302, &to.lock().unwrap())).await, back)
    };
    let out = elsewhere.0.url("/between");
    let server = Server::new(move |received| match received.path() {
        "/v1/start" => redirect(302, "/v1/next"),
        "/v1/next" => redirect(302, &out),
        "/v2/back" => redirect(302, "/v1/end"),
        _ => answer(200, &[], "end"),
    })
    .await;
    *elsewhere.1.lock().unwrap() = server.url("/v2/back");
    let grants: &[(&str, &[&str])] = &[(&server.url("/"), &["GET"]), (&elsewhere.0.url("/"), &["GET"])];
    let http = http(grants, &[&server.url("/v1/")]);
    let own = header("cookie", "session=of the plugin's own");
    let secret = ("x-key".to_owned(), Value::Secret { name: "api_key".into(), prefix: String::new() });
    let headers = vec![secret, own, header("authorization", "Basic YTpi"), header("x-plain", "1")];
    let response = http.send(Request { headers, ..get(server.url("/v1/start")) }).await.unwrap();
    assert_eq!((text(&response), response.url), ("end".to_owned(), server.url("/v1/end")));
    let keys = |server: &Server| {
        server.received().iter().map(|received| received.header("x-key").is_some()).collect::<Vec<_>>()
    };
    assert_eq!(server.paths(), ["/v1/start", "/v1/next", "/v2/back", "/v1/end"]);
    assert_eq!((keys(&server), keys(&elsewhere.0)), (vec![true, true, false, true], vec![false]));
    let between = &elsewhere.0.received()[0];
    assert_eq!((between.header("cookie"), between.header("authorization")), (None, None));
    assert_eq!(between.header("x-plain"), Some("1"));
}

#[tokio::test]
async fn a_secret_that_the_server_repeats_never_reaches_the_plugin() {
    let server = Server::new(|received| {
        let key = received.header("authorization").unwrap_or("Bearer nothing").trim_start_matches("Bearer ").to_owned();
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        match received.path() {
            "/body" => answer(401, &[("x-echo", &key), (&format!("x-{key}"), "1")], format!("bad key {key} ({hex})")),
            "/binary" => answer(200, &[], [&[0xff, 0xfe][..], key.as_bytes(), &[0x00]].concat()),
            "/encoding" => answer(200, &[("content-encoding", &key)], ""),
            "/location" => redirect(302, &format!("/leak/{key}")),
            "/query" => redirect(302, &format!("/leak?key={}", key.replace('-', "%2D"))),
            "/created" => answer(201, &[("location", &format!("/items?key={key}"))], ""),
            _ => answer(200, &[], "leaked"),
        }
    })
    .await;
    let http = http(&[(&server.url("/"), &["GET"])], &[&server.url("/")]);
    let send = |path: &str| http.send(Request { headers: vec![bearer()], ..get(server.url(path)) });
    let body = send("/body").await.unwrap();
    assert_eq!(text(&body), "bad key [REDACTED] ([REDACTED])");
    assert!(!format!("{:?}", body.headers).to_lowercase().contains(KEY), "{:?}", body.headers);
    assert!(body.headers.contains(&("x-echo".to_owned(), "[REDACTED]".to_owned())));
    let binary = send("/binary").await.unwrap();
    assert_eq!(binary.body, [&[0xff, 0xfe][..], b"[REDACTED]", &[0x00]].concat());
    assert_eq!(class(send("/encoding").await.unwrap_err()).1, "encoding");
    for path in ["/location", "/query"] {
        assert_eq!(class(send(path).await.unwrap_err()), (FaultKind::Denied, "secret".to_owned()), "{path}");
    }
    let created = send("/created").await.unwrap();
    assert!(created.headers.contains(&("location".to_owned(), "/items?key=[REDACTED]".to_owned())));
    assert!(!server.paths().iter().any(|path| path.starts_with("/leak")));
}

#[tokio::test]
async fn a_response_is_limited_in_size_and_must_be_complete() {
    const MOST: usize = 8 << 20;
    let server = Server::new(|received| match received.path() {
        "/whole" => answer(200, &[], vec![b'a'; MOST]),
        "/claims" => [b"HTTP/1.1 200 x\r\ncontent-length: 8388609\r\n\r\n".as_slice(), HANG].concat(),
        "/endless" => {
            let chunk = [b"100000\r\n".as_slice(), &vec![b'a'; 1 << 20], b"\r\n"].concat();
            [b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n".as_slice(), &chunk.repeat(9), HANG].concat()
        }
        "/bomb" => answer(200, &[("content-encoding", "gzip")], [0x1f, 0x8b]),
        "/headers" => answer(200, &vec![("x", "y"); 500], ""),
        "/cut" => b"HTTP/1.1 200 x\r\ncontent-length: 10\r\n\r\nabc".to_vec(),
        "/garbage" => b"\x16\x03\x01\x02 not http at all\r\n\r\n".to_vec(),
        _ => Vec::new(),
    })
    .await;
    let http = http(&[(&server.url("/"), &["GET"])], &[]);
    assert_eq!(http.send(get(server.url("/whole"))).await.unwrap().body.len(), MOST);
    for (path, kind, code) in [
        ("/claims", FaultKind::Exhausted, "too-long"),
        ("/endless", FaultKind::Exhausted, "too-long"),
        ("/bomb", FaultKind::Failed, "encoding"),
        ("/headers", FaultKind::Unavailable, "network"),
        ("/cut", FaultKind::Unavailable, "network"),
        ("/garbage", FaultKind::Unavailable, "network"),
        ("/nothing", FaultKind::Unavailable, "network"),
    ] {
        let error = http.send(get(server.url(path))).await.unwrap_err();
        assert_eq!(class(error), (kind, code.to_owned()), "{path}");
    }
    assert!(http.traffic().received < 3 * MOST as u64);
}

#[tokio::test]
async fn no_cookie_is_kept_and_nothing_is_compressed() {
    let server = Server::new(|received| match received.path() {
        "/moved" => answer(302, &[("set-cookie", "a=1; Path=/"), ("location", "/end")], ""),
        _ => answer(200, &[("set-cookie", "b=2; Path=/")], ""),
    })
    .await;
    let http = http(&[(&server.url("/"), ALL)], &[]);
    for path in ["/moved", "/again"] {
        http.send(get(server.url(path))).await.unwrap();
    }
    let received = server.received();
    assert_eq!(received.len(), 3);
    for request in received {
        assert_eq!((request.header("cookie"), request.header("accept-encoding")), (None, Some("identity")));
    }
}

#[tokio::test]
async fn a_slow_server_runs_into_the_timeout() {
    let server = Server::new(|received| match received.path() {
        "/silent" => HANG.to_vec(),
        "/head" => [b"HTTP/1.1 200 x\r\ncontent-le".as_slice(), HANG].concat(),
        "/body" => [b"HTTP/1.1 200 x\r\ncontent-length: 100\r\n\r\nabc".as_slice(), HANG].concat(),
        _ => redirect(302, "/silent"),
    })
    .await;
    let http = http(&[(&server.url("/"), &["GET"])], &[]);
    for path in ["/silent", "/head", "/body", "/redirect"] {
        let request = Request { timeout_ms: Some(200), ..get(server.url(path)) };
        let answer = tokio::time::timeout(Duration::from_secs(600), http.send(request)).await.unwrap();
        assert_eq!(class(answer.unwrap_err()), (FaultKind::Timeout, String::new()), "{path}");
    }
}
