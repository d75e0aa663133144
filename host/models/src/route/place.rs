//! The place of a route: where requests go, and the key that may go there.

use url::Url;

use super::layer::{Layer, home, label_of};
use super::{CUSTOM, Credential, OFFLINE, ResolveError, Source};
use crate::{PROVIDERS, ProviderRow, Secret};

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
pub(super) fn named_place(layers: &[Layer]) -> Result<Option<Place>, ResolveError> {
    let Some(top) = layers.iter().position(Layer::names_place) else {
        return Ok(None);
    };
    let layer = &layers[top];
    let source = layer.source.clone();
    let place = |provider: String, url, by_name| Place { provider, url, source: source.clone(), by_name, key: None };
    let Some(provider) = layer.provider.clone() else {
        let url = layer.address()?;
        let label = url.as_ref().map_or_else(|| CUSTOM.to_owned(), label_of);
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
    match ProviderRow::by_id(&provider).and_then(ProviderRow::url) {
        Some(url) => Ok(Some(place(provider, Some(url), true))),
        None if provider == CUSTOM => Err(ResolveError::NoAddress),
        None => Err(ResolveError::UnknownProvider { given: provider, layer: source }),
    }
}

/// The place where no layer names one: that of a lone key, or the offline partner.
pub(super) fn unnamed_place(
    layers: &[Layer],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Place, ResolveError> {
    let found: Vec<(&ProviderRow, &'static str, Secret)> = PROVIDERS
        .iter()
        .filter_map(|known| {
            let (key, name) = own_key(known, variable)?;
            Some((known, name, key))
        })
        .collect();
    match &found[..] {
        [(known, name, key)] => Ok(Place {
            provider: known.id.to_owned(),
            url: known.url(),
            source: Source::LoneKey { variable: name },
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
        several => Err(ResolveError::SeveralKeys { variables: several.iter().map(|(_, name, _)| *name).collect() }),
    }
}

/// The key that may go to an address: one given for it, else the own one of the provider whose host it is.
pub(super) fn find_key(
    layers: &[Layer],
    url: &Url,
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Result<Option<(Credential, String)>, ResolveError> {
    let mut unsent = Vec::new();
    let mut given = None;
    let mut openai_moved = false;
    for layer in layers {
        openai_moved |= layer.openai_base && layer.address().ok().flatten().as_ref() == Some(url);
        let Some(key) = layer.credential.as_ref().filter(|_| given.is_none()) else {
            continue;
        };
        if layer.key_home()?.is_none_or(|meant| meant == home(url)) {
            given = Some((key.clone(), layer.key_place));
        } else {
            unsent.push(format!("the key in {} is for another host and is not sent", layer.key_place));
        }
    }
    let known = ProviderRow::by_host(url);
    let openais = ProviderRow::by_id("openai").filter(|_| openai_moved);
    let own = || {
        [openais, known]
            .into_iter()
            .flatten()
            .find_map(|known| own_key(known, variable))
            .map(|(key, name)| (Credential::Key(key), name))
    };
    match (given.or_else(own), known) {
        (Some((key, place)), _) if key.is_unsendable() => Err(ResolveError::BadKey { place: place.to_owned() }),
        (None, Some(known)) => Err(ResolveError::MissingKey {
            provider: known.id.to_owned(),
            variables: known.keys,
            unsent: unsent.iter().map(|note| format!("; {note}")).collect(),
        }),
        (key, _) => {
            notes.append(&mut unsent);
            Ok(key.map(|(key, place)| (key, place.to_owned())))
        }
    }
}

pub(super) fn own_key(
    known: &ProviderRow,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(Secret, &'static str)> {
    known.keys.iter().find_map(|name| Some((Secret::new(&variable(name)?)?, *name)))
}
