//! Searches across sessions, and the list of conversations.

use std::cmp::Reverse;

use hermes_conversation::{Message, Origin, Role, SessionId};
use hermes_session_store::{
    Finding, Neighbour, ParentKind, Reading, RecallOrder, RecallQuery, SessionError, SessionSummary,
};

use super::lineage::Lineage;
use super::{Entry, State};

/// Characters of an excerpt, of a neighbour and of a preview.
const EXCERPT: usize = 600;
const NEIGHBOUR: usize = 200;
const PREVIEW: usize = 60;

impl State {
    pub(super) fn recall(&self, query: &RecallQuery) -> Result<Vec<Finding>, SessionError> {
        let asking = match &query.asking {
            Some(asking) => Some(self.origin(&self.entry(asking)?.session.id)),
            None => None,
        };
        let mut found: Vec<(usize, Finding)> = Vec::new();
        for entry in &self.sessions {
            let session = &entry.session;
            let origin = self.origin(&session.id);
            let is_delegate = session.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Delegate);
            if is_delegate
                || asking.as_ref() == Some(&origin)
                || !(query.sources.is_empty() || query.sources.contains(&session.source))
                || query.without_sources.contains(&session.source)
            {
                continue;
            }
            let shown: Vec<&Message> = entry.messages.iter().filter(|message| self.shows(entry, message)).collect();
            for (at, message) in shown.iter().enumerate() {
                let fits = (query.roles.is_empty() || query.roles.contains(&message.role))
                    && query.since.is_none_or(|since| message.created_at >= since)
                    && query.until.is_none_or(|until| message.created_at < until);
                let Some(hits) = matches(query, &message.content).filter(|_| fits) else { continue };
                let said = |message: &&&Message| {
                    matches!(message.role, Role::User | Role::Assistant) && !message.content.is_empty()
                };
                let neighbour = |message: &&Message| Neighbour {
                    message: message.id,
                    role: message.role,
                    text: message.content.chars().take(NEIGHBOUR).collect(),
                };
                let mut before: Vec<Neighbour> =
                    shown[..at].iter().rev().filter(said).take(query.neighbours).map(neighbour).collect();
                before.reverse();
                let finding = Finding {
                    message: message.id,
                    session: session.id.clone(),
                    origin: origin.clone(),
                    title: session.title.clone(),
                    source: session.source.clone(),
                    imported: session.imported,
                    role: message.role,
                    tool_name: message.tool_name.clone(),
                    created_at: message.created_at,
                    matches: true,
                    excerpt: message.content.chars().take(EXCERPT).collect(),
                    focus: 0,
                    before,
                    after: shown[at + 1..].iter().filter(said).take(query.neighbours).map(neighbour).collect(),
                };
                found.push((hits, finding));
            }
        }
        match query.order {
            RecallOrder::Best => found.sort_by_key(|(hits, finding)| Reverse((*hits, finding.message))),
            RecallOrder::Newest => found.sort_by_key(|(_, finding)| Reverse(finding.message)),
            RecallOrder::Oldest => found.sort_by_key(|(_, finding)| finding.message),
        }
        Ok(found.into_iter().map(|(_, finding)| finding).take(query.limit).collect())
    }

    /// Whether some conversation shows a message, which its user, model or tool wrote.
    fn shows(&self, owner: &Entry, message: &Message) -> bool {
        let holds = |entry: &Entry| {
            Lineage::of(self, &entry.session.id)
                .is_ok_and(|lineage| lineage.messages(self).iter().any(|shown| shown.id == message.id))
        };
        message.origin == Origin::Said && (holds(owner) || self.sessions.iter().any(holds))
    }

    fn origin(&self, session: &SessionId) -> SessionId {
        let mut at = session.clone();
        while let Ok(entry) = self.entry(&at)
            && let Some(parent) = &entry.session.parent
        {
            at = parent.id.clone();
        }
        at
    }

    pub(super) fn conversations(&self, most: usize) -> Vec<SessionSummary> {
        let kind = |entry: &Entry| entry.session.parent.as_ref().map(|parent| parent.kind);
        let is_continued = |of: &Entry| {
            self.sessions.iter().any(|later| {
                kind(later) == Some(ParentKind::Continuation)
                    && later.session.parent.as_ref().is_some_and(|parent| parent.id == of.session.id)
                    && (of.session.message_count == 0 || later.session.message_count > 0)
            })
        };
        let listed = self.sessions.iter().filter(|entry| kind(entry) != Some(ParentKind::Delegate));
        let mut listed: Vec<&Entry> = listed.filter(|entry| !is_continued(entry)).rev().collect();
        listed.sort_by_key(|entry| Reverse(entry.session.updated_at));
        listed.into_iter().take(most).map(|entry| self.summary(entry)).collect()
    }

    fn summary(&self, entry: &Entry) -> SessionSummary {
        let session = entry.session();
        let messages = Lineage::of(self, &session.id).map(|lineage| lineage.messages(self)).unwrap_or_default();
        let is_own = |message: &Message| entry.messages.iter().any(|own| own.id == message.id);
        let mut said = messages
            .iter()
            .filter(|message| message.role == Role::User && (session.message_count == 0 || is_own(message)));
        let line = said.next().map(|message| message.content.split_whitespace().collect::<Vec<_>>().join(" "));
        SessionSummary {
            id: session.id,
            title: session.title,
            source: session.source,
            started_at: session.started_at,
            updated_at: session.updated_at,
            message_count: session.message_count,
            conversation_messages: messages.len() as u64,
            workspace: session.workspace,
            model: session.model,
            parent: session.parent,
            preview: line.unwrap_or_default().chars().take(PREVIEW).collect(),
            imported: session.imported,
        }
    }
}

/// How many of the words occur, if the message matches.
fn matches(query: &RecallQuery, content: &str) -> Option<usize> {
    let content = content.to_lowercase();
    let count = |text: &str| {
        let text = text.to_lowercase().replace('"', " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        (words.iter().filter(|word| content.contains(**word)).count(), words.len())
    };
    match query.reading {
        Reading::Words => Some(count(&query.text).0).filter(|hits| *hits > 0),
        Reading::Language => {
            let alternatives = query.text.split(" OR ").map(count);
            alternatives.filter(|(hits, words)| *words > 0 && hits == words).map(|(hits, _)| hits).max()
        }
    }
}
