//! A search across conversations: which messages an answer shows, and in which order.

use std::collections::HashMap;

use hermes_conversation::{MessageId, Role, SessionId};
use hermes_session_store::{Finding, Neighbour, Reading, RecallQuery, SessionStore, StoreError};

use super::arguments::Discover;

/// Front ends of machines: what they say repeats what a person's conversation contains.
pub(super) const MACHINES: [&str; 2] = ["subagent", "tool"];
/// The front end of scheduled runs. They repeat themselves, so they come after conversations.
const SCHEDULED: &str = "cron";
/// Messages shown on either side of a hit.
const NEIGHBOURS: usize = 2;
/// The most hits of one conversation while others have some too.
const MOST_OF_ONE: usize = 3;

/// What a search found, best conversation first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The conversations, each with its hits.
    pub conversations: Vec<Conversation>,
    /// Whether the operators of the query matched nothing, so that its words were searched.
    pub widened: bool,
}

/// A conversation with hits: sessions that continue each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Its oldest session.
    pub origin: SessionId,
    /// Whether the query is the title of one of its sessions.
    pub by_title: bool,
    /// The hits, best first; never empty.
    pub hits: Vec<Finding>,
}

impl Discovery {
    /// The hits, conversation by conversation.
    pub fn hits(&self) -> impl Iterator<Item = &Finding> {
        self.conversations.iter().flat_map(|conversation| &conversation.hits)
    }
}

/// Searches the conversations to which the asking session does not belong, also for some more words.
pub(super) async fn discover(
    store: &dyn SessionStore,
    asking: Option<&SessionId>,
    wanted: &Discover,
    more: &str,
) -> Result<Discovery, StoreError> {
    let mut query = RecallQuery {
        text: if more.is_empty() { wanted.query.clone() } else { format!("{} {more}", wanted.query) },
        reading: if has_operators(&wanted.query) { Reading::Language } else { Reading::Words },
        roles: wanted.roles.clone(),
        sources: wanted.source.iter().cloned().collect(),
        without_sources: MACHINES.map(str::to_owned).to_vec(),
        asking: asking.cloned(),
        since: wanted.since,
        until: wanted.until,
        order: wanted.order,
        // More than are shown, for hits of other conversations.
        limit: wanted.limit * 3,
        neighbours: NEIGHBOURS,
    };
    let mut hits = recall(store, &query, wanted.limit).await?;
    let widened = hits.is_empty() && query.reading == Reading::Language;
    if widened {
        query.reading = Reading::Words;
        hits = recall(store, &query, wanted.limit).await?;
    }
    let mut conversations: Vec<Conversation> = Vec::new();
    for hit in hits {
        match conversations.iter_mut().find(|conversation| conversation.origin == hit.origin) {
            Some(conversation) => conversation.hits.push(hit),
            None => {
                let origin = hit.origin.clone();
                conversations.push(Conversation { origin, by_title: false, hits: vec![hit] });
            }
        }
    }
    if let Some(named) = named(store, asking, wanted).await? {
        let at = conversations.iter().position(|conversation| conversation.origin == named.origin);
        let mut first = at.map_or(named, |at| conversations.remove(at));
        first.by_title = true;
        conversations.insert(0, first);
    }
    Ok(Discovery { widened: widened && !conversations.is_empty(), conversations })
}

/// The hits of people's conversations, then those of scheduled runs.
async fn recall(store: &dyn SessionStore, query: &RecallQuery, limit: usize) -> Result<Vec<Finding>, StoreError> {
    let asked_for = |source: &str| query.sources.iter().any(|wanted| wanted == source);
    // A source that is asked for is searched, whatever it is.
    let mut without_sources = query.without_sources.clone();
    without_sources.retain(|source| !asked_for(source));
    let mut people = RecallQuery { without_sources, ..query.clone() };
    if asked_for(SCHEDULED) {
        return Ok(varied(distinct(store.recall(&people).await?), limit));
    }
    people.without_sources.push(SCHEDULED.to_owned());
    let mut hits = varied(distinct(store.recall(&people).await?), limit);
    if hits.len() < limit && query.sources.is_empty() {
        let scheduled = RecallQuery { sources: vec![SCHEDULED.to_owned()], ..query.clone() };
        hits.extend(varied(distinct(store.recall(&scheduled).await?), limit - hits.len()));
    }
    Ok(hits)
}

