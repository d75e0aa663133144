//! What both modes can do.

use hermes_plugin::{Error, Progress, Timestamp};

use crate::config::Level;

/// Whose knowledge about whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) observer: String,
    pub(crate) observed: String,
}

impl Pair {
    /// The observed peer, unless it is the observer itself.
    pub(crate) fn target(&self) -> Option<&str> {
        (self.observer != self.observed).then_some(self.observed.as_str())
    }
}

/// A finished turn, ready to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The session on the server.
    pub(crate) session: String,
    pub(crate) user: String,
    pub(crate) ai: String,
    /// The host's name of the conversation and its first message: together they name the turn.
    pub(crate) conversation: String,
    pub(crate) first: u64,
    pub(crate) ended_at: Timestamp,
    /// Peers and texts in order, none too long.
    pub(crate) messages: Vec<(String, String)>,
}

impl Said {
    pub(crate) fn key(&self) -> String {
        format!("{}:{}", self.conversation, self.first)
    }
}

/// What is known about a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) card: Vec<String>,
    /// One fact per line.
    pub(crate) facts: Vec<String>,
    pub(crate) summary: String,
    pub(crate) recent: Vec<Excerpt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) peer: String,
    pub(crate) session: String,
    pub(crate) at: String,
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conclusion {
    pub(crate) id: String,
    pub(crate) content: String,
    pub(crate) at: String,
}

pub(crate) trait Store {
    /// Stores a turn. A turn that is stored already, or in part, is completed.
    fn store(&mut self, said: &Said) -> Result<(), Error>;

    /// The user took back this message of the conversation and all later ones.
    fn rewound(&mut self, session: &str, conversation: &str, first: u64) -> Result<(), Error>;

    /// What is known about a peer that fits a text, in at most about so many tokens.
    fn known(&mut self, pair: &Pair, session: &str, text: &str, tokens: u32) -> Result<Known, Error>;

    fn card(&mut self, pair: &Pair) -> Result<Vec<String>, Error>;

    fn set_card(&mut self, pair: &Pair, card: &[String]) -> Result<(), Error>;

    /// What was said in conversations of a peer, best first.
    fn search(&mut self, peer: &str, query: &str, limit: u32) -> Result<Vec<Excerpt>, Error>;

    /// An answer about a peer, written by a model; none if it has nothing to say.
    fn ask(
        &mut self,
        pair: &Pair,
        session: &str,
        question: &str,
        level: Level,
        timeout_ms: u32,
    ) -> Result<Option<String>, Error>;

    /// Keeps a conclusion. Returns its id.
    fn conclude(&mut self, pair: &Pair, session: &str, content: &str) -> Result<String, Error>;

    /// The newest conclusions, or those that fit a query.
    fn conclusions(&mut self, pair: &Pair, query: Option<&str>, limit: u32) -> Result<Vec<Conclusion>, Error>;

    fn forget(&mut self, id: &str) -> Result<(), Error>;

    /// One step of work that is not urgent.
    fn upkeep(&mut self) -> Result<Progress, Error>;
}
