//! `hermes plugins remove`: removes a plugin, its entries in config.yaml and, on request, its data.

use std::process::ExitCode;

use clap::Args;
use hermes_app::operations;

use super::consent::{Consent, Terminal};
use super::handover;
use crate::console::Console;
use crate::failure::Failure;
use crate::launch;

/// The plugin to remove.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct RemoveArguments {
    /// The plugin's name
    name: String,
    /// Do not ask for confirmation, and keep its data unless --purge is given
    #[arg(short, long)]
    yes: bool,
    /// Keep its data
    #[arg(long, conflicts_with = "purge")]
    keep_data: bool,
    /// Delete its data for good
    #[arg(long)]
    purge: bool,
}

pub(super) fn run(arguments: &RemoveArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let RemoveArguments { name, yes, keep_data, purge } = arguments;
    let purge = match (purge, keep_data) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let consent = Terminal { purge, ..Terminal::new(console, Consent { yes: *yes, grant: None }) };
    let report = operations::remove(name, &setup, &consent)?;
    match (report.was_installed, report.data.is_some() || !report.aside.is_empty()) {
        (true, _) => console.note(&format!("removed `{name}`")),
        (false, false) => console.note(&format!("deleted the data that `{name}` left")),
        (false, true) => console.note(&format!("`{name}` is not installed")),
    }
    handover::show_rest(name, &report, console);
    Ok(ExitCode::SUCCESS)
}