/// The hits without those that an answer shows anyway, beside a better one.
fn distinct(hits: Vec<Finding>) -> Vec<Finding> {
    let mut distinct: Vec<Finding> = Vec::with_capacity(hits.len());
    for hit in hits {
        let shows = |other: &Finding| other.before.iter().chain(&other.after).any(|near| near.message == hit.message);
        if hit.matches || !distinct.iter().any(shows) {
            distinct.push(hit);
        }
    }
    distinct
}

/// The first hits, with some of every conversation before more of one.
fn varied(hits: Vec<Finding>, limit: usize) -> Vec<Finding> {
    let mut of_each: HashMap<SessionId, usize> = HashMap::new();
    let (mut first, mut more) = (Vec::new(), Vec::new());
    for hit in hits {
        let count = of_each.entry(hit.origin.clone()).or_default();
        *count += 1;
        if *count <= MOST_OF_ONE { first.push(hit) } else { more.push(hit) }
    }
    first.extend(more);
    first.truncate(limit);
    first
}

/// The conversation that the query names by its title, with its first messages.
async fn named(
    store: &dyn SessionStore,
    asking: Option<&SessionId>,
    wanted: &Discover,
) -> Result<Option<Conversation>, StoreError> {
    let title = wanted.query.trim_matches(|c: char| c.is_whitespace() || "\"'`“”‘’«»".contains(c));
    let Some(id) = store.titled(title).await? else { return Ok(None) };
    let origin = store.origin(&id).await?;
    let session = store.session(&id).await?;
    let is_own = match asking {
        Some(asking) => store.origin(asking).await? == origin,
        None => false,
    };
    let is_filtered = wanted.since.is_some() || wanted.until.is_some();
    let fits =
        wanted.source.as_ref().map_or(!MACHINES.contains(&session.source.as_str()), |source| *source == session.source);
    if is_own || is_filtered || !fits {
        return Ok(None);
    }
    let messages = store.conversation(&id).await?;
    let said = messages
        .into_iter()
        .filter(|message| matches!(message.role, Role::User | Role::Assistant) && !message.content.is_empty());
    let mut said = said.take(NEIGHBOURS + 1);
    let Some(first) = said.next() else { return Ok(None) };
    let beginning = |text: &str| text.chars().take(600).collect::<String>();
    let after =
        said.map(|message| Neighbour { message: message.id, role: message.role, text: beginning(&message.content) });
    Ok(Some(Conversation {
        origin: origin.clone(),
        by_title: true,
        hits: vec![Finding {
            message: first.id,
            session: id,
            origin,
            title: session.title,
            source: session.source,
            imported: session.imported,
            role: first.role,
            tool_name: None,
            created_at: first.created_at,
            matches: true,
            excerpt: beginning(&first.content),
            focus: 0,
            before: Vec::new(),
            after: after.collect(),
        }],
    }))
}

/// Whether a query uses the query language. A minus does not count: options of programs begin with one.
pub(super) fn has_operators(query: &str) -> bool {
    let words = || query.split_whitespace();
    let quotes = query.matches('"').count();
    quotes >= 2
        || words().any(|word| ["OR", "AND", "NOT"].contains(&word))
        || words().any(|word| word.len() > 1 && word.ends_with('*') && !word.starts_with('*'))
}

/// The messages that an answer shows for a conversation, in the order in which they were said.
pub(super) fn around(hits: &[Finding]) -> Vec<(MessageId, Shown<'_>)> {
    let mut shown: Vec<(MessageId, Shown<'_>)> = Vec::new();
    for hit in hits {
        shown.push((hit.message, Shown::Hit(hit)));
    }
    for hit in hits {
        for (neighbour, distance) in hit.before.iter().rev().zip(1..).chain(hit.after.iter().zip(1..)) {
            match shown.iter_mut().find(|(id, _)| *id == neighbour.message) {
                Some((_, Shown::Neighbour(_, nearest))) => *nearest = distance.min(*nearest),
                Some(_) => {}
                None => shown.push((neighbour.message, Shown::Neighbour(neighbour, distance))),
            }
        }
    }
    shown.sort_by_key(|(id, _)| *id);
    shown
}

/// Why a message is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown<'a> {
    /// It matches.
    Hit(&'a Finding),
    /// It is this far from a hit.
    Neighbour(&'a Neighbour, usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_recognised_and_sentences_are_not() {
        for query in ["docker OR podman", "\"exact phrase\"", "deploy*", "timeout NOT proxy", "a AND b"] {
            assert!(has_operators(query), "{query}");
        }
        for query in ["what is C++ or Rust?", "use -v and --force", "a \" b", "**", "5 * 3", "*", "ORDER NOTE", ""] {
            assert!(!has_operators(query), "{query}");
        }
    }
}
