//! `hermes plugins adopt`: a plugin that moved to another source keeps its permissions, configuration and data.

use std::process::ExitCode;

use clap::Args;
use hermes_app::operations::{self, Adoption};

use super::consent::{Consent, Terminal};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::progress;

/// The plugin, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct AdoptArguments {
    /// The plugin's name
    name: String,
    /// Its new source [default: the present source, which gets data that an installation set aside]
    source: Option<String>,
    /// Allow unencrypted connections
    #[arg(long)]
    insecure: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(arguments: &AdoptArguments, console: Console) -> Result<ExitCode, Failure> {
    let AdoptArguments { name, source, insecure, yes } = arguments;
    let setup = launch::setup(console)?;
    let source = match source {
        Some(source) => Some(operations::source_of(source, &std::env::current_dir()?)?),
        None => None,
    };
    let consent = Terminal::new(console, Consent { yes: *yes, grant: None });
    let reporter = progress::Terminal::new(console);
    crate::wait(async {
        let Some(adoption) = operations::adopt(name, source, *insecure, &setup, &consent, &reporter).await? else {
            console.note("nothing was changed");
            return Ok(Kind::General.into());
        };
        show(&adoption, console);
        Ok(ExitCode::SUCCESS)
    })
}

fn show(adoption: &Adoption, console: Console) {
    let name = &adoption.name;
    console.note(&match (&adoption.data, adoption.is_installed) {
        (Some(_), _) => format!("`{name}` has this data from now on"),
        (None, true) => format!("`{name}` comes from {} now; `hermes plugins update {name}` fetches it", adoption.now),
        (None, false) => format!("the data of `{name}` belongs to {} now", adoption.now),
    });
}
