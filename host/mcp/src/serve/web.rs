//! Hermes as a server over streamable HTTP, for programs of this machine.
//!
//! Each request stands alone, whatever the version of the protocol: the server keeps no session, so a client that goes away leaves nothing.
//! Each request carries the token, because every user of the machine can reach a loopback address. Pages in a browser are refused by their
//! `Host` and `Origin` headers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Desk, Offer, standard_words};
use crate::limits;

/// The path of the server's address.
pub const PATH: &str = "/mcp";

/// The code of an error about an unknown method.
const UNKNOWN_METHOD: i64 = -32_601;
/// The most bytes of an answer whose words are looked at. Errors are short.
const MOST_ERROR: usize = 64 << 10;

/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// What a request has to pass.
struct Gate {
    token: Option<String>,
    /// Those that are carried out.
    running: Semaphore,
}

/// Answers programs of this machine at [`PATH`], until the future is dropped. With a token, each request has to carry it as
/// `Authorization: Bearer TOKEN`.
pub async fn serve_web(offer: Arc<dyn Offer>, listener: TcpListener, token: Option<String>) -> Infallible {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(limits::REQUEST);
    let desk = move || Ok(Desk { offer: Arc::clone(&offer) });
    let service = StreamableHttpService::new(desk, Arc::new(NeverSessionManager::default()), config);
    let gate = Arc::new(Gate { token, running: Semaphore::new(limits::REQUESTS) });
    let router = Router::new().route_service(PATH, service).route_layer(middleware::from_fn_with_state(gate, passed));
    let room = Arc::new(Semaphore::new(limits::CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The system has no more sockets, or the client is gone.
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Anybody on this machine can connect. Too many are closed, and none may wait for ever with its request.
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(limits::ARRIVAL);
            // How a connection ends is the client's matter.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// A request behind the gate. Further ones wait while many are carried out.
async fn passed(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if gate.token.as_ref().is_some_and(|token| !carries(request.headers(), token)) {
        let why = "this server needs its token: send the header `Authorization: Bearer TOKEN`; `hermes mcp serve` named the file \
                   that has it\n";
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], why).into_response();
    }
    // It comes before it takes one of the places, so that a slow client keeps no other one waiting.
    let (parts, body) = request.into_parts();
    let body = match timeout(limits::ARRIVAL, to_bytes(body, limits::REQUEST)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let why =
                format!("a request has at most {} bytes, and none that stops amid its body is read\n", limits::REQUEST);
            return (StatusCode::PAYLOAD_TOO_LARGE, why).into_response();
        }
        Err(_) => {
            return (StatusCode::REQUEST_TIMEOUT, "the body of the request did not come in time\n").into_response();
        }
    };
    // The semaphore is never closed.
    let _running = gate.running.acquire().await;
    worded(next.run(Request::from_parts(parts, body.into())).await).await
}

/// Whether a request carries the token. The time that this takes says nothing about the token.
fn carries(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case("bearer") && blake3::hash(given.trim().as_bytes()) == blake3::hash(token.as_bytes())
    })
}

/// An error about an unknown method with the words that other programs know.
async fn worded(response: Response) -> Response {
    let is_json =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let is_short = HttpBody::size_hint(response.body()).upper().is_some_and(|most| most <= MOST_ERROR as u64);
    if !is_json || !is_short {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MOST_ERROR).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Some(changed) = in_standard_words(&bytes) else { return Response::from_parts(parts, bytes.into()) };
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(changed))
}

