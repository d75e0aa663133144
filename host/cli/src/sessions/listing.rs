//! `hermes sessions list` and `show`. They create and change nothing.

use std::process::ExitCode;

use clap::Args;
use hermes_app::ImportedSession;
use hermes_app::sessions::{ParentKind, Session, SessionSummary, ViewRecord};
use hermes_protocol::{Message, Origin, Role};
use serde_json::{Map, Value, json};

use super::{failed, printed, printed_json, with_session};
use crate::console::{Console, Tone};
use crate::failure::{Failure, Kind};
use crate::imported;
use crate::launch::Setup;
use crate::moments::{brief_age, local, now};
use crate::table::{Align, Table};
use crate::text::{self, grouped};

/// The columns from which on a list has whole times and titles.
const WIDE: usize = 90;
/// The least columns of a title.
const LEAST_TITLE: usize = 12;

/// The sessions to list, and the form to list them in.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct ListArguments {
    /// Show at most N sessions
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Show only sessions of this folder
    #[arg(long)]
    here: bool,
    /// Also show delegated tasks, and sessions that were continued in another session
    #[arg(short, long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(arguments: &ListArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let mut sessions = match (setup.store_to_read()?, arguments.all) {
        (None, _) => Vec::new(),
        (Some(store), true) => store.sessions().await.map_err(failed)?,
        (Some(store), false) => store.conversations(None).await.map_err(failed)?,
    };
    if arguments.here {
        let here = std::env::current_dir().map_err(|error| {
            let fix = "change to a folder that exists";
            Failure::new(Kind::General, "the current folder is not available", error.to_string(), fix)
        })?;
        sessions.retain(|session| session.workspace == here);
    }
    sessions.truncate(arguments.limit.unwrap_or(usize::MAX));
    if arguments.json {
        return printed_json(&sessions);
    }
    if sessions.is_empty() {
        console.note("no sessions found");
    }
    printed(&table(&sessions, console))
}

pub(super) async fn show(id: &str, json: bool, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let store = with_session(setup.store_to_read()?, id)?;
    let id = store.resolve_session(id).await.map_err(failed)?;
    let session = store.session(&id).await.map_err(failed)?;
    let messages = store.conversation(&id).await.map_err(failed)?;
    if json {
        let messages: Vec<Value> = messages.iter().map(message_json).collect();
        return printed_json(&json!({"session": session, "messages": messages}));
    }
    let later = store.chain(&id).await.map_err(failed)?.pop().filter(|last| *last != id);
    if let Some(last) = later {
        console.note(&format!("this session continues in session {last}"));
    }
    let earlier = earlier_engines(&store.views(&id).await.map_err(failed)?, &session.engine);
    printed(&render(&session, &messages, &earlier, console))
}

/// A message as it was typed or streamed. `sent` is added if the model got a different text.
fn message_json(message: &Message) -> Value {
    let mut value = json!(message);
    if let Value::Object(fields) = &mut value {
        drop_none(fields, &["sent", "reasoning"]);
    }
    value
}

fn drop_none(fields: &mut Map<String, Value>, names: &[&str]) {
    fields.retain(|name, value| !(value.is_null() && names.contains(&name.as_str())));
}

fn table(sessions: &[SessionSummary], console: Console) -> String {
    if let Some(columns) = console.columns().filter(|columns| *columns < WIDE)
        && let Some(table) = narrow_table(sessions, columns, console)
    {
        return table;
    }
    let mut table = Table::new(COLUMNS);
    for session in sessions {
        let from = session.parent.as_ref().map(|parent| match parent.kind {
            ParentKind::Delegate => format!("delegated by {} · ", parent.id),
            ParentKind::Branch | ParentKind::Continuation => format!("from {} · ", parent.id),
        });
        table.row(row(session, Tone::Good, named(session, &from.unwrap_or_default())));
    }
    table.text(console)
}

/// A line for each session, if the columns have room for one.
fn narrow_table(sessions: &[SessionSummary], columns: usize, console: Console) -> Option<String> {
    let now = now();
    let cells = |session: &SessionSummary| {
        let count = grouped(session.conversation_messages);
        [session.id.to_string(), brief_age(session.updated_at, now), count]
    };
    let head = ["session", "last", "msgs", "title"];
    let widest = |at: usize| {
        let widths = sessions.iter().map(|session| text::columns(&cells(session)[at]));
        widths.max().unwrap_or(0).max(head[at].len())
    };
    let taken: usize = (0..3).map(|at| widest(at) + 2).sum();
    let room = columns.checked_sub(taken + 1).filter(|room| *room >= LEAST_TITLE)?;
    let mut table = Table::new(COLUMNS);
    table.head(head);
    for session in sessions {
        let from = session.parent.as_ref().map_or("", |parent| match parent.kind {
            ParentKind::Delegate => "task · ",
            ParentKind::Branch => "branch · ",
            ParentKind::Continuation => "",
        });
        let [id, last, count] = cells(session);
        let title = text::fitted(&named(session, from), room);
        table.row([(Tone::Good, id), (Tone::Plain, last), (Tone::Plain, count), (Tone::Plain, title)]);
    }
    Some(table.text(console))
}

