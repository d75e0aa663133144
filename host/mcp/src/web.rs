//! Servers on the web: streamable HTTP over the client that the whole host uses.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use hermes_http_client::innermost;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClientTransportConfig,
    StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};

use crate::definition::{Endpoint, ServerDefinition, WebAddress};
use crate::error::{Cause, line};
use crate::flow::{Flow, Guarded};
use crate::limits;

/// How long a connection may take to be established.
const CONNECT: Duration = Duration::from_secs(15);
/// The most redirects of a request.
const REDIRECTS: usize = 5;
/// The most bytes of a page that comes with an error.
const ERROR_PAGE: usize = 16 << 10;

/// Prepares the transport. Nothing is sent yet.
pub(crate) fn transport(
    definition: &ServerDefinition,
    address: &WebAddress,
    flow: &Flow,
) -> Result<Guarded<impl Transport<RoleClient> + 'static>, Cause> {
    let unusable = |why: String| Cause::NotReached { address: definition.place(), why };
    let own = address.url.clone();
    // Headers may contain keys, so they go nowhere else.
    let redirects = Policy::custom(move |attempt| {
        let stays = attempt.url().origin() == own.origin();
        match attempt.previous().len() {
            count if stays && count <= REDIRECTS => attempt.follow(),
            _ => attempt.stop(),
        }
    });
    let client = hermes_http_client::builder().connect_timeout(CONNECT).redirect(redirects).build();
    let client = client.map_err(|error| unusable(innermost(&error)))?;
    let mut headers = HashMap::new();
    for (name, value) in &address.headers {
        let valid = (HeaderName::try_from(name.as_str()).ok(), HeaderValue::try_from(value.as_str()).ok());
        let (Some(key), Some(mut text)) = valid else {
            return Err(unusable(format!("its header `{}` is not valid", line(name))));
        };
        text.set_sensitive(true);
        headers.insert(key, text);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(limits::MESSAGE)
        .max_json_response_size(limits::MESSAGE)
        .max_error_response_size(ERROR_PAGE);
    let inner = StreamableHttpClientTransport::with_client(client, config);
    Ok(Guarded { inner, flow: flow.clone(), child: None })
}

/// The cause behind an error of the transport.
pub(crate) fn cause(definition: &ServerDefinition, error: &(dyn Error + 'static)) -> Cause {
    let address = definition.place();
    let mut chain = Some(error);
    while let Some(current) = chain {
        if current.is::<AuthRequiredError>() || current.is::<InsufficientScopeError>() {
            return Cause::NotAuthorized { address };
        }
        if let Some(status) = current.downcast_ref::<HttpStatusError>() {
            return Cause::NotReached { address, why: line(&status.to_string()) };
        }
        // The error of the client is not its source.
        if let Some(StreamableHttpError::Client(error)) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return Cause::NotReached { address, why: line(&innermost(error)) };
        }
        chain = current.source();
    }
    let why = match &definition.endpoint {
        // The query may contain a key.
        Endpoint::Web(web) => innermost(error).replace(web.url.as_str(), &address),
        Endpoint::Program(_) => innermost(error),
    };
    Cause::NotReached { address, why: line(&why) }
}
