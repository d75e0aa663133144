//! The MCP servers of a session as sources of tools, beside plugins.
//!
//! Servers connect when the session is opened. Its tools are frozen with its prompt: a list that changes later is for other
//! sessions. Nobody knows what a tool of a server does, so each call needs approval, whatever the server says about it, unless the
//! user trusts what it says.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use hermes_conversation::{Role, ToolSchema, one_line_within, tokens};
use hermes_diagnostic::{Diagnose as _, Notice};
use hermes_mcp::{
    Author, Cause, Condition, Found, Front, KeptListings, Listing, McpError, Request, Sampled, Sampling, Server,
    ServerDefinition, limits, login_name, tool_name,
};
use hermes_models::Logins;
use hermes_plugin_host::services::{Finish, ModelRequest, Models, PromptMessage};
use hermes_plugin_host::{
    CallError, Cause as CallCause, Effect, Fault, FaultKind, Identity, Image, Invocation, OfferedSchema, Output, Tool,
    Tools, budgeted,
};
use hermes_protocol::{EventKind, SAMPLING, SERVER_VERSION, SamplingRequest};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use url::Url;

use crate::approval::Gate;
use crate::feed::Feed;
use crate::host::Host;
use crate::offer::OfferedServer;
use crate::shelf;

/// How long the end of a single turn waits for lists that were never kept.
const KEEPING: Duration = Duration::from_secs(20);

/// The servers of a session.
pub(crate) struct McpServers {
    servers: Vec<Source>,
    /// Servers that are left out, because a plugin has the same name.
    left_out: Vec<Notice>,
    kept: KeptListings,
    gate: SharedGate,
    models: SharedModels,
}

/// A server, and its connection unless the session only looks at its tools.
struct Source {
    definition: ServerDefinition,
    server: Option<Arc<Server>>,
}

/// The tools of a session's servers.
pub(crate) struct Offers {
    pub(crate) tools: Vec<Arc<dyn Tools>>,
    /// The servers, for approvals.
    pub(crate) identities: Vec<Identity>,
    /// The servers that the mode `auto` covers.
    pub(crate) covered: HashSet<String>,
    /// The instructions that are part of the prompt, by their servers.
    pub(crate) instructions: Vec<(String, String)>,
    pub(crate) notices: Vec<Notice>,
}

impl McpServers {
    /// Starts to connect to all servers.
    pub(crate) fn start(host: &Host, workspace: &Path, feed: &Feed) -> Self {
        let mut servers = Self::unconnected(host);
        for source in &mut servers.servers {
            let front = SessionFront {
                gate: Arc::clone(&servers.gate),
                models: Arc::clone(&servers.models),
                server: source.definition.name.clone(),
                budget: source.definition.sampling,
                used: AtomicU64::new(0),
                is_refused: AtomicBool::new(false),
                logins: host.settings.logins.clone(),
                workspace: workspace.to_owned(),
                feed: feed.clone(),
            };
            let (definition, kept) = (source.definition.clone(), servers.kept.clone());
            source.server = Some(Arc::new(Server::start(definition, Arc::new(front), kept)));
        }
        servers
    }

    /// The same without connections: only the last verified lists are used.
    pub(crate) fn unconnected(host: &Host) -> Self {
        let plugins: BTreeSet<String> = host.plugins.identities().into_iter().map(|plugin| plugin.name).collect();
        let (mut servers, mut left_out) = (Vec::new(), Vec::new());
        for definition in &host.settings.mcp {
            let name = &definition.name;
            if plugins.contains(name) || name == crate::owner::HOST {
                let text = format!(
                    "the MCP server `{name}` is left out: a plugin has the same name, and an approval must name one of them"
                );
                left_out.push(Notice::new(text, format!("rename `mcp_servers.{name}` in config.yaml")));
                continue;
            }
            servers.push(Source { definition: definition.clone(), server: None });
        }
        Self {
            servers,
            left_out,
            kept: KeptListings::new(Arc::clone(&host.documents)),
            gate: SharedGate::default(),
            models: SharedModels::default(),
        }
    }

