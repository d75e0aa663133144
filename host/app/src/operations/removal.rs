//! Removal of a plugin, of its configuration and, if the user wants it, of its data.

use std::path::PathBuf;

use hermes_install::DataAside;

use super::Consent;
use super::handover::{ConfigLine, Decided, denials};
use crate::{AppError, Setup};

/// The end of a removal, and everything that remains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalReport {
    /// Whether the plugin was installed. Otherwise an earlier removal had only kept its data.
    pub was_installed: bool,
    /// The lines about the plugin that were taken out of `config.yaml`.
    pub taken_out: Vec<ConfigLine>,
    /// The number of permanent approvals that were forgotten.
    pub forgotten: usize,
    /// The lines of `approvals.deny` that remain.
    pub denials: Vec<ConfigLine>,
    /// The folder with its data, if the data stays.
    pub data: Option<PathBuf>,
    /// Data of other plugins that had this name before.
    pub aside: Vec<DataAside>,
}

/// Removes an installed plugin, or the data that an earlier removal kept.
///
/// # Errors
///
/// When the plugin is not installed, `config.yaml` cannot be edited, or the front end cannot ask.
pub fn remove<C: Consent>(name: &str, setup: &Setup, consent: &C) -> Result<RemovalReport, C::Error> {
    let installer = setup.installer();
    installer.recover(&|_| ()).map_err(AppError::from)?;
    let data = setup.home.path().join("data").join(name);
    let left = |report: RemovalReport| RemovalReport {
        data: installer.has_data(name).then(|| data.clone()),
        aside: installer.data_aside(name),
        ..report
    };
    if installer.has_leftover_data(name) {
        if consent.purge(&data)? {
            installer.delete_leftover_data(name).map_err(AppError::from)?;
        }
        return Ok(left(RemovalReport::default()));
    }
    installer.entry(name).map_err(AppError::from)?;
    let purge = installer.has_data(name) && consent.purge(&data)?;
    let decided = Decided::everything(name, setup);
    let rewrite = decided.rewrite(setup)?;
    let forgotten = decided.forget(setup)?;
    installer.remove(name, rewrite, purge, &|_| ()).map_err(AppError::from)?;
    let taken_out = decided.settle(setup)?;
    let denials = denials(name, setup);
    Ok(left(RemovalReport { was_installed: true, taken_out, forgotten, denials, ..RemovalReport::default() }))
}
