//! One connection to a server: the handshake, its lists, and calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, JsonObject, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ReadResourceRequest, ReadResourceRequestParams,
    RequestId, ServerCapabilities,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::annotated::Annotated;
use crate::content::Answer;
use crate::definition::{Endpoint, ServerDefinition};
use crate::error::{Cause, line};
use crate::flow::{Flow, Guarded};
use crate::handler::{Calls, Handler};
use crate::input::{Given, Wanted};
use crate::listing::Listing;
use crate::mended::{carried, words};
use crate::said::Said;
use crate::{limits, program, web};

/// How long the end of a server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the lists of resources and prompts are waited for.
const ASIDE: Duration = Duration::from_secs(2);

/// What is said of a server that offers nothing.
const NO_CAPABILITY: &str = "it has no tools: its capabilities name neither tools, resources nor prompts";

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
    era: Era,
    annotated: Annotated,
}

/// A list of a server.
#[derive(Debug, Clone, Copy)]
enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl List {
    /// The member of a page that has the entries.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, page: PaginatedRequestParams) -> ClientRequest {
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page)),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page))
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page)),
        }
    }
}

/// What was read of a list.
#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Value>,
    /// How many there were, also beyond those that are kept.
    all: usize,
    /// Why it was not read to its end.
    oddity: Option<String>,
    /// The shortest time that a page says it holds, in milliseconds. 0 says nothing: servers that give no thought to it send that.
    holds_for: Option<u64>,
}

/// Tells the server that nobody waits for a request any more, unless it was answered.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) {
            let (peer, why) = (self.peer.clone(), Some("request abandoned by the caller".to_owned()));
            // A connection that has ended needs no word about it.
            runtime.spawn(async move { peer.notify_cancelled(CancelledNotificationParam::new(Some(id), why)).await });
        }
    }
}

fn no_answer() -> Cause {
    Cause::Protocol("it answered a request as if it were another one".to_owned())
}

fn listed(what: &str, mut entries: Vec<Value>, all: usize) -> Answer {
    entries.truncate(limits::ENTRIES);
    let left_out = all.saturating_sub(entries.len());
    let mut list = json!({ what: entries });
    if left_out > 0 {
        list["left_out"] = left_out.into();
    }
    Answer::of_text(list.to_string())
}

/// An entry of a list, or only its name if it has more parts than anything that is used.
fn within_bounds(entry: Value) -> Value {
    fn parts(value: &Value) -> usize {
        match value {
            Value::Array(entries) => 1 + entries.iter().map(parts).sum::<usize>(),
            Value::Object(members) => 1 + members.values().map(parts).sum::<usize>(),
            _ => 1,
        }
    }
    match parts(&entry) > limits::PARTS {
        true => json!({ "name": entry.get("name").filter(|name| name.is_string()), "inputSchema": "too large" }),
        false => entry,
    }
}

impl Connection {
    /// Starts or reaches the server, and greets it as the versions up to 2025-11-25 do, or as those since 2026-07-28 if the server speaks only
    /// them. `speaks_later` says that it did so before. `said` gets what a program writes to its standard error. The caller limits the time;
    /// dropping the future ends the server.
    pub(crate) async fn open(
        definition: &Arc<ServerDefinition>,
        handler: impl Fn() -> Handler,
        said: &Said,
        speaks_later: bool,
    ) -> Result<Self, Cause> {
        let (first, second) = if speaks_later { (Era::Later, Era::First) } else { (Era::First, Era::Later) };
        let refused = match Self::open_in(definition, handler(), said, first).await {
            Ok(opened) => return Ok(opened),
            Err(NotGreeted::Refused(cause)) => cause,
            // Try the other greeting. A server that spoke later versions may have been replaced by an older release, and some
            // servers end at an unknown message.
            Err(NotGreeted::For(cause)) if speaks_later || matches!(cause, Cause::Ended(_)) && !said.names_error() => {
                cause
            }
            Err(NotGreeted::For(cause)) => return Err(cause),
        };
        // Some servers speak only as their first message did, so it is started again. If that fails too, the first reason counts.
        Self::open_in(definition, handler(), said, second).await.map_err(|_| refused)
    }

