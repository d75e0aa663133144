//! Waits on this machine for the browser that a login sends back (RFC 8252, section 7.3).
//!
//! Only one request ends the wait: a GET of the right path, sent to the right host, with the `state` of this login. For a server
//! that returns no `state`, the path is the secret. A web page that the user visits meanwhile can reach the port too; its requests
//! are answered and change nothing.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use url::Url;

use crate::Secret;

/// Most bytes of a request's head.
const LARGEST_HEAD: usize = 16 << 10;
/// How long a connection may take to send it.
const HEAD: Duration = Duration::from_secs(10);
/// How long to wait after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);
/// Most connections at once. Browsers open some that they never use.
const CONNECTIONS: usize = 32;

/// What the server sent the browser back with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The code that is worth tokens.
    Code(Secret),
    /// The login failed at the server: its word for the error, and its description. Either may be hostile.
    Error(String, Option<String>),
    /// The answer names another login server than the one that was asked, or none (RFC 9207). Holds the name. The code of such an
    /// answer must not be sent anywhere.
    OtherIssuer(Option<String>),
}

/// The login server that was asked, in its own words (RFC 9207).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issuer {
    pub(super) name: String,
    /// Whether it says that its answers name it.
    pub(super) is_always_named: bool,
}

impl Issuer {
    /// Whether an answer that names this server is its own.
    fn sent(&self, named: &[String]) -> bool {
        match named {
            [] => !self.is_always_named,
            [named] => *named == self.name,
            _ => false,
        }
    }
}

/// A port of this machine, and what belongs to it.
pub(super) struct Redirect {
    listener: TcpListener,
    /// What the server sends the browser to.
    url: Url,
}

/// Why a port cannot be listened to.
#[derive(Debug, thiserror::Error)]
#[error("the port {port} of this machine cannot be used: {why}")]
pub(super) struct NoPort {
    port: u16,
    why: std::io::Error,
}

impl Redirect {
    /// Listens at the port of an address on this machine; at a free port if it has none.
    pub(super) async fn listen(wanted: &Url) -> Result<Self, NoPort> {
        let port = wanted.port().unwrap_or(0);
        let is_ipv6 = matches!(wanted.host(), Some(url::Host::Ipv6(_)));
        let host = if is_ipv6 { "::1" } else { "127.0.0.1" };
        let listener = TcpListener::bind((host, port)).await.map_err(|why| NoPort { port, why })?;
        let own = listener.local_addr().map_err(|why| NoPort { port, why })?.port();
        let mut url = wanted.clone();
        // A URL with a host can have a port.
        let _ = url.set_port(Some(own));
        Ok(Self { listener, url })
    }

    /// The address with its port.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Waits for the one request that belongs to the login: with this state, or without a state at a path that nobody can guess. Where
    /// the login server is known, an answer that names another one has no code. Dropping the future closes the port.
    pub(super) async fn wait(self, state: Option<&str>, issuer: Option<&Issuer>) -> Outcome {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(served) = connections.join_next() => {
                    if let Ok(Some(outcome)) = served {
                        return outcome;
                    }
                }
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let (url, state, issuer) = (self.url.clone(), state.map(str::to_owned), issuer.cloned());
                        connections.spawn(async move { serve(stream, &url, state.as_deref(), issuer.as_ref()).await });
                    }
                    // The process may have no free file at the moment.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
    }
}

/// Answers one connection. None if it does not belong to the login.
async fn serve(mut stream: TcpStream, url: &Url, state: Option<&str>, issuer: Option<&Issuer>) -> Option<Outcome> {
    let head = tokio::time::timeout(HEAD, head(&mut stream)).await.ok()??;
    let read = read(&head, url, state, issuer);
    // The browser may be gone. What it sent counts all the same.
    let _ = tokio::time::timeout(HEAD, stream.write_all(page(&read).as_bytes())).await;
    let _ = stream.shutdown().await;
    read.ok()
}

/// The head of a request, without what follows it.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&piece[..count]);
        if head.len() > LARGEST_HEAD {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

/// Why a request does not belong to the login: the status of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Foreign(u16);

/// Reads the head of a request.
fn read(head: &str, url: &Url, state: Option<&str>, issuer: Option<&Issuer>) -> Result<Outcome, Foreign> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    // A page of another host, whose name leads here, has that name in its requests.
    let mut hosts = lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts.next().map(|(_, value)| value.trim());
    if host != Some(authority(url).as_str()) || hosts.next().is_some() {
        return Err(Foreign(421));
    }
    if !target.starts_with('/') {
        return Err(Foreign(400));
    }
    let given = url.join(target).map_err(|_| Foreign(400))?;
    if given.path() != url.path() || given.origin() != url.origin() {
        return Err(Foreign(404));
    }
    if method != "GET" {
        return Err(Foreign(405));
    }
    let all = |name: &str| -> Vec<String> {
        given.query_pairs().filter(|(own, _)| own == name).map(|(_, value)| value.into_owned()).collect()
    };
    // RFC 6749, section 3.1: no parameter comes twice.
    let one = |name: &str| match <[String; 1]>::try_from(all(name)) {
        Ok([value]) if !value.is_empty() => Some(value),
        _ => None,
    };
    if state.is_some() && one("state").as_deref() != state {
        return Err(Foreign(403));
    }
    if issuer.is_some_and(|issuer| !issuer.sent(&all("iss"))) {
        return Ok(Outcome::OtherIssuer(one("iss")));
    }
    if let Some(error) = one("error") {
        return Ok(Outcome::Error(error, one("error_description")));
    }
    one("code").and_then(|code| Secret::new(&code)).map(Outcome::Code).ok_or(Foreign(400))
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The answer to a request: a page that loads nothing, runs nothing, and quotes nothing of the request.
fn page(read: &Result<Outcome, Foreign>) -> String {
    let (status, title, text) = match read {
        Ok(Outcome::Code(_)) => {
            ("200 OK", "Hermes", "Hermes has the answer. You can close this page and return to the terminal.")
        }
        Ok(Outcome::Error(..) | Outcome::OtherIssuer(_)) => {
            ("200 OK", "Hermes", "The login was not granted. The terminal says why.")
        }
        Err(Foreign(404)) => ("404 Not Found", "Not found", "There is nothing here."),
        Err(Foreign(405)) => ("405 Method Not Allowed", "Not allowed", "Only GET is answered here."),
        Err(Foreign(421)) => ("421 Misdirected Request", "Another host", "This request was meant for another host."),
        Err(Foreign(403)) => {
            ("403 Forbidden", "Another login", "This request does not belong to the login that waits here.")
        }
        Err(Foreign(_)) => ("400 Bad Request", "Bad request", "This request cannot be read."),
    };
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><p>{text}</p></html>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
