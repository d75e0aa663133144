//! What fills the window of a session. It can be read from the store while another process runs the session.

use std::collections::HashMap;

use hermes_conversation::picture::{self, Made, Picture};
use hermes_conversation::{Conversation, Model, SessionId, View, tokens};
use hermes_models::WindowSource;
use hermes_session_store::{EngineFaults, Session, SessionStore, StoreError};

use crate::compaction::{self, Ruler, STRIKES};
use crate::opening;

/// The content of a session's window, and the views that led to it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The model that answers.
    pub model: Model,
    /// The context engine.
    pub engine: String,
    /// The parts of the next request, with the host's estimates.
    pub picture: Picture,
    /// The token ratio of the model's provider.
    pub ruler: Ruler,
    /// Tokens kept free for the reply.
    pub reserve: u32,
    /// Tokens above which older messages are folded before a turn begins, even without a plan of the engine.
    pub heavy: u32,
    /// The texts of the summaries in force, by their keys.
    pub summaries: HashMap<String, String>,
    /// Every view so far, oldest first.
    pub views: Vec<Step>,
    /// Engines whose last calls in this session failed.
    pub faults: Vec<Faults>,
    /// The state that only the running process knows.
    pub live: Option<Working>,
}

/// A view that was adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of the view, counted from 1.
    pub number: usize,
    /// Unix time in milliseconds.
    pub at: u64,
    /// The author: an engine, or `host`.
    pub by: String,
    /// The reason, one line.
    pub reason: String,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}

/// The failures of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// Its name and version.
    pub engine: String,
    /// Failures in a row.
    pub in_a_row: u32,
    /// The cause of the last failure.
    pub cause: String,
}

impl Faults {
    /// Whether the host no longer calls the engine.
    pub fn is_open(&self) -> bool {
        self.in_a_row >= STRIKES
    }
}

/// The state of the running process.
#[derive(Debug, Clone, PartialEq)]
pub struct Working {
    /// Whether compaction is enabled.
    pub enabled: bool,
    /// Whether the engine prepares summaries in the background.
    pub preparing: bool,
    /// The engine's status: a JSON object, or the text of an error.
    pub status: serde_json::Value,
    /// Where the size of the window comes from.
    pub window_source: WindowSource,
}

impl Context {
    /// Reads everything but the state of the running process.
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
            .map_or((0, 0), |frozen| (opening::tool_tokens(&frozen.tools), tokens::of_text(&frozen.system_prompt)));
        let faults = store.engine_faults(&session.id).await?;
        let view = store.view_in_force(&session.id).await?.view;
        let ruler = compaction::load_ruler(store, &session.model).await;
        let window = session.model.context_length;
        Ok(Self {
            picture: Picture::of(&conversation, &view, fixed, &made),
            summaries: view.summaries().map(|summary| (summary.key.clone(), summary.content.clone())).collect(),
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

    /// Measures by the window and the counts of the model that answers now.
    pub(crate) fn measure_by(&mut self, model: Model, ruler: Ruler) {
        self.reserve = compaction::reserve(model.context_length);
        self.heavy = compaction::heavy(model.context_length);
        (self.model, self.ruler) = (model, ruler);
    }

    /// The estimated tokens of the next request.
    pub fn estimate(&self) -> u32 {
        self.picture.sums.tokens()
    }

    /// The tokens of the next request in the provider's counts.
    pub fn counted(&self) -> u32 {
        self.ruler.counted(self.estimate())
    }
}
