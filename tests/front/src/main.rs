//! A second front end, for tests: it opens any number of sessions in one process, and shows that the desk needs no terminal.
//!
//! Each line of standard input is an order, `{"id": 1, "do": "open", …}`. Each line of standard output is the answer to an order,
//! `{"id": 1, …}`, or an event of an open session, `{"open": 1, "event": {…}}`. The end of the input closes all sessions.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_app::sessions::{Layout, SearchQuery, Trust};
use hermes_app::{
    AcceptedParts, AppError, Beginning, Compiler, Desk, Home, Lifetime, Opened, Quiet, SessionHandle, SessionId,
    SessionRequest, Setup,
};
use hermes_protocol::{Author, Command, Mode, Problem, UserMessage};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A line of the input.
#[derive(Deserialize)]
struct Line {
    id: u64,
    #[serde(flatten)]
    order: Order,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Order {
    /// Opens a session.
    Open(Wanted),
    /// Sends a command to an open session.
    Send { to: u64, command: Command },
    /// Carries out one message, and answers with the end of its turn.
    Run {
        text: String,
        #[serde(flatten)]
        wanted: Wanted,
    },
    /// Lists the stored sessions.
    List { tenant: Option<String> },
    /// Searches all messages.
    Search { text: String, tenant: Option<String> },
    /// Reads the messages of a stored session.
    Read { session: SessionId },
    /// Writes a stored session to a file.
    Export { session: SessionId, file: PathBuf },
    /// Adds the sessions of a file.
    Import { file: PathBuf },
}

/// What the session of an order should be.
#[derive(Deserialize)]
struct Wanted {
    folder: PathBuf,
    resume: Option<String>,
    platform: Option<String>,
    mode: Option<Mode>,
    author: Option<Author>,
    tenant: Option<String>,
    #[serde(default)]
    can_ask: bool,
    #[serde(default)]
    accept_folder: bool,
}

impl Wanted {
    fn request(self, lifetime: Lifetime) -> Result<SessionRequest, Problem> {
        let begin = self.resume.map(|id| Beginning::Resume { id, branch: false });
        Ok(SessionRequest {
            begin: begin.unwrap_or(Beginning::New),
            mode: self.mode,
            can_ask: self.can_ask,
            author: self.author,
            tenant: self.tenant.map(|name| name.parse().map_err(|error| problem(&error))).transpose()?,
            lifetime,
            accepted: AcceptedParts { folder: self.accept_folder, prompt: false },
            ..SessionRequest::new(self.platform.unwrap_or_else(|| "json".to_owned()), self.folder)
        })
    }
}

fn failed(error: impl Into<AppError>) -> Problem {
    Problem::from(&error.into())
}

/// The open sessions, by the number that the output gives them.
#[derive(Default)]
struct Front {
    open: HashMap<u64, SessionHandle>,
    newest: u64,
}

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let home = Home::locate().map_err(|error| Problem::from(&error))?;
    let setup = Setup::read(home, Compiler::InProcess).map_err(|error| Problem::from(&error))?;
    let desk = Arc::new(Desk::new(setup, Arc::new(Quiet)));
    let (lines, mut written) = mpsc::unbounded_channel::<Value>();
    let writer = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout();
        while let Some(line) = written.blocking_recv() {
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    });
    let mut front = Front::default();
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = input.next_line().await {
        let Line { id, order } = match serde_json::from_str(&line) {
            Ok(line) => line,
            Err(error) => {
                let _ = lines.send(json!({"id": null, "problem": problem(&error)}));
                continue;
            }
        };
        let answer = match front.carry_out(&desk, order, &lines).await {
            Ok(answer) => answer,
            Err(problem) => json!({ "problem": problem }),
        };
        let mut answered = json!({ "id": id });
        if let (Some(answered), Value::Object(answer)) = (answered.as_object_mut(), answer) {
            answered.extend(answer);
        }
        let _ = lines.send(answered);
    }
    desk.close().await;
    drop((front, lines));
    let _ = writer.await;
    Ok(())
}

impl Front {
    async fn carry_out(
        &mut self,
        desk: &Arc<Desk>,
        order: Order,
        lines: &mpsc::UnboundedSender<Value>,
    ) -> Result<Value, Problem> {
        let tenant = |name: Option<String>| name.map(|name| name.parse().map_err(|error| problem(&error))).transpose();
        Ok(match order {
            Order::Open(wanted) => {
                let opened = desk.session(&wanted.request(Lifetime::Idling)?).await.map_err(failed)?;
                self.follow(opened, lines)
            }
            Order::Send { to, command } => {
                let session = self.open.get(&to).ok_or_else(|| problem(&format!("there is no open session {to}")))?;
                match session.send(command).await {
                    Ok(accepted) => json!({ "accepted": accepted }),
                    Err(refused) => json!({ "refused": refused }),
                }
            }
            Order::Run { text, wanted } => {
                let (request, never) = (wanted.request(Lifetime::OneTurn)?, CancellationToken::new());
                let carried = desk.run_once(&request, UserMessage::from(text), &never, None, |_| ()).await;
                let carried = carried.map_err(failed)?;
                let end = carried.end.map_err(|refused| refused.problem())?;
                json!({ "session": carried.session, "end": end.event })
            }
            Order::List { tenant: of } => {
                let store = desk.store(tenant(of)?.as_ref()).map_err(failed)?;
                json!({ "sessions": store.sessions().await.map_err(failed)? })
            }
            Order::Search { text, tenant: of } => {
                let store = desk.store(tenant(of)?.as_ref()).map_err(failed)?;
                json!({ "hits": store.search_all(&SearchQuery::new(text)).await.map_err(failed)? })
            }
            Order::Read { session } => {
                let messages = desk.store(None).map_err(failed)?.conversation(&session).await.map_err(failed)?;
                json!({ "texts": messages.iter().map(|message| &message.content).collect::<Vec<_>>() })
            }
            Order::Export { session, file } => {
                let file = std::fs::File::create(file).map_err(|error| problem(&error))?;
                let store = desk.store(None).map_err(failed)?;
                let exported = store.export(Some(&[session]), Layout::Lines, Box::new(file)).await;
                json!({ "sessions": exported.map_err(failed)?.sessions })
            }
            Order::Import { file } => {
                let file = std::fs::File::open(file).map_err(|error| problem(&error))?;
                let file = Box::new(std::io::BufReader::new(file));
                let now = desk.setup().now().map_err(failed)?.timestamp().as_millisecond().cast_unsigned();
                let imported = desk.store(None).map_err(failed)?.import(file, now, Trust::OwnFiles).await;
                json!({ "imported": imported.map_err(failed)?.sessions })
            }
        })
    }

    /// Passes the events of a session on.
    fn follow(&mut self, Opened { session, joined }: Opened, lines: &mpsc::UnboundedSender<Value>) -> Value {
        self.newest += 1;
        let (number, lines) = (self.newest, lines.clone());
        let mut events = session.subscribe(Some(&session.beginning()));
        let attending = session.attend();
        tokio::spawn(async move {
            let _attending = attending;
            while let Some(event) = events.next().await {
                if lines.send(json!({ "open": number, "event": &*event })).is_err() {
                    return;
                }
            }
        });
        let id = session.session();
        self.open.insert(number, session);
        json!({ "open": number, "session": id, "joined": joined })
    }
}

/// A failure of this front end itself.
fn problem(why: &impl ToString) -> Problem {
    Problem {
        code: "front.order".to_owned(),
        category: hermes_protocol::Category::Usage,
        what: "the order was not carried out".to_owned(),
        why: why.to_string(),
        fix: hermes_protocol::Fix::none(),
    }
}
