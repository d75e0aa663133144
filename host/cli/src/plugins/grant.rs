//! `hermes plugins grant` and `revoke`: the permissions of an installed plugin.

use std::process::ExitCode;

use clap::Args;
use hermes_app::operations::{self, GrantReport, GrantRequest, PermissionsRequest, RevokeReport};

use super::consent::{Consent, Terminal};
use super::handover;
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
    permissions: Vec<String>,
    /// Allow it to run without any permission
    #[arg(long, conflicts_with = "permissions")]
    none: bool,
    /// Allow its native library, which runs outside the sandbox and can do everything that you can
    #[arg(long)]
    native: bool,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Apply lines of config.yaml that give this name rights, and were perhaps written for another plugin
    #[arg(long)]
    keep_config: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(arguments: &GrantArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let GrantArguments { name, permissions, none, native, allow_draft, keep_config, yes } = arguments;
    let wanted = match permissions.as_slice() {
        _ if *none => PermissionsRequest::None,
        [] => PermissionsRequest::All,
        named => PermissionsRequest::Named(named.to_vec()),
    };
    let request = GrantRequest { name: name.clone(), permissions: wanted, native: *native };
    let consent = Terminal {
        allow_draft: *allow_draft,
        keep_config: *keep_config,
        ..Terminal::new(console, Consent { yes: *yes, grant: None })
    };
    match operations::grant(&request, &setup, &consent)? {
        GrantReport::Declined => {
            console.note("nothing was granted");
            Ok(Kind::General.into())
        }
        GrantReport::Granted { version, handover } => {
            console.note(&format!("granted: `{name}` {version} can run now"));
            handover::show(name, &handover, console);
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub(super) fn revoke(name: &str, permissions: &[String], console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let note = match operations::revoke(name, permissions, &setup)? {
        RevokeReport::NotNative => {
            format!("revoked: `{name}` no longer runs as a native library; its other permissions are unchanged")
        }
        RevokeReport::MayNotRun => format!("revoked: `{name}` cannot run until you grant it again"),
        RevokeReport::Left(left) if left.is_empty() => {
            format!("revoked: new sessions run `{name}` without permissions")
        }
        RevokeReport::Left(left) => {
            format!("revoked: in new sessions, `{name}` can only {}", left.lines().join(", "))
        }
    };
    console.note(&note);
    Ok(ExitCode::SUCCESS)
}
