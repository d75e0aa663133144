//! Which model serves a session: from flags, environment and configuration to a route.
//!
//! For each field the highest layer wins: flags, then environment, then `config.yaml`. If none of them names a place, a single
//! key in the environment decides; without a key, the offline partner serves. The model, key and window of a layer belong to the
//! place that the layer names. They are passed over if another place won, so that a key reaches only the host that it was meant
//! for. The offline partner never replaces a configured model.

mod auxiliary;
mod error;
mod flaw;
mod layer;
mod place;

use std::fmt;

use hermes_conversation::Model;
use url::Url;

pub(crate) use self::layer::address;
use self::layer::{Layer, home, layers};
use self::place::{Place, find_key, named_place, unnamed_place};
use crate::providers::{Names, host, is_loopback};
use crate::window::{ASSUMED_WINDOW, LEAST_WINDOW, OFFLINE_WINDOW, family_window};
use crate::{ApiMode, CustomProvider, ProviderRow, SchemaDialect, Secret, Style};

pub(crate) use auxiliary::LEAST_AUXILIARY_WINDOW;
pub use auxiliary::{Auxiliary, AuxiliaryError, resolve_auxiliary, resolve_embeddings};
pub use error::ResolveError;
pub use flaw::AddressFlaw;

/// The name of the built-in partner, as provider and as model.
pub(crate) const OFFLINE: &str = "offline";
/// The provider's name where only an address is given.
const CUSTOM: &str = "custom";
/// Wire formats that exist elsewhere, so that their refusal can say more than that they are unknown.
const OTHER_MODES: &[&str] = &["bedrock_converse"];

/// What one layer says: the flags, or the `model` section of `config.yaml`. Blank texts say nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A known provider, `offline`, or any name where `base_url` is given.
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// Where the API begins, as the vendor's own library takes it.
    pub base_url: Option<String>,
    /// A key for this layer's place, or several with commas between them.
    pub api_key: Option<String>,
    /// In place of a key, the name of a login in `auth.json`.
    pub auth: Option<String>,
    /// The window in tokens.
    pub context_length: Option<u32>,
    /// The wire format: the name of an [`ApiMode`].
    pub api_mode: Option<String>,
    /// The user's own providers. Only those of the `model` section count.
    pub providers: Vec<CustomProvider>,
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_deref().map(crate::redact))
            .field("auth", &self.auth)
            .field("context_length", &self.context_length)
            .field("api_mode", &self.api_mode)
            .field("providers", &self.providers)
            .finish()
    }
}

/// Which layer decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flags,
    /// `HERMES_…` variables, or `OPENAI_BASE_URL`.
    Environment,
    /// `config.yaml`.
    Config,
    /// The only key in the environment.
    LoneKey {
        /// The variable that holds it.
        variable: &'static str,
        /// Other providers that take the same key; the first one of the table serves.
        also: Vec<&'static str>,
    },
    /// The provider's own default.
    Provider,
    /// Nothing is configured.
    Nothing,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flags => f.write_str("the command line"),
            Source::Environment => f.write_str("the environment"),
            Source::Config => f.write_str("config.yaml"),
            Source::LoneKey { variable, .. } => write!(f, "{variable}, the only key in the environment"),
            Source::Provider => f.write_str("the provider's default"),
            Source::Nothing => f.write_str("nothing else is configured"),
        }
    }
}

/// Where the window's size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// Configured.
    Configured,
    /// The provider named it when it refused a longer request.
    Learned,
    /// The table of families.
    Family,
    /// The partner's own default.
    Offline,
    /// Assumed: the model is in no table.
    Assumed,
    /// The session's, since nothing else is known of a model that serves beside it.
    Session,
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowSource::Configured => "as configured",
            WindowSource::Learned => "as the provider said",
            WindowSource::Family => "by the model's name",
            WindowSource::Offline => "of the offline model",
            WindowSource::Assumed => "assumed",
            WindowSource::Session => "as the session's",
        })
    }
}

/// What authenticates requests. `Debug` and `Display` show no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A fixed key, or several that take turns.
    Key(Secret),
    /// A login of `auth.json`, whose access token is refreshed when it expires.
    Login(String),
}

impl Credential {
    /// From the two fields of a section; none where both are blank.
    fn of(wanted: &Wanted) -> Option<Self> {
        let login = || said(&wanted.auth).map(Self::Login);
        wanted.api_key.as_deref().and_then(Secret::new).map(Self::Key).or_else(login)
    }

