//! Which model serves a session: from flags, environment and configuration to a route.
//!
//! Field by field the higher layer wins: flags, then environment, then `config.yaml`; where none of them names a place
//! to ask, a lone key in the environment does; where there is none, the offline partner serves. Model, key and
//! window of a layer go with the place that the layer names, and are passed over where another place won: a key reaches
//! no host that it was not meant for. The offline partner never replaces a configured model.

mod auxiliary;
mod error;

use std::fmt;

use hermes_conversation::Model;
use url::Url;

use crate::{
    ApiMode, PROVIDERS, ProviderRow, Secret, Style, providers,
    window::{ASSUMED_WINDOW, LEAST_WINDOW, OFFLINE_WINDOW, family_window},
};

pub(crate) use auxiliary::LEAST_AUXILIARY_WINDOW;
pub use auxiliary::{Auxiliary, AuxiliaryError, resolve_auxiliary};
pub use error::ResolveError;

/// The name of the built-in partner, as provider and as model.
pub(crate) const OFFLINE: &str = "offline";
/// The provider's name where only an address is given.
const CUSTOM: &str = "custom";
/// Wire formats that exist elsewhere, so that their refusal can say more than that they are unknown.
const OTHER_MODES: &[&str] = &["bedrock_converse", "codex_responses"];

/// What one layer says: the flags, or the `model` section of `config.yaml`. Blank texts say nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A known provider, `offline`, or any name where `base_url` is given.
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// Where the API begins, as the vendor's own library takes it.
    pub base_url: Option<String>,
    /// A key for this layer's place.
    pub api_key: Option<String>,
    /// In place of a key, the name of a login in `auth.json`.
    pub auth: Option<String>,
    /// The window in tokens.
    pub context_length: Option<u32>,
    /// The wire format: the name of an [`ApiMode`].
    pub api_mode: Option<String>,
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
            Source::LoneKey { variable } => write!(f, "{variable}, the only key in the environment"),
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
    /// The table of families.
    Family,
    /// The partner's own default.
    Offline,
    /// Assumed: the model is in no table.
    Assumed,
    /// The session's, since nothing else is known of a model that serves beside it.
    Session,
}

