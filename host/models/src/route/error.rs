//! Why no route can be taken. `diagnosis.rs` has the remedies.

use super::{AddressFlaw, Source};
use crate::providers::unsupported;

/// Why a provider cannot be chosen, if it is known that it cannot.
fn unknown_provider(given: &str, layer: &Source) -> String {
    match unsupported(given) {
        Some(row) => format!("the provider `{given}` ({layer}) is not supported: {}", row.reason),
        None => format!("there is no provider `{given}` ({layer})"),
    }
}

/// Why no route can be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No provider of that name, and no address.
    #[error("{}", unknown_provider(given, layer))]
    UnknownProvider {
        /// As written.
        given: String,
        /// Which layer names it.
        layer: Source,
    },
    /// A hosted provider without a key for it.
    #[error("{provider} needs a key, and none is set{unsent}")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variables that may hold its key.
        variables: &'static [&'static str],
        /// Keys that were found and are for another host.
        unsent: String,
    },
    /// Several keys, and nothing says which to use.
    #[error("there are keys for several providers ({})", variables.join(", "))]
    SeveralKeys {
        /// The variables that hold them.
        variables: Vec<&'static str>,
    },
    /// A place without a model.
    #[error("no model is set for {place}")]
    NoModel {
        /// The provider or address.
        place: String,
    },
    /// A model without a place.
    // Beside a model that the user just chose, its origin would only confuse.
    #[error(
        "no provider is set for the model `{model}`{}",
        if *layer == Source::Flags { String::new() } else { format!(" (from {layer})") }
    )]
    NoPlace {
        /// The model.
        model: String,
        /// Which layer names it.
        layer: Source,
    },
    /// Two credentials for one place.
    #[error("{layer} sets both model.api_key and model.auth")]
    KeyAndLogin {
        /// Which layer gives both.
        layer: Source,
    },
    /// A key without a place.
    #[error("{place} holds a key, but no provider is named")]
    KeyWithoutPlace {
        /// Where the key is.
        place: String,
    },
    /// `custom` without an address.
    #[error("the provider `custom` needs an address")]
    NoAddress,
    /// A provider whose users have an address of their own each, without one.
    #[error("the provider `{provider}` needs your own address")]
    NoAddressOf {
        /// The provider.
        provider: String,
        /// What such an address looks like.
        example: &'static str,
    },
    /// The offline partner has no address.
    #[error("{layer} sets a base_url, but the provider `offline` uses none")]
    OfflineElsewhere {
        /// Which layer names both.
        layer: Source,
    },
    /// The address cannot be used.
    #[error("the base_url {} {flaw}", if *layer == Source::Flags { "of --base-url".to_owned() } else { format!("in {layer}") })]
    BadAddress {
        /// Which layer names it.
        layer: Source,
        /// What is wrong with it.
        flaw: AddressFlaw,
    },
    /// The key cannot be sent.
    #[error("the key in {place} contains a space or a control character")]
    BadKey {
        /// Where the key is.
        place: String,
    },
    /// A wire format that is not spoken.
    #[error(
        "model.api_mode `{given}` is {}",
        if *known { "not supported yet" } else { "not known" }
    )]
    ApiMode {
        /// As written.
        given: String,
        /// Whether it exists elsewhere.
        known: bool,
    },
    /// A window in which nothing fits.
    #[error("a context_length of {given} is too small for prompt and tools")]
    SmallWindow {
        /// As configured.
        given: u32,
    },
}
