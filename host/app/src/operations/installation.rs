//! Installation of plugins from a source or from `plugins.lock`.

use std::path::Path;

use hermes_install::{Candidate, InstallError, Installer, Prepared, Progress, Source, State, Wanted};
use hermes_plugin_host::rehearsal::Shown;
use hermes_plugin_host::{Entry, LimitSet, Permissions, Pin, RequiredVariable};
use serde_json::json;

use super::handover::{Decided, Ownership};
use super::{Consent, Granted, Handover, Offer, OfferedTools, Purpose, keep_variables};
use crate::plugins::unset_variables;
use crate::{AppError, ModelChoice, Reporter, Setup};

/// What to install.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// The source.
    pub wanted: Wanted,
    /// Whether it can replace a plugin of the same name from another source.
    pub replace: bool,
    /// Whether its native library runs instead of its component.
    pub native: bool,
}

/// The end of an installation or an update.
#[derive(Debug)]
pub enum InstallReport {
    /// The same version is already installed, with the same files.
    Unchanged {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
    },
    /// The user declined.
    Declined,
    /// The plugin is installed.
    Installed {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
        /// Whether an earlier version was installed.
        is_update: bool,
        /// What the trial start found.
        shown: Box<Shown>,
        /// What became of lines, approvals and data of another plugin with this name.
        handover: Handover,
    },
}