/// What authenticates requests. `Debug` and `Display` show no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A fixed key.
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
        matches!(self, Self::Key(key) if key.expose().chars().any(|character| !character.is_ascii_graphic()))
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key {key}"),
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

    /// How messages for it are rendered.
    pub fn style(&self) -> Style {
        match &self.base_url {
            Some(url) => Style::of_route(self.api_mode, &self.model.provider, url),
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

/// A layer with blank texts removed.
struct Layer {
    source: Source,
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    credential: Option<Credential>,
    key_place: &'static str,
    context_length: Option<u32>,
    api_mode: Option<String>,
    /// The address is that of `OPENAI_BASE_URL`, which goes with more than one name.
    openai_base: bool,
}

impl Layer {
    fn new(source: Source, wanted: &Wanted, key_place: &'static str) -> Self {
        Self {
            source,
            provider: said(&wanted.provider).map(|name| name.to_ascii_lowercase()),
            model: said(&wanted.model),
            base_url: said(&wanted.base_url),
            credential: Credential::of(wanted),
            key_place: if said(&wanted.api_key).is_none() && said(&wanted.auth).is_some() {
                "model.auth"
            } else {
                key_place
            },
            context_length: wanted.context_length,
            api_mode: said(&wanted.api_mode).map(|mode| mode.to_ascii_lowercase()),
            openai_base: false,
        }
    }

    fn names_place(&self) -> bool {
        self.provider.is_some() || self.base_url.is_some()
    }

    fn address(&self) -> Result<Option<Url>, ResolveError> {
        let Some(text) = &self.base_url else { return Ok(None) };
        address(text)
            .map(Some)
            .map_err(|why| ResolveError::BadAddress { layer: self.source.clone(), why: why.to_owned() })
    }

    /// Whether what this layer says may be meant for a provider that a layer chose by its name.
    fn fits(&self, provider: &str) -> Result<bool, ResolveError> {
        match &self.provider {
            Some(own) => Ok(own == provider),
            None if self.openai_base || provider == CUSTOM => Ok(true),
            None => Ok(self.address()?.is_none_or(|url| label_of(&url) == provider)),
        }
    }

    /// Whether the address of this layer is that of a provider that was chosen by its name.
    fn addresses(&self, provider: &str) -> bool {
        match self.provider.as_deref() {
            Some(name) => name == provider,
            None => provider == CUSTOM || (provider == "openai" && self.openai_base),
        }
    }

    /// Where this layer's key may go, if it says so.
    fn key_home(&self) -> Result<Option<Home>, ResolveError> {
        if let Some(url) = self.address()? {
            return Ok(Some(home(&url)));
        }
        let known = self.provider.as_deref().and_then(ProviderRow::by_id);
        Ok(known.and_then(ProviderRow::url).map(|url| home(&url)))
    }
}

/// Scheme, host and port: a key that was meant to go encrypted goes nowhere in clear.
type Home = (String, Option<String>, Option<u16>);

fn home(url: &Url) -> Home {
    (url.scheme().to_owned(), providers::host(url), url.port_or_known_default())
}

fn said(text: &Option<String>) -> Option<String> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn label_of(url: &Url) -> String {
    ProviderRow::by_host(url).map_or(CUSTOM, |known| known.id).to_owned()
}

/// An address that requests can be sent to, without a slash at its end.
fn address(text: &str) -> Result<Url, &'static str> {
    let mut url = Url::parse(text).map_err(|_| "it is not a URL; write it like http://127.0.0.1:8000/v1")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must begin with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it names no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user name or password; put the key into api_key");
    }
    if ProviderRow::by_host(&url).is_some() && url.scheme() == "http" {
        return Err("the key would cross the network in clear; write https://");
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let whole = ApiMode::ALL.iter().find_map(|mode| path.strip_suffix(mode.format().endpoint()));
    let path = whole.unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Where requests go, and which source decided it.
struct Place {
    provider: String,
    /// None for the offline partner.
    url: Option<Url>,
    source: Source,
    /// Whether a layer chose the provider by its name, so that what belongs to others is passed over.
    by_name: bool,
    /// The key that decided, where one did.
    key: Option<(Credential, &'static str)>,
}

/// Decides which model serves, and where.
///
/// Of the environment it reads `HERMES_PROVIDER`, `HERMES_MODEL`, `HERMES_BASE_URL`, `HERMES_API_KEY`,
/// `OPENAI_BASE_URL` with `OPENAI_API_KEY`, and the keys of the [`PROVIDERS`].
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
    let layers = layers(flags, &variable, config);
    let place = match named_place(&layers)? {
        Some(place) => place,
        None => unnamed_place(&layers, &variable)?,
    };
    let mut notes = Vec::new();
    let Fitting { model, window, mode } = what_fits(&layers, &place, &mut notes)?;
    let Some(url) = place.url else {
        let mut route = Route { source: place.source, notes, ..Route::offline() };
        if let Some(given) = window {
            route.model.context_length = given;
            route.window_source = WindowSource::Configured;
        }
        return Ok(route);
    };
    let (name, model_source) = match model.or_else(|| default_model(&place.provider, &url)) {
        Some(model) => model,
        None if place.provider == CUSTOM => {
            return Err(ResolveError::NoModel { place: address_shown(&url) });
        }
        None => return Err(ResolveError::NoModel { place: place.provider }),
    };
    let key = match place.key {
        Some((key, variable)) => Some((key, variable.to_owned())),
        None => find_key(&layers, &url, &variable, &mut notes)?,
    };
    let (credential, key_source) = key.unzip();
    let (context_length, window_source) = match (window, family_window(&name)) {
        (Some(given), _) => (given, WindowSource::Configured),
        (None, Some(window)) => (window, WindowSource::Family),
        (None, None) => (ASSUMED_WINDOW, WindowSource::Assumed),
    };
    let api_mode = mode.unwrap_or_else(|| usual_mode(&place.provider, &url));
    Ok(Route {
        model: Model { provider: place.provider, name, context_length },
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
/// provider's format.
fn usual_mode(provider: &str, url: &Url) -> ApiMode {
    let of_provider = || ProviderRow::by_id(provider).map(|row| row.api_mode);
    ApiMode::of_address(url).or_else(of_provider).unwrap_or(ApiMode::ChatCompletions)
}

/// Flags, environment, configuration: the highest first.
fn layers(flags: &Wanted, variable: &dyn Fn(&str) -> Option<String>, config: &Wanted) -> [Layer; 3] {
    let flags = Layer::new(Source::Flags, flags, "the command line");
    let config = Layer::new(Source::Config, config, "model.api_key");
    let mut environment = Layer::new(
        Source::Environment,
        &Wanted {
            provider: variable("HERMES_PROVIDER"),
            model: variable("HERMES_MODEL"),
            base_url: variable("HERMES_BASE_URL"),
            api_key: variable("HERMES_API_KEY"),
            ..Wanted::default()
        },
        "HERMES_API_KEY",
    );
    // The usual variable of one provider does not move another one that is chosen by name.
    let named = [&flags, &environment, &config].into_iter().find_map(|layer| layer.provider.as_deref());
    if environment.base_url.is_none() && named.is_none_or(|name| name == "openai" || name == CUSTOM) {
        environment.base_url = variable("OPENAI_BASE_URL");
        environment.openai_base = environment.base_url.is_some();
    }
    [flags, environment, config]
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

/// What a layer says of another provider than the one that was chosen by its name is not meant for this one.
fn what_fits(layers: &[Layer], place: &Place, notes: &mut Vec<String>) -> Result<Fitting, ResolveError> {
    let mut fitting = Fitting::default();
    for layer in layers {
        if place.by_name && !layer.fits(&place.provider)? {
            // Addresses may hold what is not to be shown.
            let model = layer.model.as_ref().map(|name| format!("model `{name}`"));
            let address = layer.base_url.as_ref().map(|_| "base_url".to_owned());
            let said = [model, address].into_iter().flatten();
            notes.extend(said.map(|what| format!("the {what} of {} is for another provider: not used", layer.source)));
            continue;
        }
        fitting.window = fitting.window.or(layer.context_length);
        fitting.model = fitting.model.or_else(|| Some((layer.model.clone()?, layer.source.clone())));
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

/// A provider's default is a model of that provider, not of whatever else listens at an address.
fn default_model(provider: &str, url: &Url) -> Option<NamedModel> {
    let known = ProviderRow::by_host(url).filter(|known| known.id == provider)?;
    Some((known.model?.to_owned(), Source::Provider))
}

/// The place that the highest layer names which names any.
fn named_place(layers: &[Layer]) -> Result<Option<Place>, ResolveError> {
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
fn unnamed_place(layers: &[Layer], variable: &dyn Fn(&str) -> Option<String>) -> Result<Place, ResolveError> {
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
fn find_key(
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

fn own_key(known: &ProviderRow, variable: &dyn Fn(&str) -> Option<String>) -> Option<(Secret, &'static str)> {
    known.keys.iter().find_map(|name| Some((Secret::new(&variable(name)?)?, *name)))
}

fn address_shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
