//! `hermes sessions`: what is stored, for people and for scripts. Nothing is created or changed.

use std::process::ExitCode;

use hermes_conversation::{Message, Origin, Role};
use hermes_store::{Session, SessionSummary, Store, StoreError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::arguments::SessionsCommand;
use crate::console::{Console, Tone, print};
use crate::failure::Failure;
use crate::launch::Setup;
use crate::text;

pub(crate) fn run(command: &SessionsCommand, console: Console) -> Result<ExitCode, Failure> {
    let setup = Setup::read()?;
    let store = Store::open_read_only(setup.home.path())?;
    match command {
        SessionsCommand::List { json, limit } => {
            let mut sessions = store.map_or_else(|| Ok(Vec::new()), |store| store.sessions())?;
            sessions.truncate(limit.unwrap_or(usize::MAX));
            if *json {
                return printed(&format!("{:#}\n", serde_json::json!(sessions)));
            }
            if sessions.is_empty() {
                console.note("there are no conversations yet");
            }
            printed(&sessions.iter().map(|session| listed(session, console)).collect::<String>())
        }
        SessionsCommand::Show { id, json } => {
            let store = store.ok_or_else(|| StoreError::UnknownSession(id.clone()))?;
            let id = store.resolve_session(id)?;
            let (session, messages) = (store.session(&id)?, store.conversation(&id)?);
            if *json {
                let messages: Vec<Value> = messages.iter().map(message_json).collect();
                return printed(&format!("{:#}\n", json!({"session": session, "messages": messages})));
            }
            printed(&told(&session, &messages, console))
        }
    }
}

fn printed(text: &str) -> Result<ExitCode, Failure> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// As it was typed and streamed; `sent` stands beside it where the model was sent something else.
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

fn listed(session: &SessionSummary, console: Console) -> String {
    let title = session.title.as_deref().unwrap_or(&session.preview);
    let title = if title.is_empty() { "(nothing said yet)" } else { title };
    let messages = text::counted(session.message_count, "message");
    let branch = session.parent.as_ref().map(|parent| format!("from {} · ", parent.id)).unwrap_or_default();
    format!(
        "{}  {}  {:>12}  {branch}{}\n",
        console.paint(Tone::Good, session.id.as_str()),
        local(session.updated_at),
        messages,
        console.shown(&text::line(title)),
    )
}

fn told(session: &Session, messages: &[Message], console: Console) -> String {
    let mut told = String::new();
    let mut head = |name: &str, value: &str| told.push_str(&format!("{name:<10} {}\n", text::line(value)));
    head("session", session.id.as_str());
    if let Some(title) = &session.title {
        head("title", title);
    }
    head("begun", &local(session.started_at));
    head("folder", &session.workspace.display().to_string());
    head("model", &format!("{} · {}", session.model.provider, session.model.name));
    head("engine", &session.engine);
    if let Some(parent) = &session.parent {
        head("from", parent.id.as_str());
    }
    for message in messages {
        let who = match (message.role, message.origin) {
            (_, Origin::Host) => "hermes",
            (Role::Tool, _) => message.tool_name.as_deref().unwrap_or("tool"),
            (role, _) => role.as_str(),
        };
        let heading = format!("[{}] {} · {}", message.id, text::line(who), local(message.created_at));
        told.push_str(&format!("\n{}\n", console.paint(Tone::Faint, &heading)));
        let words = console.shown(&message.content);
        if !words.is_empty() {
            told.push_str(words.trim_end_matches('\n'));
            told.push('\n');
        }
        for call in &message.tool_calls {
            let line = format!("· {} {}", text::line(&call.name), text::line(&call.arguments));
            told.push_str(&console.paint(Tone::Faint, &text::shortened(&line, 200)));
            told.push('\n');
        }
    }
    told
}

/// A time as a clock on the wall shows it.
fn local(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use hermes_conversation::{Draft, MessageId, ToolCall};

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
