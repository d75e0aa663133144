//! What a user would notice, tested on the real binary with real plugins.
//!
//! `cargo xtask test` builds both and runs these. Every test has a home, a workspace and a model server of its own.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod arrows;
mod attack;
mod cache;
mod chaos;
mod circles;
mod compaction;
mod errors;
mod everyday;
mod faults;
mod features;
mod fixtures;
mod install;
mod kinds;
mod memory;
mod moving;
mod pages;
mod plugins;
mod promises;
mod prompt;
mod screen;
mod security;
mod sessions;
