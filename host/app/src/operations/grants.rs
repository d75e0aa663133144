//! Grants and revocations of rights.

use hermes_install::only;
use hermes_plugin_host::{LimitSet, Permissions};

use super::{Consent, Offer, Purpose};
use crate::{AppError, Setup};

/// What to grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    /// The plugin.
    pub name: String,
    /// The rights.
    pub rights: RightsRequest,
    /// Whether it may run as a native library.
    pub native: bool,
}

/// Which of the rights that a plugin asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RightsRequest {
    /// All of them, and its limits.
    All,
    /// None: it may run.
    None,
    /// These, beside those that it has.
    Named(Vec<String>),
}

/// The end of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantReport {
    /// The user declined.
    Declined,
    /// The plugin may run.
    Granted {
        /// Its version.
        version: String,
    },
}

/// Grants an installed plugin rights.
///
/// # Errors
///
/// When the plugin cannot be granted the rights, or when nobody can be asked.
pub fn grant<C: Consent>(request: &GrantRequest, setup: &Setup, consent: &C) -> Result<GrantReport, C::Error> {
    let GrantRequest { name, rights, native } = request;
    let installer = setup.installer();
    let granting = installer.granting(name, *native, &setup.catalog()).map_err(AppError::from)?;
    let manifest = &granting.manifest;
    // A grant to other bytes was a grant to something else.
    let kept = granting.before.as_ref().filter(|before| before.pin.digest == granting.pin.digest);
    let before = kept.and_then(|before| before.pin.granted.clone()).unwrap_or_default();
    let (granted, limits) = match rights {
        RightsRequest::None => (Permissions::default(), LimitSet::default()),
        RightsRequest::All => (manifest.permissions.clone(), manifest.limits.clone()),
        RightsRequest::Named(rights) => {
            let limits = kept.map(|before| before.pin.limits.clone()).unwrap_or_default();
            let named = only(&manifest.permissions, rights, name).map_err(AppError::from)?;
            (before.and(&named), limits)
        }
    };
    consent.present(manifest, &granting.pin, false);
    let offer = Offer {
        purpose: Purpose::Grant,
        rights: &granted,
        limits: &limits,
        manifest,
        on_yes: (granted.clone(), limits.clone()),
        is_covered: false,
    };
    let Some((granted, limits)) = consent.rights(&offer)? else { return Ok(GrantReport::Declined) };
    installer.grant(&granting, granted, limits).map_err(AppError::from)?;
    Ok(GrantReport::Granted { version: granting.pin.version.to_string() })
}

/// The rights of a plugin after a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevokeReport {
    /// It may not run.
    MayNotRun,
    /// It runs in the sandbox now; its other rights stay.
    NotNative,
    /// It has these rights from its next session on.
    Left(Permissions),
}

/// Revokes rights of a plugin; all of them and the right to run if none is named.
///
/// # Errors
///
/// When the plugin is not installed or does not have the rights.
pub fn revoke(name: &str, rights: &[String], setup: &Setup) -> Result<RevokeReport, AppError> {
    let left = setup.installer().revoke(name, rights)?;
    Ok(match left {
        None => RevokeReport::MayNotRun,
        Some(_) if rights.iter().all(|right| right == "native") => RevokeReport::NotNative,
        Some(left) => RevokeReport::Left(left),
    })
}
