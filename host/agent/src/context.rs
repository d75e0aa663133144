//! What fills the window of a session, as it is stored: for whoever shows it, also while another process holds the session.

use std::collections::HashMap;

use hermes_conversation::picture::{self, Made, Picture};
use hermes_conversation::{Conversation, Model, SessionId, View, tokens};
use hermes_session_store::{EngineFaults, Session, SessionStore, StoreError};

use crate::compaction::{self, Ruler, STRIKES};

/// A session's window, and how it came to look like that.
#[derive(Debug, Clone)]
pub struct Context {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The model that answers; its window is what fills.
    pub model: Model,
    /// The context engine that works on it.
    pub engine: String,
    /// What the next request would be made of, by the host's estimate.
    pub picture: Picture,
    /// How the model's provider counts.
    pub ruler: Ruler,
    /// Tokens kept free for the reply.
    pub reserve: u32,
    /// Tokens above which a turn does not begin: older messages are folded first, whatever the engine thinks.
    pub heavy: u32,
    /// Every view so far, oldest first.
    pub views: Vec<Step>,
    /// Engines that failed in this session, without a success since.
    pub faults: Vec<Faults>,
    /// What only the process at work can tell.
    pub live: Option<Working>,
}

/// A view that was adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Counted from 1 in the conversation.
    pub number: usize,
    /// Unix time in milliseconds.
    pub at: u64,
    /// Who made it: an engine, or `host`.
    pub by: String,
    /// Why, in a line.
    pub reason: String,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}

/// How an engine failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// Its name and version.
    pub engine: String,
    /// How often in a row.
    pub in_a_row: u32,
    /// Why it did last.
    pub cause: String,
}

impl Faults {
    /// Whether it is not asked any more.
    pub fn is_open(&self) -> bool {
        self.in_a_row >= STRIKES
    }
}

/// What the process at work knows beside what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Working {
    /// Whether the engine is asked at all.
    pub enabled: bool,
    /// Whether it is at slow work in the background.
    pub preparing: bool,
    /// The engine's own words: a JSON object, or a text that says why there is none.
    pub status: serde_json::Value,
}

impl Context {
    /// From the store alone.
    pub async fn read(store: &dyn SessionStore, session: &Session) -> Result<Self, StoreError> {
        let conversation = Conversation::new(store.conversation(&session.id).await?);
        let records = store.views(&session.id).await?;
        let mut made: HashMap<String, Made> = HashMap::new();
        for record in &records {
            for summary in record.view.summaries() {
                let of_record = || Made { by: record.engine.clone(), at: record.created_at };
                made.entry(summary.key.clone()).or_insert_with(of_record);
            }
        }
        let views: Vec<View> = records.iter().map(|record| record.view.clone()).collect();
        let steps = picture::steps(&conversation, &views);
        let fixed = session
            .frozen
            .as_ref()
            .map_or((0, 0), |frozen| (tokens::of_text(&frozen.tools), tokens::of_text(&frozen.system_prompt)));
        let faults = store.engine_faults(&session.id).await?;
        let view = store.view_in_force(&session.id).await?.view;
        let ruler = compaction::noted_ruler(store, &session.model).await;
        let window = session.model.context_length;
        Ok(Self {
            picture: Picture::of(&conversation, &view, fixed, &made),
            ruler,
            reserve: compaction::reserve(window),
            heavy: compaction::heavy(window),
            views: records
                .into_iter()
                .zip(steps)
                .zip(1..)
                .map(|((record, (before, after)), number)| Step {
                    number,
                    at: record.created_at,
                    by: record.engine,
                    reason: record.reason,
                    before,
                    after,
                })
                .collect(),
            faults: faults
                .into_iter()
                .map(|EngineFaults { engine, in_a_row, cause }| Faults { engine, in_a_row, cause })
                .collect(),
            live: None,
            session: session.id.clone(),
            title: session.title.clone(),
            model: session.model.clone(),
            engine: session.engine.clone(),
        })
    }

    /// Tokens of the next request by the host's estimate.
    pub fn estimate(&self) -> u32 {
        self.picture.sums.tokens()
    }

    /// Tokens of the next request as the provider would count them.
    pub fn counted(&self) -> u32 {
        self.ruler.counted(self.estimate())
    }
}
