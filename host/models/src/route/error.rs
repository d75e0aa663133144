//! Why no route can be taken, each with what to set.

use super::{OFFLINE, Source};
use crate::{ApiMode, LEAST_WINDOW, ProviderRow};

/// Why no route can be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No provider of that name, and no address.
    #[error("there is no provider `{given}` ({layer}); choose one of {}, or give model.base_url", names())]
    UnknownProvider {
        /// As written.
        given: String,
        /// Which layer names it.
        layer: Source,
    },
    /// A hosted provider without a key for it.
    #[error("{provider} needs a key and there is none; set {}{unsent}", variables.join(" or "))]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variables that may hold its key.
        variables: &'static [&'static str],
        /// Keys that were found and are for another host.
        unsent: String,
    },
    /// Several keys, and nothing says which to use.
    #[error("there are keys for several providers ({}); choose one with --provider or model.provider", variables.join(", "))]
    SeveralKeys {
        /// The variables that hold them.
        variables: Vec<&'static str>,
    },
    /// A place without a model.
    #[error("no model is named for {place}; name one with --model or model.default")]
    NoModel {
        /// The provider or address.
        place: String,
    },
    /// A model without a place.
    #[error(
        "the model `{model}` is named ({layer}) and no provider; choose one with --provider or model.provider, or \
         set model.base_url"
    )]
    NoPlace {
        /// The model.
        model: String,
        /// Which layer names it.
        layer: Source,
    },
    /// Two credentials for one place.
    #[error("{layer} gives a key and a login; remove api_key or auth")]
    KeyAndLogin {
        /// Which layer gives both.
        layer: Source,
    },
    /// A key without a place.
    #[error("{place} holds a key and no provider is named; choose one with --provider or model.provider")]
    KeyWithoutPlace {
        /// Where the key is.
        place: String,
    },
    /// `custom` without an address.
    #[error("the provider `custom` needs an address; set --base-url or model.base_url")]
    NoAddress,
    /// The offline partner has no address.
    #[error("the provider `offline` has no address; remove either it or the base_url ({layer})")]
    OfflineElsewhere {
        /// Which layer names both.
        layer: Source,
    },
    /// The address is none.
    #[error("the base_url of {layer} cannot be used: {why}")]
    BadAddress {
        /// Which layer names it.
        layer: Source,
        /// What is wrong with it.
        why: String,
    },
    /// The key cannot be sent.
    #[error("the key in {place} holds a blank or a control character; enter it again")]
    BadKey {
        /// Where the key is.
        place: String,
    },
    /// A wire format that is not spoken.
    #[error(
        "model.api_mode `{given}` is {}; choose {}",
        if *known { "not supported yet" } else { "not known" },
        ApiMode::names()
    )]
    ApiMode {
        /// As written.
        given: String,
        /// Whether it exists elsewhere.
        known: bool,
    },
    /// A window in which nothing fits.
    #[error("a context_length of {given} is too small for prompt and tools; give at least {LEAST_WINDOW}")]
    SmallWindow {
        /// As configured.
        given: u32,
    },
}

fn names() -> String {
    let known: Vec<&str> = ProviderRow::with_address().map(|row| row.id).chain([OFFLINE]).collect();
    known.join(", ")
}
