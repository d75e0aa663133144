//! A conversation in memory that plugins can read.

use std::sync::Arc;

use hermes_conversation::{Conversation, Draft, MessageId, ToolCall, closing};
use hermes_engine_trials::generate::{Event, Scenario};
use hermes_testkit::{MemoryHistory, WordSearch};

/// A conversation that plugins read and search by words.
pub(crate) type TestHistory = MemoryHistory<WordSearch>;

pub(crate) fn history(conversation: Conversation) -> Arc<TestHistory> {
    Arc::new(MemoryHistory::new(conversation, WordSearch { session: SESSION.to_owned() }))
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
    use hermes_conversation::{Role, View, render, validity};

    use super::*;

    #[test]
    fn generated_conversations_are_valid() {
        for conversation in (0..30).map(|seed| generated(seed, 4)).chain([short()]) {
            assert_eq!(validity::check(&render::render(&conversation, &View::default())), Ok(()));
            assert_eq!(conversation.messages().last().unwrap().role, Role::User);
        }
    }
}
