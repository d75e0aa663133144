//! The errors of a plugin's requests.

use crate::fault::{Fault, FaultKind};

/// Most bytes of a body, sent or received.
pub(crate) const BODY: usize = 8 << 20;

/// Why a request has no answer. No variant contains a secret: texts of servers and addresses are redacted before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No grant covers the request.
    #[error("{denial}: {method} {url} is outside the grant")]
    NotGranted {
        /// The message for a plugin without the right.
        denial: String,
        /// The method.
        method: String,
        /// The address, without its query.
        url: String,
    },
    /// The address is granted, but not for this method.
    #[error(
        "{method} {url} is outside the grant, which is for {granted} there: list the method below `methods` of this address in \
         plugin.yaml, which are [GET] if it does not say"
    )]
    OtherMethod {
        /// The method.
        method: String,
        /// The address, without its query.
        url: String,
        /// The granted methods.
        granted: String,
    },
    /// A redirect leads to an address without a grant.
    #[error("{denial}: the server redirects to {method} {url}, which is outside the grant")]
    Redirected {
        /// The message for a plugin without the right.
        denial: String,
        /// The method there.
        method: String,
        /// The address, without its query.
        url: String,
    },
    /// A redirect would send a secret outside its audience.
    #[error("the server redirects to {url} with a secret in the address, which is not meant for there")]
    CarriesSecret {
        /// The address, without its query.
        url: String,
    },
    /// The host name resolves to an address that is not public.
    #[error(
        "`{host}` leads to {address}, which is not of the public internet; such an address is reached only where a grant \
         names it by its numbers, as `localhost`, or from the configuration"
    )]
    NotPublic {
        /// The name.
        host: String,
        /// One of its addresses.
        address: std::net::IpAddr,
    },
    /// There is no secret with this name, or it was not granted.
    #[error("{}", no_secret(denial, name, granted))]
    NoSecret {
        /// The message for a plugin without the right.
        denial: String,
        /// The requested name.
        name: String,
        /// The secrets that it has.
        granted: Vec<String>,
    },
    /// The address is outside the audience of the secret.
    #[error("the secret `{name}` is for {audience} and below, and goes nowhere else")]
    Audience {
        /// Its name.
        name: String,
        /// Its audience.
        audience: String,
    },
    /// The secret has no value that can be sent.
    #[error("the secret `{name}` {why}: set {variable} in the environment or in .env")]
    Unset {
        /// Its name.
        name: String,
        /// The variable that holds it.
        variable: String,
        /// What is wrong with its value.
        why: &'static str,
    },
    /// The address is not valid.
    #[error("the address cannot be used: {0}")]
    Url(String),
    /// The method is not valid, or not allowed for plugins.
    #[error("`{0}` is not a method for plugins, which are in capitals, except CONNECT and TRACE")]
    Method(String),
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {why}")]
    Header {
        /// Its name, with unprintable characters escaped.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The parameters for the query cannot be sent.
    #[error("the query cannot be sent: {0}")]
    Query(&'static str),
    /// The form or the document cannot be sent.
    #[error("the body cannot be sent: {0}")]
    Content(String),
    /// The secret cannot be replaced.
    #[error("the secret `{name}` cannot be replaced by the plugin: its manifest does not declare it as `writable`")]
    Fixed {
        /// Its name.
        name: String,
    },
    /// The new value of a secret cannot be used.
    #[error("the secret `{name}` keeps its value, because the new one {why}")]
    Value {
        /// Its name.
        name: String,
        /// What is wrong with the new value.
        why: &'static str,
    },
    /// The new value of a secret cannot be stored.
    #[error("the new value of the secret `{name}` cannot be stored: {why}")]
    Store {
        /// Its name.
        name: String,
        /// The system's reason.
        why: String,
    },
    /// The request body is too long.
    #[error("the body has {0} bytes, and may have {BODY}")]
    Body(usize),
    /// The response is too long.
    #[error("the answer has more than {BODY} bytes; ask for less at a time")]
    TooLong,
    /// The server redirects too often, or not to an address.
    #[error("the server redirects {0}")]
    Redirects(&'static str),
    /// The response is compressed.
    #[error("the server compressed its answer (`{0}`) although it was asked not to")]
    Encoding(String),
    /// The request took too long.
    #[error("no whole answer within {0} ms")]
    Timeout(u128),
    /// The connection failed or broke.
    #[error("{host} cannot be reached: {why}")]
    Network {
        /// The host.
        host: String,
        /// The cause.
        why: String,
    },
}

/// A plugin that has other secrets has probably misspelt the name, which no grant mends.
fn no_secret(denial: &str, name: &str, granted: &[String]) -> String {
    match granted {
        [] => format!("{denial}: there is no secret `{name}` for it"),
        granted => {
            format!("it has no secret `{name}`, only {}: `secrets` in plugin.yaml declares them", granted.join(", "))
        }
    }
}

impl HttpError {
    /// The kind and the code of the contract.
    pub(crate) fn class(&self) -> (FaultKind, &'static str) {
        match self {
            Self::NotGranted { .. } | Self::OtherMethod { .. } | Self::Redirected { .. } => {
                (FaultKind::Denied, "grant")
            }
            Self::NotPublic { .. } => (FaultKind::Denied, "address"),
            Self::CarriesSecret { .. } | Self::NoSecret { .. } | Self::Audience { .. } | Self::Fixed { .. } => {
                (FaultKind::Denied, "secret")
            }
            Self::Value { .. } => (FaultKind::InvalidInput, "value"),
            Self::Store { .. } => (FaultKind::Failed, "store"),
            Self::Query(_) => (FaultKind::InvalidInput, "query"),
            Self::Content(_) => (FaultKind::InvalidInput, "body"),
            Self::Unset { .. } => (FaultKind::Failed, "unset"),
            Self::Url(_) => (FaultKind::InvalidInput, "url"),
            Self::Method(_) => (FaultKind::InvalidInput, "method"),
            Self::Header { .. } => (FaultKind::InvalidInput, "header"),
            Self::Body(_) => (FaultKind::InvalidInput, "body"),
            Self::TooLong => (FaultKind::Exhausted, "too-long"),
            Self::Redirects(_) => (FaultKind::Failed, "redirect"),
            Self::Encoding(_) => (FaultKind::Failed, "encoding"),
            Self::Timeout(_) => (FaultKind::Timeout, ""),
            Self::Network { .. } => (FaultKind::Unavailable, "network"),
        }
    }
}

impl From<HttpError> for Fault {
    fn from(error: HttpError) -> Self {
        let (kind, code) = error.class();
        Self::new(kind, code, error.to_string())
    }
}
