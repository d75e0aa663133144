//! Titles: one line each, and unique. Sessions that continue one another share a title by numbers, as in `Engine`,
//! `Engine #2`.

use std::collections::HashMap;

use hermes_conversation::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::known::{exists, known};
use hermes_session_store::title::{clean, numbered, split};

use crate::{ParentKind, SessionError, Store, StoreError, lineage};

impl Store {
    /// Sets a session's title and returns the stored one; an empty title removes it.
    ///
    /// Whitespace is collapsed and control characters are dropped. A title of an ancestor moves to a continuation, and
    /// becomes the next number in a branch. A title of any other session is refused.
    pub fn set_title(&self, id: &SessionId, title: &str) -> Result<Option<String>, StoreError> {
        let title = clean(title)?;
        self.write(|connection| {
            exists(connection, id)?;
            match &title {
                Some(title) => give(connection, id, title).map(Some),
                None => {
                    put(connection, id, None)?;
                    Ok(None)
                }
            }
        })
    }

    /// Sets the title of a session that has none; uses the next free number if another session has the title.
    ///
    /// Returns the stored title, or `None` if the session already has one, which a person may have set meanwhile.
    pub fn name_untitled(&self, id: &SessionId, title: &str) -> Result<Option<String>, StoreError> {
        let title = clean(title)?;
        self.write(|connection| {
            let present: Option<Option<String>> = connection
                .query_row("SELECT title FROM sessions WHERE id = ?1", [id.as_str()], |row| row.get(0))
                .optional()?;
            match (present, &title) {
                (None, _) => Err(SessionError::UnknownSession(id.0.clone()).into()),
                (Some(Some(_)), _) | (_, None) => Ok(None),
                (Some(None), Some(title)) => {
                    let free =
                        if holder(connection, title)?.is_none() { title.clone() } else { next(connection, title)? };
                    put(connection, id, Some(&free))?;
                    Ok(Some(free))
                }
            }
        })
    }

    /// The next title of a numbered series: the title without a number if it is free, else the highest number plus one.
    pub fn next_title(&self, title: &str) -> Result<Option<String>, StoreError> {
        let title = clean(title)?;
        self.read(|connection| title.as_deref().map(|title| next(connection, title)).transpose())
    }
}

/// Gives a cleaned title to a session that exists.
pub(crate) fn give(connection: &Connection, id: &SessionId, title: &str) -> Result<String, Fault> {
    let title = match holder(connection, title)? {
        Some(holder) if holder != *id => {
            let line = lineage::ancestors(connection, id)?;
            match line.iter().position(|(ancestor, _)| *ancestor == holder) {
                Some(at) if line[..=at].iter().all(|(_, kind)| *kind == ParentKind::Continuation) => {
                    put(connection, &holder, None)?;
                    title.to_owned()
                }
                Some(_) => next(connection, title)?,
                None => {
                    let free = next(connection, title)?;
                    return Err(SessionError::TitleTaken { title: title.to_owned(), holder, free }.into());
                }
            }
        }
        _ => title.to_owned(),
    };
    put(connection, id, Some(&title))?;
    Ok(title)
}

fn put(connection: &Connection, id: &SessionId, title: Option<&str>) -> Result<(), Fault> {
    let changed = connection
        .prepare_cached("UPDATE sessions SET title = ?2 WHERE id = ?1")?
        .execute(params![id.as_str(), title])?;
    known(changed, id)
}

/// The session that has a title.
pub(crate) fn holder(connection: &Connection, title: &str) -> Result<Option<SessionId>, Fault> {
    let mut statement = connection.prepare_cached("SELECT id FROM sessions WHERE title = ?1")?;
    Ok(statement.query_row([title], |row| row.get(0)).optional()?.map(SessionId))
}

/// The sessions whose title differs from this one only in upper and lower case.
pub(crate) fn alike(connection: &Connection, title: &str) -> Result<Vec<SessionId>, Fault> {
    let title = title.to_lowercase();
    let mut statement = connection.prepare("SELECT id, title FROM sessions WHERE title IS NOT NULL")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut alike = Vec::new();
    for row in rows {
        let (id, known) = row?;
        if known.to_lowercase() == title {
            alike.push(SessionId(id));
        }
    }
    Ok(alike)
}

