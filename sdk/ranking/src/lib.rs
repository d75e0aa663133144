//! Ranks messages of conversations, and short records such as tools, for a question, by rule: without a model, without embeddings, without input or output.
//! The same question, statistics and candidates always give the same order.
//!
//! 1. [`Question::parse`] finds the words that carry meaning.
//! 2. The caller counts how many messages contain each [`Term`], and gives the counts to [`Question::weigh`].
//! 3. The caller looks for messages with [`Question::expression`] in an index of words, such as SQLite's FTS5 with Porter
//!    stems. The expression leaves out words so common that they would only cost time. In a large index it takes less time to look
//!    the newest messages of each term up, without ranking them, and to choose the best of all with [`Question::choose`].
//! 4. [`Question::rank`] puts these [`Candidate`]s and the messages beside them in order.

mod index;
mod question;
mod rank;
mod records;
mod stem;
mod words;

pub use self::index::{indexed, matches};
pub use self::question::{Question, Term};
pub use self::rank::{CANDIDATES, Candidate, NEAR, Near, READ, Ranked};
pub use self::records::Records;
