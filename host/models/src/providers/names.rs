//! The providers that a configuration can name: the user's rows, then the built-in ones.

use url::Url;

use super::custom::{CustomProvider, id_of};
use super::{ApiMode, ProviderRow};

/// The prefix that names a row of the user without doubt, as in `custom:work`.
const CUSTOM: &str = "custom:";

/// The providers that a configuration can name. A row of the user replaces a built-in one of the same name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a>(pub(crate) &'a [CustomProvider]);

impl<'a> Names<'a> {
    /// The name of a provider in messages and in the ledger: that of a row for its aliases, and any other name in lower case.
    pub(crate) fn canonical(self, given: &str) -> String {
        let given = given.trim();
        let own = given.get(..CUSTOM.len()).filter(|prefix| prefix.eq_ignore_ascii_case(CUSTOM));
        let own = id_of(own.map_or(given, |prefix| &given[prefix.len()..]));
        match (self.custom(&own), ProviderRow::by_name(given)) {
            (Some(row), _) => row.id.clone(),
            (None, Some(row)) => row.id.to_owned(),
            (None, None) => given.to_ascii_lowercase(),
        }
    }

    /// A row of the user, by its canonical name.
    pub(crate) fn custom(self, id: &str) -> Option<&'a CustomProvider> {
        self.0.iter().find(|row| row.id == id)
    }

    /// The usual address of a provider, by its canonical name.
    pub(crate) fn url(self, id: &str) -> Option<Url> {
        let built_in = || ProviderRow::by_name(id).and_then(ProviderRow::url);
        self.custom(id).map(|row| row.url.clone()).or_else(built_in)
    }

    /// The wire format of a provider at its usual address, where a row of the user names one.
    pub(crate) fn mode(self, id: &str, url: &Url) -> Option<ApiMode> {
        self.custom(id).filter(|row| row.url == *url).and_then(|row| row.api_mode)
    }
}
