//! Adoption: the user says that a plugin moved to another source, or that data of another origin belongs to it.

use hermes_install::{DataAside, InstallError, Source, Wanted};
use hermes_plugin_host::PluginOrigin;

use super::Consent;
use super::installation::prepare;
use crate::{AppError, Reporter, Setup};

/// A change of origin, for the user to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    /// The plugin.
    pub name: String,
    /// The earlier origin; none if nobody knows it.
    pub before: Option<PluginOrigin>,
    /// The new origin.
    pub now: PluginOrigin,
    /// The folder of the data that changes hands, if nothing else does.
    pub data: Option<DataAside>,
    /// Whether the plugin is installed. Otherwise only its data is there.
    pub is_installed: bool,
    /// Whether there is other data to choose from.
    pub has_others: bool,
}

/// Lets a plugin continue at another source: grants, configuration and data stay, and the next update is fetched there.
/// Without a source, the installed plugin gets the data that was set aside when it was installed. False if the user declined.
///
/// # Errors
///
/// When the source does not have the plugin, nothing can be adopted, or the front end cannot ask.
pub async fn adopt<C: Consent>(
    name: &str,
    source: Option<Source>,
    insecure: bool,
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<Option<Adoption>, C::Error> {
    let installer = setup.installer();
    installer.recover(&|_| ()).map_err(AppError::from)?;
    let Some(source) = source else { return adopt_data(name, setup, consent) };
    let before = installer.owner(name).map_err(AppError::from)?;
    let is_installed = installer.entry(name).is_ok();
    if !is_installed && !installer.has_leftover_data(name) {
        return Err(AppError::from(installer.entry(name).err().unwrap_or(InstallError::Raced(name.to_owned()))).into());
    }
    let text = source.to_string();
    // The key on which the user has relied stays pinned, whatever the new source has.
    let wanted = Wanted { source, name: Some(name.to_owned()), insecure, key: None };
    let prepared = prepare(&installer, &wanted, setup, reporter).await?;
    if prepared.manifest.name != name {
        let now = prepared.manifest.name.clone();
        return Err(AppError::Renamed { name: name.to_owned(), now }.into());
    }
    let adoption = Adoption {
        name: name.to_owned(),
        before: before.clone(),
        now: prepared.pin.origin(),
        data: None,
        is_installed,
        has_others: false,
    };
    drop(prepared);
    if !consent.adopt(&adoption)? {
        return Ok(None);
    }
    installer.adopt(name, before.as_ref(), &text, &|_| ()).map_err(AppError::from)?;
    Ok(Some(adoption))
}

fn adopt_data<C: Consent>(name: &str, setup: &Setup, consent: &C) -> Result<Option<Adoption>, C::Error> {
    let installer = setup.installer();
    let entry = installer.entry(name).map_err(AppError::from)?;
    let aside = installer.data_aside(name);
    if aside.is_empty() {
        return Err(AppError::NothingToAdopt { name: name.to_owned() }.into());
    }
    for data in &aside {
        let adoption = Adoption {
            name: name.to_owned(),
            before: data.origin.clone(),
            now: entry.pin.origin(),
            data: Some(data.clone()),
            is_installed: true,
            has_others: aside.len() > 1,
        };
        if consent.adopt(&adoption)? {
            installer.adopt_data(name, data, &|_| ()).map_err(AppError::from)?;
            return Ok(Some(adoption));
        }
    }
    Ok(None)
}
