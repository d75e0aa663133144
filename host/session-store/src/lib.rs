//! The interface between the agent and the store of its sessions.
//!
//! There are three ports: [`SessionLog`] has sessions with their append-only logs, views, prompts and leases, [`Ledger`] has requests,
//! the outbox of memory providers and delegated tasks, [`Catalogue`] has titles, lists, search, deletion, export and import.
//! `hermes-store` implements them with SQLite; the test kit contains a conformance suite for every adapter. How a store is opened
//! or repaired is the adapter's own.
//! `hermes-conversation` decides which views and plans are valid.

#![forbid(unsafe_code)]

mod delegation;
mod diagnosis;
mod error;
mod health;
mod lease;
mod outbox;
mod prompt;
mod prune;
mod recall;
mod request;
mod search;
mod session;
mod stats;
mod store;
pub mod title;
mod transfer;
mod usage;
mod view;

pub use delegation::Delegation;
pub use diagnosis::codes;
pub use error::{AdapterError, ImportProblem, SessionError, StoreError, TransferError};
pub use health::{Depth, Health};
pub use hermes_conversation::DelegationState;
pub use lease::Lease;
pub use outbox::{Delivery, FinishedTurn, QueueState, QueuedTurn};
pub use prompt::{Frozen, PromptNumber};
pub use prune::{Kept, PruneFilter, Pruning};
pub use recall::{Finding, Neighbour, Reading, RecallOrder, RecallQuery};
pub use request::{AuxiliaryRecord, Passed, RequestRecord};
pub use search::{Fragment, Hit, Matching, Passage, PassageQuery, SearchQuery, Sort, Words};
pub use session::{Deletion, EngineFaults, NewSession, Parent, ParentKind, Session, SessionSummary, Totals};
pub use stats::{Messages, Sizes, Stats};
pub use store::{Catalogue, Ledger, MOST_IN_A_MESSAGE, SessionLog, SessionStore};
pub use transfer::{Exported, ImportFile, Imported, Layout, OfFile, Trust};
pub use usage::UsageRow;
pub use view::{StoredView, ViewRecord};