fn in_standard_words(answer: &[u8]) -> Option<String> {
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    let error = answer.get_mut("error").filter(|error| error["code"] == UNKNOWN_METHOD)?;
    error["message"] = standard_words(error["message"].as_str()?)?.into();
    Some(answer.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::SocketAddr;

    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::super::ARGUMENTS;
    use super::super::tests::Parrot;
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    async fn served(token: Option<&str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_web(Arc::<Parrot>::default(), listener, token.map(str::to_owned)));
        address
    }

    /// The status and the body of an answer.
    async fn post(address: SocketAddr, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut all = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            all.push(("Host", "localhost"));
        }
        all.extend_from_slice(headers);
        let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("POST /mcp HTTP/1.1\r\n{lines}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        // A server that refuses a request need not read it.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn request(method: &str, params: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    }

    async fn ask(address: SocketAddr, headers: &[(&str, &str)], method: &str, params: Value) -> Value {
        let (status, body) = post(address, headers, &request(method, &params)).await;
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("{status}: {body}"))
    }

    #[tokio::test]
    async fn both_eras_are_answered_and_no_session_is_kept() {
        let address = served(None).await;
        let client = json!({ "name": "test", "version": "1" });
        for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
            let info = ask(address, &[], "initialize", params).await;
            assert_eq!(info["result"]["protocolVersion"], version);
            let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
            assert_eq!(post(address, &[("MCP-Protocol-Version", version)], &done).await, (202, String::new()));
            let headers = [("MCP-Protocol-Version", version)];
            let said = ask(address, &headers, "tools/call", json!({ "name": "say", "arguments": { "text": 1 } })).await;
            assert_eq!(said["result"]["content"][0]["text"], "1", "{said}");
            let prompts = ask(address, &headers, "prompts/list", json!({})).await;
            assert_eq!(prompts["result"]["prompts"][0]["arguments"][0]["name"], ARGUMENTS, "{prompts}");
            let params = json!({ "name": "sing", "arguments": { ARGUMENTS: "a song" } });
            let sung = ask(address, &headers, "prompts/get", params).await;
            assert_eq!(sung["result"]["messages"][0]["content"]["text"], "sing: a song", "{sung}");
            let unknown = ask(address, &headers, "completion/complete", json!({})).await;
            assert_eq!(unknown["error"]["message"], "Method not found: completion/complete");
        }
        const VERSION: &str = "2026-07-28";
        let meta = |version: &str| {
            let key = |name: &str| format!("io.modelcontextprotocol/{name}");
            json!({ key("protocolVersion"): version, key("clientInfo"): client, key("clientCapabilities"): {} })
        };
        let headers = |method, name| [("MCP-Protocol-Version", VERSION), ("Mcp-Method", method), ("Mcp-Name", name)];
        let found =
            ask(address, &headers("server/discover", "")[..2], "server/discover", json!({ "_meta": meta(VERSION) }))
                .await;
        assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!(VERSION)), "{found}");
        let params = json!({ "name": "say", "arguments": { "text": 2 }, "_meta": meta(VERSION) });
        let said = ask(address, &headers("tools/call", "say"), "tools/call", params).await;
        assert_eq!(
            (&said["result"]["content"][0]["text"], &said["result"]["resultType"]),
            (&json!("2"), &json!("complete"))
        );
        // A proxy that reads the headers decides about the same call as the server.
        let params = json!({ "name": "say", "arguments": { "text": 2 }, "_meta": meta(VERSION) });
        let refused = ask(address, &headers("tools/call", "wait"), "tools/call", params).await;
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }

    #[tokio::test]
    async fn a_request_without_the_token_or_from_a_page_elsewhere_is_refused() {
        let address = served(Some(SECRET)).await;
        let list = request("tools/list", &json!({}));
        let right = format!("Bearer {SECRET}");
        for wrong in
            [None, Some("Bearer"), Some("Bearer x"), Some(SECRET), Some("Basic 0123456789abcdef0123456789abcdef")]
        {
            let headers: Vec<_> = wrong.map(|value| ("Authorization", value)).into_iter().collect();
            let (status, why) = post(address, &headers, &list).await;
            assert!(status == 401 && why.contains("Authorization: Bearer TOKEN"), "{wrong:?}: {status} {why}");
        }
        let ok = ("Authorization", right.as_str());
        assert_eq!(post(address, &[ok], &list).await.0, 200);
        assert_eq!(post(address, &[("authorization", &format!("bearer {SECRET}"))], &list).await.0, 200);
        for (header, status) in [
            (("Host", "example.com"), 403),
            (("Host", "localhost.example.com"), 403),
            (("Origin", "https://example.com"), 403),
            (("Origin", "null"), 403),
            (("Origin", "http://localhost:6274"), 200),
        ] {
            assert_eq!(post(address, &[ok, header], &list).await.0, status, "{header:?}");
        }
    }

    #[tokio::test]
    async fn clients_that_send_half_a_request_keep_no_other_one_waiting_for_long() {
        let address = served(Some(SECRET)).await;
        let right = format!("Bearer {SECRET}");
        let mut waiting = Vec::new();
        for at in 0..2 * limits::CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // Half of a head, or a head with the token and the begin of a body.
            let head = match at % 2 {
                0 => String::new(),
                _ => format!("Host: localhost\r\nAuthorization: {right}\r\nContent-Length: 9\r\n\r\n{{"),
            };
            let _ = stream.write_all(format!("POST /mcp HTTP/1.1\r\n{head}").as_bytes()).await;
            waiting.push(stream);
        }
        let list = request("tools/list", &json!({}));
        let until = tokio::time::Instant::now() + Duration::from_secs(300);
        loop {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let text = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {right}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{list}",
                list.len()
            );
            let _ = stream.write_all(text.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            if answer.starts_with(b"HTTP/1.1 200") {
                break;
            }
            assert!(tokio::time::Instant::now() < until, "{}", String::from_utf8_lossy(&answer));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop(waiting);
    }

    #[tokio::test]
    async fn what_is_too_large_or_no_message_is_refused() {
        let address = served(None).await;
        let long =
            request("tools/call", &json!({ "name": "say", "arguments": { "text": "x".repeat(limits::REQUEST) } }));
        assert_eq!(post(address, &[], &long).await.0, 413);
        for odd in ["", "x", "[]", "{}", "{\"jsonrpc\":\"2.0\"}"] {
            let (status, _) = post(address, &[], odd).await;
            assert!((400..500).contains(&status), "{odd:?}: {status}");
        }
        let listed = ask(address, &[], "tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(2));
    }
}