/// Installs a plugin.
///
/// # Errors
///
/// When the plugin cannot be fetched or does not work here, or the front end cannot ask.
pub async fn install<C: Consent>(
    request: &InstallRequest,
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<InstallReport, C::Error> {
    let installer = setup.installer();
    let mut prepared = prepare(&installer, &request.wanted, setup, reporter).await?;
    if !request.replace {
        prepared.same_source().map_err(AppError::from)?;
    }
    settle(&installer, &mut prepared, request.native, setup, consent, reporter).await
}

/// Fetches a plugin to the stage.
pub(super) async fn prepare(
    installer: &Installer,
    wanted: &Wanted,
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<Prepared, AppError> {
    let prepared = installer.prepare(wanted, &Downloads(reporter)).await;
    reporter.compiled();
    let mut prepared = prepared?;
    // The user is asked about the addresses that the configuration has, not about templates.
    prepared.resolve(prepared.manifest.permissions_under(&setup.selection(&ModelChoice::default())));
    Ok(prepared)
}

/// Presents the staged plugin, asks, starts it once and commits. First installations and updates end here.
pub(super) async fn settle<C: Consent>(
    installer: &Installer,
    prepared: &mut Prepared,
    native: bool,
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<InstallReport, C::Error> {
    if native {
        prepared.as_native().map_err(AppError::from)?;
    }
    let (name, version) = (prepared.manifest.name.clone(), prepared.pin.version.to_string());
    let is_update = prepared.known().is_some_and(|before| before.pin.granted.is_some());
    if prepared.is_installed() && is_update {
        return Ok(InstallReport::Unchanged { name, version });
    }
    prepared.not_older().map_err(AppError::from)?;
    prepared.can_run().map_err(AppError::from)?;
    prepared.allow_drafts(consent.allows_drafts()).map_err(AppError::from)?;
    consent.present(&prepared.manifest, &prepared.pin, prepared.leaves_native());
    if let Err(changed) = prepared.same_key() {
        consent.accept_key(changed)?;
    }
    let ownership = match prepared.known() {
        Some(_) => Ownership::Same,
        None => Ownership::of(installer.owner(&name).map_err(AppError::from)?, &prepared.pin.origin()),
    };
    let decided = Decided::ask(&name, &ownership, setup, consent)?;
    let replaced = prepared.before.as_ref().filter(|_| prepared.replaces_another()).map(|before| before.pin.origin());
    let (wider, limits, exports) = (prepared.widening(), prepared.wider_limits(), prepared.new_exports());
    let preview =
        preview(&prepared.candidate(), &prepared.granted(true), &prepared.granted(false).1, setup, reporter).await?;
    let is_covered = is_update && wider.is_empty() && limits.is_empty() && exports.is_empty() && !prepared.pin.native;
    let offer = Offer {
        purpose: if is_update { Purpose::Update } else { Purpose::Install },
        permissions: &wider,
        limits: &limits,
        exports: &exports,
        tools: preview.tools(),
        manifest: &prepared.manifest,
        on_yes: prepared.granted(!is_covered),
        is_covered,
        replaces: replaced.as_ref(),
    };
    let Some((granted, limits)) = consent.permissions(&offer)? else { return Ok(InstallReport::Declined) };
    let shown = preview.settle(&prepared.candidate(), (&granted, &limits), setup, reporter).await?;
    let unset: Vec<&RequiredVariable> = unset_variables(&prepared.manifest, &setup.environment).collect();
    let values = if unset.is_empty() { Vec::new() } else { consent.variables(&unset)? };
    let (entry, handover) = commit(installer, prepared, (granted, limits), decided, setup).await?;
    keep_variables(&setup.home.dotenv(), &values)?;
    let version = told(&entry.pin, prepared.known().map(|before| &before.pin));
    let is_update = prepared.known().is_some();
    Ok(InstallReport::Installed { name, version, is_update, shown: Box::new(shown), handover })
}

/// Commits the plugin, and with it the decision about what another plugin with its name left.
async fn commit(
    installer: &Installer,
    prepared: &mut Prepared,
    (granted, limits): Granted,
    decided: Decided,
    setup: &Setup,
) -> Result<(Entry, Handover), AppError> {
    let (name, is_update) = (prepared.manifest.name.clone(), prepared.known().is_some());
    let data = match prepared.is_pinned() {
        true => installer.data_handover_of_pinned(&name, &prepared.pin.origin()),
        false => installer.data_handover(&name, &prepared.pin.origin(), is_update)?,
    };
    prepared.rewrite(decided.rewrite(setup)?);
    let (forgotten, undelivered) = (decided.forget(setup)?, decided.keep_turns(setup).await?);
    let entry = installer.commit(prepared, granted, limits, &|_| ())?;
    Ok((entry, Handover { taken_out: decided.settle(setup)?, forgotten, undelivered, data }))
}

/// The version of a plugin, with the digest if another build of the same version could be meant.
pub(super) fn told(pin: &Pin, other: Option<&Pin>) -> String {
    match other {
        Some(other) if other.version == pin.version => format!("{} (digest {})", pin.version, pin.digest.short()),
        _ => pin.version.to_string(),
    }
}

/// What a plugin offers, found by a first start before the user is asked.
pub(super) enum Preview {
    /// It started, with these limits, and with a database or without.
    Shown(Box<Shown>, LimitSet, bool),
    /// Why it is started only after the user agreed.
    Later(&'static str),
}

/// Starts a component before the user is asked about it: the question names its tools. It runs in the sandbox, without
/// permissions, and with the limits that the plugin has already.
pub(super) async fn preview(
    candidate: &Candidate<'_>,
    (granted, limits): &Granted,
    known: &LimitSet,
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<Preview, AppError> {
    if candidate.pin.native {
        return Ok(Preview::Later("a native library is not opened before you agree"));
    }
    match rehearse(candidate, (granted, known), setup, reporter).await {
        Ok(shown) => Ok(Preview::Shown(Box::new(shown), known.clone(), granted.sql)),
        Err(error) if known == limits => Err(error),
        Err(_) => Ok(Preview::Later("it may need the limits that it asks for")),
    }
}

impl Preview {
    /// The tools for the question about the plugin.
    pub(super) fn tools(&self) -> OfferedTools<'_> {
        match self {
            Self::Shown(shown, ..) => match &shown.complaint {
                Some(why) if shown.tools.is_empty() && shown.exports.contains(&"tools") => OfferedTools::Unknown(why),
                _ => OfferedTools::Named(&shown.tools),
            },
            Self::Later(why) => OfferedTools::Unknown(why),
        }
    }

    /// What the plugin offers with what the user granted.
    pub(super) async fn settle(
        self,
        candidate: &Candidate<'_>,
        (granted, limits): (&Permissions, &LimitSet),
        setup: &Setup,
        reporter: &dyn Reporter,
    ) -> Result<Shown, AppError> {
        match self {
            Self::Shown(shown, with, sql) if with == *limits && sql == granted.sql => Ok(*shown),
            _ => rehearse(candidate, (granted, limits), setup, reporter).await,
        }
    }
}

/// Compiles the plugin, which may take a while, and starts it once.
async fn rehearse(
    candidate: &Candidate<'_>,
    (granted, limits): (&Permissions, &LimitSet),
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<Shown, AppError> {
    if let Some(shown) = candidate.only_skills()? {
        return Ok(shown);
    }
    let name = &candidate.manifest.name;
    let nothing = json!({});
    let selection = setup.selection(&ModelChoice::default());
    let entry = selection.entries.get(name).unwrap_or(&nothing);
    let configured = selection.settings.get(name).cloned().unwrap_or_default().limits;
    let runtime = setup.runtime();
    let loaded = candidate.load(&runtime, &|elapsed| reporter.compiling(name, elapsed));
    reporter.compiled();
    let loaded = loaded?;
    reporter.note(&format!("starting `{name}` once as a test, without permissions"));
    Ok(candidate.rehearse(loaded, granted, [limits, &configured], entry).await?)
}

/// The plugins of `plugins.lock`.
#[derive(Debug)]
pub struct PinnedPlugins {
    /// Those that are missing or changed, or whose entry was not written in this home.
    pub wanted: Vec<(String, Entry)>,
    /// How many there are in all.
    pub count: usize,
}

/// Compares the installed plugins with `plugins.lock`.
///
/// # Errors
///
/// When the lock cannot be read.
pub fn pinned_plugins(setup: &Setup) -> Result<PinnedPlugins, AppError> {
    let installer = setup.installer();
    let findings = installer.verify(&setup.catalog())?;
    let lock = installer.lock()?;
    let count = lock.plugins.len();
    let is_wanted = |name: &str| {
        findings
            .iter()
            .any(|found| found.name == name && matches!(found.state, State::Missing | State::Altered | State::Foreign))
    };
    Ok(PinnedPlugins { wanted: lock.plugins.into_iter().filter(|(name, _)| is_wanted(name)).collect(), count })
}

/// Installs a plugin exactly as `plugins.lock` pins it. None if the user declined. The lock can come from elsewhere, so what it
/// says about consent is shown and asked again; a native library also needs `native`.
///
/// # Errors
///
/// When the source no longer has the pinned plugin, it is native and `native` is not given, or the front end cannot ask.
pub async fn install_pinned<C: Consent>(
    (name, entry): (&str, &Entry),
    (insecure, native): (bool, bool),
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<Option<Handover>, C::Error> {
    let installer = setup.installer();
    let pin = &entry.pin;
    has_source(name, entry, &installer)?;
    if pin.native && !native {
        return Err(AppError::from(InstallError::Native(name.to_owned())).into());
    }
    let mut source = Source::parse(&pin.source, setup.home.path()).map_err(AppError::from)?;
    // The origin is that of the address which is fetched, whatever the lock writes for it.
    let address = source.to_string();
    if let Some(resolved) = &pin.resolved {
        source = source.at(resolved).ok_or_else(|| {
            let why = "`resolved` in plugins.lock is neither a whole commit id nor a sha256 digest".to_owned();
            AppError::from(InstallError::NotPinned { name: name.to_owned(), from: address.clone(), why })
        })?;
    }
    let wanted = Wanted { source, name: Some(name.to_owned()), insecure, key: pin.signer.clone() };
    let mut prepared = prepare(&installer, &wanted, setup, reporter).await?;
    prepared.pinned_by(pin).map_err(AppError::from)?;
    prepared.pin.source = address;
    // The lock records what the user allowed; one of an older version does not have the list.
    let allowed = prepared.pin.drafts == pin.drafts || consent.allows_drafts();
    prepared.allow_drafts(allowed).map_err(AppError::from)?;
    if pin.native {
        prepared.as_native().map_err(AppError::from)?;
    }
    // Only what the plugin requests and the screen shows: a later version must not find a grant that nobody saw.
    let granted: Granted = (
        prepared.manifest.permissions.within(&pin.granted.clone().unwrap_or_default()),
        prepared.manifest.limits.within(&pin.limits),
    );
    consent.present(&prepared.manifest, &prepared.pin, false);
    let ownership = Ownership::of(installer.recorded_owner(name), &prepared.pin.origin());
    let decided = Decided::ask(name, &ownership, setup, consent)?;
    let preview = preview(&prepared.candidate(), &granted, &LimitSet::default(), setup, reporter).await?;
    let offer = Offer {
        purpose: Purpose::Pinned,
        permissions: &granted.0,
        limits: &granted.1,
        exports: prepared.pin.exports.as_deref().unwrap_or_default(),
        tools: preview.tools(),
        manifest: &prepared.manifest,
        on_yes: granted.clone(),
        is_covered: false,
        replaces: None,
    };
    let Some((granted, limits)) = consent.permissions(&offer)? else { return Ok(None) };
    preview.settle(&prepared.candidate(), (&granted, &limits), setup, reporter).await?;
    let (_, handover) = commit(&installer, &mut prepared, (granted, limits), decided, setup).await?;
    Ok(Some(handover))
}

/// Finishes a change of an installed plugin that was interrupted, before another one begins.
///
/// # Errors
///
/// When it cannot be finished.
pub fn finish_interrupted(setup: &Setup) -> Result<(), AppError> {
    setup.installer().recover(&|_| ())?;
    Ok(())
}

/// Reads the text of a source. A relative folder lies in `folder`.
///
/// # Errors
///
/// When the text names no source.
pub fn source_of(text: &str, folder: &Path) -> Result<Source, AppError> {
    Ok(Source::parse(text, folder)?)
}

/// Forwards the progress of downloads to a reporter.
pub(crate) struct Downloads<'a>(pub(crate) &'a dyn Reporter);

impl Progress for Downloads<'_> {
    fn step(&self, what: &str) {
        self.0.note(what);
    }

    fn bytes(&self, done: u64, all: Option<u64>) {
        self.0.bytes(done, all);
    }
}

/// Refuses a plugin that the user put into its folder.
pub(super) fn has_source(name: &str, entry: &Entry, installer: &Installer) -> Result<(), AppError> {
    let folder = installer.folder(entry);
    match entry.pin.is_from(&folder) {
        true => Err(AppError::NoSource { name: name.to_owned(), folder }),
        false => Ok(()),
    }
}
