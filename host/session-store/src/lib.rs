//! The interface between the agent and the store of its sessions.
//!
//! [`SessionStore`] is an async trait for sessions, their append-only logs, views, frozen prompts, the ledger of
//! requests and the outbox of memory providers. `hermes-store` implements it with SQLite; the test kit implements it in memory and contains a conformance suite
//! that both pass. Operations on the database file (check, repair, export, import, prune) belong to `hermes-store`.
//! `hermes-conversation` decides which views and plans are valid.

#![forbid(unsafe_code)]

mod delegation;
mod diagnosis;
mod error;
mod lease;
mod outbox;
mod prompt;
mod recall;
mod request;
mod search;
mod session;
mod store;
pub mod title;
mod view;

pub use delegation::Delegation;
pub use diagnosis::codes;
pub use error::{AdapterError, SessionError, StoreError};
pub use hermes_conversation::DelegationState;
pub use lease::Lease;
pub use outbox::{Delivery, QueueState, QueuedTurn};
pub use prompt::{Frozen, PromptNumber};
pub use recall::{Finding, Neighbour, Reading, RecallOrder, RecallQuery};
pub use request::{AuxiliaryRecord, Passed, RequestRecord};
pub use search::{Passage, PassageQuery, Words};
pub use session::{Deletion, EngineFaults, NewSession, Parent, ParentKind, Session, SessionSummary, Totals};
pub use store::{MOST_IN_A_MESSAGE, SessionStore};
pub use view::{StoredView, ViewRecord};
