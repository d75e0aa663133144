//! Exports sessions row by row: at most one message or view is in memory at a time.

use std::collections::HashSet;
use std::io::{self, Write};

use hermes_conversation::characters::escaped_json;
use hermes_conversation::{MessageId, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::record::{self, End, FORMAT, Header, Item, Record, VERSION, VERSION_OF_TEXT};
use super::seal::Sealer;
use crate::deletion::Family;
use crate::error::Fault;
use crate::log::{self, corrupt, from_json};
use crate::{
    Exported, Layout, ParentKind, SessionError, Store, StoreError, TransferError, blobs, prompts, requests, session,
};

impl Store {
    /// Exports all sessions, or the given ones with the sessions that they continue and their delegates.
    ///
    /// Each session is exported in its state of one moment. Writers do not have to wait.
    pub fn export(
        &self,
        which: Option<&[SessionId]>,
        layout: Layout,
        out: &mut dyn Write,
    ) -> Result<Exported, StoreError> {
        let ids = self.read(|connection| {
            let family = Family::read(connection)?;
            match which {
                Some(named) => chosen(&family, named),
                None => Ok(family.order().to_vec()),
            }
        })?;
        // A session that was imported and not accepted must not come back as the user's own.
        let is_own = self.read(|connection| {
            let own = |id| Ok(!session::session(connection, id)?.imported);
            ids.iter().map(own).collect::<Result<Vec<bool>, Fault>>()
        });
        let is_own = is_own.is_ok_and(|own| !own.contains(&false));
        let sealer = is_own.then(|| Sealer::to_write(self.home())).transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "the export has no seal");
            None
        });
        let mut sink = Sink { out, layout, lines: 0, sealer };
        let exported_at = Timestamp::now().as_millisecond().cast_unsigned();
        let has_parts = self.read(|connection| {
            Ok(ids.iter().map(|id| has_parts(connection, id)).collect::<Result<Vec<_>, _>>()?.contains(&true))
        })?;
        // Older programs can read version 1, and refuse version 2 by its number.
        let version = if has_parts { VERSION } else { VERSION_OF_TEXT };
        sink.put(&Record::Header(Header { format: FORMAT.into(), version, exported_at }))?;
        let mut exported = Exported::default();
        for id in &ids {
            match self.export_session(id, &mut sink) {
                Ok(messages) => {
                    exported.sessions += 1;
                    exported.messages += messages;
                }
                // Deleted meanwhile, with every session that continues it.
                Err(StoreError::Session(SessionError::UnknownSession(_))) => {}
                Err(error) => return Err(error),
            }
        }
        let seal = sink.sealer.as_ref().map(Sealer::seal);
        sink.put(&Record::End(End { sessions: exported.sessions, messages: exported.messages, seal }))?;
        sink.close()?;
        Ok(exported)
    }

    fn export_session(&self, id: &SessionId, sink: &mut Sink<'_>) -> Result<u64, StoreError> {
        self.read(|connection| {
            let before = sink.lines;
            // Written output cannot be undone, so nothing is retried after the first record.
            write_session(connection, id, sink)
                .map_err(|fault| if sink.lines > before { fault.at(self.path()).into() } else { fault })
        })
    }
}

/// Parents first.
fn chosen(family: &Family, named: &[SessionId]) -> Result<Vec<SessionId>, Fault> {
    let mut wanted: HashSet<&SessionId> = HashSet::new();
    for session in named {
        if !family.knows(session) {
            return Err(SessionError::UnknownSession(session.0.clone()).into());
        }
        let mut below = vec![session];
        while let Some(session) = below.pop() {
            let delegates = family.children(session).iter().filter(|child| child.kind == ParentKind::Delegate);
            below.extend(delegates.map(|child| &child.id).filter(|id| !wanted.contains(id)));
            // A conversation is complete only with its ancestors.
            let mut at = Some(session);
            while let Some(session) = at.filter(|session| wanted.insert(session)) {
                at = family.parent(session);
            }
        }
    }
    Ok(family.order().iter().filter(|id| wanted.contains(id)).cloned().collect())
}

fn has_parts(connection: &Connection, id: &SessionId) -> Result<bool, Fault> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = ?1 AND (parts IS NOT NULL OR author IS NOT NULL))";
    Ok(connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0))?)
}

struct Sink<'a> {
    out: &'a mut dyn Write,
    layout: Layout,
    lines: u64,
    sealer: Option<Sealer>,
}

impl Sink<'_> {
    fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        let json = serde_json::to_string(record).map_err(io::Error::from).map_err(TransferError::Output)?;
        // The export may be shown on a terminal.
        let json = escaped_json(&json);
        if let Some(sealer) = &mut self.sealer {
            sealer.line(json.as_bytes());
        }
        let before = match (self.layout, self.lines) {
            (Layout::Lines, _) => "",
            (Layout::Array, 0) => "[\n",
            (Layout::Array, _) => ",\n",
        };
        let behind = if self.layout == Layout::Lines { "\n" } else { "" };
        self.lines += 1;
        [before, &json, behind]
            .iter()
            .try_for_each(|text| self.out.write_all(text.as_bytes()))
            .map_err(|error| TransferError::Output(error).into())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        let end = if self.layout == Layout::Lines { "" } else { "\n]\n" };
        self.out
            .write_all(end.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| TransferError::Output(error).into())
    }
}

