//! Requests that reach the port of a login: the right one, and every other.

use super::*;

const STATE: &str = "state-0123456789";

fn url() -> Url {
    Url::parse("http://127.0.0.1:4567/callback").unwrap()
}

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:4567\r\nAccept: */*\r\n\r\n")
}

#[test]
fn only_the_request_of_this_login_counts() {
    let code = |code: &str| Ok(Outcome::Code(Secret::new(code).unwrap()));
    let error = |word: &str, why: Option<&str>| Ok(Outcome::Error(word.to_owned(), why.map(str::to_owned)));
    for (target, outcome) in [
        ("/callback?code=c1&state=state-0123456789", code("c1")),
        ("/callback?state=state-0123456789&code=c%2F1%3D&iss=https%3A%2F%2Fid.test", code("c/1=")),
        ("/callback?error=access_denied&state=state-0123456789", error("access_denied", None)),
        ("/callback?error=x&error_description=a+b&state=state-0123456789", error("x", Some("a b"))),
        // Another login, or a stranger.
        ("/callback?code=c1", Err(Foreign(403))),
        ("/callback?code=c1&state=", Err(Foreign(403))),
        ("/callback?code=c1&state=state-0123456780", Err(Foreign(403))),
        ("/callback?code=c1&state=state-0123456789&state=other", Err(Foreign(403))),
        ("/callback?code=c1&state=other&state=state-0123456789", Err(Foreign(403))),
        ("/callback?error=access_denied", Err(Foreign(403))),
        // The right login without a usable code.
        ("/callback?state=state-0123456789", Err(Foreign(400))),
        ("/callback?code=&state=state-0123456789", Err(Foreign(400))),
        ("/callback?code=a&code=b&state=state-0123456789", Err(Foreign(400))),
        // Another place.
        ("/favicon.ico", Err(Foreign(404))),
        ("/callback/more?code=c1&state=state-0123456789", Err(Foreign(404))),
        ("/Callback?code=c1&state=state-0123456789", Err(Foreign(404))),
        ("//evil.test/callback?code=c1&state=state-0123456789", Err(Foreign(404))),
        ("http://evil.test/callback?code=c1&state=state-0123456789", Err(Foreign(400))),
        ("*", Err(Foreign(400))),
        ("", Err(Foreign(400))),
    ] {
        assert_eq!(read(&request(target), &url(), Some(STATE), None), outcome, "{target}");
    }
}

#[test]
fn without_a_state_the_path_decides() {
    let url = Url::parse("http://localhost:4567/callback/secret-path").unwrap();
    let read = |target: &str| read(&request(target).replace("127.0.0.1", "localhost"), &url, None, None);
    let code = Ok(Outcome::Code(Secret::new("c1").unwrap()));
    assert_eq!(read("/callback/secret-path?code=c1"), code);
    assert_eq!(read("/callback/secret-path?code=c1&state=any"), code);
    assert_eq!(read("/callback/secret-path?error=access_denied"), Ok(Outcome::Error("access_denied".to_owned(), None)));
    for (target, status) in [
        ("/callback?code=c1", 404),
        ("/callback/?code=c1", 404),
        ("/callback/secret-pat?code=c1", 404),
        ("/callback/secret-path/?code=c1", 404),
        ("/callback/secret-path", 400),
        ("/callback/secret-path?code=a&code=b", 400),
    ] {
        assert_eq!(read(target), Err(Foreign(status)), "{target}");
    }
}

#[test]
fn an_answer_of_another_login_server_has_no_code() {
    let target = |rest: &str| format!("/callback?code=c1&state={STATE}{rest}");
    let (own, other) = ("&iss=https%3A%2F%2Fid.test", "&iss=https%3A%2F%2Fevil.test");
    let code = || Ok(Outcome::Code(Secret::new("c1").unwrap()));
    let foreign = |named: Option<&str>| Ok(Outcome::OtherIssuer(named.map(str::to_owned)));
    for (is_always_named, rest, outcome) in [
        (true, own.to_owned(), code()),
        (false, own.to_owned(), code()),
        (false, String::new(), code()),
        (true, String::new(), foreign(None)),
        (true, other.to_owned(), foreign(Some("https://evil.test"))),
        (false, other.to_owned(), foreign(Some("https://evil.test"))),
        // Names are compared letter by letter.
        (true, format!("{own}%2F"), foreign(Some("https://id.test/"))),
        (true, "&iss=HTTPS%3A%2F%2Fid.test".to_owned(), foreign(Some("HTTPS://id.test"))),
        (true, format!("{own}{other}"), foreign(None)),
        (true, "&iss=".to_owned(), foreign(None)),
    ] {
        let issuer = Issuer { name: "https://id.test".to_owned(), is_always_named };
        assert_eq!(read(&request(&target(&rest)), &url(), Some(STATE), Some(&issuer)), outcome, "{rest}");
        // Nor is its error worth anything.
        let failed = target(&rest).replace("code=c1", "error=access_denied");
        let error = read(&request(&failed), &url(), Some(STATE), Some(&issuer));
        assert_eq!(
            matches!(error, Ok(Outcome::OtherIssuer(_))),
            matches!(outcome, Ok(Outcome::OtherIssuer(_))),
            "{rest}"
        );
    }
}

#[test]
fn another_method_and_another_host_are_refused() {
    let good = request("/callback?code=c1&state=state-0123456789");
    assert!(read(&good, &url(), Some(STATE), None).is_ok());
    for (from, to, status) in [
        ("GET ", "POST ", 405),
        ("GET ", "get ", 405),
        ("Host: 127.0.0.1:4567", "Host: evil.test", 421),
        ("Host: 127.0.0.1:4567", "Host: localhost:4567", 421),
        ("Host: 127.0.0.1:4567", "Host: 127.0.0.1", 421),
        ("Host: 127.0.0.1:4567\r\n", "", 421),
        ("Host: 127.0.0.1:4567", "Host: 127.0.0.1:4567\r\nHost: evil.test", 421),
    ] {
        assert_eq!(read(&good.replace(from, to), &url(), Some(STATE), None), Err(Foreign(status)), "{to}");
    }
    assert!(
        read(&good.replace("Host:", "hOST:  "), &url(), Some(STATE), None).is_ok(),
        "names of headers have no case"
    );
}

#[test]
fn pages_quote_nothing_of_the_request() {
    let hostile = Outcome::Error("<script>alert(1)</script>".to_owned(), Some("\r\nSet-Cookie: a=b".to_owned()));
    let pages: Vec<String> = [400, 403, 404, 405, 421]
        .into_iter()
        .map(|status| page(&Err(Foreign(status))))
        .chain([page(&Ok(hostile)), page(&Ok(Outcome::Code(Secret::new("code-secret").unwrap())))])
        .collect();
    for page in pages {
        assert!(!page.contains("script") && !page.contains("Cookie") && !page.contains("code-secret"), "{page}");
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(head.contains("default-src 'none'") && head.contains("no-store"), "{head}");
    }
}

/// Sends bytes and reads the answer.
async fn sent(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn idle_connections_noise_and_strangers_do_not_end_the_wait() {
    let redirect = Redirect::listen(&Url::parse("http://127.0.0.1/callback").unwrap()).await.unwrap();
    let port = redirect.url().port().unwrap();
    let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let waiting = tokio::spawn(redirect.wait(Some(STATE), None));
    // Browsers open connections that they never use.
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    assert_eq!(sent(port, &vec![b'A'; LARGEST_HEAD + 2_048]).await, "", "no page for what is no request");
    assert_eq!(sent(port, b"\xff\xfe\r\n\r\n").await, "");
    for (target, status) in [("/", "404"), ("/callback?code=x&state=y", "403")] {
        let answer = sent(port, request(target).as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert!(!waiting.is_finished());
    // A request may arrive in pieces.
    let whole = request("/callback?code=c1&state=state-0123456789");
    let (first, rest) = whole.split_at(20);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    stream.write_all(rest.as_bytes()).await.unwrap();
    assert_eq!(waiting.await.unwrap(), Outcome::Code(Secret::new("c1").unwrap()));
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    assert!(page.contains("return to the terminal"), "{page}");
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "one answer closes the port");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let wanted = Url::parse(&format!("http://localhost:{port}/callback")).unwrap();
    let error = Redirect::listen(&wanted).await.err().unwrap();
    assert!(error.to_string().contains(&format!("the port {port} of this machine")), "{error}");
}
