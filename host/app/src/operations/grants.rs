//! Grants and revocations of permissions.

use hermes_install::{Granting, InstallError, Installer, only};
use hermes_plugin_host::{Entry, LimitSet, Manifest, Permissions};

use super::handover::{Decided, Ownership};
use super::installation::preview;
use super::{Consent, Granted, Handover, Offer, Purpose};
use crate::plugins::drafts;
use crate::{AppError, ModelChoice, Reporter, Setup};

/// What to grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    /// The plugin.
    pub name: String,
    /// The permissions.
    pub permissions: PermissionsRequest,
    /// Whether it may run as a native library.
    pub native: bool,
}

/// A choice among the permissions that a plugin requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionsRequest {
    /// All of them, and its limits.
    All,
    /// None of them. The plugin can run without permissions.
    None,
    /// The named permissions, in addition to those that the plugin has.
    Named(Vec<String>),
}

/// The end of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantReport {
    /// The user declined.
    Declined,
    /// The plugin can run.
    Granted {
        /// Its version.
        version: String,
        /// What became of lines, approvals and data of another plugin with this name.
        handover: Handover,
        /// Why it does not start with its present configuration.
        complaint: Option<String>,
    },
}

/// Grants permissions to an installed plugin, which is started once before, as by an installation.
///
/// # Errors
///
/// When the plugin does not work here or cannot be granted the permissions, or the front end cannot ask. Nothing is changed
/// then.
pub async fn grant<C: Consent>(
    request: &GrantRequest,
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<GrantReport, C::Error> {
    let GrantRequest { name, permissions, native } = request;
    let installer = setup.installer();
    let mut granting = installer.granting(name, *native, &setup.catalog()).map_err(AppError::from)?;
    granting.manifest.permissions = granting.manifest.permissions_under(&setup.selection(&ModelChoice::default()));
    granting.allow_drafts(consent.allows_drafts()).map_err(AppError::from)?;
    let ownership = match granting.known() {
        Some(_) => Ownership::Same,
        // An entry from elsewhere, or one that was changed by hand.
        None if granting.before.is_some() => Ownership::Unknown,
        None => Ownership::of(installer.owner(name).map_err(AppError::from)?, &granting.pin.origin()),
    };
    let manifest = &granting.manifest;
    // An earlier grant counts only if the files are unchanged.
    let kept = granting.kept();
    let before = kept.and_then(|before| before.pin.granted.clone()).unwrap_or_default();
    let (granted, limits) = match permissions {
        PermissionsRequest::None => (Permissions::default(), LimitSet::default()),
        PermissionsRequest::All => (manifest.permissions.clone(), manifest.limits.clone()),
        PermissionsRequest::Named(permissions) => {
            let limits = kept.map(|before| before.pin.limits.clone()).unwrap_or_default();
            let named = only(&manifest.permissions, permissions, name).map_err(AppError::from)?;
            (before.and(&named), limits)
        }
    };
    consent.present(manifest, &granting.pin, false);
    let decided = Decided::ask(name, &ownership, setup, consent)?;
    let had = kept.map(|before| before.pin.limits.clone()).unwrap_or_default();
    let preview = preview(&granting.candidate(), &(granted.clone(), limits.clone()), &had, setup, reporter).await?;
    let offer = Offer {
        purpose: Purpose::Grant,
        permissions: &granted,
        limits: &limits,
        exports: granting.pin.exports.as_deref().unwrap_or_default(),
        tools: preview.tools(),
        manifest,
        on_yes: (granted.clone(), limits.clone()),
        is_covered: false,
        // The user put the files there, and names the plugin.
        replaces: None,
    };
    let Some((granted, limits)) = consent.permissions(&offer)? else { return Ok(GrantReport::Declined) };
    let shown = preview.settle(&granting.candidate(), (&granted, &limits), setup, reporter).await?;
    let handover = commit(&installer, &mut granting, (granted, limits), decided, setup).await?;
    Ok(GrantReport::Granted { version: granting.pin.version.to_string(), handover, complaint: shown.complaint })
}

async fn commit(
    installer: &Installer,
    granting: &mut Granting,
    (granted, limits): Granted,
    decided: Decided,
    setup: &Setup,
) -> Result<Handover, AppError> {
    let (name, is_same) = (granting.manifest.name.clone(), granting.known().is_some());
    let data = installer.data_handover(&name, &granting.pin.origin(), is_same)?;
    granting.rewrite = decided.rewrite(setup)?;
    let (forgotten, undelivered) = (decided.forget(setup)?, decided.keep_turns(setup).await?);
    installer.grant(granting, granted, limits)?;
    Ok(Handover { taken_out: decided.settle(setup)?, forgotten, undelivered, data })
}

/// The permissions of a plugin after a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevokeReport {
    /// The plugin cannot run.
    MayNotRun,
    /// The plugin no longer runs as a native library. Its other permissions stay.
    NotNative,
    /// New sessions give the plugin only these permissions.
    Left(Box<Permissions>),
}

/// Revokes permissions of a plugin. Without names, the plugin cannot run until it is granted again.
///
/// # Errors
///
/// When the plugin is not installed or does not have the permissions.
pub fn revoke(name: &str, permissions: &[String], setup: &Setup) -> Result<RevokeReport, AppError> {
    let left = setup.installer().revoke(name, permissions)?;
    Ok(match left {
        None => RevokeReport::MayNotRun,
        Some(_) if permissions.iter().all(|permission| permission == "native") => RevokeReport::NotNative,
        Some(left) => RevokeReport::Left(Box::new(left)),
    })
}

/// Refuses a component with draft interfaces of the contract, unless the user allows them.
///
/// # Errors
///
/// When it has some, and they are not allowed.
pub fn check_drafts(manifest: &Manifest, component: &[u8], allowed: bool) -> Result<(), AppError> {
    let drafts = drafts(manifest, component);
    if allowed || drafts.is_empty() {
        return Ok(());
    }
    let (name, version) = (manifest.name.clone(), manifest.version.to_string());
    Err(InstallError::Drafts { name, version, drafts }.into())
}

/// What the user granted an installed plugin; none if it is not installed, or has no grant.
///
/// # Errors
///
/// When the lock cannot be read.
pub fn granted(name: &str, setup: &Setup) -> Result<Option<Granted>, AppError> {
    let mut lock = setup.installer().lock()?;
    let entry = lock.plugins.remove(name).filter(Entry::is_ours);
    Ok(entry.and_then(|entry| Some((entry.pin.granted?, entry.pin.limits))))
}
