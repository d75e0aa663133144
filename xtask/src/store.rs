//! `bench store`: what it costs to append and to search, beside what it costs a peer.

use anyhow::Result;

use crate::cargo::{Repository, must};

/// Builds the store alone, optimised, and measures it: the benchmark itself reads the options and prints the tables.
pub(crate) fn run(repository: &Repository, options: &[&str]) -> Result<()> {
    let mut command = repository.cargo();
    command.args(["bench", "--package", "hermes-store", "--bench", "store", "--"]).args(options);
    must(command)
}
