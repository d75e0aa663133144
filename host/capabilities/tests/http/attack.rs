//! Addresses, headers, names and answers that should lead a request, or a secret, to another place.

use super::*;

#[tokio::test]
async fn no_spelling_of_an_address_leaves_the_grant() {
    let server = Server::new(|_| answer(200, &[], "")).await;
    let http = http(&[(&server.url("/v1/"), &["GET"])], &[]);
    let port = server.port;
    for url in [
        format!("http:///127.0.0.1:{port}/admin"),
        format!("http:127.0.0.1:{port}/admin"),
        format!("http:\\\\127.0.0.1:{port}\\admin"),
        format!("\thttp://127.0.0.1:{port}/admin\n"),
        format!("http://127.0.0.1:{port}/ad\nmin"),
        format!("http://2130706433:{port}/admin"),
        format!("http://0x7f.1:{port}/admin"),
        format!("http://0177.0.0.01:{port}/admin"),
        format!("http://127.0.0.1:{port}/v1/%2e%2e%5cadmin"),
        format!("http://127.0.0.1:{port}/v1/.%2e;x=/admin"),
        format!("http://127.0.0.1:{port}/v1/%252e%252e%255cadmin"),
        format!("http://127.0.0.1:{port}/v1%2f..%2fadmin"),
        format!("http://127.0.0.1:{port}/v1%00/"),
        format!("http://127.0.0.1:{port}/%E2%80%A4%E2%80%A4/v1/"),
        format!("http://127.0.0.1.:{port}/admin"),
        format!("http://127.0.0.1:{}/v1/", port ^ 1),
        format!("http://127.0.0.1:{port}@169.254.169.254/v1/"),
        format!("http://169.254.169.254#@127.0.0.1:{port}/v1/"),
        format!("http://169.254.169.254?@127.0.0.1:{port}/v1/"),
        format!("http://169.254.169.254\\@127.0.0.1:{port}/v1/"),
        format!("http://169.254.169.254%23@127.0.0.1:{port}/v1/"),
        format!("http://[::127.0.0.1]:{port}/v1/"),
        format!("ws://127.0.0.1:{port}/v1/"),
        format!("gopher://127.0.0.1:{port}/v1/"),
        format!("blob:http://127.0.0.1:{port}/v1/"),
        format!("view-source:http://127.0.0.1:{port}/v1/"),
        "http+unix://%2fvar%2frun%2fdocker.sock/v1/".to_owned(),
        "unix:///var/run/docker.sock".to_owned(),
        "javascript:alert(1)".to_owned(),
        String::new(),
    ] {
        let (_, code) = class(http.send(get(url.clone())).await.unwrap_err());
        assert!(["grant", "url"].contains(&code.as_str()), "{url}: {code}");
    }
    assert!(server.received().is_empty() && http.traffic() == Traffic::default());
}

