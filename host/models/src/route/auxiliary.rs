//! Routes of tasks beside the session's: a section names the model of a task, and may leave any part to the session.
//!
//! The values of the section come first. Open values are the session's if the place is the session's, and otherwise those that
//! are configured for the place. A key goes only to the place that it was given for, so a section without a place brings no key.

use hermes_conversation::Model;
use url::Url;

use super::layer::{Layer, address, home, label_of, layers};
use super::place::{Key, built_in_key, credential, custom_key, own_key};
use super::{
    AddressFlaw, CUSTOM, Credential, NamedModel, OFFLINE, OTHER_MODES, Route, Source, Wanted, WindowSource,
    address_shown, default_model, said, usual_mode,
};
use crate::providers::{Names, unsupported};
use crate::{ApiMode, ProviderRow, Secret, window::family_window};

/// Smaller windows are useless for summaries.
pub(crate) const LEAST_AUXILIARY_WINDOW: u32 = 4_000;

/// What a section of the configuration says of a route beside the session's.
///
/// `auto` and blank texts say nothing, and the provider `main` is the session's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auxiliary {
    /// The section's dotted key, such as `auxiliary.compression`: errors name it.
    pub section: String,
    /// Its fields.
    pub wanted: Wanted,
    /// A variable that holds the key.
    pub key_env: Option<String>,
}

/// Why a section makes no route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuxiliaryError {
    /// No provider of that name, and no address.
    #[error("`{section}.provider` is `{given}`, which is {}", unknown_provider(given))]
    UnknownProvider {
        /// The section.
        section: String,
        /// As written.
        given: String,
    },
    /// `custom` without an address.
    #[error("`{section}.provider` is `custom`, which has no address of its own")]
    NoAddress {
        /// The section.
        section: String,
    },
    /// A provider whose users have an address of their own each, without one.
    #[error("`{section}.provider` is `{provider}`, which needs your own address")]
    NoAddressOf {
        /// The section.
        section: String,
        /// The provider.
        provider: String,
        /// What such an address looks like.
        example: &'static str,
    },
    /// The address is invalid.
    #[error("`{section}.base_url` {flaw}")]
    BadAddress {
        /// The section.
        section: String,
        /// What is wrong with it.
        flaw: AddressFlaw,
    },
    /// An unsupported wire format.
    #[error(
        "`{section}.api_mode` is `{given}`, which is {}",
        if *known { "not supported yet" } else { "not known" }
    )]
    ApiMode {
        /// The section.
        section: String,
        /// As written.
        given: String,
        /// Whether it exists elsewhere.
        known: bool,
    },
    /// An endpoint whose models are unknown.
    #[error("`{section}` names no model for {place}, which has no usual one")]
    NoModel {
        /// The section.
        section: String,
        /// The provider or address.
        place: String,
    },
    /// A window that is too small for summaries.
    #[error("`{section}.context_length` is {given}, too small to sum anything up")]
    SmallWindow {
        /// The section.
        section: String,
        /// As configured.
        given: u32,
    },
    /// Two credentials for one place.
    #[error("config.yaml sets both `{section}.api_key` and `{section}.auth`")]
    KeyAndLogin {
        /// The section.
        section: String,
    },
    /// The key cannot be sent.
    #[error("the key in {place} contains a space or a control character")]
    BadKey {
        /// Where the key is.
        place: String,
    },
    /// A hosted provider without a key for it.
    #[error("`{section}` uses {provider}, and there is no key for it")]
    MissingKey {
        /// The section.
        section: String,
        /// The provider.
        provider: String,
        /// The variables that may hold its key.
        variables: &'static [&'static str],
    },
    /// No model for embeddings: a chat model computes no vectors.
    #[error("`{section}` names no embedding model")]
    NoEmbeddingModel {
        /// The section.
        section: String,
    },
    /// The place has no embeddings.
    #[error("`{section}` uses {provider}, whose API has no embeddings")]
    NoEmbeddings {
        /// The section.
        section: String,
        /// The provider.
        provider: String,
    },
    /// The session's place is asked for, and the session has none.
    #[error("`{section}` names a model but no provider, and the session has no provider to share")]
    NoPlace {
        /// The section.
        section: String,
    },
}

/// Why a provider cannot be chosen, if it is known that it cannot.
fn unknown_provider(given: &str) -> String {
    match unsupported(given) {
        Some(row) => format!("not supported: {}", row.reason),
        None => "not a known provider".to_owned(),
    }
}

impl AuxiliaryError {
    /// Whether only a key or an address is missing, so that the other routes of a task can be used. Every other error is a mistake in
    /// the configuration.
    pub fn is_lack(&self) -> bool {
        matches!(self, AuxiliaryError::MissingKey { .. } | AuxiliaryError::NoPlace { .. })
    }
}

impl Route {
    /// Whether the same model is asked at the same place in the same way.
    pub fn is_alike(&self, other: &Route) -> bool {
        self.model.provider == other.model.provider
            && self.model.name == other.model.name
            && self.base_url == other.base_url
            && self.api_mode == other.api_mode
            && self.credential == other.credential
    }
}