    async fn open_in(
        definition: &Arc<ServerDefinition>,
        handler: Handler,
        said: &Said,
        era: Era,
    ) -> Result<Self, NotGreeted> {
        let (flow, annotated) = (Flow::new(), Annotated::default());
        let calls = Arc::clone(&handler.calls);
        let service = match &definition.endpoint {
            Endpoint::Program(program) => {
                // Relative folders are below that of the session.
                let base = handler.front.roots().into_iter().next().unwrap_or_default();
                let front = Arc::clone(&handler.front);
                let started = program::start(&definition.name, program, &base, &flow, &front, said).await?;
                greet(definition, &flow, started, handler, era).await.map_err(|error| match error {
                    NotGreeted::For(cause) => {
                        NotGreeted::For(program::hinted(&definition.name, program, &base, said, cause))
                    }
                    refused => refused,
                })?
            }
            Endpoint::Web(address) => {
                let transport = web::transport(definition, address, &handler.front, &flow, &annotated)?;
                greet(definition, &flow, transport, handler, era).await?
            }
        };
        Ok(Self { service, flow, definition: Arc::clone(definition), calls, era, annotated })
    }

    /// What the server offers.
    pub(crate) async fn list(&self) -> Result<Listing, Cause> {
        let info = self.service.peer().peer_info();
        let software = info.as_ref().and_then(|info| info.server_info.as_ref());
        let software = software.map(|it| line(&format!("{} {}", it.name, it.version))).unwrap_or_default();
        let instructions = info.as_ref().and_then(|info| info.instructions.clone()).unwrap_or_default();
        let end = instructions.floor_char_boundary(limits::INSTRUCTIONS);
        let instructions = instructions[..end].trim().to_owned();
        let names = |what: fn(&ServerCapabilities) -> bool| info.as_ref().is_none_or(|info| what(&info.capabilities));
        let has_tools = names(|it| it.tools.is_some());
        let has_others = names(|it| it.resources.is_some() || it.prompts.is_some());
        // Tools beyond this limit are only counted, so that a server cannot fill the memory.
        let most = 4 * limits::TOOLS;
        let mut tools = if has_tools {
            self.pages(List::Tools, most).await?
        } else if has_others {
            Pages::default()
        } else {
            Pages { oddity: Some(NO_CAPABILITY.to_owned()), ..Pages::default() }
        };
        let (has_resources, has_prompts) = tokio::join!(self.has_resources(), self.has_prompts());
        let is_marked = self.has_later_rules() && matches!(self.definition.endpoint, Endpoint::Web(_));
        let against_rules = if is_marked { self.annotated.learn(&mut tools.entries) } else { Vec::new() };
        tools.all -= against_rules.len();
        let mut listing = Listing::new(software, tools.entries, tools.all, &self.definition.tools);
        listing.left_out.extend(against_rules);
        listing.left_out.extend(tools.oddity);
        listing.holds_for = tools.holds_for;
        if has_tools && tools.all == 0 && listing.left_out.is_empty() && !has_resources && !has_prompts {
            listing.left_out.push("it has no tools: its list of them is empty".to_owned());
        }
        let is_later = self.era == Era::Later;
        Ok(Listing { resources: has_resources, prompts: has_prompts, is_later, instructions, ..listing })
    }

    /// Whether the rules of the versions since 2026-07-28 hold. Some servers answer `initialize` with such a version.
    fn has_later_rules(&self) -> bool {
        let info = self.service.peer().peer_info();
        let has = |version: &ProtocolVersion| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
        self.era == Era::Later || info.as_ref().is_some_and(|info| has(&info.protocol_version))
    }

