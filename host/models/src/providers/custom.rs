//! Providers of the user: rows of `custom_providers` in `config.yaml`.

use std::collections::BTreeMap;

use url::Url;

use crate::route::address;
use crate::{AddressFlaw, ApiMode, SchemaDialect, Secret};

/// A provider of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomProvider {
    /// Its name in lower case, with a hyphen for each space.
    pub(crate) id: String,
    /// Where its API begins.
    pub(crate) url: Url,
    /// Its key.
    pub(crate) api_key: Option<Secret>,
    /// The variable that holds its key.
    pub(crate) key_env: Option<String>,
    /// The wire format, if the address does not tell.
    pub(crate) api_mode: Option<ApiMode>,
    /// How it reads schemas of tools, if it is known.
    pub(crate) schemas: Option<SchemaDialect>,
    /// The model when none is named.
    pub(crate) model: Option<String>,
    /// The windows of its models, if known.
    pub(crate) models: BTreeMap<String, Option<u32>>,
}

/// Why a row of `custom_providers` cannot be used. `Display` continues a sentence that begins with the row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomFlaw {
    /// It has no name, or one that is taken.
    #[error("has no name of its own")]
    Name,
    /// Its address cannot be used.
    #[error("has a base_url that {0}")]
    Address(AddressFlaw),
    /// Its wire format is not known.
    #[error("has the api_mode `{0}`, which is not known")]
    ApiMode(String),
    /// Its way of reading schemas is not known.
    #[error("has the schemas `{0}`, which are not known")]
    Schemas(String),
}

impl CustomFlaw {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::Name => {
                "give it a name that no other row has, and not `custom`, `offline`, `auto` or `main`".to_owned()
            }
            Self::Address(flaw) => flaw.fix("its api_key or key_env"),
            Self::ApiMode(_) => format!("choose {}", ApiMode::names()),
            Self::Schemas(_) => {
                let names: Vec<String> =
                    SchemaDialect::ALL.iter().map(|known| format!("`{}`", known.as_str())).collect();
                format!("choose one of {}", names.join(", "))
            }
        }
    }
}

impl CustomProvider {
    /// Names of rows that mean something else.
    const TAKEN: &[&str] = &["custom", "offline", "auto", "main"];

    /// A row with a name and an address.
    ///
    /// # Errors
    ///
    /// If the name is blank or means something else, or if the address cannot be used.
    pub fn new(name: &str, base_url: &str) -> Result<Self, CustomFlaw> {
        let id = id_of(name);
        if id.is_empty() || Self::TAKEN.contains(&&*id) {
            return Err(CustomFlaw::Name);
        }
        let url = address(base_url.trim()).map_err(CustomFlaw::Address)?;
        let (api_key, key_env, api_mode, schemas, model) = (None, None, None, None, None);
        Ok(Self { id, url, api_key, key_env, api_mode, schemas, model, models: BTreeMap::new() })
    }

    /// Its name in lower case, with a hyphen for each space: the name of the provider in messages and in the ledger.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sets the key, and the variable that holds it. Blank texts say nothing.
    #[must_use]
    pub fn with_key(mut self, api_key: Option<&str>, key_env: Option<&str>) -> Self {
        self.api_key = api_key.and_then(Secret::new);
        self.key_env = key_env.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        self
    }

    /// Sets the wire format by its name.
    ///
    /// # Errors
    ///
    /// If there is no such format.
    pub fn with_api_mode(mut self, name: Option<&str>) -> Result<Self, CustomFlaw> {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let known = |name: &str| ApiMode::parse(name).ok_or_else(|| CustomFlaw::ApiMode(name.to_owned()));
        self.api_mode = name.map(known).transpose()?;
        Ok(self)
    }

    /// Sets by its name how it reads schemas of tools.
    ///
    /// # Errors
    ///
    /// If there is no such way.
    pub fn with_schemas(mut self, name: Option<&str>) -> Result<Self, CustomFlaw> {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let known = |name: &str| SchemaDialect::parse(name).ok_or_else(|| CustomFlaw::Schemas(name.to_owned()));
        self.schemas = name.map(known).transpose()?;
        Ok(self)
    }

    /// Sets its models with their windows, and the one that is used when none is named. The only model needs no other mention.
    #[must_use]
    pub fn with_models(mut self, model: Option<&str>, models: BTreeMap<String, Option<u32>>) -> Self {
        let only = || models.keys().next().filter(|_| models.len() == 1).cloned();
        self.model = model.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).or_else(only);
        self.models = models;
        self
    }

    /// The window of a model; none if the row does not give one.
    pub(crate) fn window(&self, model: &str) -> Option<u32> {
        self.models.get(model).copied().flatten()
    }
}

/// A name as it is compared.
pub(super) fn id_of(name: &str) -> String {
    let words: Vec<String> = name.split_whitespace().map(str::to_ascii_lowercase).collect();
    words.join("-")
}
