//! `hermes plugins remove`: the plugin, what config.yaml says of it and, when you say so, what it kept.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::Args;
use hermes_install::Rewrite;
use hermes_plugin_host::Digest;

use super::consent::ask;
use crate::console::Console;
use crate::failure::Failure;
use crate::launch::{self, Setup};
use hermes_config::Edit;

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
    let installer = setup.installer();
    installer.recover(&|_| ())?;
    let name = &arguments.name;
    installer.entry(name)?;
    let data = setup.home.path().join("data").join(name);
    let purge = match installer.has_data(name) {
        false => false,
        true if arguments.purge => true,
        true if arguments.keep_data || arguments.yes || !io::stdin().is_terminal() => false,
        true => {
            let question = format!("it has kept data in {}; remove that for good too?", data.display());
            ask(&question, "nothing was changed", "add --keep-data or --purge")?
        }
    };
    let edit = without(name, &setup)?;
    let (file, before, after) = edit.parts();
    let rewrite = edit.is_changed().then(|| Rewrite {
        file: file.to_owned(),
        before: Digest::of(before.as_bytes()),
        after: after.to_owned(),
    });
    let configured = rewrite.is_some();
    installer.remove(name, rewrite, purge, &|_| ())?;
    let config = if configured { ", and config.yaml does not speak of it any more" } else { "" };
    console.note(&format!("`{name}` is removed{config}"));
    if installer.has_data(name) {
        console.note(&format!("its data stays in {}", data.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration without the plugin.
fn without(name: &str, setup: &Setup) -> Result<Edit, Failure> {
    let mut edit = Edit::of(&setup.home.config())?;
    let settings = setup.config.settings();
    for section in ["plugins.entries", "plugins.settings"] {
        edit.remove(&format!("{section}.{name}"))?;
    }
    for (list, items) in
        [("plugins.enabled", &settings.plugins.enabled), ("plugins.disabled", &settings.plugins.disabled)]
    {
        if items.iter().any(|item| item == name) {
            edit.take(list, name)?;
        }
    }
    let engine = Some(settings.context.engine.as_str());
    for (key, value) in [("context.engine", engine), ("memory.provider", settings.memory.provider.as_deref())] {
        if value == Some(name) {
            edit.remove(key)?;
        }
    }
    Ok(edit)
}
