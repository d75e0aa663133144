//! The views of sessions and their summaries. Stored views and summaries never change.
//!
//! A view whose newest message was rewound stays stored, but it is not in force, and neither are its summaries.

use std::collections::HashMap;

use hermes_conversation::{Item, MessageId, MessageRange, SessionId, Summary, View, ViewId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::lineage::{self, Lineage};
use crate::log::{corrupt, from_json, to_json};
use crate::{SessionError, Store, StoreError, StoredView, ViewRecord};

/// The views of one stretch that may belong to the conversation: none that are later, and none that go further. The
/// caller asks [`Lineage::shows`] whether the last message of a view was rewound.
const OF_STRETCH: &str = "views.session_id = ?1 AND views.id <= ?2 AND (views.through IS NULL OR views.through <= ?3)";

impl Store {
    /// Stores a view with its new summaries, and puts it in force.
    ///
    /// `engine` made the view; `reason` is one line.
    pub fn put_view(&self, session: &SessionId, view: &View, reason: &str, engine: &str) -> Result<ViewId, StoreError> {
        let now = Timestamp::now().as_millisecond();
        self.write(|connection| {
            let lineage = lineage::of(connection, session)?;
            let number: i64 = connection.query_row(
                "SELECT coalesce(max(number), 0) + 1 FROM views WHERE session_id = ?1",
                [session.as_str()],
                |row| row.get(0),
            )?;
            let through = view.through.map(|id| id.0.cast_signed());
            let row = connection
                .prepare_cached(
                    "INSERT INTO views (session_id, number, through, engine, reason, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .insert(params![session.as_str(), number, through, engine, reason, now])?;
            for (position, item) in (0i64..).zip(&view.items) {
                put_item(connection, session, &lineage, row, position, item)?;
            }
            Ok(ViewId(row.cast_unsigned()))
        })
    }

    /// The newest view that fits the conversation.
    ///
    /// A branch without a view of its own inherits the newest one that its parent had when it branched and that reaches
    /// no further than the branch. Without any, the default: the whole conversation.
    pub fn view(&self, session: &SessionId) -> Result<View, StoreError> {
        Ok(self.view_in_force(session)?.view)
    }

    /// The same view with its id and its engine.
    pub fn view_in_force(&self, session: &SessionId) -> Result<StoredView, StoreError> {
        self.read(|connection| {
            let lineage = lineage::of(connection, session)?;
            let Some((row, through, engine)) = in_force(connection, &lineage)? else {
                return Ok(StoredView::default());
            };
            let through = through.map(|id| MessageId(id.cast_unsigned()));
            let view = View { items: items(connection, row)?, through };
            Ok(StoredView { id: ViewId(row.cast_unsigned()), engine, view })
        })
    }

    /// All views that fit the conversation, oldest first; the last one is in force.
    pub fn views(&self, session: &SessionId) -> Result<Vec<ViewRecord>, StoreError> {
        self.read(|connection| {
            let mut of_stretch = connection.prepare_cached(&format!(
                "SELECT id, number, engine, reason, created_at, through FROM views WHERE {OF_STRETCH} ORDER BY id"
            ))?;
            let lineage = lineage::of(connection, session)?;
            let mut records = Vec::new();
            for stretch in lineage.stretches.iter().rev() {
                let rows =
                    of_stretch.query_map(params![stretch.session, stretch.last_view, stretch.last_message], |row| {
                        let through = row.get::<_, Option<i64>>(5)?;
                        Ok(ViewRecord {
                            id: ViewId(row.get::<_, i64>(0)?.cast_unsigned()),
                            number: row.get::<_, i64>(1)?.cast_unsigned(),
                            engine: row.get(2)?,
                            reason: row.get(3)?,
                            created_at: row.get::<_, i64>(4)?.cast_unsigned(),
                            view: View { items: Vec::new(), through: through.map(|id| MessageId(id.cast_unsigned())) },
                        })
                    })?;
                for record in rows {
                    let mut record = record?;
                    if record.view.through.is_none_or(|id| lineage.shows(id.0.cast_signed())) {
                        record.view.items = items(connection, record.id.0.cast_signed())?;
                        records.push(record);
                    }
                }
            }
            Ok(records)
        })
    }

    /// A view by its id; `None` if no session has it.
    pub fn view_by_id(&self, id: ViewId) -> Result<Option<View>, StoreError> {
        if id == ViewId::WHOLE {
            return Ok(Some(View::default()));
        }
        self.read(|connection| {
            let row = id.0.cast_signed();
            let through: Option<Option<i64>> = connection
                .prepare_cached("SELECT through FROM views WHERE id = ?1")?
                .query_row([row], |found| found.get(0))
                .optional()?;
            let Some(through) = through else { return Ok(None) };
            let through = through.map(|id| MessageId(id.cast_unsigned()));
            Ok(Some(View { items: items(connection, row)?, through }))
        })
    }

    /// Every summary that is or was in a view of the conversation, by its key.
    pub fn summaries(&self, session: &SessionId) -> Result<HashMap<String, Summary>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT summaries.key, summaries.content, summaries.covers, views.through FROM summaries \
                 JOIN views ON views.id = summaries.view_id WHERE {OF_STRETCH} ORDER BY views.id DESC"
            ))?;
            let mut summaries = HashMap::new();
            let lineage = lineage::of(connection, session)?;
            for stretch in &lineage.stretches {
                let rows = statement
                    .query_map(params![stretch.session, stretch.last_view, stretch.last_message], |row| {
                        Ok((row.get::<_, Option<i64>>(3)?, summary(row, 0)?))
                    })?;
                for found in rows {
                    let (through, found) = found?;
                    if through.is_none_or(|message| lineage.shows(message)) {
                        summaries.entry(found.key.clone()).or_insert(found);
                    }
                }
            }
            Ok(summaries)
        })
    }

    /// One of [`Store::summaries`].
    pub fn summary(&self, session: &SessionId, key: &str) -> Result<Option<Summary>, StoreError> {
        self.read(|connection| {
            let lineage = lineage::of(connection, session)?;
            Ok(find(connection, &lineage, key)?.map(|(_, summary)| summary))
        })
    }
}

