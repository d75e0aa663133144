//! Fetches plugins and skills, checks them, and installs them in one step.
//!
//! Each command is prepared first: [`Installer::prepare`] puts a plugin on a stage beside the others, where it can be
//! inspected, rehearsed and dropped. [`Installer::commit`] makes all changes in one step: it writes a journal, and after a
//! crash the next process finishes the journal. Questions and messages for people are not here.

#![forbid(unsafe_code)]

pub mod archive;
mod data;
mod diagnosis;
mod error;
mod fetch;
mod grants;
mod installer;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod invariants;
mod ownership;
mod pack;
mod project;
mod sign;
mod signature;
pub mod skills;
mod source;
mod stage;
mod statement;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
mod transaction;

pub use data::{DataAside, DataHandover};
pub use diagnosis::codes;
pub use error::{InstallError, Reason};
pub use fetch::{Login, Progress, Push, Silent, Tagged};
pub use grants::{Finding, Granting, State, only};
pub use installer::{Candidate, Installer, Prepared, Wanted, refuse_foreign};
pub use pack::{Package, pack, skill_files};
pub use sign::{Signed, SigningKey, sign};

pub use source::{Image, Repository, Source};
pub use stage::Steps;
pub use transaction::Rewrite;
