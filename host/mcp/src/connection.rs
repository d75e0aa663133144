//! One connection to a server: the handshake, its lists, and calls.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, JsonObject, PaginatedRequestParams};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::time::timeout;

use crate::content::Answer;
use crate::definition::{Endpoint, ServerDefinition};
use crate::error::{Cause, line};
use crate::flow::{Flow, Guarded};
use crate::handler::Handler;
use crate::listing::Listing;
use crate::{limits, program, web};

/// How long the end of a server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// An established connection. Dropping it ends the server without waiting.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    flow: Flow,
    definition: Arc<ServerDefinition>,
}

impl Connection {
    /// Starts or reaches the server, and greets it. The caller limits the time; dropping the future ends the server.
    pub(crate) async fn open(definition: &Arc<ServerDefinition>, handler: Handler) -> Result<Self, Cause> {
        let flow = Flow::new();
        let service = match &definition.endpoint {
            Endpoint::Program(program) => {
                // Relative folders are below that of the session.
                let base = handler.front.roots().into_iter().next().unwrap_or_default();
                greet(definition, &flow, program::start(program, &base, &flow).await?, handler).await?
            }
            Endpoint::Web(address) => {
                greet(definition, &flow, web::transport(definition, address, &flow)?, handler).await?
            }
        };
        Ok(Self { service, flow, definition: Arc::clone(definition) })
    }

    /// What the server offers.
    pub(crate) async fn list(&self) -> Result<Listing, Cause> {
        let info = self.service.peer().peer_info();
        let software = info.as_ref().and_then(|info| info.server_info.as_ref());
        let software = software.map(|it| line(&format!("{} {}", it.name, it.version))).unwrap_or_default();
        let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
        let (mut tools, mut all, mut cursor) = (Vec::new(), 0, None);
        for _ in 0..limits::PAGES {
            if !has_tools {
                break;
            }
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.peer().list_tools(Some(page)).await.map_err(|error| self.cause(&error))?;
            all += page.tools.len();
            // What is beyond is only counted, so that a server cannot fill the memory.
            tools.extend(page.tools.into_iter().take((4 * limits::TOOLS).saturating_sub(tools.len())));
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(Listing::new(software, tools, all))
    }

    /// Calls a tool. Dropping the future tells the server that the call is cancelled.
    pub(crate) async fn call(&self, tool: &str, arguments: JsonObject) -> Result<Answer, Cause> {
        let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let limit = self.definition.timeout;
        let result = timeout(limit, self.service.call_tool(parameters)).await;
        let result =
            result.map_err(|_| Cause::Timeout { what: format!("a call of `{}`", line(tool)), after: limit })?;
        Answer::of(result.map_err(|error| self.cause(&error))?).map_err(Cause::Refused)
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// What passes over it.
    pub(crate) fn flow(&self) -> Flow {
        self.flow.clone()
    }

    /// Ends the server with everything that it started, in bounded time.
    pub(crate) async fn close(&self) {
        self.service.cancellation_token().cancel();
        // What is left afterwards is killed when its supervisor is dropped.
        let _ = timeout(FAREWELL, self.flow.closed()).await;
    }

    fn cause(&self, error: &ServiceError) -> Cause {
        match error {
            ServiceError::McpError(error) => Cause::Refused(line(&error.message)),
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                self.flow.ended().unwrap_or_else(|| match (&self.definition.endpoint, error) {
                    (Endpoint::Web(_), ServiceError::TransportSend(error)) => web::cause(&self.definition, error),
                    _ => Cause::Ended("the connection ended".to_owned()),
                })
            }
            other => Cause::Protocol(line(&other.to_string())),
        }
    }
}

async fn greet<T: Transport<RoleClient> + 'static>(
    definition: &ServerDefinition,
    flow: &Flow,
    transport: Guarded<T>,
    handler: Handler,
) -> Result<RunningService<RoleClient, Handler>, Cause> {
    handler.serve(transport).await.map_err(|error| match &error {
        ClientInitializeError::JsonRpcError(error) => Cause::Refused(line(&error.message)),
        ClientInitializeError::TransportError { error, .. } if matches!(definition.endpoint, Endpoint::Web(_)) => {
            web::cause(definition, error)
        }
        other => flow.ended().unwrap_or_else(|| match other {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                Cause::Ended("it closed the connection before it answered".to_owned())
            }
            other => Cause::Protocol(line(&other.to_string())),
        }),
    })
}
