//! Assembles a conversation from the messages, views and summaries of a session and its ancestors.

use std::collections::HashSet;

use hermes_conversation::{Message, MessageId, SessionId, Summary};
use hermes_session_store::{ParentKind, SessionError, ViewRecord};

use super::{Entry, State};

/// A conversation: a session, then its ancestors, nearest first.
pub(super) struct Lineage {
    stretches: Vec<Stretch>,
    hidden: HashSet<MessageId>,
}

/// The part of a conversation that comes from one session.
struct Stretch {
    session: SessionId,
    last_message: u64,
    last_view: u64,
    last_rewound: u64,
}

impl Lineage {
    pub(super) fn of(state: &State, session: &SessionId) -> Result<Self, SessionError> {
        let most = u64::MAX;
        let mut next =
            Some(Stretch { session: session.clone(), last_message: most, last_view: most, last_rewound: most });
        let mut lineage = Self { stretches: Vec::new(), hidden: HashSet::new() };
        while let Some(stretch) = next {
            let entry = state.entry(&stretch.session)?;
            let rewound = entry.rewound.iter().filter(|rewound| rewound.id <= stretch.last_rewound);
            lineage.hidden.extend(rewound.map(|rewound| rewound.message));
            let parent = entry.session.parent.as_ref().filter(|parent| parent.kind != ParentKind::Delegate);
            next = parent.and_then(|parent| {
                Some(Stretch {
                    session: parent.id.clone(),
                    last_message: parent.through?.0.min(stretch.last_message),
                    last_view: entry.view_at_start.min(stretch.last_view),
                    last_rewound: entry.rewound_at_start.min(stretch.last_rewound),
                })
            });
            lineage.stretches.push(stretch);
        }
        Ok(lineage)
    }

    /// The entries, nearest session first.
    fn entries<'a>(&'a self, state: &'a State) -> impl DoubleEndedIterator<Item = (&'a Stretch, &'a Entry)> {
        self.stretches.iter().filter_map(|stretch| Some((stretch, state.entry(&stretch.session).ok()?)))
    }

    /// Whether a view or summary up to this message belongs to the conversation.
    fn reaches(&self, stretch: &Stretch, through: Option<MessageId>) -> bool {
        through.is_none_or(|id| id.0 <= stretch.last_message && !self.hidden.contains(&id))
    }

    /// Oldest first.
    pub(super) fn messages(&self, state: &State) -> Vec<Message> {
        let shown = |stretch: &Stretch, message: &Message| {
            message.id.0 <= stretch.last_message && !self.hidden.contains(&message.id)
        };
        let entries = self.entries(state).rev();
        entries
            .flat_map(|(stretch, entry)| entry.messages.iter().filter(move |message| shown(stretch, message)).cloned())
            .collect()
    }

    /// Oldest first.
    pub(super) fn views(&self, state: &State) -> Vec<ViewRecord> {
        let entries = self.entries(state).rev();
        entries
            .flat_map(|(stretch, entry)| {
                let fits = move |record: &&ViewRecord| {
                    record.id.0 <= stretch.last_view && self.reaches(stretch, record.view.through)
                };
                entry.views.iter().filter(fits).cloned()
            })
            .collect()
    }

    /// Newest first.
    pub(super) fn summaries<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a Summary> {
        self.entries(state).flat_map(|(stretch, entry)| {
            let newest_first = entry.summaries.iter().rev();
            newest_first
                .filter(|kept| kept.view.0 <= stretch.last_view && self.reaches(stretch, kept.through))
                .map(|kept| &kept.summary)
        })
    }

    pub(super) fn summary<'a>(&'a self, state: &'a State, key: &str) -> Option<&'a Summary> {
        self.summaries(state).find(|summary| summary.key == key)
    }
}

/// The sessions that this one continues, nearest first, each with how its child relates to it. A delegate has none.
pub(super) fn ancestors(state: &State, id: &SessionId) -> Vec<(SessionId, ParentKind)> {
    let mut ancestors = Vec::new();
    let mut at = id.clone();
    while let Ok(entry) = state.entry(&at)
        && let Some(parent) = entry.session.parent.as_ref().filter(|parent| parent.kind != ParentKind::Delegate)
    {
        ancestors.push((parent.id.clone(), parent.kind));
        at = parent.id.clone();
    }
    ancestors
}