fn write_session(connection: &Connection, id: &SessionId, sink: &mut Sink<'_>) -> Result<u64, Fault> {
    let session = session::session(connection, id)?;
    sink.put(&Record::Session(Box::new(record::Session {
        parent: parent(connection, &session)?,
        id: session.id,
        source: session.source,
        title: session.title,
        workspace: session.workspace,
        engine: session.engine,
        provider: session.model.provider,
        model: session.model.name,
        context_length: session.model.context_length,
        started_at: session.started_at,
        updated_at: session.updated_at,
        totals: session.totals,
    })))?;
    write_prompts(connection, id, sink)?;
    let messages = write_messages(connection, id, sink)?;
    write_rewinds(connection, id, sink)?;
    write_views(connection, id, sink)?;
    requests::each(connection, id, |request| Ok(sink.put(&Record::Request(Box::new(request)))?))?;
    Ok(messages)
}

fn parent(connection: &Connection, session: &crate::Session) -> Result<Option<record::Parent>, Fault> {
    let Some(parent) = &session.parent else { return Ok(None) };
    let newest = |table: &str, bound: &str| -> rusqlite::Result<u64> {
        let sql = format!(
            "SELECT coalesce(max(number), 0) FROM {table} WHERE session_id = ?1 \
             AND id <= (SELECT {bound} FROM sessions WHERE id = ?2)"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        statement
            .query_row([parent.id.as_str(), session.id.as_str()], |row| row.get::<_, i64>(0))
            .map(i64::cast_unsigned)
    };
    Ok(Some(record::Parent {
        id: parent.id.clone(),
        kind: parent.kind,
        through: parent.through,
        view: newest("views", "parent_view")?,
        rewind: newest("rewound", "parent_rewound")?,
    }))
}

fn write_prompts(connection: &Connection, id: &SessionId, sink: &mut Sink<'_>) -> Result<(), Fault> {
    let sql = format!("SELECT {}, created_at FROM prompts WHERE session_id = ?1 ORDER BY number", prompts::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    let prompts = statement.query_map([id.as_str()], |row| {
        Ok(record::Prompt { frozen: prompts::from_row(row)?, created_at: row.get::<_, i64>(5)?.cast_unsigned() })
    })?;
    for prompt in prompts {
        sink.put(&Record::Prompt(prompt?))?;
    }
    Ok(())
}

fn write_messages(connection: &Connection, id: &SessionId, sink: &mut Sink<'_>) -> Result<u64, Fault> {
    let sql = format!("SELECT {} FROM messages WHERE session_id = ?1 ORDER BY id", log::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut count = 0;
    for message in statement.query_map([id.as_str()], log::from_row)? {
        let mut message = message?;
        blobs::filled(connection, &mut message.draft)?;
        sink.put(&Record::Message(Box::new(message)))?;
        count += 1;
    }
    Ok(count)
}

fn write_rewinds(connection: &Connection, id: &SessionId, sink: &mut Sink<'_>) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT number, rewound_at, message_id FROM rewound WHERE session_id = ?1 ORDER BY number, message_id",
    )?;
    let mut rows = statement.query([id.as_str()])?;
    let mut open: Option<record::Rewind> = None;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.cast_unsigned();
        let message = MessageId(row.get::<_, i64>(2)?.cast_unsigned());
        match &mut open {
            Some(rewind) if rewind.number == number => rewind.messages.push(message),
            _ => {
                let rewound_at = row.get::<_, i64>(1)?.cast_unsigned();
                let next = record::Rewind { number, rewound_at, messages: vec![message] };
                if let Some(done) = open.replace(next) {
                    sink.put(&Record::Rewind(done))?;
                }
            }
        }
    }
    open.map_or(Ok(()), |rewind| Ok(sink.put(&Record::Rewind(rewind))?))
}

fn write_views(connection: &Connection, id: &SessionId, sink: &mut Sink<'_>) -> Result<(), Fault> {
    let mut views = connection.prepare_cached(
        "SELECT id, number, through, engine, reason, created_at FROM views WHERE session_id = ?1 ORDER BY number",
    )?;
    let mut rows = views.query([id.as_str()])?;
    while let Some(row) = rows.next()? {
        let view: i64 = row.get(0)?;
        sink.put(&Record::View(record::View {
            id: view.cast_unsigned(),
            number: row.get::<_, i64>(1)?.cast_unsigned(),
            through: row.get::<_, Option<i64>>(2)?.map(|id| MessageId(id.cast_unsigned())),
            engine: row.get(3)?,
            reason: row.get(4)?,
            created_at: row.get::<_, i64>(5)?.cast_unsigned(),
            summaries: summaries(connection, view)?,
            items: items(connection, view)?,
        }))?;
    }
    Ok(())
}

fn summaries(connection: &Connection, view: i64) -> Result<Vec<record::Summary>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT id, key, content, covers FROM summaries WHERE view_id = ?1 ORDER BY id")?;
    let summaries = statement.query_map(params![view], |row| {
        Ok(record::Summary {
            id: row.get::<_, i64>(0)?.cast_unsigned(),
            key: row.get(1)?,
            content: row.get(2)?,
            covers: from_json(3, &row.get::<_, String>(3)?)?,
        })
    })?;
    Ok(summaries.collect::<Result<_, _>>()?)
}

fn items(connection: &Connection, view: i64) -> Result<Vec<Item>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, first_id, last_id, excerpt, summary_id FROM view_items WHERE view_id = ?1 ORDER BY position",
    )?;
    let items = statement.query_map(params![view], |row| {
        let kind: String = row.get(0)?;
        let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        match kind.as_str() {
            "messages" => {
                let (first, last) = (MessageId(number(1)?), MessageId(number(2)?));
                Ok(Item::Messages(hermes_conversation::MessageRange::new(first, last)))
            }
            "excerpt" => Ok(Item::Excerpt(from_json(3, &row.get::<_, String>(3)?)?)),
            "summary" => Ok(Item::Summary(number(4)?)),
            _ => Err(corrupt(0, format!("unknown kind `{kind}`"))),
        }
    })?;
    Ok(items.collect::<Result<_, _>>()?)
}