    /// How the servers are now.
    pub(crate) fn conditions(&self) -> Vec<OfferedServer> {
        let of = |source: &Source| {
            let definition = &source.definition;
            let condition = source.server.as_ref().map_or(Condition::Connecting, |server| server.condition());
            let used = |listing: &Listing| listing.tools.iter().filter(|tool| definition.tools.has(&tool.name)).count();
            let tools = match &condition {
                Condition::Ready(listing) | Condition::Idle(listing) => Some(used(listing)),
                _ => self.kept.read(definition).map(|listing| used(&listing)),
            };
            OfferedServer { name: definition.name.clone(), condition, tools }
        };
        self.servers.iter().map(of).collect()
    }

    /// Lets the servers ask the user through the gate of the session.
    pub(crate) fn ask_through(&self, gate: &Arc<Gate>) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(gate));
    }

    /// Lets the servers that may do so ask these models, each within its budget for the session.
    pub(crate) fn sample_with(&self, models: &Arc<dyn Models>) {
        let mut shared = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        for source in self.servers.iter().filter(|source| source.definition.sampling > 0) {
            let ServerDefinition { name, sampling, .. } = &source.definition;
            // A session that renews its plugins keeps what a server has used of its budget.
            shared.entry(name.clone()).or_insert_with(|| budgeted(models, name, *sampling));
        }
    }

    /// The tools of all servers. Waits for the servers until this moment, for all of them together.
    pub(crate) async fn offers(&self, until: Instant) -> Offers {
        let found = join_all(self.servers.iter().map(|source| async move {
            let found = match &source.server {
                Some(server) => server.find(until).await,
                None => self.last_list(&source.definition),
            };
            (source, found)
        }));
        let mut offers = Offers {
            tools: Vec::new(),
            identities: Vec::new(),
            covered: self.covered().await,
            instructions: Vec::new(),
            notices: self.left_out.clone(),
        };
        let mut slow = Vec::new();
        for (source, found) in found.await {
            let (listing, failure) = match found {
                Found::Live(listing) => (listing, None),
                Found::Kept(listing, failure) => (listing, failure),
                Found::Missing(McpError { server, cause: Cause::Slow { .. } }) => {
                    slow.push(server);
                    continue;
                }
                Found::Missing(error) => {
                    offers.notices.push(left_out(&error));
                    continue;
                }
            };
            let name = &source.definition.name;
            if let Some(error) = failure {
                let text = format!(
                    "the MCP server `{name}` cannot be used now: {error}; its tools are those of the last time"
                );
                offers.notices.push(Notice::new(text, error.parts().2));
            }
            offers
                .notices
                .extend(listing.left_out.iter().map(|line| format!("the MCP server `{name}`: {line}").into()));
            if let Some(instructions) = instructions(&source.definition, &listing) {
                offers.instructions.push((name.clone(), instructions));
            }
            let (tools, notices) = ServerTools::new(&source.definition, source.server.clone(), &listing);
            offers.notices.extend(notices.into_iter().map(Notice::from));
            offers.identities.push(identity(&source.definition, &listing));
            offers.tools.push(Arc::new(tools));
        }
        offers.notices.extend(too_slow(&slow));
        offers
    }

    /// The servers that can do no more than a confined program. What this machine offers may have to be found out.
    async fn covered(&self) -> HashSet<String> {
        let definitions: Vec<ServerDefinition> = self.servers.iter().map(|source| source.definition.clone()).collect();
        let covered = tokio::task::spawn_blocking(move || {
            definitions.into_iter().filter(ServerDefinition::is_covered).map(|definition| definition.name).collect()
        });
        covered.await.unwrap_or_default()
    }

    fn last_list(&self, definition: &ServerDefinition) -> Found {
        match self.kept.read(definition) {
            Some(listing) => Found::Kept(Arc::new(listing), None),
            None => {
                let cause = Cause::Ended("no session has listed its tools yet".to_owned());
                Found::Missing(McpError { server: definition.name.clone(), cause })
            }
        }
    }

    /// Waits a while for the lists that were never kept, so that the next session has them. The user learns it.
    pub(crate) async fn keep_lists(&self, feed: &Feed) {
        let mut waiting = Vec::new();
        for server in self.servers.iter().filter_map(|source| source.server.as_ref()) {
            if server.is_worth_waiting().await {
                waiting.push(server);
            }
        }
        if waiting.is_empty() {
            return;
        }
        let names = named(waiting.iter().map(|server| server.name()));
        feed.notice(format!("waiting up to {} s for the first list of tools of {names}", KEEPING.as_secs()));
        let until = Instant::now() + KEEPING;
        join_all(waiting.into_iter().map(|server| server.keep_list(until))).await;
    }

    /// Ends all servers with everything that they started, in bounded time.
    pub(crate) async fn close(&self) {
        join_all(self.servers.iter().filter_map(|source| source.server.as_ref()).map(|server| server.close())).await;
    }
}

