//! `hermes plugins update` and `rollback`.

use std::process::ExitCode;

use clap::Args;
use hermes_app::operations::{self, Prepared, RolledBack};
use serde_json::json;

use super::consent::{self, Consent};
use super::install;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::progress::Terminal;
use crate::text;

/// The plugin to update, and how.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct UpdateArguments {
    /// The plugin's name [default: all installed plugins]
    name: Option<String>,
    /// Only report what would change
    #[arg(long)]
    check: bool,
    /// Print JSON, with --check
    #[arg(long, requires = "check")]
    json: bool,
    /// Allow unencrypted connections
    #[arg(long)]
    insecure: bool,
    /// Accept a publisher's key that differs from the one of the first installation
    #[arg(long)]
    accept_key: bool,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Also run the new version's native library, outside the sandbox
    #[arg(long)]
    native: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(super) fn run(arguments: &UpdateArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let names = operations::installed_names(arguments.name.as_deref(), &setup)?;
    if names.is_empty() {
        console.note("no plugins are installed");
    }
    crate::wait(async {
        let (mut checked, mut failed, mut code) = (Vec::new(), 0, ExitCode::SUCCESS);
        for name in &names {
            match one(name, arguments, &setup, console).await {
                Ok(Done::Checked(change)) => checked.push(change),
                Ok(Done::Updated(own)) => code = own,
                Err(failure) if names.len() == 1 => return Err(failure),
                Err(failure) => {
                    failed += 1;
                    console.report(&failure);
                }
            }
        }
        if arguments.json {
            print(&text::json(&json!(checked)))?;
        }
        match failed {
            0 => Ok(code),
            failed => {
                let why = format!("{} could not be updated", text::counted(failed, "plugin"));
                Err(Failure::new(Kind::Plugin, "not every plugin was updated", why, "see the errors above"))
            }
        }
    })
}

enum Done {
    Checked(serde_json::Value),
    Updated(ExitCode),
}

async fn one(name: &str, arguments: &UpdateArguments, setup: &Setup, console: Console) -> Result<Done, Failure> {
    let reporter = Terminal::new(console);
    let prepared = operations::prepare_update(name, arguments.insecure, setup, &reporter).await?;
    if arguments.check {
        if !arguments.json {
            print(&summary(name, &prepared))?;
        }
        return Ok(Done::Checked(change(name, &prepared)));
    }
    if !prepared.is_installed() {
        console.note(summary(name, &prepared).trim_end());
    }
    let consent = consent::Terminal {
        accept_key: arguments.accept_key,
        allow_draft: arguments.allow_draft,
        ..consent::Terminal::new(console, arguments.consent)
    };
    let report = operations::update(prepared, arguments.native, setup, &consent, &reporter).await?;
    Ok(Done::Updated(install::show_report(&report, console)))
}

/// The differences between the installed version and the one of the source, on one line.
fn summary(name: &str, prepared: &Prepared) -> String {
    let Some(before) = &prepared.before else { return String::new() };
    if prepared.is_installed() {
        return format!("{name} {}: up to date\n", before.pin.version);
    }
    let older = if prepared.pin.version < before.pin.version { " (an older version)" } else { "" };
    let mut parts = vec![match before.pin.version == prepared.pin.version {
        true => format!("{name} {}: same version, other content", before.pin.version),
        false => format!("{name} {} -> {}{older}", before.pin.version, prepared.pin.version),
    }];
    let found = prepared.altered().unwrap_or(before.pin.digest);
    parts.push(match found == prepared.pin.digest {
        _ if prepared.is_missing() => format!("digest {}; the installed files are gone", prepared.pin.digest.short()),
        true => format!("digest {}, which the installed files have already", found.short()),
        false => format!("digest {} -> {}", found.short(), prepared.pin.digest.short()),
    });
    if prepared.altered().is_some() || before.pin.edited {
        parts.push("the installed files were changed by hand, and the update replaces them".to_owned());
    }
    if before.pin.signer != prepared.pin.signer {
        parts.push("signed by another key".to_owned());
    }
    let lines = prepared.widening().lines();
    parts.extend((!lines.is_empty()).then(|| format!("new permissions: {}", lines.join(", "))));
    let exports = prepared.new_exports();
    parts.extend((!exports.is_empty()).then(|| format!("new exports: {}", exports.join(", "))));
    let limits: Vec<&str> = prepared.wider_limits().iter().map(|(limit, _)| limit.name()).collect();
    parts.extend((!limits.is_empty()).then(|| format!("higher limits: {}", limits.join(", "))));
    format!("{}\n", text::exact_within(&parts.join("; "), 1_500))
}

/// The same for `--json`.
fn change(name: &str, prepared: &Prepared) -> serde_json::Value {
    let before = prepared.before.as_ref().map(|before| &before.pin);
    json!({
        "name": name,
        "changed": !prepared.is_installed(),
        "edited": prepared.altered().is_some() || before.is_some_and(|pin| pin.edited),
        "older": before.is_some_and(|pin| prepared.pin.version < pin.version),
        "version": {"from": before.map(|pin| &pin.version), "to": prepared.pin.version},
        "digest": {"from": prepared.altered().or(before.map(|pin| pin.digest)), "to": prepared.pin.digest},
        "resolved": {"from": before.and_then(|pin| pin.resolved.as_ref()), "to": prepared.pin.resolved},
        "signer": {"from": before.and_then(|pin| pin.signer.as_ref()), "to": prepared.pin.signer},
        "wider": {
            "permissions": prepared.widening(), "limits": prepared.wider_limits(), "exports": prepared.new_exports(),
        },
    })
}

pub(super) fn roll_back(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    let RolledBack { now, next } = operations::roll_back(name, &setup)?;
    let next = next.map_or_else(String::new, |next| format!("; `hermes plugins rollback {name}` returns to {next}"));
    console.note(&format!("rolled back `{name}` to {now}{next}"));
    Ok(ExitCode::SUCCESS)
}
