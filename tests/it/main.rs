//! What a user would notice, tested on the real binary with real plugins.
//!
//! `cargo xtask test` builds both and runs these. Every test has a home, a workspace and a model server of its own.

#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod approval;
mod arrows;
mod authors;
mod auxiliary;
mod branches;
mod breaker;
mod breakpoints;
mod causes;
mod code_cache;
mod compaction;
mod config;
mod consent;
mod context;
mod crash;
mod doctor;
mod ephemeral;
mod frozen;
mod http;
mod hygiene;
mod install;
mod journal;
mod lab;
mod layers;
mod ledger;
mod native;
mod planner;
mod plugins;
mod prefix;
mod random_kills;
mod rebuilds;
mod reload;
mod switching;
mod tables;
mod turns;
mod unrest;
mod workday;
mod zoo;
