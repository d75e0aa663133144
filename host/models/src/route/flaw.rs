//! What is wrong with an address that requests should go to.

/// Why requests cannot go to a `base_url`. `Display` continues a sentence that begins with the setting's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressFlaw {
    /// The text is not a URL.
    #[error("is not a URL")]
    NotAUrl,
    /// The scheme is neither http nor https.
    #[error("does not begin with http:// or https://")]
    Scheme,
    /// The URL has no host.
    #[error("names no host")]
    NoHost,
    /// The URL contains a user name or password, which would be shown wherever the address is shown.
    #[error("contains a user name or password")]
    Password,
    /// The URL of a known provider uses http.
    #[error("would send the key unencrypted")]
    Unencrypted,
}

impl AddressFlaw {
    /// What to do about it; `key` is the setting where a key belongs.
    pub(crate) fn fix(self, key: &str) -> String {
        match self {
            Self::NotAUrl | Self::Scheme | Self::NoHost => "write it like http://127.0.0.1:8000/v1".to_owned(),
            Self::Password => format!("remove them; a key belongs in {key}"),
            Self::Unencrypted => "write https://".to_owned(),
        }
    }
}
