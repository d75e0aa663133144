//! Which messages and views of which sessions make up a conversation.

use hermes_conversation::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::StoreError;
use crate::error::Fault;

/// What a conversation has of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) session: String,
    /// The last message, and with it the last view, that belongs to the conversation.
    pub(crate) last_message: i64,
    /// The last view, by its id: views that the session got after the branch are not the branch's.
    pub(crate) last_view: i64,
}

/// The session itself, then the one that it goes on from, and so on.
///
/// Each is bounded by what those after it took over: a branch of a branch has no more of the first than the
/// middle one had, nor more than it asked for.
pub(crate) fn of(connection: &Connection, session: &SessionId) -> Result<Vec<Stretch>, Fault> {
    let mut parent_of = connection
        .prepare_cached("SELECT parent_id, parent_kind, parent_through, parent_view FROM sessions WHERE id = ?1")?;
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut next = Some(Stretch { session: session.0.clone(), last_message: i64::MAX, last_view: i64::MAX });
    while let Some(stretch) = next {
        let parent = parent_of
            .query_row(params![stretch.session], |row| {
                let kind: Option<String> = row.get(1)?;
                Ok((
                    row.get::<_, Option<String>>(0)?,
                    kind,
                    row.get::<_, Option<i64>>(2)?,
                    row.get::<_, Option<i64>>(3)?,
                ))
            })
            .optional()?
            .ok_or_else(|| StoreError::UnknownSession(stretch.session.clone()))?;
        next = match parent {
            (Some(session), Some(kind), Some(through), view) if kind != "delegate" => Some(Stretch {
                session,
                last_message: through.min(stretch.last_message),
                last_view: view.unwrap_or(0).min(stretch.last_view),
            }),
            _ => None,
        };
        stretches.push(stretch);
        // A parent is older than its child, so there is no way round but through a damaged file.
        if next.as_ref().is_some_and(|next| stretches.iter().any(|stretch| stretch.session == next.session)) {
            break;
        }
    }
    Ok(stretches)
}
