//! A server on loopback. A closure gives the raw response, and every request is recorded.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Answer = Arc<dyn Fn(&Received) -> Vec<u8> + Send + Sync>;

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// `GET /path HTTP/1.1`
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    host: IpAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    pub(crate) async fn new(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1", answer).await
    }

    pub(crate) async fn at(host: &str, answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let host: IpAddr = host.parse().unwrap();
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (answer, log): (Answer, _) = (Arc::new(answer), Arc::clone(&received));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answer), Arc::clone(&log)));
            }
        });
        Self { port, host, received }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}:{}{path}", self.host, self.port)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.received().iter().map(|received| received.path().to_owned()).collect()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, log: Arc<Mutex<Vec<Received>>>) {
    let mut received = Vec::new();
    let head = loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&received[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut received = Received { line, headers, body: received[head + 4..].to_vec() };
    let length = received.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while received.body.len() < length {
        if stream.read_buf(&mut received.body).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let bytes = answer(&received);
    log.lock().unwrap_or_else(PoisonError::into_inner).push(received);
    let hangs = bytes.ends_with(HANG);
    // The client may close the connection in the middle of a response.
    let _ = stream.write_all(bytes.strip_suffix(HANG).unwrap_or(&bytes)).await;
    let _ = stream.flush().await;
    if hangs {
        std::future::pending::<()>().await;
    }
}

/// The end marker of a response that leaves the connection open and silent. It is not sent.
pub(crate) const HANG: &[u8] = b"<hang>";

/// A complete response.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) fn redirect(status: u16, to: &str) -> Vec<u8> {
    answer(status, &[("location", to)], "moved")
}