/// Decides which embedding model a section asks for; the arguments are those of [`resolve_auxiliary`].
///
/// # Errors
///
/// Every [`AuxiliaryError`].
pub fn resolve_embeddings(
    asked: &Auxiliary,
    session: &Route,
    env: &dyn Fn(&str) -> Option<String>,
    config: &Wanted,
) -> Result<Route, AuxiliaryError> {
    let section = || asked.section.clone();
    if said(&asked.wanted.model).is_none() {
        return Err(AuxiliaryError::NoEmbeddingModel { section: section() });
    }
    let route = resolve_auxiliary(asked, session, env, config)?;
    if !crate::embeddings::has_embeddings(&route) {
        return Err(AuxiliaryError::NoEmbeddings { section: section(), provider: route.model.provider });
    }
    Ok(route)
}

/// Decides what a section asks for. `config` is the `model` section, for keys and addresses of its place.
///
/// # Errors
///
/// Every [`AuxiliaryError`].
pub fn resolve_auxiliary(
    asked: &Auxiliary,
    session: &Route,
    env: &dyn Fn(&str) -> Option<String>,
    config: &Wanted,
) -> Result<Route, AuxiliaryError> {
    let section = || asked.section.clone();
    let variable = |name: &str| said(&env(name));
    let inherited = |text: &Option<String>| said(text).filter(|text| !text.eq_ignore_ascii_case("auto"));
    let wanted = Wanted {
        provider: inherited(&asked.wanted.provider).filter(|name| !name.eq_ignore_ascii_case("main")),
        model: inherited(&asked.wanted.model),
        api_mode: inherited(&asked.wanted.api_mode),
        ..asked.wanted.clone()
    };
    if said(&wanted.api_key).is_some() && said(&wanted.auth).is_some() {
        return Err(AuxiliaryError::KeyAndLogin { section: section() });
    }
    let names = Names(&config.providers);
    let own = Layer::new(Source::Config, &wanted, "", names);
    // As the highest layer, it decides what variables of OpenAI are for.
    let [_, environment, config] = layers(&wanted, &variable, config);
    let others = [environment, config];

    let named_place = own.names_place();
    let Place { provider, url } = place(&own, session, &others, names, &asked.section)?;
    let shares_place = session.base_url.as_ref() == Some(&url);
    let mut notes = Vec::new();

    let model = model(&own, session, &others, names, &provider, &url);
    let (name, model_source) = model.ok_or_else(|| AuxiliaryError::NoModel {
        section: section(),
        place: if provider == CUSTOM { address_shown(&url) } else { provider.clone() },
    })?;
    let given_mode = own.api_mode.as_deref().map(|given| {
        let known = OTHER_MODES.contains(&given);
        let unknown = || AuxiliaryError::ApiMode { section: section(), given: given.to_owned(), known };
        ApiMode::parse(given).ok_or_else(unknown)
    });
    let api_mode = match given_mode {
        Some(mode) => mode?,
        None if shares_place => session.api_mode,
        None => usual_mode(&provider, &url, names),
    };
    let key = match own_keys(asked, named_place, &variable, &mut notes) {
        Some(key) => Some(key),
        None => shared_key(session, &others, &provider, &url, names, &variable, &mut notes),
    };
    let key = match key {
        Some((key, place)) if key.is_unsendable() => {
            drop(key);
            return Err(AuxiliaryError::BadKey { place });
        }
        None if let Some(known) = ProviderRow::by_host(&url) => {
            return Err(AuxiliaryError::MissingKey {
                section: section(),
                provider: known.id.to_owned(),
                variables: known.keys,
            });
        }
        key => key,
    };
    let (credential, key_source) = key.unzip();
    let (context_length, window_source) = match own.context_length {
        Some(given) if given < LEAST_AUXILIARY_WINDOW => {
            return Err(AuxiliaryError::SmallWindow { section: section(), given });
        }
        Some(given) => (given, WindowSource::Configured),
        None if let Some(window) = names.custom(&provider).and_then(|row| row.window(&name)) => {
            (window, WindowSource::Configured)
        }
        None if shares_place && name == session.model.name => (session.model.context_length, session.window_source),
        None => match family_window(&name) {
            Some(window) => (window, WindowSource::Family),
            None => (session.model.context_length, WindowSource::Session),
        },
    };
    let schemas = names.custom(&provider).and_then(|row| row.schemas);
    Ok(Route {
        model: Model { provider, name, context_length },
        schemas,
        base_url: Some(url),
        api_mode,
        credential,
        source: if named_place { Source::Config } else { session.source.clone() },
        model_source,
        key_source,
        window_source,
        notes,
    })
}

struct Place {
    provider: String,
    url: Url,
}

