//! Set-up of HTTP clients.

use std::time::Duration;

use reqwest::{Client, redirect};
use url::Url;

use crate::{failure, providers};

/// A client for one address. Redirects are off: credentials would go along.
pub(crate) fn new(url: &Url, connect: Duration, silence: Duration) -> Result<Client, String> {
    let mut builder =
        hermes_http_client::builder().redirect(redirect::Policy::none()).connect_timeout(connect).read_timeout(silence);
    if providers::is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Reading the machine's root certificates takes longer than the rest of the start.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| innermost(&error.without_url()))
}

/// The innermost cause of an error: the outer ones only say that a request failed.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    failure::one_line(&hermes_http_client::innermost(error))
}

/// What the system says of a name that it cannot look up; none where another cause prevents the connection.
pub(crate) fn unknown_name(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let why = hermes_http_client::unknown_name(error)?;
    Some(failure::one_line(why.strip_prefix("failed to lookup address information: ").unwrap_or(&why)))
}
