//! Servers on the web: streamable HTTP over the client that the whole host uses.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hermes_http_client::innermost;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use url::Url;

use crate::annotated::Annotated;
use crate::definition::{Endpoint, ServerDefinition, WebAddress};
use crate::error::{Cause, line};
use crate::flow::{Flow, Guarded};
use crate::front::Front;
use crate::http::{self, Asker, HttpError};
use crate::stream::{Events, Reopening};

/// How long a connection may take to be established.
const CONNECT: Duration = Duration::from_secs(15);
/// The most redirects of a request.
const REDIRECTS: usize = 5;

/// Prepares the transport. Nothing is sent yet.
pub(crate) fn transport(
    definition: &ServerDefinition,
    address: &WebAddress,
    front: &Arc<dyn Front>,
    flow: &Flow,
    annotated: &Annotated,
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
    let config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str()).custom_headers(headers);
    // The user's own key comes first.
    let has_key = address.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    let front = (!has_key).then(|| Arc::clone(front));
    let client = WithLogin {
        client,
        url: address.url.clone(),
        front,
        flow: flow.clone(),
        annotated: annotated.clone(),
        reopening: Reopening::default(),
    };
    let inner = StreamableHttpClientTransport::with_client(client, config);
    Ok(Guarded { inner, flow: flow.clone(), child: None })
}

/// A client that sends the token of the user's login to the server, if there is one.
#[derive(Clone)]
struct WithLogin {
    client: Client,
    url: Url,
    /// None if the user has set a key.
    front: Option<Arc<dyn Front>>,
    flow: Flow,
    annotated: Annotated,
    reopening: Reopening,
}

type Posted = Result<StreamableHttpPostResponse, HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl WithLogin {
    /// The token for the next request; another one than the refused one.
    async fn token(&self, refused: Option<&str>) -> Option<String> {
        let front = self.front.as_ref()?;
        front.token(&self.url, refused).await.unwrap_or_else(|why| {
            // The server then says that it wants a login.
            front.log(true, &format!("the login cannot be used: {why}"));
            None
        })
    }
}

impl WithLogin {
    /// The headers that the SDK does not set: the method of the greeting, and marked arguments.
    fn own_headers(&self, message: &ClientJsonRpcMessage) -> Vec<(HeaderName, HeaderValue)> {
        let ClientJsonRpcMessage::Request(request) = message else { return Vec::new() };
        match &request.request {
            ClientRequest::InitializeRequest(_) => {
                vec![(HeaderName::from_static("mcp-method"), HeaderValue::from_static("initialize"))]
            }
            ClientRequest::CallToolRequest(call) => {
                let arguments = call.params.arguments.as_ref();
                arguments.map(|arguments| self.annotated.headers(&call.params.name, arguments)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

impl StreamableHttpClient for WithLogin {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        mut headers: Headers,
    ) -> Posted {
        headers.extend(self.own_headers(&message));
        let token = self.token(None).await;
        let asker = Asker { session: session.as_deref(), token: token.as_deref(), headers: &headers };
        match (http::post(&self.client, &uri, &message, asker, &self.flow).await, &token) {
            // The token may have been revoked before it expired. A refusal has changed nothing, so once more is safe.
            (Err(StreamableHttpError::AuthRequired(error)), Some(refused)) => {
                match self.token(Some(refused)).await.filter(|newer| newer != refused) {
                    Some(newer) => {
                        let asker = Asker { token: Some(&newer), ..asker };
                        http::post(&self.client, &uri, &message, asker, &self.flow).await
                    }
                    None => Err(StreamableHttpError::AuthRequired(error)),
                }
            }
            (posted, _) => posted,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.client.delete_session(uri, session, self.token(None).await, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        self.reopening.turn().await;
        let token = self.token(None).await;
        let asker = Asker { session: session.as_deref(), token: token.as_deref(), headers: &headers };
        http::get_stream(&self.client, &uri, last.as_deref(), asker, &self.flow).await
    }
}

/// The cause behind an error of the transport.
pub(crate) fn cause(definition: &ServerDefinition, error: &(dyn Error + 'static)) -> Cause {
    let address = definition.place();
    let mut chain = Some(error);
    while let Some(current) = chain {
        if current.is::<AuthRequiredError>() {
            return Cause::NotAuthorized { address };
        }
        if let Some(error) = current.downcast_ref::<InsufficientScopeError>() {
            return match error.get_required_scope().map(line).filter(|scope| !scope.is_empty()) {
                Some(scope) => Cause::Scope { address, scope },
                None => Cause::NotAuthorized { address },
            };
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
