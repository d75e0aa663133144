//! Whole bodies, in every style.

#![allow(clippy::unwrap_used)]

use hermes_conversation::{MessageId, Role, Shown, ToolCall};

pub(crate) fn shown(role: Role, content: &str) -> Shown {
    Shown {
        role,
        content: content.to_owned(),
        reasoning: Some("not to be sent".to_owned()),
        tool_calls: Vec::new(),
        tool_call_id: None,
        id: Some(MessageId(7)),
    }
}

pub(crate) fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn turn() -> Vec<Shown> {
    vec![
        shown(Role::User, "hi"),
        Shown {
            tool_calls: vec![call("c1", r#"{"path": "a", "n": 12345678901234567890}"#), call("c2", "garbage (")],
            ..shown(Role::Assistant, "")
        },
        Shown { tool_call_id: Some("c1".to_owned()), ..shown(Role::Tool, "A") },
        Shown { tool_call_id: Some("c2".to_owned()), ..shown(Role::Tool, "B") },
    ]
}
