//! What every HTTP client of the host has in common: the TLS provider, the user agent and the cause of an error.
//!
//! Timeouts, redirects and proxies differ by purpose, and stay with the caller.

#![forbid(unsafe_code)]

use std::error::Error;

/// Starts a client that uses the process's TLS provider and names Hermes as its user agent.
pub fn builder() -> reqwest::ClientBuilder {
    // Fails where a provider is installed already, which then serves this client too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().user_agent(concat!("hermes/", env!("CARGO_PKG_VERSION")))
}

/// The text of the innermost cause: the outer ones only say that a request failed.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The innermost cause if the name in an address could not be looked up, so that no server was asked.
pub fn unknown_name(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        // The library shows it by these words only.
        if error.to_string() == "dns error" {
            return Some(innermost(error));
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Wrapped(&'static str, Option<Box<Wrapped>>);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|source| source as _)
        }
    }

    #[test]
    fn the_innermost_cause_is_told() {
        let refused = Wrapped("connection refused", None);
        let connect = Wrapped("tcp connect error", Some(Box::new(refused)));
        assert_eq!(innermost(&Wrapped("error sending request", Some(Box::new(connect)))), "connection refused");
    }

    #[test]
    fn a_client_is_built_again_after_the_provider_was_installed() {
        assert!(builder().tls_certs_only([]).build().is_ok());
        assert!(builder().tls_certs_only([]).build().is_ok());
    }
}
