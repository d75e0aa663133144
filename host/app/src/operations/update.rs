//! Updates from the source of an installed plugin, and rollbacks to its kept version.

use hermes_install::{Finding, Prepared, Source, Wanted, refuse_foreign};
use hermes_plugin_host::{Catalog, Entry};

use super::installation::{has_source, prepare, settle, told};
use super::{Consent, InstallReport};
use crate::{AppError, Reporter, Setup};

/// The names of the installed plugins, or this one if it is installed.
///
/// # Errors
///
/// When the plugin is not installed, or the lock cannot be read.
pub fn installed_names(name: Option<&str>, setup: &Setup) -> Result<Vec<String>, AppError> {
    let installer = setup.installer();
    installer.recover(&|_| ())?;
    match name {
        Some(name) => {
            installer.entry(name)?;
            Ok(vec![name.to_owned()])
        }
        None => Ok(installer.lock()?.plugins.into_keys().collect()),
    }
}

/// Compares the installed plugins with `plugins.lock`.
///
/// # Errors
///
/// When the lock cannot be read.
pub fn compare_installed(setup: &Setup, catalog: &Catalog) -> Result<Vec<Finding>, AppError> {
    Ok(setup.installer().verify(catalog)?)
}

/// Fetches the current version of an installed plugin from its source. Nothing is changed yet.
///
/// # Errors
///
/// When the plugin has no source, or the source no longer has it.
pub async fn prepare_update(
    name: &str,
    insecure: bool,
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<Prepared, AppError> {
    let installer = setup.installer();
    let before = installer.entry(name)?;
    refuse_foreign(name, &before)?;
    let source = Source::parse(&before.pin.source, setup.home.path())?;
    has_source(name, &before, &installer)?;
    let wanted = Wanted { source, name: Some(name.to_owned()), insecure, key: None };
    let prepared = prepare(&installer, &wanted, setup, reporter).await?;
    if prepared.manifest.name != name {
        return Err(AppError::Renamed { name: name.to_owned(), now: prepared.manifest.name.clone() });
    }
    Ok(prepared)
}

/// Installs a prepared update.
///
/// # Errors
///
/// When the new version does not work here, or the front end cannot ask.
pub async fn update<C: Consent>(
    mut prepared: Prepared,
    native: bool,
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<InstallReport, C::Error> {
    settle(&setup.installer(), &mut prepared, native, setup, consent, reporter).await
}

/// What a rollback restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The version that is installed now.
    pub now: String,
    /// The version to which another rollback returns.
    pub next: Option<String>,
}

/// Restores the previous version of a plugin.
///
/// # Errors
///
/// When no previous version is stored.
pub fn roll_back(name: &str, setup: &Setup) -> Result<RolledBack, AppError> {
    let Entry { pin, previous, .. } = setup.installer().roll_back(name, &|_| ())?;
    let next = previous.as_ref().map(|next| told(next, Some(&pin)));
    Ok(RolledBack { now: told(&pin, previous.as_ref()), next })
}