/// A session's title, or its first words.
fn named(session: &SessionSummary, from: &str) -> String {
    let title = session.title.as_deref().unwrap_or(&session.preview);
    let title = if title.is_empty() { "(empty)" } else { title };
    let imported = if session.imported { "imported · " } else { "" };
    format!("{imported}{from}{}", text::title(title))
}

/// The columns of a list of sessions: id, time, number of messages, title.
pub(super) const COLUMNS: &[Align] = &[Align::Left, Align::Left, Align::Right, Align::Left];

pub(super) fn row(session: &SessionSummary, tone: Tone, title: String) -> [(Tone, String); 4] {
    [
        (tone, session.id.to_string()),
        (Tone::Plain, local(session.updated_at)),
        (Tone::Plain, text::counted(session.conversation_messages, "message")),
        (Tone::Plain, title),
    ]
}

/// The engines that made views before the current one, each once. The host itself does not count.
fn earlier_engines(views: &[ViewRecord], now: &str) -> Vec<String> {
    let mut earlier: Vec<String> = Vec::new();
    for view in views.iter().filter(|view| view.engine != now && view.engine != "host") {
        if !earlier.contains(&view.engine) {
            earlier.push(view.engine.clone());
        }
    }
    earlier
}

fn render(session: &Session, messages: &[Message], earlier: &[String], console: Console) -> String {
    let mut out = String::new();
    let columns = console.columns();
    let mut head =
        |name: &str, value: &str| out.push_str(&text::labelled(name, &text::title(value), 11, columns, str::to_owned));
    head("session", session.id.as_str());
    if let Some(title) = &session.title {
        head("title", title);
    }
    head("started", &local(session.started_at));
    head("folder", &text::exact(&session.workspace.display().to_string()));
    head("model", &format!("{} · {}", session.model.provider, session.model.name));
    match earlier {
        [] => head("engine", &session.engine),
        earlier => head("engine", &format!("{} (before: {})", session.engine, earlier.join(", "))),
    }
    if let Some(parent) = &session.parent {
        head("parent", parent.id.as_str());
    }
    if session.imported {
        head("imported", "from a file; its folder and its system prompt are used only if you agree when you resume it");
        imported::described(&ImportedSession::of(session)).iter().for_each(|line| head("", line));
    }
    for message in messages {
        let who = match (message.role, message.origin) {
            (_, Origin::Host) => "hermes",
            (Role::Tool, _) => message.tool_name.as_deref().unwrap_or("tool"),
            (role, _) => role.as_str(),
        };
        let heading = format!("[{}] {} · {}", message.id, text::line(who), local(message.created_at));
        out.push_str(&format!("\n{}\n", console.paint(Tone::Faint, &heading)));
        let content = console.shown(&message.content);
        if !content.is_empty() {
            out.push_str(content.trim_end_matches('\n'));
            out.push('\n');
        }
        for call in &message.tool_calls {
            let line = format!("· {} {}", text::line(&call.name), text::line(&call.arguments));
            out.push_str(&console.paint(Tone::Faint, &text::shortened(&line, 200)));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use hermes_protocol::{Draft, MessageId, ToolCall};

    use super::*;

    #[test]
    fn a_message_has_the_fields_that_scripts_rely_on() {
        let call = ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{}".into() };
        let asked = Draft { sent: Some("hello and more".into()), ..Draft::user("hello", 7) }.numbered(MessageId(1));
        let called = Draft::assistant("", vec![call.clone()], 8).numbered(MessageId(2));
        let result = Draft::result(&call, "text", 9).numbered(MessageId(3));
        let [asked, called, result] = [&asked, &called, &result].map(message_json);
        assert_eq!((&asked["content"], &asked["sent"]), (&json!("hello"), &json!("hello and more")));
        assert_eq!((&asked["id"], &asked["role"], &asked["created_at"]), (&json!(1), &json!("user"), &json!(7)));
        assert_eq!(called["tool_calls"], json!([{"id": "c", "name": "read_file", "arguments": "{}"}]));
        assert!(called.get("sent").is_none());
        assert_eq!((&result["tool_call_id"], &result["tool_name"]), (&json!("c"), &json!("read_file")));
        assert_eq!(result["origin"], json!("said"));
    }
}
