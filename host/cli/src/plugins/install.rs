//! `hermes plugins install`: from a source to a plugin that is there and may run.

use std::process::ExitCode;

use clap::Args;
use hermes_install::{Installer, Prepared, Source, State, Wanted};
use hermes_plugin_host::rehearsal::Shown;
use hermes_plugin_host::{LimitSet, Permissions};
use serde_json::{Value, json};

use super::consent::{Consent, agreed, ask, show, show_rights};
use super::variables;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::progress::Terminal;
use crate::text;
use hermes_app::{ModelChoice, Reporter as _};

/// The plugin to install, and how.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct InstallArguments {
    /// A folder, a .wasm, a .tar.gz or .zip, an https address, owner/repo[@ref][#folder], a git address, oci://host/name:tag
    #[arg(required_unless_present = "locked")]
    source: Option<String>,
    /// Install every missing plugin of plugins.lock, exactly as pinned
    #[arg(long, conflicts_with_all = ["source", "name", "key", "accept_key", "replace", "native", "grant"])]
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
    /// Accept a key other than that of the first install
    #[arg(long)]
    accept_key: bool,
    /// Run its native library, which runs outside the sandbox and can do everything that you can
    #[arg(long)]
    native: bool,
    /// Replace an installed plugin of this name from another source
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(super) fn run(arguments: &InstallArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::setup(console)?;
    setup.own()?;
    setup.installer().recover(&|_| ())?;
    crate::wait(async {
        match &arguments.source {
            Some(source) => one(arguments, source, &setup, console).await,
            None => locked(arguments, &setup, console).await,
        }
    })
}

async fn one(arguments: &InstallArguments, text: &str, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let wanted = Wanted {
        source: Source::parse(text, &std::env::current_dir()?)?,
        name: arguments.name.clone(),
        insecure: arguments.insecure,
        key: arguments.key.clone(),
    };
    let installer = setup.installer();
    let mut prepared = prepare(&installer, &wanted, console).await?;
    if !arguments.replace {
        prepared.same_source()?;
    }
    let terms = Terms { accept_key: arguments.accept_key, native: arguments.native, consent: arguments.consent };
    settle(&installer, &mut prepared, terms, setup, console).await
}

pub(super) async fn prepare(installer: &Installer, wanted: &Wanted, console: Console) -> Result<Prepared, Failure> {
    Ok(installer.prepare(wanted, &Terminal::new(console)).await?)
}

/// What the command line says about keys, native code and consent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) accept_key: bool,
    pub(super) native: bool,
    pub(super) consent: Consent,
}

/// Shows what is on the stage, asks, rehearses and commits. The same for a first install and for every later one.
pub(super) async fn settle(
    installer: &Installer,
    prepared: &mut Prepared,
    terms: Terms,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    if terms.native {
        prepared.as_native()?;
    }
    let prepared = &*prepared;
    let name = &prepared.manifest.name;
    let is_update = prepared.before.as_ref().is_some_and(|before| before.pin.granted.is_some());
    if prepared.is_installed() && is_update {
        console.note(&format!("`{name}` {} is installed already, just as it is there", prepared.pin.version));
        return Ok(ExitCode::SUCCESS);
    }
    prepared.can_run()?;
    show(&prepared.manifest, &prepared.pin, console);
    if prepared.leaves_native() {
        console.warning(
            "the version before runs as a native library, this one as a component; with --native it does not change",
        );
    }
    if !terms.accept_key {
        check_key(prepared)?;
    }
    let (wider, limits) = (prepared.widening(), prepared.wider_limits());
    show_rights(&wider, &limits, is_update, console);
    // Consent to all that it asks for now was given before.
    let covered = is_update && wider.is_empty() && limits.is_empty() && !prepared.pin.native;
    let granted = if covered && terms.consent.grant.is_none() {
        Some(prepared.granted(false))
    } else {
        let question = if is_update { "update it and grant this too?" } else { "install it and let it do this?" };
        agreed(terms.consent, prepared, question)?
    };
    let Some((granted, limits)) = granted else {
        console.note("nothing was changed");
        return Ok(Kind::General.into());
    };
    finish(installer, prepared, granted, limits, setup, console).await
}