    /// The entries of a list, page by page, and no more than so many. A list ends when a cursor comes again.
    async fn pages(&self, list: List, most: usize) -> Result<Pages, Cause> {
        let mut pages = Pages::default();
        let mut cursors = HashSet::new();
        let mut cursor = None;
        for _ in 0..limits::PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let mut page = self.ask(list.request(page)).await?;
            let entries = match page.get_mut(list.member()).map(Value::take) {
                Some(Value::Array(entries)) => entries,
                // Some languages write an empty list as `null`.
                Some(Value::Null) => {
                    pages
                        .oddity
                        .get_or_insert_with(|| format!("its list of {} is `null` and counts as empty", list.member()));
                    Vec::new()
                }
                // A list of one, without the list.
                Some(entry) => vec![entry],
                None => return Err(Cause::Protocol(format!("its answer has no list of {}", list.member()))),
            };
            let holds = page.get("ttlMs").and_then(Value::as_u64).filter(|holds| *holds > 0);
            pages.holds_for = pages.holds_for.into_iter().chain(holds).min();
            pages.all += entries.len();
            let room = most.saturating_sub(pages.entries.len());
            pages.entries.extend(entries.into_iter().take(room).map(within_bounds));
            let next = page.get("nextCursor").filter(|cursor| cursor.is_string() || cursor.is_number()).map(words);
            let Some(next) = next.filter(|next| !next.is_empty()) else { break };
            if !cursors.insert(next.clone()) {
                pages.oddity =
                    Some(format!("its list of {} names a page twice and is read up to there", list.member()));
                break;
            }
            cursor = Some(next);
        }
        Ok(pages)
    }

    /// Asks for something, and returns what the result says, whatever its form.
    async fn ask(&self, request: ClientRequest) -> Result<Value, Cause> {
        let failed = |error: ServiceError| self.cause(&error);
        let asked = self.service.peer().send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let asked = asked.map_err(failed)?;
        let mut abandoned = Abandoned { peer: self.service.peer(), id: Some(asked.id.clone()) };
        let answered = asked.await_response().await;
        abandoned.id = None;
        carried(answered.map_err(failed)?).ok_or_else(no_answer)
    }

    /// The same for a request that a server of the later versions may answer with requests of its own: it gets what it wants to know, and is
    /// asked again.
    async fn ask_with_input(&self, request: impl Fn(Given) -> ClientRequest) -> Result<Value, Cause> {
        let mut given = Given::default();
        for round in 0..limits::ROUNDS {
            let mut result = self.ask(request(given)).await?;
            let wanted = if self.has_later_rules() { Wanted::of(&mut result) } else { None };
            let Some(wanted) = wanted else { return Ok(result) };
            given = wanted.given(self.service.service(), round).await.map_err(Cause::Refused)?;
        }
        Err(Cause::Protocol(format!("it asked for further input {} times in a row", limits::ROUNDS)))
    }

    /// Whether it has resources, or may have some later. Many servers say that they offer resources and have none.
    async fn has_resources(&self) -> bool {
        let info = self.service.peer().peer_info();
        let Some(offered) = info.as_ref().and_then(|info| info.capabilities.resources.clone()) else { return false };
        if offered.list_changed == Some(true) {
            return true;
        }
        let listed =
            timeout(ASIDE, async { tokio::join!(self.pages(List::Resources, 1), self.pages(List::Templates, 1)) });
        match listed.await {
            Ok((Ok(resources), templates)) => resources.all > 0 || templates.is_ok_and(|templates| templates.all > 0),
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
        match timeout(ASIDE, self.pages(List::Prompts, 1)).await {
            Ok(Ok(prompts)) => prompts.all > 0,
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
        match request {
            Request::Tool(tool, arguments) => {
                let in_headers = self.annotated.headers(tool, arguments);
                if in_headers.iter().map(|(_, value)| value.len()).sum::<usize>() > limits::HEADERS {
                    let why =
                        format!("arguments that the server wants in headers have more than {} bytes", limits::HEADERS);
                    return Err(Cause::Refused(why));
                }
                let result = self.ask_with_input(|given| {
                    let mut parameters = CallToolRequestParams::new(tool.clone()).with_arguments(arguments.clone());
                    (parameters.input_responses, parameters.request_state) = (given.responses, given.state);
                    ClientRequest::CallToolRequest(CallToolRequest::new(parameters))
                });
                Answer::of(result.await?).map_err(Cause::Refused)
            }
            Request::ReadResource(uri) => {
                let result = self.ask_with_input(|given| {
                    let mut parameters = ReadResourceRequestParams::new(uri.clone());
                    (parameters.input_responses, parameters.request_state) = (given.responses, given.state);
                    ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters))
                });
                Ok(Answer::of_resource(result.await?))
            }
            Request::GetPrompt(name, arguments) => {
                let prompt = self.ask_with_input(|given| {
                    let mut parameters = GetPromptRequestParams::new(name.clone()).with_arguments(arguments.clone());
                    (parameters.input_responses, parameters.request_state) = (given.responses, given.state);
                    ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters))
                });
                Ok(Answer::of_prompt(prompt.await?))
            }
            Request::ListResources => {
                let mut resources = self.pages(List::Resources, limits::ENTRIES).await?;
                let of = |it: &Value, address: &str, own: &str| {
                    let member = |name: &str| it.get(name).cloned().unwrap_or_default();
                    json!({
                        own: member(address), "name": member("name"), "description": member("description"),
                        "type": member("mimeType"),
                    })
                };
                let mut entries: Vec<Value> = resources.entries.iter().map(|it| of(it, "uri", "uri")).collect();
                // Servers without templates need not know the request.
                let templates = self.pages(List::Templates, limits::ENTRIES).await.unwrap_or_default();
                entries.extend(templates.entries.iter().map(|it| of(it, "uriTemplate", "uri_template")));
                resources.all += templates.all;
                Ok(listed("resources", entries, resources.all))
            }
            Request::ListPrompts => {
                let prompts = self.pages(List::Prompts, limits::ENTRIES).await?;
                let of = |it: &Value| {
                    let member = |name: &str| it.get(name).cloned().unwrap_or_default();
                    json!({ "name": member("name"), "description": member("description"), "arguments": member("arguments") })
                };
                Ok(listed("prompts", prompts.entries.iter().map(of).collect(), prompts.all))
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
            ServiceError::UnexpectedResponse => no_answer(),
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

/// The greeting that a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// With `initialize`: the versions up to 2025-11-25.
    First,
    /// With `server/discover`, and each request says who asks: the versions since 2026-07-28.
    Later,
}

