//! A search by rule, without an index.

use std::sync::PoisonError;

use async_trait::async_trait;
use hermes_runtime::Fault;
use hermes_runtime::services::{HistoryHit, HistoryQuery, Matching};

use super::{Search, SharedConversation};

/// The most bytes of a message that a hit shows.
const EXCERPT: usize = 600;

/// Scores a message by how many of the words it contains; equal scores are sorted newest first.
#[derive(Debug, Clone)]
pub struct WordSearch {
    /// The session that every hit names.
    pub session: String,
}

#[async_trait]
impl Search for WordSearch {
    async fn search(&self, conversation: &SharedConversation, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        let text = query.text.to_lowercase();
        let words: Vec<&str> = match query.matching {
            Matching::Phrase => vec![text.trim()],
            Matching::Any | Matching::All => text.split_whitespace().collect(),
        };
        let conversation = conversation.read().unwrap_or_else(PoisonError::into_inner);
        let mut hits: Vec<HistoryHit> = Vec::new();
        for message in conversation.messages().iter().rev() {
            let tool = message.tool_name.as_ref();
            let fits = (query.roles.is_empty() || query.roles.contains(&message.role))
                && (query.tools.is_empty() || tool.is_some_and(|tool| query.tools.contains(tool)))
                && query.within.is_none_or(|within| within.contains(message.id));
            let content = message.content.to_lowercase();
            let found = words.iter().filter(|word| !word.is_empty() && content.contains(**word)).count();
            let enough = if query.matching == Matching::All { words.len() } else { 1 };
            if fits && found >= enough.max(1) {
                let excerpt = message.content[..message.content.floor_char_boundary(EXCERPT)].to_owned();
                hits.push(HistoryHit { id: message.id, session: self.session.clone(), excerpt, score: found as f64 });
            }
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        Ok(hits.into_iter().skip(query.offset).take(query.limit).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Conversation, Draft, MessageId, Role};
    use hermes_runtime::services::History as _;

    use super::*;
    use crate::MemoryHistory;

    #[tokio::test]
    async fn a_search_finds_words_by_role_best_first() {
        let history = MemoryHistory::new(Conversation::default(), WordSearch { session: "s".to_owned() });
        history.push(Draft::user("The ferry is called Albatross and leaves at 07:45.", 1));
        history.push(Draft::assistant("There is no oil left for the lanterns.", Vec::new(), 2));
        history.push(Draft::user("Then order some before the ferry leaves.", 3));
        let query = HistoryQuery {
            text: "Ferry ORDER".to_owned(),
            matching: Matching::Any,
            roles: Vec::new(),
            tools: Vec::new(),
            within: None,
            offset: 0,
            limit: 10,
        };
        let found = async |query: &HistoryQuery| {
            history.search(query).await.unwrap().iter().map(|hit| hit.id.0).collect::<Vec<_>>()
        };
        assert_eq!(found(&query).await, [3, 1]);
        assert_eq!(found(&HistoryQuery { matching: Matching::All, ..query.clone() }).await, [3]);
        assert_eq!(found(&HistoryQuery { matching: Matching::Phrase, ..query.clone() }).await, [0_u64; 0]);
        assert_eq!(found(&HistoryQuery { roles: vec![Role::Assistant], ..query.clone() }).await, [0_u64; 0]);
        assert_eq!(found(&HistoryQuery { offset: 1, ..query.clone() }).await, [1]);
        assert_eq!(history.copy().messages()[1].id, MessageId(2));
    }
}
