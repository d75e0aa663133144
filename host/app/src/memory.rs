//! The notes of the built-in memory, and what waits for the memory provider.
//!
//! The notes are documents that the plugin `builtin` and people edit too. The rules of their format are in `hermes-notes`.

mod changes;
mod notebook;
mod provider;
mod transfer;

pub use changes::{Addition, Plan, Written};
pub use hermes_agent::OpenBreaker;
pub use hermes_notes::{Change, Done, Notes, PendingWrite, Refusal, Target, thousands, usage};
pub use hermes_plugin_host::record::Suspension;
pub use notebook::{BUILT_IN, Entry, Notebook, NotebookError};
pub use provider::{Provider, Retried, providers, retry};
pub use transfer::{LeftOut, NotesFile, NotesFileError, read_notes, screened};