impl Era {
    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::First => ClientLifecycleMode::Initialize,
            Self::Later => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        }
    }
}

/// Why there is no connection.
enum NotGreeted {
    /// The server answered the greeting with an error. It may speak only the versions of the other era: what it says then is its own matter.
    Refused(Cause),
    For(Cause),
}

impl From<Cause> for NotGreeted {
    fn from(cause: Cause) -> Self {
        Self::For(cause)
    }
}

async fn greet<T: Transport<RoleClient> + 'static>(
    definition: &ServerDefinition,
    flow: &Flow,
    transport: Guarded<T>,
    handler: Handler,
    era: Era,
) -> Result<RunningService<RoleClient, Handler>, NotGreeted> {
    let greeted = handler.serve_with_lifecycle(transport, era.mode()).await;
    if greeted.is_err() && matches!(definition.endpoint, Endpoint::Program(_)) {
        // The reason of an end is recorded before the connection counts as closed.
        let _ = timeout(FAREWELL, flow.closed()).await;
    }
    greeted.map_err(|error| match &error {
        ClientInitializeError::JsonRpcError(error) => NotGreeted::Refused(Cause::Refused(line(&error.message))),
        error => NotGreeted::For(not_greeted(definition, flow, error)),
    })
}

/// Why a server was not greeted.
fn not_greeted(definition: &ServerDefinition, flow: &Flow, error: &ClientInitializeError) -> Cause {
    match error {
        ClientInitializeError::TransportError { error, .. } if matches!(definition.endpoint, Endpoint::Web(_)) => {
            web::cause(definition, error)
        }
        other => flow.ended().unwrap_or_else(|| match other {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                Cause::Ended("it closed the connection before it answered".to_owned())
            }
            ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
                Cause::Protocol("its first answer is none to `initialize`".to_owned())
            }
            other => Cause::Protocol(line(&other.to_string())),
        }),
    }
}
