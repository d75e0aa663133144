//! `hermes plugins grant` and `revoke`: the permissions of an installed plugin.

use std::process::ExitCode;

use clap::Args;
use hermes_app::ModelChoice;
use hermes_app::operations::{self, GrantReport, GrantRequest, PermissionsRequest, RevokeReport};

use super::consent::{Consent, Terminal};
use super::{handover, install};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::progress;

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
    let reporter = progress::Terminal::new(console);
    crate::wait(async {
        let report = operations::grant(&request, &setup, &consent, &reporter).await?;
        Ok(show(name, &report, console))
    })
}

fn show(name: &str, report: &GrantReport, console: Console) -> ExitCode {
    match report {
        GrantReport::Declined => {
            console.note("nothing was granted");
            Kind::General.into()
        }
        GrantReport::Granted { version, handover, complaint } => {
            console.note(&format!("granted: `{name}` {version} can run now"));
            handover::show(name, handover, console);
            install::warn_of_complaint(name, complaint.as_deref(), console);
            ExitCode::SUCCESS
        }
    }
}

pub(super) fn revoke(name: &str, permissions: &[String], console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let report = operations::revoke(name, permissions, &setup)?;
    let may_run = report != RevokeReport::MayNotRun;
    let note = match report {
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
    let selection = setup.selection(&ModelChoice::default());
    let role = match name {
        engine if engine == selection.engine => Some("context engine"),
        memory if selection.memory.as_deref() == Some(memory) => Some("memory provider"),
        _ => None,
    };
    // The selection itself gives these.
    let keeps = role.map_or_else(String::new, |role| {
        format!("; as long as it is the {role}, it also reads the conversation and asks models")
    });
    console.note(&format!("{note}{}", if may_run { keeps.as_str() } else { "" }));
    Ok(ExitCode::SUCCESS)
}
