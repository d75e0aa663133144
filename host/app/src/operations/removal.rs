//! Removal of a plugin, of its configuration and, if the user wants it, of its data.

use std::path::PathBuf;

use hermes_config::Edit;
use hermes_install::Rewrite;
use hermes_plugin_host::Digest;

use super::Consent;
use crate::{AppError, Setup};

/// The end of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalReport {
    /// Whether the plugin was installed. Otherwise an earlier removal had only kept its data.
    pub was_installed: bool,
    /// Whether `config.yaml` named the plugin.
    pub was_configured: bool,
    /// The folder with its data, if the data stays.
    pub data: Option<PathBuf>,
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
    if installer.has_leftover_data(name) {
        if consent.purge(&data)? {
            installer.delete_leftover_data(name).map_err(AppError::from)?;
        }
        let data = installer.has_data(name).then_some(data);
        return Ok(RemovalReport { was_installed: false, was_configured: false, data });
    }
    installer.entry(name).map_err(AppError::from)?;
    let purge = installer.has_data(name) && consent.purge(&data)?;
    let edit = without(name, setup)?;
    let (file, before, after) = edit.parts();
    let rewrite = edit.is_changed().then(|| Rewrite {
        file: file.to_owned(),
        before: Digest::of(before.as_bytes()),
        after: after.to_owned(),
    });
    let was_configured = rewrite.is_some();
    installer.remove(name, rewrite, purge, &|_| ()).map_err(AppError::from)?;
    Ok(RemovalReport { was_installed: true, was_configured, data: installer.has_data(name).then_some(data) })
}

/// The configuration without the plugin.
fn without(name: &str, setup: &Setup) -> Result<Edit, AppError> {
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