    /// Whether it is a key that no header can carry.
    fn is_unsendable(&self) -> bool {
        let is_bad = |key: &Secret| key.expose().chars().any(|character| !character.is_ascii_graphic());
        matches!(self, Self::Key(keys) if keys.parts().is_empty() || keys.parts().iter().any(is_bad))
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(keys) => match keys.parts().len() {
                ..2 => write!(f, "key {keys}"),
                count => write!(f, "{count} keys {keys}"),
            },
            Self::Login(name) => write!(f, "login `{name}`"),
        }
    }
}

/// A decision: which model is asked, where, with which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Provider, model and window.
    pub model: Model,
    /// Where the API begins; none for the offline partner.
    pub base_url: Option<Url>,
    /// The wire format.
    pub api_mode: ApiMode,
    /// How schemas of tools are read, where a row of the user says so.
    pub schemas: Option<SchemaDialect>,
    /// What authenticates requests there; none where nothing is needed.
    pub credential: Option<Credential>,
    /// Which layer decided on the place.
    pub source: Source,
    /// Which layer named the model.
    pub model_source: Source,
    /// Where the key was found: a variable, or a key of the configuration.
    pub key_source: Option<String>,
    /// Where the window's size comes from.
    pub window_source: WindowSource,
    /// What was passed over on the way and why, a line each.
    pub notes: Vec<String>,
}

impl Route {
    /// The built-in partner, with its own window.
    pub fn offline() -> Self {
        Self {
            model: Model { provider: OFFLINE.to_owned(), name: OFFLINE.to_owned(), context_length: OFFLINE_WINDOW },
            base_url: None,
            api_mode: ApiMode::ChatCompletions,
            schemas: None,
            credential: None,
            source: Source::Nothing,
            model_source: Source::Provider,
            key_source: None,
            window_source: WindowSource::Offline,
            notes: Vec::new(),
        }
    }

    /// Whether the built-in partner serves.
    pub fn is_offline(&self) -> bool {
        self.base_url.is_none() && self.model.provider == OFFLINE
    }

    /// Where the API begins, without a query, which may contain secrets; empty for the offline partner.
    pub fn address(&self) -> String {
        self.base_url.as_ref().map(address_shown).unwrap_or_default()
    }

    /// Whether requests of both routes reach the same server: all names of this machine are one.
    pub fn reaches_same_server(&self, other: &Self) -> bool {
        let (Some(own), Some(other)) = (&self.base_url, &other.base_url) else { return false };
        own.port_or_known_default() == other.port_or_known_default()
            && (host(own) == host(other) || (is_loopback(own) && is_loopback(other)))
    }

    /// Whether it leads to a service on the network that Hermes knows, not to a server of the user.
    pub fn is_hosted(&self) -> bool {
        self.base_url.as_ref().and_then(ProviderRow::by_host).is_some()
    }

    /// How messages for it are rendered.
    pub fn style(&self) -> Style {
        match &self.base_url {
            Some(url) => {
                let style = Style::of_route(self.api_mode, &self.model.provider, url, &self.model.name);
                let schemas = self.schemas.map(|own| self.api_mode.format().schemas(own));
                Style { schemas: schemas.unwrap_or(style.schemas), ..style }
            }
            None => Style::PLAIN,
        }
    }

    /// What to do about a refused key.
    pub(crate) fn key_remedy(&self) -> String {
        match (&self.key_source, self.base_url.as_ref().and_then(ProviderRow::by_host)) {
            (Some(place), _) => format!("check the key in {place}"),
            (None, Some(known)) => format!("set {}", known.keys.join(" or ")),
            (None, None) => "set model.api_key or HERMES_API_KEY".to_owned(),
        }
    }
}