#[tokio::test]
async fn no_header_speaks_for_the_host_or_another_machine() {
    let server = Server::new(|_| answer(200, &[], "")).await;
    let http = http(&[(&server.url("/"), ALL)], &[]);
    for (name, value) in [
        ("Forwarded", "for=127.0.0.1"),
        ("Via", "1.1 evil"),
        ("TE", "trailers"),
        ("Trailer", "x-a"),
        ("Expect", "100-continue"),
        ("Keep-Alive", "timeout=9"),
        ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
        ("X-Rewrite-URL", "/admin"),
        ("X_Original_Host", "evil.example"),
        ("X-Method-Override", "DELETE"),
        ("Proxy-Connection", "keep-alive"),
        ("X_Forwarded_For", "127.0.0.1"),
        (":authority", "evil.example"),
        ("x:y", "1"),
        ("x-\u{e4}", "1"),
        ("x-a", "\u{7f}"),
        ("x-a", "a\u{b}b"),
    ] {
        let request = Request { headers: vec![header(name, value)], ..get(server.url("/")) };
        assert_eq!(class(http.send(request).await.unwrap_err()).1, "header", "{name}");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_server_that_breaks_the_protocol_costs_one_request() {
    let server = Server::new(|received| match received.path() {
        "/lengths" => b"HTTP/1.1 200 x\r\ncontent-length: 1\r\ncontent-length: 9\r\n\r\na".to_vec(),
        "/negative" => b"HTTP/1.1 200 x\r\ncontent-length: -1\r\n\r\na".to_vec(),
        "/astronomic" => b"HTTP/1.1 200 x\r\ncontent-length: 99999999999999999999999\r\n\r\na".to_vec(),
        "/chunk" => b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff0\r\na\r\n".to_vec(),
        "/extension" => {
            let head = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n1;".to_vec();
            [head, vec![b'x'; 1 << 20], HANG.to_vec()].concat()
        }
        "/status" => b"HTTP/1.1 99 x\r\n\r\n".to_vec(),
        "/version" => b"HTTP/9.9 200 x\r\n\r\n".to_vec(),
        "/nul" => b"HTTP/1.1 200 x\r\nx-a: \0\r\ncontent-length: 0\r\n\r\n".to_vec(),
        "/long" => [b"HTTP/1.1 200 x\r\nx-a: ".as_slice(), &vec![b'a'; 2 << 20], b"\r\n\r\n"].concat(),
        "/old" => b"<html>no head at all</html>".to_vec(),
        "/interim" => b"HTTP/1.1 103 x\r\nx: y\r\n\r\n".repeat(50).into_iter().chain(HANG.iter().copied()).collect(),
        "/push" => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        _ => answer(200, &[], "fine"),
    })
    .await;
    let http = http(&[(&server.url("/"), &["GET"])], &[]);
    for path in [
        "/lengths",
        "/negative",
        "/astronomic",
        "/chunk",
        "/extension",
        "/status",
        "/version",
        "/nul",
        "/long",
        "/old",
        "/interim",
        "/push",
    ] {
        let request = Request { timeout_ms: Some(3_000), ..get(server.url(path)) };
        let answer = tokio::time::timeout(Duration::from_secs(600), http.send(request)).await.expect(path);
        let (kind, _) = class(answer.expect_err(path));
        assert!(matches!(kind, FaultKind::Unavailable | FaultKind::Timeout | FaultKind::Exhausted), "{path}: {kind:?}");
        assert_eq!(text(&http.send(get(server.url("/fine"))).await.unwrap()), "fine", "{path}");
    }
}

#[tokio::test]
async fn no_location_leads_out_of_the_grant() {
    let other = Server::at("127.0.0.2", |_| answer(200, &[], "out")).await;
    let port = other.port;
    for target in [
        format!("///127.0.0.2:{port}/v1/"),
        format!("\\\\127.0.0.2:{port}\\v1\\"),
        format!("http:\\\\127.0.0.2:{port}\\v1\\"),
        format!("http:/\\127.0.0.2:{port}/v1/"),
        format!("\thttp://127.0.0.2:{port}/v1/"),
        format!("HTTP://127.0.0.2:{port}/v1/"),
        format!("http://2130706434:{port}/v1/"),
        format!("http://127.0.0.1:1@127.0.0.2:{port}/v1/"),
        "/v1/..;/admin".to_owned(),
        "/v1/%2e%2e%5cadmin".to_owned(),
        "/v1\\..\\admin".to_owned(),
        "../../../admin".to_owned(),
        "//".to_owned(),
        ":".to_owned(),
        "http:".to_owned(),
        "a".repeat(100_000),
    ] {
        let to = target.clone();
        let server = Server::new(move |received| match received.path() {
            "/v1/start" => redirect(308, &to),
            _ => answer(200, &[], "inside"),
        })
        .await;
        let http = http(&[(&server.url("/v1/"), &["GET", "POST"])], &[]);
        let request = Request { method: "POST".into(), body: b"private".into(), ..get(server.url("/v1/start")) };
        let answer = http.send(request).await;
        assert!(server.paths().iter().all(|path| path.starts_with("/v1/")), "{target}: {:?}", server.paths());
        assert!(answer.is_err() || text(answer.as_ref().unwrap()) == "inside", "{target}: {answer:?}");
    }
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn a_redirect_that_changes_the_scheme_or_the_port_takes_no_secret_along() {
    let elsewhere = Server::new(|_| answer(200, &[], "elsewhere")).await;
    let to = elsewhere.url("/v1/");
    let server = Server::new(move |_| redirect(307, &to)).await;
    let grants: &[(&str, &[&str])] = &[(&server.url("/"), ALL), (&elsewhere.url("/"), ALL)];
    let http = http(grants, &[&server.url("/v1/")]);
    let headers = vec![bearer(), header("cookie", "own=1"), header("x-api-key", "of the plugin")];
    let answer = http.send(Request { headers, ..get(server.url("/v1/")) }).await.unwrap();
    assert_eq!(text(&answer), "elsewhere");
    let received = &elsewhere.received()[0];
    assert_eq!((received.header("authorization"), received.header("cookie")), (None, None));
    // The same host by another name is another audience.
    let http = self::http(grants, &[&server.url("/v1/").replace("127.0.0.1", "localhost")]);
    let request = Request { headers: vec![bearer()], ..get(server.url("/v1/")) };
    assert_eq!(class(http.send(request).await.unwrap_err()), (FaultKind::Denied, "secret".to_owned()));
}

#[tokio::test]
async fn names_that_lead_to_special_addresses_are_refused() {
    let server = Server::new(|_| answer(200, &[], "private")).await;
    let many: Vec<String> = (0..5_000).map(|at| format!("3ffe::{at:x}")).chain(["127.0.0.1".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for addresses in [
        &["2002:7f00:1::"][..],
        &["2001::7f00:1"],
        &["::7f00:1"],
        &["::"],
        &["198.18.0.1"],
        &["192.0.0.170"],
        &["192.88.99.1"],
        &["240.0.0.1"],
        &["255.255.255.255"],
        &["100::1"],
        &["2001:db8::1"],
        &["3fff::1"],
        &["fec0::1"],
        &["ff02::1"],
        &["64:ff9b:1::a00:1"],
        &["::ffff:0:127.0.0.1"],
        &["1.1.1.1", "192.168.0.1"],
        &many,
    ] {
        let names = names(&[addresses]);
        let site = format!("http://rebind.example.org:{}/", server.port);
        let http = Http::new(rights(&[(&site, &["GET"])], &[]), names.clone());
        let error = http.send(get(&site)).await.unwrap_err();
        assert_eq!(class(error), (FaultKind::Denied, "address".to_owned()), "{:?}", addresses.last());
        assert_eq!(names.queries.lock().unwrap().len(), 1);
    }
    // Names below `localhost`, and names of the machine, are looked up like all others.
    for host in ["a.localhost", "localhost.example.org", "ip6-localhost", "host.docker.internal", "metadata"] {
        let site = format!("http://{host}:{}/", server.port);
        let http = Http::new(rights(&[(&site, &["GET"])], &[]), names(&[&["127.0.0.1"]]));
        assert_eq!(class(http.send(get(&site)).await.unwrap_err()).1, "address", "{host}");
    }
    assert!(server.received().is_empty());
}

/// What a server makes of a secret.
type Disguise = (&'static str, fn(&str) -> String);

const DISGUISES: [Disguise; 9] = [
    ("percent", |key| key.bytes().map(|byte| format!("%{byte:02x}")).collect()),
    ("percent in capitals", |key| key.bytes().map(|byte| format!("%{byte:02X}")).collect()),
    ("json", |key| key.bytes().map(|byte| format!("\\u00{byte:02x}")).collect()),
    ("html in decimals", |key| key.bytes().map(|byte| format!("&#{byte};")).collect()),
    ("html in hexadecimals", |key| key.bytes().map(|byte| format!("&#x{byte:x};")).collect()),
    ("hexadecimal digits in capitals", |key| key.bytes().map(|byte| format!("{byte:02X}")).collect()),
    ("base64", |_| "c2stMDEyMzQ1Njc4OWFiY2RlZg==".to_owned()),
    ("base64 behind a user", |_| "dXNlcjpzay0wMTIzNDU2Nzg5YWJjZGVm".to_owned()),
    ("base64 in lines", |_| "eHhzay0wMT\r\nIzNDU2Nzg5\r\nYWJjZGVmeX\r\nk=".to_owned()),
];

#[tokio::test]
async fn a_disguised_secret_never_reaches_the_plugin() {
    for (name, disguise) in DISGUISES {
        let server = Server::new(move |received| {
            let key = received.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
            answer(403, &[], format!("<begin>{}<end>", disguise(&key)))
        })
        .await;
        let http = http(&[(&server.url("/"), &["GET"])], &[&server.url("/")]);
        let answer = http.send(Request { headers: vec![bearer()], ..get(server.url("/")) }).await.unwrap();
        let body = text(&answer);
        // Nothing of the disguised secret is left but its ends, which base64 shares with its neighbours.
        let whole = disguise(KEY);
        let middle = &whole[whole.len() / 3..2 * whole.len() / 3];
        assert!(body.contains("[REDACTED]") && !body.contains(middle), "{name}: {body}");
        assert!(body.starts_with("<begin>") && body.ends_with("<end>"), "{name}: {body}");
    }
}