/// The instructions of a server as far as the user wants them in the prompt.
fn instructions(definition: &ServerDefinition, listing: &Listing) -> Option<String> {
    let (whole, most) = (listing.instructions.trim(), definition.instructions);
    if whole.is_empty() || most == 0 {
        return None;
    }
    if tokens::of_text(whole) <= most {
        return Some(whole.to_owned());
    }
    // The longest beginning that fits.
    let (mut fits, mut beyond) = (0, whole.len());
    while fits + 1 < beyond {
        let middle = usize::midpoint(fits, beyond);
        match tokens::of_text(&whole[..whole.floor_char_boundary(middle)]) <= most {
            true => fits = middle,
            false => beyond = middle,
        }
    }
    Some(format!(
        "{}\n[the rest is left out: `mcp_servers.{}.instructions` is {most} tokens]",
        whole[..whole.floor_char_boundary(fits)].trim_end(),
        definition.name
    ))
}

/// One line about all servers that had no list in time.
fn too_slow(servers: &[String]) -> Option<Notice> {
    let first = servers.first()?;
    if servers.len() == 1 {
        let cause = Cause::Slow { after: limits::PATIENCE };
        return Some(left_out(&McpError { server: first.clone(), cause }));
    }
    let (names, after) = (named(servers.iter().map(String::as_str)), limits::PATIENCE.as_secs());
    let text = format!(
        "the MCP servers {names} are left out of this session: their lists of tools did not come within {after} s"
    );
    let fix = format!("the next session has the lists that arrive; `hermes mcp test {first}` waits longer for one");
    Some(Notice::new(text, fix))
}

/// Names of servers in a line.
fn named<'s>(names: impl Iterator<Item = &'s str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn left_out(error: &McpError) -> Notice {
    Notice::new(format!("the MCP server `{}` is left out of this session: {error}", error.server), error.parts().2)
}

/// A server in approvals: they hold until its definition or its list of tools changes.
fn identity(definition: &ServerDefinition, listing: &Listing) -> Identity {
    let digest = blake3::hash(format!("{} {}", definition.identity(), listing.digest()).as_bytes());
    Identity {
        name: definition.name.clone(),
        version: SERVER_VERSION.to_owned(),
        digest: digest.to_hex().to_string(),
        is_bundled: false,
    }
}

/// The size of a server's tools in a request that contains all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// The number of tools.
    pub tools: usize,
    /// Their definitions, in estimated tokens.
    pub tokens: u32,
}

/// The size of those tools of a server's list that the user chose.
pub fn weight(definition: &ServerDefinition, listing: &Listing) -> Weight {
    let (tools, _) = ServerTools::new(definition, None, listing);
    let schemas = tools.catalog.iter().map(|tool| {
        let OfferedSchema { name, description, parameters, .. } = tool.schema.clone();
        ToolSchema { name, description, parameters }
    });
    Weight { tools: tools.catalog.len(), tokens: schemas.map(|schema| shelf::size(&schema)).sum() }
}

/// The tools of one server.
struct ServerTools {
    name: String,
    server: Option<Arc<Server>>,
    catalog: Vec<Tool>,
    /// The server's names of its tools.
    own_names: HashMap<String, String>,
    /// Tools of Hermes that read what the server has beside tools.
    readers: HashMap<String, Reader>,
}

