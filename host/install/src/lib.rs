//! Fetches plugins, checks them, and puts them in their place in one step.
//!
//! A command is a plan first: [`Installer::prepare`] brings a plugin to a stage beside the others, where it can be looked
//! at, rehearsed and dropped. [`Installer::commit`] changes everything at once, by a note that is finished by whoever
//! finds it after a crash. What people are asked and told is not here.

#![forbid(unsafe_code)]

pub mod archive;
mod diagnosis;
mod error;
mod fetch;
mod grants;
mod installer;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod invariants;
mod project;
mod signature;
mod source;
mod stage;
mod transaction;

pub use diagnosis::codes;
pub use error::InstallError;
pub use fetch::{Progress, Silent};
pub use grants::{Finding, Granting, State, only};
pub use installer::{Installer, Prepared, Wanted};
pub use project::find_component;
pub use source::{Image, Repository, Source};
pub use transaction::{Rewrite, Steps};
