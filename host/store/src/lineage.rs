//! The messages and views of several sessions that form one conversation.

use std::collections::HashSet;

use hermes_conversation::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::{ParentKind, SessionError, StoreError};

/// The part of a session that belongs to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) session: String,
    /// The last message that belongs to the conversation.
    pub(crate) last_message: i64,
    /// The last view, by its id: a branch does not share views that its parent got later.
    pub(crate) last_view: i64,
    /// The last row of `rewound`, likewise: what the parent rewinds after the branch stays in the branch.
    last_rewound: i64,
}

/// A conversation as the database stores it.
#[derive(Debug)]
pub(crate) struct Lineage {
    /// The session itself, then its parent, and so on.
    ///
    /// Each stretch is bounded by all later ones: a branch of a branch has no more of the first session than the middle
    /// one had, and no more than it contains.
    pub(crate) stretches: Vec<Stretch>,
    /// Rewound messages: rewound by the session, or by an ancestor before the next session branched off.
    pub(crate) rewound: HashSet<i64>,
}

impl Lineage {
    /// Whether a view or conversation may contain this message. A message that is gone hides the view that refers to
    /// it.
    pub(crate) fn shows(&self, message: i64) -> bool {
        !self.rewound.contains(&message)
    }
}

/// Reads the lineage of a session.
pub(crate) fn of(connection: &Connection, session: &SessionId) -> Result<Lineage, Fault> {
    let mut parent_of = connection.prepare_cached(
        "SELECT parent_id, parent_kind, parent_through, parent_view, parent_rewound FROM sessions WHERE id = ?1",
    )?;
    let mut rewound_by =
        connection.prepare_cached("SELECT message_id FROM rewound WHERE session_id = ?1 AND id <= ?2")?;
    let mut lineage = Lineage { stretches: Vec::new(), rewound: HashSet::new() };
    let mut seen = HashSet::new();
    let mut next = Some(Stretch {
        session: session.0.clone(),
        last_message: i64::MAX,
        last_view: i64::MAX,
        last_rewound: i64::MAX,
    });
    // A parent is older than its child, so only a damaged file has a cycle.
    while let Some(stretch) = next.filter(|stretch| seen.insert(stretch.session.clone())) {
        let parent = parent_of
            .query_row(params![stretch.session], |row| {
                Ok((
                    row.get::<_, Option<String>>(0)?,
                    row.get::<_, Option<String>>(1)?,
                    row.get::<_, Option<i64>>(2)?,
                    row.get::<_, Option<i64>>(3)?,
                    row.get::<_, i64>(4)?,
                ))
            })
            .optional()?
            .ok_or_else(|| StoreError::Session(SessionError::UnknownSession(stretch.session.clone())))?;
        let taken_back = rewound_by.query_map(params![stretch.session, stretch.last_rewound], |row| row.get(0))?;
        for message in taken_back {
            lineage.rewound.insert(message?);
        }
        next = match parent {
            (Some(session), Some(kind), Some(through), view, rewound) if kind != ParentKind::Delegate.as_str() => {
                Some(Stretch {
                    session,
                    last_message: through.min(stretch.last_message),
                    last_view: view.unwrap_or(0).min(stretch.last_view),
                    last_rewound: rewound.min(stretch.last_rewound),
                })
            }
            _ => None,
        };
        lineage.stretches.push(stretch);
    }
    Ok(lineage)
}

/// The ancestors of a session, nearest first, each with the way in which the next session continues it. A delegate has
/// none.
pub(crate) fn ancestors(connection: &Connection, session: &SessionId) -> Result<Vec<(SessionId, ParentKind)>, Fault> {
    let mut parent_of = connection.prepare_cached(
        "SELECT parent_id, parent_kind FROM sessions WHERE id = ?1 AND parent_kind IN ('branch', 'continuation')",
    )?;
    let mut ancestors: Vec<(SessionId, ParentKind)> = Vec::new();
    let mut seen = HashSet::from([session.0.clone()]);
    let mut at = session.0.clone();
    loop {
        let parent: Option<(String, String)> =
            parent_of.query_row([&at], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match parent {
            Some((id, kind)) if seen.insert(id.clone()) => {
                let continued = kind == ParentKind::Continuation.as_str();
                let kind = if continued { ParentKind::Continuation } else { ParentKind::Branch };
                ancestors.push((SessionId(id.clone()), kind));
                at = id;
            }
            _ => return Ok(ancestors),
        }
    }
}
