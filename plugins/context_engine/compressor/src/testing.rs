//! Test fixtures shared by several modules.
#![allow(clippy::unwrap_used)]

use hermes_conversation::tokens;
use hermes_plugin::context_engine::{CacheState, Moment, Pressure};
use hermes_plugin::{Error, Header, Message, MessageRange, Role, ToolCall};

use crate::message_index::MessageIndex;
use crate::source::Source;

/// The host's token counter, with an empty conversation.
pub(crate) struct Ruler;

impl Source for Ruler {
    fn messages(&self, _: MessageRange) -> Result<Vec<Message>, Error> {
        Ok(Vec::new())
    }

    fn summary(&self, key: &str) -> Result<String, Error> {
        Err(Error::invalid(key))
    }

    fn count(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

pub(crate) fn message(id: u64, role: Role, content: &str) -> Message {
    Message {
        id,
        role,
        content: content.to_owned(),
        images: 0,
        reasoning: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: None,
        tokens: tokens::of_text(content) + 5,
        created_at: 0,
        extra: Vec::new(),
        author: None,
    }
}

pub(crate) fn user(id: u64, content: &str) -> Message {
    message(id, Role::User, content)
}

pub(crate) fn assistant(id: u64, content: &str) -> Message {
    message(id, Role::Assistant, content)
}

pub(crate) fn calls(id: u64, calls: &[(&str, &str, &str)]) -> Message {
    let call = |(id, name, arguments): &(&str, &str, &str)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Message { tool_calls: calls.iter().map(call).collect(), ..message(id, Role::Assistant, "") }
}

pub(crate) fn result(id: u64, call: &str, tool: &str, content: &str) -> Message {
    Message {
        tool_call_id: Some(call.to_owned()),
        tool_name: Some(tool.to_owned()),
        ..message(id, Role::Tool, content)
    }
}

/// Headers from ids and tokens. Each message is its own group; odd ids are the user's.
pub(crate) fn headers(messages: &[(u64, u32)]) -> Vec<Header> {
    let header = |&(id, tokens): &(u64, u32)| Header {
        id,
        role: if id % 2 == 1 { Role::User } else { Role::Assistant },
        turn: 1,
        group: id,
        tool_name: None,
        tokens,
        bytes: tokens * 4,
        images: 0,
        created_at: 0,
        extra: Vec::new(),
    };
    messages.iter().map(header).collect()
}

pub(crate) fn index(messages: &[(u64, u32)]) -> MessageIndex {
    let mut index = MessageIndex::new();
    index.observe(&headers(messages));
    index
}

/// Six messages of 100 tokens; the second to the fourth form one group, and ids have gaps.
pub(crate) fn grouped() -> MessageIndex {
    let header = |id, group, role| Header {
        id,
        role,
        turn: 1,
        group,
        tool_name: None,
        tokens: 100,
        bytes: 400,
        images: 0,
        created_at: 0,
        extra: Vec::new(),
    };
    let mut index = MessageIndex::new();
    index.observe(&[
        header(2, 2, Role::User),
        header(5, 5, Role::Assistant),
        header(6, 5, Role::Tool),
        header(7, 5, Role::Tool),
        header(11, 11, Role::Assistant),
        header(12, 12, Role::User),
    ]);
    index
}

pub(crate) fn pressure(context_length: u32, reserve: u32, fixed_tokens: u32) -> Pressure {
    Pressure {
        moment: Moment::TurnStart,
        prompt_tokens: 0,
        estimated: true,
        fixed_tokens,
        context_length,
        reserve,
        expected_requests: 10,
        cache: CacheState {
            warm_tokens: 0,
            warm_until: None,
            read_price: 0.1,
            write_price: 1.25,
            breaking: false,
            extra: Vec::new(),
        },
        last: None,
        extra: Vec::new(),
    }
}