/// A tool of Hermes over a server's resources and prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl Reader {
    /// Those that a listing and the user's choice allow.
    fn all(listing: &Listing, choice: &hermes_mcp::ToolChoice) -> Vec<Self> {
        let resources = [Self::ListResources, Self::ReadResource];
        let prompts = [Self::ListPrompts, Self::GetPrompt];
        let resources = resources.into_iter().filter(|_| listing.resources && choice.resources);
        resources.chain(prompts.into_iter().filter(|_| listing.prompts && choice.prompts)).collect()
    }

    fn schema(self, server: &str) -> OfferedSchema {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let (name, description, properties, required) = match self {
            Self::ListResources => ("list_resources", "List the resources of", json!({}), json!([])),
            Self::ReadResource => {
                let properties = json!({ "uri": text("The address, as in the list.") });
                ("read_resource", "Read a resource of", properties, json!(["uri"]))
            }
            Self::ListPrompts => ("list_prompts", "List the prompts of", json!({}), json!([])),
            Self::GetPrompt => {
                let arguments = json!({ "type": "object", "description": "Its arguments, as in the list." });
                let properties = json!({ "name": text("Its name, as in the list."), "arguments": arguments });
                ("get_prompt", "Get the text of a prompt of", properties, json!(["name"]))
            }
        };
        OfferedSchema {
            name: tool_name(server, name),
            description: format!("{description} the MCP server {server}."),
            parameters: json!({ "type": "object", "properties": properties, "required": required }).to_string(),
            extra: Vec::new(),
        }
    }

    fn request(self, mut arguments: Map<String, Value>) -> Result<Request, &'static str> {
        let text =
            |arguments: &Map<String, Value>, name| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(match self {
            Self::ListResources => Request::ListResources,
            Self::ListPrompts => Request::ListPrompts,
            Self::ReadResource => Request::ReadResource(text(&arguments, "uri").ok_or("`uri` must be a text")?),
            Self::GetPrompt => {
                let name = text(&arguments, "name").ok_or("`name` must be a text")?;
                let given = match arguments.remove("arguments") {
                    Some(Value::Object(given)) => given,
                    _ => Map::new(),
                };
                Request::GetPrompt(name, given)
            }
        })
    }
}

impl ServerTools {
    /// The tools that the user wants of a listing, with lines about those that are left out.
    fn new(definition: &ServerDefinition, connection: Option<Arc<Server>>, listing: &Listing) -> (Self, Vec<String>) {
        let server = definition.name.clone();
        let mut claims: BTreeMap<String, Vec<&hermes_mcp::ListedTool>> = BTreeMap::new();
        for tool in listing.tools.iter().filter(|tool| definition.tools.has(&tool.name)) {
            claims.entry(tool_name(&server, &tool.name)).or_default().push(tool);
        }
        let (mut catalog, mut own_names, mut lines) = (Vec::new(), HashMap::new(), Vec::new());
        for (name, tools) in claims {
            if let [one, other, ..] = tools[..] {
                let [one, other] = [one, other].map(|tool| one_line_within(&tool.name, 64));
                lines.push(format!(
                    "the MCP server `{server}`: its tools `{one}` and `{other}` are left out: both would be called `{name}`; \
                     name one of them in `mcp_servers.{server}.tools.exclude`"
                ));
                continue;
            }
            let Some(tool) = tools.first() else { continue };
            own_names.insert(name.clone(), tool.name.clone());
            catalog.push(offered(
                &server,
                definition.trusts_hints && tool.claims_to_read,
                !(definition.trusts_hints && tool.claims_to_be_closed),
                OfferedSchema {
                    name,
                    description: tool.description.clone(),
                    parameters: tool.parameters.clone(),
                    extra: Vec::new(),
                },
            ));
        }
        let mut readers = HashMap::new();
        for reader in Reader::all(listing, &definition.tools) {
            let schema = reader.schema(&server);
            // A tool of the server that has this name comes first.
            if !catalog.iter().any(|tool| tool.schema.name == schema.name) {
                readers.insert(schema.name.clone(), reader);
                catalog.push(offered(&server, definition.trusts_hints, true, schema));
            }
        }
        (Self { name: server, server: connection, catalog, own_names, readers }, lines)
    }

