//! Test fixtures shared by several modules.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use hermes_conversation::tokens;
use hermes_plugin::context_engine::{CacheState, Moment, Pressure};
use hermes_plugin::history::{Hit, Page, Query};
use hermes_plugin::sql::{Rows, Statement, Value};
use hermes_plugin::{Error, Header, Message, MessageRange, Role, ToolCall};
use rusqlite::types::{Value as Sql, ValueRef};

use crate::source::{Database, Source};

/// The host's token counter, with an empty conversation.
pub(crate) struct Ruler;

impl Source for Ruler {
    fn page(&self, _: MessageRange) -> Result<Page, Error> {
        Ok(Page { messages: Vec::new(), next: None })
    }

    fn headers(&self, _: MessageRange) -> Result<Vec<Header>, Error> {
        Ok(Vec::new())
    }

    fn whole(&self) -> Result<Option<MessageRange>, Error> {
        Ok(None)
    }

    fn search(&self, _: &Query) -> Result<Vec<Hit>, Error> {
        Ok(Vec::new())
    }

    fn count(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// A log in memory with small pages.
pub(crate) struct Log {
    pub(crate) messages: Vec<Message>,
    /// Number of messages read.
    pub(crate) read: Cell<usize>,
}

impl Log {
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        Self { messages, read: Cell::new(0) }
    }

    pub(crate) fn headers(&self) -> Vec<Header> {
        let (mut turn, mut group) = (0, 0);
        let header = |message: &Message| {
            turn += u32::from(message.role == Role::User || turn == 0);
            group = if message.role == Role::Tool { group } else { message.id };
            let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            Header {
                id: message.id,
                role: message.role.clone(),
                turn,
                group,
                tool_name: message.tool_name.clone(),
                tokens: message.tokens,
                bytes: u32::try_from(message.content.len() + arguments).unwrap(),
                images: message.images,
                created_at: message.created_at,
                extra: Vec::new(),
            }
        };
        self.messages.iter().map(header).collect()
    }
}

impl Source for Log {
    fn page(&self, range: MessageRange) -> Result<Page, Error> {
        const PAGE: usize = 3;
        let mut named = self.messages.iter().filter(|message| range.contains(message.id));
        let messages: Vec<Message> = named.by_ref().take(PAGE).cloned().collect();
        self.read.set(self.read.get() + messages.len());
        Ok(Page { messages, next: named.next().map(|message| message.id) })
    }

    fn headers(&self, range: MessageRange) -> Result<Vec<Header>, Error> {
        Ok(self.headers().into_iter().filter(|header| range.contains(header.id)).collect())
    }

    fn whole(&self) -> Result<Option<MessageRange>, Error> {
        let ends = self.messages.first().zip(self.messages.last());
        Ok(ends.map(|(first, last)| MessageRange::new(first.id, last.id)))
    }

    /// Messages that contain one of the words, best matches first.
    fn search(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        use hermes_plugin::history::Matching;
        let words: Vec<&str> = match query.matching {
            Matching::Phrase => vec![query.text.as_str()],
            _ => query.text.split_whitespace().collect(),
        };
        let mut hits: Vec<Hit> = self
            .messages
            .iter()
            .filter_map(|message| {
                let arguments: String = message.tool_calls.iter().map(|call| call.arguments.as_str()).collect();
                let text = format!("{} {arguments}", message.content);
                let score = words.iter().filter(|word| text.contains(**word)).count();
                (score > 0).then(|| Hit {
                    id: message.id,
                    session_id: "s".into(),
                    excerpt: text.chars().take(80).collect(),
                    score: score as f64,
                    extra: Vec::new(),
                })
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(hits.into_iter().skip(query.offset as usize).take(query.limit as usize).collect())
    }

    fn count(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// SQLite in memory, with the interface that the host offers.
pub(crate) struct Sqlite {
    connection: rusqlite::Connection,
    /// If set, every call fails.
    pub(crate) broken: Cell<bool>,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self { connection: rusqlite::Connection::open_in_memory().unwrap(), broken: Cell::new(false) }
    }

    fn check(&self) -> Result<(), Error> {
        if self.broken.get() { Err(Error::failed("the database is damaged").with_code("damaged")) } else { Ok(()) }
    }
}

fn bound(params: &[Value]) -> Vec<Sql> {
    let value = |value: &Value| match value {
        Value::Null => Sql::Null,
        Value::Integer(number) => Sql::Integer(*number),
        Value::Real(number) => Sql::Real(*number),
        Value::Text(text) => Sql::Text(text.clone()),
        Value::Blob(bytes) => Sql::Blob(bytes.clone()),
    };
    params.iter().map(value).collect()
}

fn failed(error: rusqlite::Error) -> Error {
    Error::invalid(error.to_string()).with_code("sql")
}

impl Database for &Sqlite {
    fn query(&self, sql: &str, params: Vec<Value>) -> Result<Rows, Error> {
        (**self).query(sql, params)
    }

    fn execute(&self, statements: &[Statement]) -> Result<(), Error> {
        (**self).execute(statements)
    }
}

impl Database for Sqlite {
    fn query(&self, sql: &str, params: Vec<Value>) -> Result<Rows, Error> {
        self.check()?;
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        assert!(statement.readonly(), "{sql}");
        let columns = statement.column_count();
        let mut found = statement.query(rusqlite::params_from_iter(bound(&params))).map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            let value = |at: usize| match row.get_ref_unwrap(at) {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(number) => Value::Real(number),
                ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
            };
            rows.push((0..columns).map(value).collect());
        }
        Ok(Rows { columns: Vec::new(), rows })
    }

    fn execute(&self, statements: &[Statement]) -> Result<(), Error> {
        self.check()?;
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        for statement in statements {
            let mut prepared = transaction.prepare_cached(&statement.sql).map_err(failed)?;
            prepared.execute(rusqlite::params_from_iter(bound(&statement.params))).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
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
        created_at: 1_765_233_600_000 + id * 60_000,
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
    let tool_calls: Vec<ToolCall> = calls.iter().map(call).collect();
    let tokens = 5 + tool_calls
        .iter()
        .map(|call| tokens::of_text(&call.name) + tokens::of_text(&call.arguments) + 12)
        .sum::<u32>();
    Message { tool_calls, tokens, ..message(id, Role::Assistant, "") }
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