/// Where the section wants to be served: at the session's place unless it names another.
fn place(
    own: &Layer,
    session: &Route,
    others: &[Layer],
    names: Names<'_>,
    section: &str,
) -> Result<Place, AuxiliaryError> {
    let section = || section.to_owned();
    let unknown = |given: &str| AuxiliaryError::UnknownProvider { section: section(), given: given.to_owned() };
    if own.provider.as_deref() == Some(OFFLINE) {
        return Err(unknown(OFFLINE));
    }
    if let Some(text) = &own.base_url {
        let url = address(text).map_err(|flaw| AuxiliaryError::BadAddress { section: section(), flaw })?;
        let provider = own.provider.clone().unwrap_or_else(|| label_of(&url, names));
        return Ok(Place { provider, url });
    }
    // A provider that is the session's is reached as the session reaches it.
    let sessions = own.provider.as_deref().is_none_or(|name| name == session.model.provider);
    if let Some(url) = session.base_url.clone().filter(|_| sessions) {
        return Ok(Place { provider: session.model.provider.clone(), url });
    }
    let Some(provider) = own.provider.clone() else {
        return Err(AuxiliaryError::NoPlace { section: section() });
    };
    // An address that the session does not use may be invalid; the error appears where the address is used.
    let configured = others.iter().filter(|layer| layer.addresses(&provider));
    let configured = configured.filter_map(|layer| layer.address().ok().flatten()).next();
    let row = ProviderRow::by_name(&provider);
    match (configured.or_else(|| names.url(&provider)), row.and_then(|row| row.own_address)) {
        (Some(url), _) => Ok(Place { provider, url }),
        (None, Some(example)) => Err(AuxiliaryError::NoAddressOf { section: section(), provider, example }),
        (None, None) if provider == CUSTOM => Err(AuxiliaryError::NoAddress { section: section() }),
        (None, None) => Err(unknown(&provider)),
    }
}

/// The model: named, or the session's where that may be known there.
fn model(
    own: &Layer,
    session: &Route,
    others: &[Layer],
    names: Names<'_>,
    provider: &str,
    url: &Url,
) -> Option<NamedModel> {
    let sessions = || (!session.is_offline()).then(|| (session.model.name.clone(), session.model_source.clone()));
    let configured = || {
        let layer = others.iter().find(|layer| layer.provider.as_deref() == Some(provider))?;
        Some((layer.model.clone()?, layer.source.clone()))
    };
    let named = own.model.clone().map(|model| (model, Source::Config));
    named
        .or_else(|| sessions().filter(|_| session.model.provider == provider))
        .or_else(configured)
        .or_else(|| default_model(provider, url, names))
        // A server at a private address may have the session's model, or serve one model under any name.
        .or_else(|| sessions().filter(|_| own.base_url.is_some() || provider == CUSTOM))
}

/// The section's own key, for the place that the section names.
fn own_keys(
    asked: &Auxiliary,
    named_place: bool,
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Option<Key> {
    let section = &asked.section;
    let given = Credential::of(&asked.wanted).map(|credential| {
        let field = if matches!(credential, Credential::Key(_)) { "api_key" } else { "auth" };
        (credential, format!("{section}.{field}"))
    });
    let name = said(&asked.key_env);
    if !named_place {
        if given.is_some() || name.is_some() {
            notes.push(format!(
                "the key of `{section}` is not used, since the section names no place to send it to; set \
                 `{section}.provider` or `{section}.base_url`"
            ));
        }
        return None;
    }
    given.or_else(|| {
        let name = name?;
        let key = variable(&name).as_deref().and_then(Secret::new);
        if key.is_none() {
            notes.push(format!(
                "`{section}.key_env` names the variable {name}, which is not set; set it, or remove the line"
            ));
        }
        Some((Credential::Key(key?), name))
    })
}

/// A key that was given elsewhere for this very place.
fn shared_key(
    session: &Route,
    others: &[Layer],
    provider: &str,
    url: &Url,
    names: Names<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Option<Key> {
    let here = |meant: Option<&Url>| meant.is_some_and(|meant| home(meant) == home(url));
    let sessions = || {
        let key = session.credential.clone().filter(|_| here(session.base_url.as_ref()))?;
        Some((key, session.key_source.clone().unwrap_or_default()))
    };
    let given = || {
        others.iter().find_map(|layer| {
            let key = layer.credential.clone()?;
            let meant = layer.key_home(names).ok().flatten()?;
            (meant == home(url)).then(|| (key, layer.key_place.to_owned()))
        })
    };
    let openai_moved = || {
        let moved = others.iter().any(|layer| layer.openai_base && here(layer.address().ok().flatten().as_ref()));
        ProviderRow::by_name("openai").filter(|_| moved)
    };
    sessions()
        .or_else(given)
        .or_else(|| custom_key(provider, url, names, variable, notes))
        .or_else(|| openai_moved().and_then(|row| own_key(row, variable)).map(credential))
        .or_else(|| built_in_key(provider, url, variable))
}

#[cfg(test)]
mod tests;