/// The newest of some sessions with this title and a number.
pub(crate) fn newest_numbered(
    connection: &Connection,
    base: &str,
    of: impl Fn(&SessionId) -> bool,
) -> Result<Option<SessionId>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT title, id FROM sessions WHERE {NUMBERED} ORDER BY started_at DESC, rowid DESC"
    ))?;
    let rows = statement
        .query_map(params![first(base), last(base)], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    for row in rows {
        let (title, id) = row?;
        let id = SessionId(id);
        if split(&title).0 == base && of(&id) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// A range, because a pattern would treat wildcards in a title as its own.
const NUMBERED: &str = "title >= ?1 AND title < ?2";

fn first(base: &str) -> String {
    format!("{base} #")
}

/// `$` is the character after `#`.
fn last(base: &str) -> String {
    format!("{base} $")
}

/// The next free title of the series to which this one belongs.
pub(crate) fn next(connection: &Connection, title: &str) -> Result<String, Fault> {
    Series::default().next(connection, title)
}

/// The highest number of each series, for many titles in a row: a file with thousands of sessions of one title must not read the
/// whole series for each of them.
#[derive(Debug, Default)]
pub(crate) struct Series(HashMap<String, u64>);

impl Series {
    /// The next free title of the series to which this one belongs. A number that somebody else gave meanwhile is skipped.
    pub(crate) fn next(&mut self, connection: &Connection, title: &str) -> Result<String, Fault> {
        /// Two bases that are cut to the same title have this beginning in common.
        const COMMON: usize = 80;
        let base = split(title).0;
        let key: String = base.chars().take(COMMON).collect();
        let highest = match self.0.get(&key) {
            Some(highest) => *highest,
            None => highest(connection, base)?,
        };
        if highest == 0 {
            return Ok(base.to_owned());
        }
        let mut number = highest;
        loop {
            number = number.saturating_add(1);
            let free = numbered(base, number);
            // A title that was cut to fit may be taken.
            if holder(connection, &free)?.is_none() {
                self.0.insert(key, number);
                return Ok(free);
            }
        }
    }
}

/// The highest number of a series; 1 for a title without a number, 0 for none.
fn highest(connection: &Connection, base: &str) -> Result<u64, Fault> {
    let mut highest: u64 = if holder(connection, base)?.is_some() { 1 } else { 0 };
    let mut statement = connection.prepare_cached(&format!("SELECT title FROM sessions WHERE {NUMBERED}"))?;
    let titles = statement.query_map(params![first(base), last(base)], |row| row.get::<_, String>(0))?;
    for numbered in titles {
        if let (found, Some(number)) = split(&numbered?)
            && found == base
        {
            highest = highest.max(number);
        }
    }
    Ok(highest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{NewSession, Parent, Session};

    fn titled(store: &Store, title: &str) -> Session {
        store.create_session(NewSession { title: Some(title.into()), ..new_session() }).unwrap()
    }

    fn title_of(store: &Store, session: &Session) -> Option<String> {
        store.session(&session.id).unwrap().title
    }

    #[test]
    fn titles_are_cleaned_and_long_ones_are_refused() {
        let (_home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        for (given, kept) in [
            ("  two\n words\u{200b} ", Some("two words")),
            ("\u{1b}[31mred\u{202e}", Some("[31mred")),
            ("a\0b\u{7}c\u{1f}d", Some("abcd")),
            (" \u{feff}\n", None),
            ("a\u{fff9}b\u{fffa}c\u{fffb}d\u{fffc}", Some("abcd")),
        ] {
            assert_eq!(store.set_title(&id, given).unwrap().as_deref(), kept);
            assert_eq!(store.session(&id).unwrap().title.as_deref(), kept);
        }
        let error = store.set_title(&id, &"é".repeat(101)).unwrap_err();
        assert!(matches!(error, StoreError::Session(SessionError::TitleTooLong { length: 101, most: 100 })));
    }

    #[test]
    fn a_taken_title_is_refused_with_its_session_and_a_free_title() {
        let (_home, store) = store();
        let holder = titled(&store, "Engine");
        titled(&store, "Engine #7");
        let other = store.create_session(new_session()).unwrap();
        let error = store.set_title(&other.id, " Engine ").unwrap_err();
        assert!(error.to_string().contains(holder.id.as_str()) && error.to_string().contains("`Engine #8`"), "{error}");
        assert!(
            matches!(error, StoreError::Session(SessionError::TitleTaken { holder: id, free, .. }) if id == holder.id && free == "Engine #8")
        );
        assert_eq!(title_of(&store, &other), None);
        assert_eq!(store.set_title(&holder.id, "Engine").unwrap().as_deref(), Some("Engine"), "its own");
        let error = store.create_session(NewSession { title: Some("Engine".into()), ..new_session() }).unwrap_err();
        assert!(matches!(error, StoreError::Session(SessionError::TitleTaken { .. })));
        assert_eq!(store.sessions().unwrap().len(), 3, "nothing was created");
    }

    #[test]
    fn branches_number_a_title_and_a_continuation_takes_it_over() {
        let (_home, store) = store();
        let root = titled(&store, "Engine");
        let branch = child(&store, &root, ParentKind::Branch, None);
        let second = child(&store, &branch, ParentKind::Branch, None);
        let delegate = child(&store, &root, ParentKind::Delegate, None);
        assert_eq!(store.set_title(&branch.id, "Engine").unwrap().as_deref(), Some("Engine #2"));
        assert_eq!(store.set_title(&second.id, "Engine").unwrap().as_deref(), Some("Engine #3"));
        assert!(
            matches!(store.set_title(&root.id, "Engine #3"), Err(StoreError::Session(SessionError::TitleTaken { .. }))),
            "not upwards"
        );
        assert!(matches!(
            store.set_title(&delegate.id, "Engine"),
            Err(StoreError::Session(SessionError::TitleTaken { .. }))
        ));

        let on = child(&store, &branch, ParentKind::Continuation, None);
        let further = child(&store, &on, ParentKind::Continuation, None);
        assert_eq!(store.set_title(&further.id, "Engine #2").unwrap().as_deref(), Some("Engine #2"));
        assert_eq!(title_of(&store, &branch), None);
        assert_eq!(store.set_title(&further.id, "Engine").unwrap().as_deref(), Some("Engine #4"), "beyond the branch");
        assert_eq!(title_of(&store, &root).as_deref(), Some("Engine"));
        let parent = Some(Parent { id: root.id.clone(), kind: ParentKind::Branch, through: None });
        let named = store.create_session(NewSession { parent, title: Some("Engine".into()), ..new_session() }).unwrap();
        assert_eq!(named.title.as_deref(), Some("Engine #5"));
    }

    #[test]
    fn the_next_title_is_short_enough_and_free() {
        let (_home, store) = store();
        let long = "x".repeat(100);
        assert_eq!(store.next_title(&long).unwrap(), Some(long.clone()));
        titled(&store, &long);
        let cut = format!("{} #2", "x".repeat(97));
        assert_eq!(store.next_title(&long).unwrap(), Some(cut.clone()));
        titled(&store, &cut);
        assert_eq!(store.next_title(&long).unwrap(), Some(format!("{} #3", "x".repeat(97))));
        titled(&store, "100%");
        titled(&store, "100_ #4");
        assert_eq!(store.next_title("100%").unwrap().as_deref(), Some("100% #2"));
        titled(&store, "top #4294967295");
        assert_eq!(store.next_title("top").unwrap().as_deref(), Some("top #4294967296"));
        assert_eq!(store.next_title("\n").unwrap(), None);
    }

    #[test]
    fn a_generated_title_never_replaces_a_title_and_never_fails() {
        let (_home, store) = store();
        titled(&store, "Auto");
        let session = store.create_session(new_session()).unwrap();
        assert_eq!(store.name_untitled(&session.id, "Auto").unwrap().as_deref(), Some("Auto #2"));
        assert_eq!(store.name_untitled(&session.id, "Other").unwrap(), None);
        assert_eq!(title_of(&store, &session).as_deref(), Some("Auto #2"));
        let unknown = SessionId("20260101_000000_000000".into());
        assert!(matches!(
            store.name_untitled(&unknown, "x"),
            Err(StoreError::Session(SessionError::UnknownSession(_)))
        ));
    }

    mod attack {
        use super::*;

        #[test]
        fn a_series_is_read_once_for_many_titles() {
            let (_home, store) = store();
            titled(&store, "x");
            let mut series = Series::default();
            let mut next = |title: &str| store.read(|connection| series.next(connection, title)).unwrap();
            assert_eq!(next("x"), "x #2");
            // Titles that others give meanwhile: one is skipped, and the series is not read again.
            titled(&store, "x #3");
            titled(&store, "x #500");
            assert_eq!(next("x #2"), "x #4");
            assert_eq!(store.next_title("x").unwrap().as_deref(), Some("x #501"));
        }

        #[test]
        fn titles_that_are_cut_to_the_same_text_are_not_tried_one_by_one() {
            let (_home, store) = store();
            let mut series = Series::default();
            for (at, ending) in ('a'..='z').enumerate() {
                let title = format!("{}{ending}", "x".repeat(99));
                titled(&store, &title);
                let next = store.read(|connection| series.next(connection, &title)).unwrap();
                assert!(next.ends_with(&format!("x #{}", at + 2)), "{next}");
                titled(&store, &next);
                assert_eq!(series.0.len(), 1);
            }
        }
    }
}