fn put_item(
    connection: &Connection,
    session: &SessionId,
    lineage: &Lineage,
    view: i64,
    position: i64,
    item: &Item,
) -> Result<(), Fault> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO view_items (view_id, position, kind, first_id, last_id, excerpt, summary_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    const NONE: Option<i64> = None;
    match item {
        Item::Messages(range) => {
            let (first, last) = (range.first.0.cast_signed(), range.last.0.cast_signed());
            insert.execute(params![view, position, "messages", first, last, NONE, NONE])?
        }
        Item::Excerpt(excerpt) => {
            insert.execute(params![view, position, "excerpt", NONE, NONE, to_json(excerpt)?, NONE])?
        }
        Item::Summary(summary) => {
            let row = put_summary(connection, session, lineage, view, summary)?;
            insert.execute(params![view, position, "summary", NONE, NONE, NONE, row])?
        }
    };
    Ok(())
}

/// The row of a summary; inserts it if its key is new.
fn put_summary(
    connection: &Connection,
    session: &SessionId,
    lineage: &Lineage,
    view: i64,
    summary: &Summary,
) -> Result<i64, Fault> {
    if let Some((row, known)) = find(connection, lineage, &summary.key)? {
        if known == *summary {
            return Ok(row);
        }
        return Err(SessionError::SummaryChanged { session: session.clone(), key: summary.key.clone() }.into());
    }
    let covers = to_json(&summary.covers)?;
    let row = connection
        .prepare_cached(
            "INSERT INTO summaries (session_id, key, content, covers, view_id) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .insert(params![session.as_str(), summary.key, summary.content, covers, view])?;
    Ok(row)
}

/// The newest view that fits the conversation: its row, its last message, its engine.
fn in_force(connection: &Connection, lineage: &Lineage) -> Result<Option<(i64, Option<i64>, String)>, Fault> {
    let mut newest = connection
        .prepare_cached(&format!("SELECT id, through, engine FROM views WHERE {OF_STRETCH} ORDER BY number DESC"))?;
    for stretch in &lineage.stretches {
        let views = newest.query_map(params![stretch.session, stretch.last_view, stretch.last_message], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get(2)?))
        })?;
        for view in views {
            let view = view?;
            if view.1.is_none_or(|message| lineage.shows(message)) {
                return Ok(Some(view));
            }
        }
    }
    Ok(None)
}