    fn fault(&self, kind: FaultKind, message: impl Into<String>) -> CallError {
        let cause = CallCause::Fault(Box::new(Fault::new(kind, "", message)));
        CallError { plugin: self.name.clone(), version: SERVER_VERSION.to_owned(), call: "call", cause }
    }
}

#[async_trait]
impl Tools for ServerTools {
    fn name(&self) -> &str {
        &self.name
    }

    async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        Ok(self.catalog.clone())
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, CallError> {
        let Some(server) = &self.server else {
            return Err(self.fault(FaultKind::Unavailable, format!("the MCP server `{}` is not connected", self.name)));
        };
        let arguments: Map<String, Value> = serde_json::from_str(&invocation.arguments)
            .map_err(|error| self.fault(FaultKind::InvalidInput, format!("the arguments: {error}")))?;
        let request = match (self.readers.get(&invocation.name), self.own_names.get(&invocation.name)) {
            (Some(reader), _) => reader.request(arguments),
            (None, Some(tool)) => Ok(Request::Tool(tool.clone(), arguments)),
            (None, None) => Err("the server has no such tool"),
        };
        let request = request.map_err(|why| self.fault(FaultKind::InvalidInput, why))?;
        let answer = server.call(request).await.map_err(|error| match error.cause {
            // The words of the tool itself.
            Cause::Refused(why) => self.fault(FaultKind::Failed, why),
            cause => {
                let kind =
                    if matches!(cause, Cause::Timeout { .. }) { FaultKind::Timeout } else { FaultKind::Unavailable };
                self.fault(kind, format!("the MCP server `{}` cannot be used: {cause}", self.name))
            }
        })?;
        let images = answer.images.into_iter().map(Image::Bytes).collect();
        Ok(Output { content: answer.text, images, structured: answer.structured, extra: Vec::new() })
    }
}

/// `reads`: the user trusts that it only reads, which Hermes cannot check. `open_world`: its results may contain text of
/// strangers.
fn offered(server: &str, reads: bool, open_world: bool, schema: OfferedSchema) -> Tool {
    Tool {
        schema,
        title: None,
        output_schema: None,
        toolset: format!("mcp-{server}"),
        effect: if reads { Effect::Reads } else { Effect::Dangerous },
        parallel: false,
        idempotent: false,
        open_world,
        extra: Vec::new(),
    }
}

/// The gate of a session, once its plugins run.
type SharedGate = Arc<Mutex<Option<Arc<Gate>>>>;

/// The models of the servers that may ask one, by server.
type SharedModels = Arc<Mutex<HashMap<String, Arc<dyn Models>>>>;

/// What a server may want of its session.
struct SessionFront {
    gate: SharedGate,
    models: SharedModels,
    server: String,
    /// The most tokens that it may use of the user's models, and how many it has used.
    budget: u64,
    used: AtomicU64,
    /// Whether the user refused a request, so that further ones do not ask.
    is_refused: AtomicBool,
    logins: Logins,
    workspace: PathBuf,
    feed: Feed,
}

impl SessionFront {
    /// Whether a request may be sent. The first one of a server asks the user in the mode `ask`.
    async fn permitted(&self, request: &Sampling) -> Result<(), String> {
        let refused = || "the user refused that this server asks a model".to_owned();
        if self.is_refused.load(Ordering::Relaxed) {
            return Err(refused());
        }
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gate = gate.ok_or("the session does not answer requests of servers yet")?;
        let said = request.system.iter().chain(request.messages.iter().map(|(_, text)| text));
        let shown = SamplingRequest {
            text: said.map(String::as_str).collect::<Vec<_>>().join("\n"),
            max_tokens: request.max_tokens,
            budget: self.budget,
            used: self.used.load(Ordering::Relaxed),
            rule: None,
        };
        gate.sampling(&self.server, shown).await.map_err(|_| {
            self.is_refused.store(true, Ordering::Relaxed);
            refused()
        })
    }
}

