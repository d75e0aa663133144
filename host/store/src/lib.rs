//! `state.db`: the sessions, the append-only log of their messages, and the views that models were shown.
//!
//! One SQLite file in the home folder, opened by any number of processes at once. The content of a message is written
//! once and never changed: the schema itself refuses an update. `hermes-conversation` decides whether a view or plan is
//! valid. The store knows nothing about the requests that a session sends to a model.
//!
//! ```
//! use hermes_conversation::{Draft, Model};
//! use hermes_store::{NewSession, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let store = Store::open(home)?;
//! let session = store.create_session(NewSession {
//!     source: "cli".into(),
//!     workspace: "/home/ada/engine".into(),
//!     engine: "compressor".into(),
//!     model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
//!     title: None,
//!     frozen: None,
//!     started_at: 1_795_300_000_000,
//!     parent: None,
//! })?;
//! let _lease = store.lease(&session.id)?;
//! store.append(&session.id, &[Draft::user("hello", 1_795_300_000_500)])?;
//! assert_eq!(store.conversation(&session.id)?[0].content, "hello");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod blobs;
mod catalog;
mod connection;
mod database;
mod delegation;
mod deletion;
mod diagnosis;
mod error;
mod faults;
mod frozen;
mod header;
mod health;
mod known;
mod lease;
mod lineage;
mod log;
mod maintenance;
mod meta;
mod migration;
mod older;
mod outbox;
mod port;
mod prompts;
mod prune;
mod queue;
mod repair;
mod requests;
mod rewind;
mod search;
mod session;
mod stats;
#[cfg(test)]
mod testing;
mod title;
mod transfer;
mod usage;
mod view;

pub use blobs::MAX_STORE_BYTES;
pub use database::Store;
pub use diagnosis::codes;
pub use error::StoreError;
pub use header::APPLICATION_ID;
pub use hermes_session_store::StoreError as PortError;
pub use hermes_session_store::codes as session_codes;
pub use hermes_session_store::{
    AuxiliaryRecord, Catalogue, Delegation, DelegationState, Deletion, Delivery, Depth, EngineFaults, Exported,
    FinishedTurn, Fragment, Frozen, Health, Hit, ImportProblem, Imported, Kept, Layout, Ledger, MOST_IN_A_MESSAGE,
    Matching, Messages, Neighbour, NewSession, OfFile, Parent, ParentKind, Passage, Passed, PromptNumber, PruneFilter,
    Pruning, QueueState, QueuedTurn, RequestRecord, SearchQuery, Session, SessionError, SessionLog, SessionStore,
    SessionSummary, Sizes, Sort, Stats, StoredView, Totals, TransferError, Trust, UsageRow, ViewRecord,
};
pub use lease::Lease;
pub use migration::SCHEMA_VERSION;
pub use port::SqliteSessions;
pub use repair::{Outcome, Repair, repair};