fn find(connection: &Connection, lineage: &Lineage, key: &str) -> Result<Option<(i64, Summary)>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT summaries.key, summaries.content, summaries.covers, summaries.id, views.through FROM summaries \
         JOIN views ON views.id = summaries.view_id WHERE {OF_STRETCH} AND summaries.session_id = ?1 \
         AND summaries.key = ?4 ORDER BY views.id DESC"
    ))?;
    for stretch in &lineage.stretches {
        let rows = statement
            .query_map(params![stretch.session, stretch.last_view, stretch.last_message, key], |row| {
                Ok((row.get::<_, Option<i64>>(4)?, row.get(3)?, summary(row, 0)?))
            })?;
        for found in rows {
            let (through, row, summary) = found?;
            if through.is_none_or(|message| lineage.shows(message)) {
                return Ok(Some((row, summary)));
            }
        }
    }
    Ok(None)
}

fn items(connection: &Connection, view: i64) -> Result<Vec<Item>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, first_id, last_id, excerpt, summaries.key, summaries.content, summaries.covers \
         FROM view_items LEFT JOIN summaries ON summaries.id = summary_id WHERE view_items.view_id = ?1 \
         ORDER BY position",
    )?;
    let items = statement.query_map([view], |row| {
        let kind: String = row.get(0)?;
        match kind.as_str() {
            "messages" => {
                let id = |column: usize| row.get::<_, i64>(column).map(|id| MessageId(id.cast_unsigned()));
                Ok(Item::Messages(MessageRange::new(id(1)?, id(2)?)))
            }
            "excerpt" => Ok(Item::Excerpt(from_json(3, &row.get::<_, String>(3)?)?)),
            "summary" => Ok(Item::Summary(summary(row, 4)?)),
            _ => Err(corrupt(0, format!("unknown kind `{kind}`"))),
        }
    })?;
    Ok(items.collect::<Result<_, _>>()?)
}

