//! The port between the agent and whatever stores its sessions.
//!
//! [`SessionStore`] is an async trait with what the agent needs: sessions, their append-only logs, views, frozen prompts and
//! the ledger of requests. `hermes-store` implements it over SQLite; the test kit implements it in memory and holds a
//! conformance suite that both pass. What concerns the database file alone (check, repair, export, import, prune) is not
//! here: it belongs to `hermes-store`. Which views and plans are valid is decided in `hermes-conversation`.

#![forbid(unsafe_code)]

mod diagnosis;
mod error;
mod lease;
mod prompt;
mod request;
mod search;
mod session;
mod store;
pub mod title;
mod view;

pub use diagnosis::codes;
pub use error::{AdapterError, SessionError, StoreError};
pub use lease::Lease;
pub use prompt::{Frozen, PromptNumber};
pub use request::RequestRecord;
pub use search::{Passage, PassageQuery, Words};
pub use session::{Deletion, EngineFaults, NewSession, Parent, ParentKind, Session, Totals};
pub use store::{MOST_IN_A_MESSAGE, SessionStore};
pub use view::{StoredView, ViewRecord};