#[async_trait]
impl Front for SessionFront {
    async fn ask(&self, question: String, choices: Vec<String>, takes_values: bool) -> Option<String> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone();
        gate?.clarify(Some(&self.server), question, choices, takes_values).await
    }

    fn is_attended(&self) -> bool {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.as_ref().is_some_and(|gate| gate.can_ask())
    }

    async fn token(&self, url: &Url, refused: Option<&str>) -> Result<Option<String>, String> {
        let token = self.logins.token_for(&login_name(&self.server), url, refused).await;
        token.map_err(|error| error.to_string())
    }

    async fn sample(&self, request: Sampling) -> Result<Sampled, String> {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner).get(&self.server).cloned();
        let models = models.ok_or("the session does not answer requests of servers yet")?;
        self.permitted(&request).await?;
        self.progress("asks a model");
        let role = |author| match author {
            Author::User => Role::User,
            Author::Model => Role::Assistant,
        };
        let system = request.system.into_iter().map(|text| PromptMessage::text(Role::System, text));
        let said = request.messages.into_iter().map(|(author, text)| PromptMessage::text(role(author), text));
        let request = ModelRequest {
            task: SAMPLING.to_owned(),
            messages: system.chain(said).collect(),
            max_tokens: Some(request.max_tokens),
            temperature: request.temperature,
            schema: None,
        };
        let reply = models.complete(request).await.map_err(|fault| match fault.code.as_str() {
            "budget" => format!("the tokens of `mcp_servers.{}.sampling` for this session are used up", self.server),
            _ => format!("no model answered: {}", fault.message),
        })?;
        let tokens = u64::from(reply.usage.input) + u64::from(reply.usage.output);
        let used = self.used.fetch_add(tokens, Ordering::Relaxed) + tokens;
        let (name, budget) = (&self.server, self.budget);
        self.notice(format!(
            "the MCP server `{name}` asked {}: {tokens} tokens, {used} of its {budget} in this session",
            reply.model
        ));
        Ok(Sampled { text: reply.text, model: reply.model, is_cut: reply.finish == Finish::Length })
    }

    fn notice(&self, text: String) {
        self.feed.notice(text);
    }

    fn progress(&self, text: &str) {
        self.feed.publish(EventKind::Progress { text: format!("{}: {text}", self.server) });
    }

    fn log(&self, is_warning: bool, text: &str) {
        match is_warning {
            true => tracing::info!(server = self.server, "{text}"),
            false => tracing::debug!(server = self.server, "{text}"),
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.workspace.clone()]
    }
}

/// Until when a session waits for the tools of its servers. A session with a stored prompt has its tools already. It waits only
/// for servers without a kept list.
pub(crate) fn patience(has_prompt: bool) -> Instant {
    let now = Instant::now();
    if has_prompt { now } else { now + limits::PATIENCE }
}

#[cfg(test)]
mod tests {
    use hermes_mcp::{Confinement, Endpoint, ListedTool, Program, ToolChoice};

    use super::*;

    fn definition(tools: ToolChoice) -> ServerDefinition {
        let program = Program {
            command: "server".to_owned(),
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            folder: PathBuf::new(),
            environment: Vec::new(),
            confinement: Confinement::off(),
        };
        ServerDefinition {
            name: "my-fs".to_owned(),
            endpoint: Endpoint::Program(program),
            timeout: Duration::ZERO,
            connect_timeout: Duration::ZERO,
            tools,
            trusts_hints: false,
            accepts_defaults: false,
            sampling: 0,
            instructions: 0,
            is_shared: false,
        }
    }