/// A summary from three columns: key, content, covers.
fn summary(row: &Row<'_>, first: usize) -> rusqlite::Result<Summary> {
    let covers: String = row.get(first + 2)?;
    Ok(Summary { key: row.get(first)?, content: row.get(first + 1)?, covers: from_json(first + 2, &covers)? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, Excerpt};

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{ParentKind, Session};

    fn range(first: u64, last: u64) -> MessageRange {
        MessageRange::new(MessageId(first), MessageId(last))
    }

    fn summary(key: &str, content: &str) -> Summary {
        Summary { key: key.into(), content: content.into(), covers: vec![range(1, 2), range(4, 4)] }
    }

    fn view_of(summary: Summary, through: u64) -> View {
        View { items: vec![Item::Summary(summary)], through: Some(MessageId(through)) }
    }

    /// A session with ten messages, numbered from 1.
    fn talk(store: &Store) -> Session {
        let session = store.create_session(new_session()).unwrap();
        let drafts: Vec<Draft> = (0..10).map(|at| Draft::user(format!("message {at}"), at)).collect();
        store.append(&session.id, &drafts).unwrap();
        session
    }

    #[test]
    fn a_view_is_read_back_unchanged() {
        let (home, store) = store();
        let session = talk(&store);
        assert_eq!(store.view(&session.id).unwrap(), View::default());
        let view = View {
            items: vec![
                Item::Messages(range(1, 1)),
                Item::Summary(summary("s1", "first\0\n")),
                Item::Excerpt(Excerpt {
                    id: MessageId(3),
                    content: Some("cut\0".into()),
                    arguments: vec![("call".into(), "{}".into())],
                    keep_images: false,
                }),
                Item::Summary(summary("s2", "second")),
                Item::Messages(range(5, 10)),
            ],
            through: Some(MessageId(10)),
        };
        assert_eq!(store.put_view(&session.id, &view, "the window is full", "compressor").unwrap(), ViewId(1));
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.view(&session.id).unwrap(), view);
        assert_eq!(store.summaries(&session.id).unwrap().len(), 2);
        assert_eq!(store.summary(&session.id, "s2").unwrap(), Some(summary("s2", "second")));
        assert_eq!(store.summary(&session.id, "s3").unwrap(), None);
    }

    #[test]
    fn the_newest_view_is_in_force_and_older_summaries_stay_available() {
        let (_home, store) = store();
        let session = talk(&store);
        store.put_view(&session.id, &view_of(summary("s1", "a"), 5), "", "e").unwrap();
        let newest = view_of(summary("s2", "b"), 9);
        assert_eq!(store.put_view(&session.id, &newest, "", "e").unwrap(), ViewId(2));
        assert_eq!(store.view(&session.id).unwrap(), newest);
        let mut keys: Vec<String> = store.summaries(&session.id).unwrap().into_keys().collect();
        keys.sort();
        assert_eq!(keys, ["s1", "s2"]);
        let views = store.views(&session.id).unwrap();
        let numbers: Vec<(u64, &str)> = views.iter().map(|view| (view.number, view.engine.as_str())).collect();
        assert_eq!(numbers, [(1, "e"), (2, "e")]);
        assert_eq!(views[1].view, newest);
        // A view whose newest message was rewound no longer belongs to the conversation.
        store.rewind(&session.id, MessageId(8)).unwrap();
        assert_eq!(store.views(&session.id).unwrap().len(), 1);
    }

    #[test]
    fn a_known_key_with_other_content_is_refused() {
        let (_home, store) = store();
        let session = talk(&store);
        let first = view_of(summary("s1", "a"), 5);
        store.put_view(&session.id, &first, "", "e").unwrap();
        store.put_view(&session.id, &first, "", "e").unwrap();
        let other_text = summary("s1", "b");
        let other_covers = Summary { covers: vec![range(1, 1)], ..summary("s1", "a") };
        for changed in [other_text, other_covers] {
            let view = View { items: vec![Item::Summary(summary("new", "n")), Item::Summary(changed)], through: None };
            let error = store.put_view(&session.id, &view, "", "e").unwrap_err();
            assert!(matches!(error, StoreError::Session(SessionError::SummaryChanged { key, .. }) if key == "s1"));
        }
        assert_eq!(store.view(&session.id).unwrap(), first);
        assert_eq!(store.summary(&session.id, "new").unwrap(), None);
    }

    #[test]
    fn a_branch_inherits_its_parents_view_at_the_branch_point() {
        let (_home, store) = store();
        let root = talk(&store);
        let early = view_of(summary("s1", "a"), 5);
        store.put_view(&root.id, &early, "", "e").unwrap();
        let late = view_of(summary("s2", "b"), 10);
        store.put_view(&root.id, &late, "", "e").unwrap();

        let before = child(&store, &root, ParentKind::Branch, Some(3));
        let between = child(&store, &root, ParentKind::Branch, Some(7));
        let after = child(&store, &root, ParentKind::Branch, None);
        let nested = child(&store, &after, ParentKind::Branch, Some(8));
        let delegate = child(&store, &root, ParentKind::Delegate, None);
        // Later views of the parent do not belong to the branch, even if they cover the same messages.
        store.put_view(&root.id, &view_of(summary("s3", "c"), 5), "", "e").unwrap();

        for (session, view, known) in [
            (&before, View::default(), 0),
            (&between, early.clone(), 1),
            (&after, late, 2),
            (&nested, early, 1),
            (&delegate, View::default(), 0),
        ] {
            assert_eq!(store.view(&session.id).unwrap(), view);
            assert_eq!(store.summaries(&session.id).unwrap().len(), known);
            let views = store.views(&session.id).unwrap();
            assert_eq!(views.len(), known);
            assert_eq!(views.last().map_or_else(View::default, |last| last.view.clone()), view);
        }
    }

    #[test]
    fn a_branch_may_use_a_key_that_its_parent_used_later() {
        let (_home, store) = store();
        let root = talk(&store);
        store.put_view(&root.id, &view_of(summary("s1", "shared"), 5), "", "e").unwrap();
        let branch = child(&store, &root, ParentKind::Branch, None);
        store.put_view(&root.id, &view_of(summary("s2", "the parent's"), 10), "", "e").unwrap();
        let own = view_of(summary("s2", "the branch's"), 10);
        store.put_view(&branch.id, &own, "", "e").unwrap();
        assert_eq!(store.view(&branch.id).unwrap(), own);
        assert_eq!(store.summary(&root.id, "s2").unwrap(), Some(summary("s2", "the parent's")));
        let stolen = view_of(summary("s1", "another"), 10);
        let error = store.put_view(&branch.id, &stolen, "", "e").unwrap_err();
        assert!(matches!(error, StoreError::Session(SessionError::SummaryChanged { .. })));
    }
}
