//! The layers of a configuration, and the addresses that they name.

use url::Url;

use super::{AddressFlaw, CUSTOM, Credential, ResolveError, Source, Wanted, said};
use crate::providers::Names;
use crate::{ApiMode, ProviderRow, providers};

/// A layer with blank texts removed.
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) credential: Option<Credential>,
    pub(super) key_place: &'static str,
    pub(super) context_length: Option<u32>,
    pub(super) api_mode: Option<String>,
    /// The address is that of `OPENAI_BASE_URL`, which goes with more than one name.
    pub(super) openai_base: bool,
}

impl Layer {
    pub(super) fn new(source: Source, wanted: &Wanted, key_place: &'static str, names: Names<'_>) -> Self {
        Self {
            source,
            provider: said(&wanted.provider).map(|name| names.canonical(&name)),
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

    pub(super) fn names_place(&self) -> bool {
        self.provider.is_some() || self.base_url.is_some()
    }

    pub(super) fn address(&self) -> Result<Option<Url>, ResolveError> {
        let Some(text) = &self.base_url else { return Ok(None) };
        address(text).map(Some).map_err(|flaw| ResolveError::BadAddress { layer: self.source.clone(), flaw })
    }

    /// Whether what this layer says may be meant for a provider that a layer chose by its name.
    pub(super) fn fits(&self, provider: &str, names: Names<'_>) -> Result<bool, ResolveError> {
        match &self.provider {
            Some(own) => Ok(own == provider),
            None if self.openai_base || provider == CUSTOM => Ok(true),
            None => Ok(self.address()?.is_none_or(|url| label_of(&url, names) == provider)),
        }
    }

    /// Whether the address of this layer is that of a provider that was chosen by its name.
    pub(super) fn addresses(&self, provider: &str) -> bool {
        match self.provider.as_deref() {
            Some(name) => name == provider,
            None => provider == CUSTOM || (provider == "openai" && self.openai_base),
        }
    }

    /// Where this layer's key may go, if it says so.
    pub(super) fn key_home(&self, names: Names<'_>) -> Result<Option<Home>, ResolveError> {
        if let Some(url) = self.address()? {
            return Ok(Some(home(&url)));
        }
        Ok(self.provider.as_deref().and_then(|name| names.url(name)).map(|url| home(&url)))
    }
}

/// Scheme, host and port: a key that was meant to go encrypted goes nowhere in clear.
pub(super) type Home = (String, Option<String>, Option<u16>);

pub(super) fn home(url: &Url) -> Home {
    (url.scheme().to_owned(), providers::host(url), url.port_or_known_default())
}

/// The name of the provider at an address.
pub(super) fn label_of(url: &Url, names: Names<'_>) -> String {
    let custom = names.0.iter().find(|row| row.url == *url).map(|row| row.id.as_str());
    custom.or_else(|| ProviderRow::by_host(url).map(|known| known.id)).unwrap_or(CUSTOM).to_owned()
}

/// An address that requests can be sent to, without a slash at its end.
pub(crate) fn address(text: &str) -> Result<Url, AddressFlaw> {
    let mut url = Url::parse(text).map_err(|_| AddressFlaw::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressFlaw::Scheme);
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(AddressFlaw::NoHost);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressFlaw::Password);
    }
    if ProviderRow::by_host(&url).is_some() && url.scheme() == "http" {
        return Err(AddressFlaw::Unencrypted);
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let whole = ApiMode::ALL.iter().find_map(|mode| path.strip_suffix(mode.format().endpoint()));
    let path = whole.unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Flags, environment, configuration: the highest first.
pub(super) fn layers(flags: &Wanted, variable: &dyn Fn(&str) -> Option<String>, config: &Wanted) -> [Layer; 3] {
    let names = Names(&config.providers);
    let flags = Layer::new(Source::Flags, flags, "the command line", names);
    let config = Layer::new(Source::Config, config, "model.api_key", names);
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
        names,
    );
    // The usual variable of one provider does not move another one that is chosen by name.
    let named = [&flags, &environment, &config].into_iter().find_map(|layer| layer.provider.as_deref());
    if environment.base_url.is_none() && named.is_none_or(|name| name == "openai" || name == CUSTOM) {
        environment.base_url = variable("OPENAI_BASE_URL");
        environment.openai_base = environment.base_url.is_some();
    }
    [flags, environment, config]
}
