//! One connection to a server: the handshake, its lists, and calls.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, JsonObject, PaginatedRequestParams, ReadResourceRequestParams,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::content::Answer;
use crate::definition::{Endpoint, ServerDefinition};
use crate::error::{Cause, line};
use crate::flow::{Flow, Guarded};
use crate::handler::{Calls, Handler};
use crate::listing::Listing;
use crate::{limits, program, web};

/// How long the end of a server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the lists of resources and prompts are waited for.
const ASIDE: Duration = Duration::from_secs(2);

/// What the model wants of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Call a tool, by the server's name of it.
    Tool(String, JsonObject),
    /// List the resources.
    ListResources,
    /// Read a resource by its address.
    ReadResource(String),
    /// List the prompts.
    ListPrompts,
    /// Get a prompt by its name, with its arguments.
    GetPrompt(String, JsonObject),
}

impl Request {
    fn what(&self) -> String {
        match self {
            Self::Tool(tool, _) => format!("a call of `{}`", line(tool)),
            Self::ListResources => "the list of its resources".to_owned(),
            Self::ReadResource(uri) => format!("the resource {}", line(uri)),
            Self::ListPrompts => "the list of its prompts".to_owned(),
            Self::GetPrompt(name, _) => format!("the prompt `{}`", line(name)),
        }
    }
}

/// An established connection. Dropping it ends the server without waiting.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    flow: Flow,
    definition: Arc<ServerDefinition>,
    calls: Arc<Calls>,
}

fn listed(what: &str, mut entries: Vec<Value>) -> Answer {
    let all = entries.len();
    entries.truncate(limits::ENTRIES);
    let mut list = json!({ what: entries });
    if all > limits::ENTRIES {
        list["left_out"] = (all - limits::ENTRIES).into();
    }
    Answer::of_text(list.to_string())
}

impl Connection {
    /// Starts or reaches the server, and greets it. The caller limits the time; dropping the future ends the server.
    pub(crate) async fn open(definition: &Arc<ServerDefinition>, handler: Handler) -> Result<Self, Cause> {
        let flow = Flow::new();
        let calls = Arc::clone(&handler.calls);
        let service = match &definition.endpoint {
            Endpoint::Program(program) => {
                // Relative folders are below that of the session.
                let base = handler.front.roots().into_iter().next().unwrap_or_default();
                let front = Arc::clone(&handler.front);
                let started = program::start(&definition.name, program, &base, &flow, &front).await?;
                greet(definition, &flow, started, handler).await.map_err(|cause| program::hinted(program, cause))?
            }
            Endpoint::Web(address) => {
                greet(definition, &flow, web::transport(definition, address, &handler.front, &flow)?, handler).await?
            }
        };
        Ok(Self { service, flow, definition: Arc::clone(definition), calls })
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
        let (has_resources, has_prompts) = tokio::join!(self.has_resources(), self.has_prompts());
        Ok(Listing { resources: has_resources, prompts: has_prompts, ..Listing::new(software, tools, all) })
    }

    /// Whether it has resources, or may have some later. Many servers say that they offer resources and have none.
    async fn has_resources(&self) -> bool {
        let info = self.service.peer().peer_info();
        let Some(offered) = info.as_ref().and_then(|info| info.capabilities.resources.clone()) else { return false };
        if offered.list_changed == Some(true) {
            return true;
        }
        let peer = self.service.peer();
        let listed =
            timeout(ASIDE, async { tokio::join!(peer.list_resources(None), peer.list_resource_templates(None)) });
        match listed.await {
            Ok((Ok(page), templates)) => {
                !page.resources.is_empty() || templates.is_ok_and(|page| !page.resource_templates.is_empty())
            }
            // A failure now says nothing about later.
            _ => true,
        }
    }

    /// The same for prompts.
    async fn has_prompts(&self) -> bool {
        let info = self.service.peer().peer_info();
        let Some(offered) = info.as_ref().and_then(|info| info.capabilities.prompts.clone()) else { return false };
        if offered.list_changed == Some(true) {
            return true;
        }
        match timeout(ASIDE, self.service.peer().list_prompts(None)).await {
            Ok(Ok(page)) => !page.prompts.is_empty(),
            _ => true,
        }
    }

    /// Carries out a request. Dropping the future tells the server that it is cancelled. While the server asks the user, the
    /// time does not count.
    pub(crate) async fn carry_out(&self, request: &Request) -> Result<Answer, Cause> {
        let limit = self.definition.timeout;
        let _running = self.calls.begin();
        let answered = self.calls.within(limit, self.answer(request)).await;
        answered.unwrap_or_else(|| Err(Cause::Timeout { what: request.what(), after: limit }))
    }

    async fn answer(&self, request: &Request) -> Result<Answer, Cause> {
        let failed = |error: ServiceError| self.cause(&error);
        match request {
            Request::Tool(tool, arguments) => {
                let parameters = CallToolRequestParams::new(tool.clone()).with_arguments(arguments.clone());
                let result = self.service.call_tool(parameters).await.map_err(failed)?;
                Answer::of(result).map_err(Cause::Refused)
            }
            Request::ReadResource(uri) => {
                let result = self.service.read_resource(ReadResourceRequestParams::new(uri.clone())).await;
                Ok(Answer::of_resource(result.map_err(failed)?.contents))
            }
            Request::GetPrompt(name, arguments) => {
                let parameters = GetPromptRequestParams::new(name.clone()).with_arguments(arguments.clone());
                Ok(Answer::of_prompt(self.service.get_prompt(parameters).await.map_err(failed)?))
            }
            Request::ListResources => {
                let mut entries = Vec::new();
                let mut cursor = None;
                for _ in 0..limits::PAGES {
                    let page = PaginatedRequestParams::default().with_cursor(cursor.take());
                    let page = self.service.peer().list_resources(Some(page)).await.map_err(failed)?;
                    entries.extend(page.resources.into_iter().map(|it| {
                        json!({ "uri": it.uri, "name": it.name, "description": it.description, "type": it.mime_type })
                    }));
                    cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
                    if cursor.is_none() || entries.len() >= limits::ENTRIES {
                        break;
                    }
                }
                // Servers without templates need not know the request.
                let templates = self.service.peer().list_resource_templates(None).await;
                entries.extend(templates.map(|page| page.resource_templates).unwrap_or_default().into_iter().map(|it| {
                    json!({
                        "uri_template": it.uri_template, "name": it.name, "description": it.description, "type": it.mime_type,
                    })
                }));
                Ok(listed("resources", entries))
            }
            Request::ListPrompts => {
                let page = self.service.peer().list_prompts(None).await.map_err(failed)?;
                let entries = page
                    .prompts
                    .into_iter()
                    .map(|it| json!({ "name": it.name, "description": it.description, "arguments": it.arguments }));
                Ok(listed("prompts", entries.collect()))
            }
        }
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
    let greeted = handler.serve(transport).await;
    if greeted.is_err() && matches!(definition.endpoint, Endpoint::Program(_)) {
        // The reason of an end is recorded before the connection counts as closed.
        let _ = timeout(FAREWELL, flow.closed()).await;
    }
    greeted.map_err(|error| match &error {
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