/// A text without the blanks around it; none for a blank one.
pub(crate) fn said(text: &Option<String>) -> Option<String> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Decides which model serves, and where.
///
/// Of the environment it reads `HERMES_PROVIDER`, `HERMES_MODEL`, `HERMES_BASE_URL`, `HERMES_API_KEY`,
/// `OPENAI_BASE_URL` with `OPENAI_API_KEY`, and the keys of the [`PROVIDERS`](crate::PROVIDERS).
///
/// # Errors
///
/// Every [`ResolveError`]: whatever is configured and cannot be used.
pub fn resolve(flags: &Wanted, env: &dyn Fn(&str) -> Option<String>, config: &Wanted) -> Result<Route, ResolveError> {
    let variable = |name: &str| said(&env(name));
    for (layer, wanted) in [(Source::Flags, flags), (Source::Config, config)] {
        if said(&wanted.api_key).is_some() && said(&wanted.auth).is_some() {
            return Err(ResolveError::KeyAndLogin { layer });
        }
    }
    let names = Names(&config.providers);
    let layers = layers(flags, &variable, config);
    let place = match named_place(&layers, names)? {
        Some(place) => place,
        None => unnamed_place(&layers, &variable)?,
    };
    let mut notes = Vec::new();
    let Fitting { model, window, mode } = what_fits(&layers, &place, names, &mut notes)?;
    let Some(url) = place.url else {
        let mut route = Route { source: place.source, notes, ..Route::offline() };
        if let Some(given) = window {
            route.model.context_length = given;
            route.window_source = WindowSource::Configured;
        }
        return Ok(route);
    };
    let (name, model_source) = match model.or_else(|| default_model(&place.provider, &url, names)) {
        Some(model) => model,
        None if place.provider == CUSTOM => {
            return Err(ResolveError::NoModel { place: address_shown(&url) });
        }
        None => return Err(ResolveError::NoModel { place: place.provider }),
    };
    let key = match place.key {
        Some((key, variable)) => Some((key, variable.to_owned())),
        None => find_key(&layers, &place.provider, &url, names, &variable, &mut notes)?,
    };
    let (credential, key_source) = key.unzip();
    let window = window.or_else(|| names.custom(&place.provider)?.window(&name));
    let (context_length, window_source) = match (window, family_window(&name)) {
        (Some(given), _) => (given, WindowSource::Configured),
        (None, Some(window)) => (window, WindowSource::Family),
        (None, None) => (ASSUMED_WINDOW, WindowSource::Assumed),
    };
    let api_mode = mode.unwrap_or_else(|| usual_mode(&place.provider, &url, names));
    let schemas = names.custom(&place.provider).and_then(|row| row.schemas);
    Ok(Route {
        model: Model { provider: place.provider, name, context_length },
        schemas,
        base_url: Some(url),
        api_mode,
        credential,
        source: place.source,
        model_source,
        key_source,
        window_source,
        notes,
    })
}

/// The wire format where none is named. Another address for a known provider is a proxy for it, and uses the
/// provider's format, except for the Responses API: most proxies for providers of that API offer only chat completions.
fn usual_mode(provider: &str, url: &Url, names: Names<'_>) -> ApiMode {
    let of_provider =
        || ProviderRow::by_name(provider).map(|row| row.api_mode).filter(|mode| *mode != ApiMode::Responses);
    let of_address = || ApiMode::of_address(url).or_else(of_provider).unwrap_or(ApiMode::ChatCompletions);
    names.mode(provider, url).unwrap_or_else(of_address)
}

/// A model, and which layer named it.
type NamedModel = (String, Source);

/// What is configured for a place.
#[derive(Default)]
struct Fitting {
    model: Option<NamedModel>,
    window: Option<u32>,
    mode: Option<ApiMode>,
}

/// The model, window and wire format of the layers that fit the chosen place. Values of a layer that names another provider are
/// passed over.
fn what_fits(
    layers: &[Layer],
    place: &Place,
    names: Names<'_>,
    notes: &mut Vec<String>,
) -> Result<Fitting, ResolveError> {
    let mut fitting = Fitting::default();
    for layer in layers {
        if place.by_name && !layer.fits(&place.provider, names)? {
            // Addresses may hold what is not to be shown.
            let model = layer.model.as_ref().map(|name| format!("model `{name}`"));
            let address = layer.base_url.as_ref().map(|_| "base_url".to_owned());
            let said = [model, address].into_iter().flatten();
            notes.extend(said.map(|what| format!("the {what} of {} is for another provider: not used", layer.source)));
            continue;
        }
        fitting.model = fitting.model.or_else(|| Some((layer.model.clone()?, layer.source.clone())));
        // A window belongs to the model that its layer names.
        let chosen = fitting.model.as_ref().map(|(name, _)| name);
        if layer.model.is_none() || layer.model.as_ref() == chosen {
            fitting.window = fitting.window.or(layer.context_length);
        }
        if let (None, Some(given)) = (fitting.mode, &layer.api_mode) {
            let unknown = || ResolveError::ApiMode { given: given.clone(), known: OTHER_MODES.contains(&&**given) };
            fitting.mode = Some(ApiMode::parse(given).ok_or_else(unknown)?);
        }
    }
    match fitting.window {
        Some(given) if given < LEAST_WINDOW => Err(ResolveError::SmallWindow { given }),
        _ => Ok(fitting),
    }
}

/// The provider's default model, unless the address belongs to another server.
fn default_model(provider: &str, url: &Url, names: Names<'_>) -> Option<NamedModel> {
    let custom = || names.custom(provider).filter(|row| home(&row.url) == home(url))?.model.clone();
    let built_in = || {
        let row = ProviderRow::by_name(provider).filter(|row| row.serves(url))?;
        row.model.map(str::to_owned)
    };
    Some((custom().or_else(built_in)?, Source::Provider))
}

fn address_shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