async fn finish(
    installer: &Installer,
    prepared: &Prepared,
    granted: Permissions,
    limits: LimitSet,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    let name = &prepared.manifest.name;
    let nothing = json!({});
    let entries = setup.selection(&ModelChoice::default()).entries;
    let shown = rehearse(prepared, &limits, entries.get(name).unwrap_or(&nothing), setup, console).await?;
    let typed = variables::ask_for(&prepared.manifest, &setup.environment, console)?;
    let entry = installer.commit(prepared, granted, limits, &|_| ())?;
    variables::keep(&setup.home.dotenv(), &typed)?;
    let done = if prepared.before.is_some() { "updated" } else { "installed" };
    console.note(&format!("`{name}` {} is {done}: {}", entry.pin.version, what_it_is(&shown)));
    if let Some(complaint) = &shown.complaint {
        console.warning(&format!(
            "as it is configured now, it does not start: {}; set plugins.entries.{name} in config.yaml",
            text::line(complaint)
        ));
    }
    if prepared.before.is_none() {
        console.note(&how_to_use(name, &shown));
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles it, which may take a while, and starts it once.
async fn rehearse(
    prepared: &Prepared,
    limits: &LimitSet,
    entry: &Value,
    setup: &Setup,
    console: Console,
) -> Result<Shown, Failure> {
    let runtime = setup.runtime();
    let loaded = {
        let shown = Terminal::new(console);
        prepared.load(&runtime, &|elapsed| shown.compiling(&prepared.manifest.name, elapsed))?
    };
    console.note(&format!("starting `{}` once, without any right", prepared.manifest.name));
    Ok(prepared.rehearse(loaded, limits, entry).await?)
}

fn check_key(prepared: &Prepared) -> Result<(), Failure> {
    let Err(error) = prepared.same_key() else { return Ok(()) };
    let fix = "if you know why its publisher's key is another one, add --accept-key";
    let why = error.to_string();
    match ask(&format!("{why}. Trust the new one from now on?"), "nothing was changed", fix) {
        Ok(true) => Ok(()),
        Ok(false) => Err(error.into()),
        Err(_) => Err(Failure::new(Kind::Plugin, "nothing was changed", why, fix)),
    }
}

fn what_it_is(shown: &Shown) -> String {
    let mut parts = vec![shown.exports.join(", ")];
    let named = |what: &str, names: &[String]| {
        let most = 8;
        let more = names.len().saturating_sub(most);
        let shown = names.iter().take(most).map(|name| text::line(name)).collect::<Vec<_>>().join(", ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{what} {shown}{rest}"))
    };
    let tools: Vec<String> = shown.tools.iter().map(|tool| tool.schema.name.clone()).collect();
    parts.extend(named("tools", &tools));
    parts.extend(named("skills", &shown.skills));
    parts.extend(named("watches", &shown.events));
    parts.join("; ")
}

fn how_to_use(name: &str, shown: &Shown) -> String {
    let key = match &shown.exports {
        exports if exports.contains(&"context-engine") => format!("context.engine: {name}"),
        exports if exports.contains(&"memory-provider") => format!("memory.provider: {name}"),
        _ => format!("plugins.enabled: [{name}]"),
    };
    format!("it is not on yet; sessions use it with `{key}` in config.yaml, or `hermes plugins enable {name}`")
}

/// Everything of the lock that is not on disk as it is pinned.
async fn locked(arguments: &InstallArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let installer = setup.installer();
    let findings = installer.verify(&setup.catalog())?;
    let lock = installer.lock()?;
    let wanting = |name: &str| {
        findings.iter().any(|found| found.name == name && matches!(found.state, State::Missing | State::Altered))
    };
    let mut left = 0;
    for (name, entry) in lock.plugins.iter().filter(|(name, _)| wanting(name)) {
        let got = pinned(name, entry, arguments, setup, console).await;
        if let Err(failure) = got {
            left += 1;
            console.report(&failure);
        }
    }
    if left > 0 {
        let why = format!("{} of plugins.lock could not be had as pinned", text::counted(left, "plugin"));
        return Err(Failure::new(
            Kind::Plugin,
            "not everything is there",
            why,
            "see above; `hermes plugins verify` shows all",
        ));
    }
    console.note(&format!("all of plugins.lock is there: {}", text::counted(lock.plugins.len() as u64, "plugin")));
    Ok(ExitCode::SUCCESS)
}

async fn pinned(
    name: &str,
    entry: &hermes_plugin_host::Entry,
    arguments: &InstallArguments,
    setup: &Setup,
    console: Console,
) -> Result<(), Failure> {
    let installer = setup.installer();
    let pin = &entry.pin;
    let mut source = Source::parse(&pin.source, setup.home.path())?;
    // Not what the source stands for now, but what it stood for then.
    match (&mut source, &pin.resolved) {
        (Source::Git(repository), Some(commit)) => repository.reference = Some(commit.clone()),
        (Source::Oci(image), Some(digest)) => image.reference.clone_from(digest),
        _ => {}
    }
    let wanted = Wanted { source, name: Some(name.to_owned()), insecure: arguments.insecure, key: pin.signer.clone() };
    let mut prepared = prepare(&installer, &wanted, console).await?;
    prepared.is_pinned(pin)?;
    prepared.pin.source.clone_from(&pin.source);
    if pin.native {
        prepared.as_native()?;
    }
    let granted = pin.granted.clone().unwrap_or_default();
    show(&prepared.manifest, &prepared.pin, console);
    show_rights(&prepared.manifest.permissions.within(&granted), &pin.limits, false, console);
    let fix = "add --yes to agree to what plugins.lock grants";
    if !arguments.consent.yes && !ask("install it as it is pinned?", "nothing was changed", fix)? {
        return Err(Failure::new(Kind::General, format!("`{name}` was not installed"), "you said no", fix));
    }
    let (nothing, entries) = (json!({}), setup.selection(&ModelChoice::default()).entries);
    rehearse(&prepared, &pin.limits, entries.get(name).unwrap_or(&nothing), setup, console).await?;
    installer.commit(&prepared, granted, pin.limits.clone(), &|_| ())?;
    console.note(&format!("`{name}` {} is installed", pin.version));
    Ok(())
}
