//! What the programs of Hermes have in common on a command line: how they print texts, tables, progress and failures, how they read
//! their arguments, and the internal commands with which they run as children of themselves.
//!
//! Text from others passes the cleaner in [`text`] before it is printed. This crate has no command for a user.

#![forbid(unsafe_code)]

pub mod children;
pub mod console;
pub mod failure;
pub mod logging;
pub mod output;
pub mod progress;
pub mod table;
pub mod text;
pub mod usage;
pub mod wording;
