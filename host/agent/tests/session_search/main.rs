//! The tool `session_search` over a real store.

#![allow(clippy::unwrap_used)]

mod answers;
mod assistant;
mod attack;
mod fixture;
mod vectors;
