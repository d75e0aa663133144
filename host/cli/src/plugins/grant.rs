//! `hermes plugins grant` and `revoke`: what an installed plugin may do.

use std::process::ExitCode;

use clap::Args;
use hermes_app::operations::{self, GrantReport, GrantRequest, RevokeReport, RightsRequest};

use super::consent::{Consent, Terminal};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch;

/// The permissions to grant.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct GrantArguments {
    /// The plugin's name
    name: String,
    /// Requested permissions to grant, such as http or process [default: all requested]
    #[arg(value_name = "PERMISSION")]
    rights: Vec<String>,
    /// Allow it to run without any permission
    #[arg(long, conflicts_with = "rights")]
    none: bool,
    /// Allow its native library, which runs outside the sandbox and can do everything that you can
    #[arg(long)]
    native: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(arguments: &GrantArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let GrantArguments { name, rights, none, native, yes } = arguments;
    let wanted = match rights.as_slice() {
        _ if *none => RightsRequest::None,
        [] => RightsRequest::All,
        rights => RightsRequest::Named(rights.to_vec()),
    };
    let request = GrantRequest { name: name.clone(), rights: wanted, native: *native };
    let consent = Terminal::new(console, Consent { yes: *yes, grant: None });
    match operations::grant(&request, &setup, &consent)? {
        GrantReport::Declined => {
            console.note("nothing was granted");
            Ok(Kind::General.into())
        }
        GrantReport::Granted { version } => {
            console.note(&format!("`{name}` {version} may run"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub(super) fn revoke(name: &str, rights: &[String], console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let told = match operations::revoke(name, rights, &setup)? {
        RevokeReport::NotNative => {
            format!("`{name}` does not run as a native library any more; its other rights are as they were")
        }
        RevokeReport::MayNotRun => format!("`{name}` may not run until it is granted again"),
        RevokeReport::Left(left) if left.is_empty() => {
            format!("`{name}` runs without any right from its next session on")
        }
        RevokeReport::Left(left) => format!("from its next session on `{name}` may {}", left.lines().join(", ")),
    };
    console.note(&told);
    Ok(ExitCode::SUCCESS)
}
