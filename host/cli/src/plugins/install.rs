//! `hermes plugins install`: installs plugins from a source or from `plugins.lock`.

use std::process::ExitCode;

use clap::Args;
use hermes_app::ModelChoice;
use hermes_app::operations::{self, InstallReport, InstallRequest, Wanted};
use hermes_app::plugins::Shown;

use super::consent::{self, Consent};
use super::handover;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::progress::Terminal;
use crate::text;

/// The plugin to install, and how.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct InstallArguments {
    /// A folder, a .wasm, a .tar.gz or .zip, an https address, owner/repo[@ref][#folder], a git address, oci://host/name:tag
    #[arg(required_unless_present = "locked")]
    source: Option<String>,
    /// Install every missing plugin of plugins.lock, exactly as pinned
    #[arg(long, conflicts_with_all = ["source", "name", "key", "accept_key", "replace", "grant"])]
    locked: bool,
    /// The name for a component without a plugin.yaml
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Allow unencrypted connections
    #[arg(long)]
    insecure: bool,
    /// Require a signature by this minisign key of the publisher
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Accept a publisher's key that differs from the one of the first installation
    #[arg(long)]
    accept_key: bool,
    /// Use the plugin's native library, which runs outside the sandbox and can do everything that you can
    #[arg(long)]
    native: bool,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Replace an installed plugin of this name from another source
    #[arg(long)]
    replace: bool,
    /// Apply lines of config.yaml that give this name rights, and were perhaps written for another plugin
    #[arg(long)]
    keep_config: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(super) fn run(arguments: &InstallArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    setup.own()?;
    operations::finish_interrupted(&setup)?;
    crate::wait(async {
        match &arguments.source {
            Some(source) => one(arguments, source, &setup, console).await,
            None => locked(arguments, &setup, console).await,
        }
    })
}

async fn one(arguments: &InstallArguments, text: &str, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let wanted = Wanted {
        source: operations::source_of(text, &std::env::current_dir()?)?,
        name: arguments.name.clone(),
        insecure: arguments.insecure,
        key: arguments.key.clone(),
    };
    let request = InstallRequest { wanted, replace: arguments.replace, native: arguments.native };
    let consent = consent::Terminal {
        accept_key: arguments.accept_key,
        allow_draft: arguments.allow_draft,
        keep_config: arguments.keep_config,
        ..consent::Terminal::new(console, arguments.consent)
    };
    let report = operations::install(&request, setup, &consent, &Terminal::new(console)).await?;
    Ok(show_report(&report, console))
}

/// Shows the result of an installation or an update.
pub(super) fn show_report(report: &InstallReport, console: Console) -> ExitCode {
    match report {
        InstallReport::Unchanged { name, version } => {
            console.note(&format!("`{name}` {version} is already installed and up to date"));
        }
        InstallReport::Declined => {
            console.note("nothing was changed");
            return Kind::General.into();
        }
        InstallReport::Installed { name, version, is_update, shown, handover } => {
            let (done, to) = if *is_update { ("updated", " to") } else { ("installed", "") };
            console.note(&format!("{done} `{name}`{to} {version}: {}", contents(shown)));
            handover::show(name, handover, console);
            warn_of_complaint(name, shown.complaint.as_deref(), console);
            if !is_update && !is_selected(name) {
                console.note(&how_to_enable(name, shown));
            }
        }
    }
    ExitCode::SUCCESS
}

/// Warns of a plugin that works, but not with its present configuration.
pub(super) fn warn_of_complaint(name: &str, complaint: Option<&str>, console: Console) {
    if let Some(complaint) = complaint {
        console.warning(&format!(
            "`{name}` does not start with its current configuration: {}; set plugins.entries.{name} in config.yaml",
            text::exact_within(complaint, 1_000)
        ));
    }
}

/// The kinds, tools, skills and events of a plugin.
fn contents(shown: &Shown) -> String {
    let mut parts = vec![format!("exports {}", shown.exports.join(", "))];
    let named = |what: &str, names: &[String]| {
        let most = 8;
        let more = names.len().saturating_sub(most);
        let shown = names.iter().take(most).map(|name| text::exact(name)).collect::<Vec<_>>().join(", ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{what} {shown}{rest}"))
    };
    let tools: Vec<String> = shown.tools.iter().map(|tool| tool.schema.name.clone()).collect();
    parts.extend(named("tools:", &tools));
    parts.extend(named("skills:", &shown.skills));
    parts.extend(named("events:", &shown.events));
    parts.join("; ")
}

/// Whether the configuration, which may have changed just now, names the plugin.
fn is_selected(name: &str) -> bool {
    let selection = launch::read().map(|setup| setup.selection(&ModelChoice::default()));
    selection.is_ok_and(|selection| selection.names().any(|selected| selected == name))
}

fn how_to_enable(name: &str, shown: &Shown) -> String {
    if shown.exports == ["embedder"] {
        return format!("`{name}` is disabled; select it with `auxiliary.embeddings.plugin: {name}` in config.yaml");
    }
    let key = match &shown.exports {
        exports if exports.contains(&"context-engine") => format!("context.engine: {name}"),
        exports if exports.contains(&"memory-provider") => format!("memory.provider: {name}"),
        _ => format!("plugins.enabled: [{name}]"),
    };
    format!("`{name}` is disabled; enable it with `hermes plugins enable {name}`, or with `{key}` in config.yaml")
}

/// Installs the plugins of `plugins.lock` that are missing or changed.
async fn locked(arguments: &InstallArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let pinned = operations::pinned_plugins(setup)?;
    let (allow_draft, keep_config) = (arguments.allow_draft, arguments.keep_config);
    let consent = consent::Terminal { allow_draft, keep_config, ..consent::Terminal::new(console, arguments.consent) };
    let flags = (arguments.insecure, arguments.native);
    let mut failed = 0;
    for (name, entry) in &pinned.wanted {
        let reporter = Terminal::new(console);
        let installed = operations::install_pinned((name, entry), flags, setup, &consent, &reporter).await;
        drop(reporter);
        match installed {
            Ok(Some(handover)) => {
                console.note(&format!("installed `{name}` {}", entry.pin.version));
                handover::show(name, &handover, console);
            }
            Ok(None) => {
                failed += 1;
                let fix = "add --yes to grant the permissions in plugins.lock";
                let what = format!("`{name}` was not installed");
                console.report(&Failure::new(Kind::General, what, "you declined it", fix));
            }
            Err(failure) => {
                failed += 1;
                console.report(&failure);
            }
        }
    }
    if failed > 0 {
        let why = format!("{} of plugins.lock could not be installed as pinned", text::counted(failed, "plugin"));
        let fix = "see the errors above; `hermes plugins verify` lists all plugins";
        return Err(Failure::new(Kind::Plugin, "not every plugin is installed", why, fix));
    }
    let count = text::counted(pinned.count as u64, "plugin");
    console.note(&format!("everything in plugins.lock is installed: {count}"));
    Ok(ExitCode::SUCCESS)
}