    fn listing(names: &[&str]) -> Listing {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: format!("{name}."),
            parameters: "{}".to_owned(),
            claims_to_read: true,
            claims_to_be_closed: false,
        };
        Listing { tools: names.iter().map(tool).collect(), ..Listing::default() }
    }

    #[test]
    fn a_tool_needs_approval_whatever_its_server_says() {
        let (tools, lines) = ServerTools::new(&definition(ToolChoice::default()), None, &listing(&["read.file"]));
        let tool = &tools.catalog[0];
        assert_eq!((tool.schema.name.as_str(), tool.effect), ("mcp_my_fs_read_file", Effect::Dangerous));
        assert_eq!((tools.own_names["mcp_my_fs_read_file"].as_str(), lines), ("read.file", Vec::new()));
    }

    #[test]
    fn a_claim_to_read_counts_only_if_the_user_trusts_it() {
        let mut definition = definition(ToolChoice::default());
        definition.trusts_hints = true;
        let mut listing = Listing { resources: true, ..listing(&["read", "write"]) };
        listing.tools[1].claims_to_read = false;
        let (tools, _) = ServerTools::new(&definition, None, &listing);
        let effects: Vec<(&str, Effect)> =
            tools.catalog.iter().map(|tool| (tool.schema.name.as_str(), tool.effect)).collect();
        let expected = [
            ("mcp_my_fs_read", Effect::Reads),
            ("mcp_my_fs_write", Effect::Dangerous),
            ("mcp_my_fs_list_resources", Effect::Reads),
            ("mcp_my_fs_read_resource", Effect::Reads),
        ];
        assert_eq!(effects, expected);
    }

    #[test]
    fn two_tools_that_would_have_one_name_are_left_out_by_both_names() {
        let (tools, lines) = ServerTools::new(&definition(ToolChoice::default()), None, &listing(&["a.b", "a_b", "c"]));
        assert_eq!(tools.catalog.len(), 1);
        assert!(lines[0].contains("`a.b` and `a_b`") && lines[0].contains("`mcp_my_fs_a_b`"), "{lines:?}");
        let choice = ToolChoice { exclude: vec!["a.b".to_owned()], ..ToolChoice::default() };
        let (tools, lines) = ServerTools::new(&definition(choice), None, &listing(&["a.b", "a_b", "c"]));
        assert_eq!((tools.own_names["mcp_my_fs_a_b"].as_str(), lines.len()), ("a_b", 0));
    }

    #[test]
    fn resources_and_prompts_are_tools_if_the_server_has_them_and_the_user_wants_them() {
        let listing = Listing { resources: true, prompts: true, ..listing(&["get_prompt"]) };
        let names = |choice| -> Vec<String> {
            let (tools, _) = ServerTools::new(&definition(choice), None, &listing);
            tools.catalog.iter().map(|tool| tool.schema.name.clone()).collect()
        };
        let all = names(ToolChoice::default());
        // The server's own tool of this name comes first.
        let expected = ["get_prompt", "list_resources", "read_resource", "list_prompts"];
        assert_eq!(all, expected.map(|name| format!("mcp_my_fs_{name}")));
        let none = names(ToolChoice { resources: false, prompts: false, ..ToolChoice::default() });
        assert_eq!(none, ["mcp_my_fs_get_prompt"]);
        let Value::Object(arguments) = json!({"name": "greet", "arguments": {"a": "b"}}) else { panic!("an object") };
        let Value::Object(given) = arguments["arguments"].clone() else { panic!("an object") };
        assert_eq!(Reader::GetPrompt.request(arguments), Ok(Request::GetPrompt("greet".to_owned(), given)));
        assert!(Reader::ReadResource.request(Map::new()).is_err());
    }

    #[test]
    fn a_list_weighs_what_its_chosen_tools_take() {
        let all = listing(&["a", "b", "c"]);
        let whole = weight(&definition(ToolChoice::default()), &all);
        let choice = ToolChoice { include: Some(vec!["b".to_owned()]), ..ToolChoice::default() };
        let one = weight(&definition(choice), &all);
        assert_eq!((whole.tools, one.tools, whole.tokens), (3, 1, 3 * one.tokens));
        assert!(one.tokens > 10, "{one:?}");
    }

    #[test]
    fn an_approval_holds_until_the_list_changes() {
        let definition = definition(ToolChoice::default());
        let one = identity(&definition, &listing(&["a"]));
        assert_eq!(one, identity(&definition, &listing(&["a"])));
        assert_ne!(one.digest, identity(&definition, &listing(&["a", "b"])).digest);
    }
}
