//! `hermes plugins grant` and `revoke`: what a plugin that is there may do.

use std::process::ExitCode;

use clap::Args;
use hermes_install::only;
use hermes_plugin_host::{LimitSet, Permissions};

use super::consent::{ask, show, show_rights};
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
    let installer = setup.installer();
    let name = &arguments.name;
    let granting = installer.granting(name, arguments.native, &setup.catalog())?;
    let manifest = &granting.manifest;
    // What was granted to other bytes was granted to something else.
    let kept = granting.before.as_ref().filter(|before| before.pin.digest == granting.pin.digest);
    let before = kept.and_then(|before| before.pin.granted.clone()).unwrap_or_default();
    let (granted, limits) = if arguments.none {
        (Permissions::default(), LimitSet::default())
    } else if arguments.rights.is_empty() {
        (manifest.permissions.clone(), manifest.limits.clone())
    } else {
        let limits = kept.map(|before| before.pin.limits.clone()).unwrap_or_default();
        (before.and(&only(&manifest.permissions, &arguments.rights, name)?), limits)
    };
    show(manifest, &granting.pin, console);
    show_rights(&granted, &limits, false, console);
    if !arguments.yes && !ask("let it do this?", "nothing was granted", "add --yes to grant what is shown")? {
        console.note("nothing was granted");
        return Ok(Kind::General.into());
    }
    installer.grant(&granting, granted, limits)?;
    console.note(&format!("`{name}` {} may run", granting.pin.version));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn revoke(name: &str, rights: &[String], console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let left = setup.installer().revoke(name, rights)?;
    if rights.iter().all(|right| right == "native") && left.is_some() {
        console.note(&format!("`{name}` does not run as a native library any more; its other rights are as they were"));
        return Ok(ExitCode::SUCCESS);
    }
    match left {
        None => console.note(&format!("`{name}` may not run until it is granted again")),
        Some(left) if left.is_empty() => {
            console.note(&format!("`{name}` runs without any right from its next session on"))
        }
        Some(left) => {
            console.note(&format!("from its next session on `{name}` may {}", left.lines().join(", ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}
