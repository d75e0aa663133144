//! The interface between the agent and the store of its sessions.
//!
//! There are three ports: [`SessionLog`] has sessions with their append-only logs, views, prompts and leases, [`Ledger`] has requests,
//! the outbox of memory providers and delegated tasks, [`Catalogue`] has titles, lists, search and deletion. `hermes-store`
//! implements them with SQLite; the test kit contains a conformance suite for every adapter. Operations on the database file
//! (check, repair, export, import, prune) belong to `hermes-store`.
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
pub use store::{Catalogue, Ledger, MOST_IN_A_MESSAGE, SessionLog, SessionStore};
pub use view::{StoredView, ViewRecord};
