//! A conversation in memory that plugins can read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hermes_conversation::{
    Conversation, Draft, Header, Message, MessageId, MessageRange, Summary, ToolCall, View, closing,
};
use hermes_lab::generate::{Event, Scenario};
use hermes_plugin_host::Fault;
use hermes_plugin_host::services::{History, HistoryHit, HistoryQuery, Matching};

/// The most bytes of a message that a search hit shows.
const EXCERPT: usize = 600;

/// The messages of a conversation, and the summaries that replace some of them.
#[derive(Default)]
pub(crate) struct TestHistory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    conversation: Conversation,
    summaries: HashMap<String, String>,
}

impl TestHistory {
    pub(crate) fn of(conversation: Conversation) -> Self {
        Self { state: Mutex::new(State { conversation, summaries: HashMap::new() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn conversation(&self) -> Conversation {
        self.state().conversation.clone()
    }

    pub(crate) fn push(&self, draft: Draft) {
        let mut state = self.state();
        let next = state.conversation.messages().last().map_or(1, |last| last.id.0 + 1);
        state.conversation.push(draft.numbered(MessageId(next)));
    }

    /// Adds the summaries of a view.
    pub(crate) fn add_summaries(&self, view: &View) {
        let mut state = self.state();
        for Summary { key, content, .. } in view.summaries() {
            state.summaries.entry(key.clone()).or_insert_with(|| content.clone());
        }
    }
}

#[async_trait]
impl History for TestHistory {
    fn whole(&self) -> Option<MessageRange> {
        self.state().conversation.whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        let state = self.state();
        let headers = state.conversation.headers();
        headers[after.map_or(0, |id| headers.partition_point(|header| header.id <= id))..].to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        let conversation = &self.state().conversation;
        conversation.headers()[conversation.span(range)].to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        let conversation = &self.state().conversation;
        let span = conversation.span(range);
        let mut read = Vec::new();
        let mut taken = 0;
        for (message, header) in conversation.messages()[span.clone()].iter().zip(&conversation.headers()[span]) {
            let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            taken += message.content.len() + message.reasoning.as_ref().map_or(0, String::len) + arguments;
            if taken > bytes && !read.is_empty() {
                return (read, Some(message.id));
            }
            read.push((message.clone(), header.tokens));
        }
        (read, None)
    }

    async fn summary(&self, key: &str) -> Result<Option<String>, Fault> {
        Ok(self.state().summaries.get(key).cloned())
    }

    /// Scores a message by how many of the words it contains; equal scores are sorted newest first.
    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        let text = query.text.to_lowercase();
        let words: Vec<&str> = match query.matching {
            Matching::Phrase => vec![text.trim()],
            Matching::Any | Matching::All => text.split_whitespace().collect(),
        };
        let state = self.state();
        let mut hits: Vec<HistoryHit> = Vec::new();
        for message in state.conversation.messages().iter().rev() {
            let tool = message.tool_name.as_ref();
            let fits = (query.roles.is_empty() || query.roles.contains(&message.role))
                && (query.tools.is_empty() || tool.is_some_and(|tool| query.tools.contains(tool)))
                && query.within.is_none_or(|within| within.contains(message.id));
            let content = message.content.to_lowercase();
            let found = words.iter().filter(|word| !word.is_empty() && content.contains(**word)).count();
            let enough = if query.matching == Matching::All { words.len() } else { 1 };
            if fits && found >= enough.max(1) {
                let excerpt = message.content[..message.content.floor_char_boundary(EXCERPT)].to_owned();
                hits.push(HistoryHit { id: message.id, session: SESSION.to_owned(), excerpt, score: found as f64 });
            }
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        Ok(hits.into_iter().skip(query.offset).take(query.limit).collect())
    }
}

/// The id of the session that the plugin serves.
pub(crate) const SESSION: &str = "conformance";

/// A generated conversation that ends with a user message whose request is due; all calls are answered.
pub(crate) fn generated(seed: u64, turns: u32) -> Conversation {
    let scenario = Scenario::new(seed, turns);
    let mut drafts: Vec<Draft> = scenario.drafts().cloned().collect();
    // If the conversation ends with a reply, the user asks another question.
    let last = drafts.last().map_or(0, |draft| draft.created_at);
    drafts.push(Draft::user("And what is left to do?", last + 1_000));
    numbered(drafts)
}

/// The messages and requests of a seed, in order; `None` is a request.
pub(crate) fn script(seed: u64) -> Vec<Option<Draft>> {
    let scenario = Scenario::new(seed, Scenario::usual_turns(seed).max(3));
    let steps = scenario.events.into_iter().filter_map(|event| match event {
        Event::Said(draft) => Some(Some(draft)),
        Event::Request { .. } => Some(None),
        _ => None,
    });
    steps.collect()
}

/// One turn with a tool call, in words that tests can search for.
pub(crate) fn short() -> Conversation {
    let call = ToolCall {
        id: "call-1".to_owned(),
        name: "read_file".to_owned(),
        arguments: r#"{"path":"harbour.txt"}"#.to_owned(),
    };
    numbered(vec![
        Draft::user("The ferry is called Albatross and leaves at 07:45. My name is Ada.", START_MS),
        Draft::assistant("", vec![call.clone()], START_MS + 1_000),
        Draft::result(&call, "lanterns: 12\nwicks: 40\noil: none\n", START_MS + 2_000),
        Draft::assistant("There is no oil left for the twelve lanterns.", Vec::new(), START_MS + 3_000),
        Draft::user("Then order some before the ferry leaves. 🛢️", START_MS + 60_000),
        Draft::assistant(closing::INTERRUPTED_TURN, Vec::new(), START_MS + 61_000).by_host(),
        Draft::user("Go on.", START_MS + 70_000),
    ])
}

/// The fixed time of the clock, in Unix milliseconds: 2026-01-01, 00:00 UTC.
pub(crate) const START_MS: u64 = 1_767_225_600_000;

fn numbered(drafts: Vec<Draft>) -> Conversation {
    Conversation::new(drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Role, render, validity};

    use super::*;

    #[test]
    fn generated_conversations_are_valid() {
        for conversation in (0..30).map(|seed| generated(seed, 4)).chain([short()]) {
            assert_eq!(validity::check(&render::render(&conversation, &View::default())), Ok(()));
            assert_eq!(conversation.messages().last().unwrap().role, Role::User);
        }
    }

    #[tokio::test]
    async fn a_search_finds_words_by_role_best_first() {
        let history = TestHistory::of(short());
        let query = HistoryQuery {
            text: "Ferry ORDER".to_owned(),
            matching: Matching::Any,
            roles: Vec::new(),
            tools: Vec::new(),
            within: None,
            offset: 0,
            limit: 10,
        };
        let ids = async |query: &HistoryQuery| {
            history.search(query).await.unwrap().iter().map(|hit| hit.id.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(&query).await, [5, 1]);
        assert_eq!(ids(&HistoryQuery { matching: Matching::All, ..query.clone() }).await, [5]);
        assert_eq!(ids(&HistoryQuery { matching: Matching::Phrase, ..query.clone() }).await, [0_u64; 0]);
        assert_eq!(ids(&HistoryQuery { roles: vec![Role::Tool], ..query.clone() }).await, [0_u64; 0]);
        assert_eq!(ids(&HistoryQuery { offset: 1, ..query }).await, [1]);
    }
}
