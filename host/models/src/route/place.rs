//! The place of a route: where requests go, and the key that may go there.

use url::Url;

use super::layer::{Layer, home, label_of};
use super::{CUSTOM, Credential, OFFLINE, ResolveError, Source};
use crate::providers::Names;
use crate::{ProviderRow, Secret};

/// Where requests go, and which source decided it.
pub(super) struct Place {
    pub(super) provider: String,
    /// None for the offline partner.
    pub(super) url: Option<Url>,
    pub(super) source: Source,
    /// Whether a layer chose the provider by its name, so that what belongs to others is passed over.
    pub(super) by_name: bool,
    /// The key that decided, where one did.
    pub(super) key: Option<(Credential, &'static str)>,
}

/// The place that the highest layer names which names any.
pub(super) fn named_place(layers: &[Layer], names: Names<'_>) -> Result<Option<Place>, ResolveError> {
    let Some(top) = layers.iter().position(Layer::names_place) else {
        return Ok(None);
    };
    let layer = &layers[top];
    let source = layer.source.clone();
    let place = |provider: String, url, by_name| Place { provider, url, source: source.clone(), by_name, key: None };
    let Some(provider) = layer.provider.clone() else {
        let url = layer.address()?;
        let label = url.as_ref().map_or_else(|| CUSTOM.to_owned(), |url| label_of(url, names));
        return Ok(Some(place(label, url, false)));
    };
    if provider == OFFLINE {
        return match layer.base_url {
            Some(_) => Err(ResolveError::OfflineElsewhere { layer: source }),
            None => Ok(Some(place(provider, None, true))),
        };
    }
    for layer in &layers[top..] {
        if let Some(url) = layer.address()?.filter(|_| layer.addresses(&provider)) {
            return Ok(Some(place(provider, Some(url), true)));
        }
    }
    let row = ProviderRow::by_name(&provider);
    match (names.url(&provider), row.and_then(|row| row.own_address)) {
        (Some(url), _) => Ok(Some(place(provider, Some(url), true))),
        (None, Some(example)) => Err(ResolveError::NoAddressOf { provider, example }),
        (None, None) if provider == CUSTOM => Err(ResolveError::NoAddress),
        (None, None) => Err(ResolveError::UnknownProvider { given: provider, layer: source }),
    }
}

/// The place where no layer names one: that of a lone key, or the offline partner.
pub(super) fn unnamed_place(
    layers: &[Layer],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Place, ResolveError> {
    let mut found: Vec<Chosen> = Vec::new();
    for row in ProviderRow::with_address().filter(|row| row.is_hosted() && row.chosen_by_key) {
        let Some((key, name)) = own_key(row, variable) else { continue };
        // Several plans and regions of a provider take the same key: the first of the table serves.
        match found.iter_mut().find(|earlier| earlier.row.keys.contains(&name)) {
            Some(earlier) => earlier.also.push(row.id),
            None => found.push(Chosen { row, name, key, also: Vec::new() }),
        }
    }
    match &found[..] {
        [Chosen { row, name, key, also }] => Ok(Place {
            provider: row.id.to_owned(),
            url: row.url(),
            source: Source::LoneKey { variable: name, also: also.clone() },
            by_name: false,
            key: Some((Credential::Key(key.clone()), name)),
        }),
        [] => {
            if let Some(layer) = layers.iter().find(|layer| layer.model.is_some()) {
                let model = layer.model.clone().unwrap_or_default();
                return Err(ResolveError::NoPlace { model, layer: layer.source.clone() });
            }
            if let Some(layer) = layers.iter().find(|layer| layer.credential.is_some()) {
                return Err(ResolveError::KeyWithoutPlace { place: layer.key_place.to_owned() });
            }
            Ok(Place { provider: OFFLINE.to_owned(), url: None, source: Source::Nothing, by_name: false, key: None })
        }
        several => Err(ResolveError::SeveralKeys { variables: several.iter().map(|one| one.name).collect() }),
    }
}

/// A provider whose key is in the environment.
struct Chosen {
    row: &'static ProviderRow,
    /// The variable.
    name: &'static str,
    key: Secret,
    /// Later providers of the table that take the key too.
    also: Vec<&'static str>,
}

/// The key that may go to an address: one given for it, else that of the user's row, else the own one of the provider whose
/// host it is.
pub(super) fn find_key(
    layers: &[Layer],
    provider: &str,
    url: &Url,
    names: Names<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Result<Option<Key>, ResolveError> {
    let mut unsent = Vec::new();
    let mut given = None;
    let mut openai_moved = false;
    for layer in layers {
        openai_moved |= layer.openai_base && layer.address().ok().flatten().as_ref() == Some(url);
        let Some(key) = layer.credential.as_ref().filter(|_| given.is_none()) else {
            continue;
        };
        if layer.key_home(names)?.is_none_or(|meant| meant == home(url)) {
            given = Some((key.clone(), layer.key_place.to_owned()));
        } else {
            unsent.push(format!("the key in {} is for another host and is not sent", layer.key_place));
        }
    }
    let known = ProviderRow::by_host(url);
    let openais = ProviderRow::by_name("openai").filter(|_| openai_moved);
    let key = given
        .or_else(|| custom_key(provider, url, names, variable, notes))
        .or_else(|| openais.and_then(|row| own_key(row, variable)).map(credential))
        .or_else(|| built_in_key(provider, url, variable));
    match (key, known) {
        (Some((key, place)), _) if key.is_unsendable() => Err(ResolveError::BadKey { place }),
        (None, Some(known)) => Err(ResolveError::MissingKey {
            provider: known.id.to_owned(),
            variables: known.keys,
            unsent: unsent.iter().map(|note| format!("; {note}")).collect(),
        }),
        (key, _) => {
            notes.append(&mut unsent);
            Ok(key)
        }
    }
}

/// A credential, and where it was found.
pub(super) type Key = (Credential, String);

/// The key of a row of the user that is at this host; first of all that of the provider itself.
pub(super) fn custom_key(
    provider: &str,
    url: &Url,
    names: Names<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Option<Key> {
    let here = names.custom(provider).into_iter().chain(names.0).filter(|row| home(&row.url) == home(url));
    let mut unset = Vec::new();
    for row in here {
        if let Some(key) = &row.api_key {
            return Some((Credential::Key(key.clone()), format!("custom_providers ({})", row.id)));
        }
        let Some(name) = &row.key_env else { continue };
        match variable(name).as_deref().and_then(Secret::new) {
            Some(key) => return Some((Credential::Key(key), name.clone())),
            None => unset.push(format!("`custom_providers` ({}) names the variable {name}, which is not set", row.id)),
        }
    }
    unset.dedup();
    notes.append(&mut unset);
    None
}

/// The own key of a built-in provider: at its hosts, or for a server on this machine at its usual address.
pub(super) fn built_in_key(provider: &str, url: &Url, variable: &dyn Fn(&str) -> Option<String>) -> Option<Key> {
    let is_here = |row: &&ProviderRow| match row.is_hosted() {
        true => row.serves(url),
        false => row.url().is_some_and(|own| home(&own) == home(url)),
    };
    let named = ProviderRow::by_name(provider).filter(is_here);
    let rows = [named, ProviderRow::by_host(url)].into_iter().flatten();
    rows.into_iter().find_map(|row| own_key(row, variable)).map(credential)
}

pub(super) fn credential((key, name): (Secret, &'static str)) -> Key {
    (Credential::Key(key), name.to_owned())
}

pub(super) fn own_key(
    known: &ProviderRow,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(Secret, &'static str)> {
    known.keys.iter().find_map(|name| Some((Secret::new(&variable(name)?)?, *name)))
}
