//! The tools of a session, and the way of a call from its arguments to its answer.

mod arguments;
pub(crate) mod result;
mod schedule;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use hermes_conversation::{Media, MessageId, Part, SessionId, ToolCall, ToolSchema, found, one_line_within};
use hermes_plugin_host::services::Refusal;
use hermes_plugin_host::{
    CallPreview, Effect, Image, Invocation, OfferedSchema, OfferedTools, Output, Tool, ToolPreview, Tools, WHOLE_TEXT,
};
use hermes_protocol::RefusedBy;

use crate::answer::Answer;
use crate::approval::{CallEffect, Gate, Refused};
use crate::call_record::refused_by;
use crate::clarify;
use crate::clash::{Owners, clash};
use crate::delegation::limits::{Listing, ToolLimits};
use crate::delegation::{self, Delegate};
use crate::hook_dispatcher::{Blocked, HookDispatcher};
use crate::kept_results::{self, Kept};
use crate::memory_extras::Mirrors;
use crate::offer::{Consent, OfferedTool};
use crate::owner::HOST;
use crate::screening;
use crate::session_search::{self, SessionSearch};
use crate::shelf::{self, Owned, Shelf};
use crate::skills::manage::{self, SkillManager};
use crate::skills::{self, SkillCatalog};
use crate::toolbox::schedule::Nature;
use crate::untrusted::{self, Source};

/// The most bytes of a tool's name in an error: a model can write any name.
const SHOWN_NAME: usize = 64;

/// What offers tools beside the host.
pub(crate) struct Sources<'a> {
    pub(crate) plugins: &'a [Arc<dyn Tools>],
    /// MCP servers.
    pub(crate) servers: &'a [Arc<dyn Tools>],
    /// The plugins that say what a call of their tools would do.
    pub(crate) previews: Vec<Arc<dyn ToolPreview>>,
    /// The plugins that can hear from strangers, or that remember what they wrote.
    pub(crate) foreign: BTreeSet<String>,
    /// The plugins that can quote the conversation.
    pub(crate) readers: BTreeSet<String>,
}

/// All tools that the model can call.
pub(crate) struct Toolbox {
    offered: HashMap<String, Offered>,
    own: OwnTools,
    dispatcher: Arc<HookDispatcher>,
    gate: Arc<Gate>,
    mirrors: Arc<Mirrors>,
    /// Whether every plugin listed its tools.
    is_complete: bool,
    /// The tools of each plugin that listed them, also those that are left out.
    catalogs: BTreeMap<String, Vec<String>>,
    /// The names of MCP servers.
    servers: BTreeSet<String>,
    /// See [`Sources::foreign`].
    foreign: BTreeSet<String>,
    /// See [`Sources::readers`].
    readers: BTreeSet<String>,
    /// See [`Sources::previews`].
    previews: Vec<Arc<dyn ToolPreview>>,
    /// The tools that the prompt of the session leaves out.
    shelf: Option<Shelf>,
}

/// The tool that shows a kept result in parts.
const READ_FILE: &str = "read_file";

/// The key of an output under which a tool gives a reminder.
const REMINDER: &str = "reminder";

/// What the host's own tools need.
pub(crate) struct OwnTools {
    pub(crate) skills: SkillCatalog,
    /// `None` if the model may not change skills.
    pub(crate) manager: Option<SkillManager>,
    /// `None` if the user switched the search off.
    pub(crate) search: Option<SessionSearch>,
    /// `None` if the session's agent may not delegate.
    pub(crate) delegate: Option<Delegate>,
    /// Whether the model can ask the user.
    pub(crate) clarifies: bool,
    /// The tools that the session may have, of plugins too.
    pub(crate) limits: ToolLimits,
    /// The plugins whose tools the session does not have.
    pub(crate) without: Vec<String>,
}

impl OwnTools {
    /// The names of all of the host's tools, whether a session has them or not.
    pub(crate) const NAMES: [&str; 8] = [
        skills::LIST,
        skills::VIEW,
        manage::NAME,
        session_search::NAME,
        clarify::NAME,
        delegation::NAME,
        shelf::SEARCH,
        shelf::USE,
    ];

    /// What a call of one of them does by itself. Starting a subagent changes nothing: each of its calls passes the gate, in the
    /// session's mode.
    fn effect(name: &str) -> Effect {
        if name == manage::NAME { Effect::Writes } else { Effect::Reads }
    }

    fn schemas(&self) -> Vec<ToolSchema> {
        let search = self.search.as_ref().map(|_| SessionSearch::schema());
        let clarify = self.clarifies.then(clarify::schema);
        let delegate = self.delegate.as_ref().map(Delegate::schema);
        let manager = self.manager.as_ref().map(|_| SkillManager::schema());
        let all = self.skills.schemas().into_iter().chain(manager).chain(search).chain(clarify).chain(delegate);
        all.filter(|schema| self.limits.admit(&schema.name)).collect()
    }

    fn has(&self, name: &str) -> bool {
        let exists = match name {
            session_search::NAME => self.search.is_some(),
            manage::NAME => self.manager.is_some(),
            clarify::NAME => self.clarifies,
            delegation::NAME => self.delegate.is_some(),
            shelf::SEARCH | shelf::USE => false,
            _ => Self::NAMES.contains(&name) && !self.skills.schemas().is_empty(),
        };
        exists && self.limits.admit(name)
    }

    /// Calls one of them. `tools` are all tools of the session.
    async fn call(&self, gate: &Gate, call: &ToolCall, id: &str, tools: &Listing) -> Result<String, String> {
        let (name, arguments) = (call.name.as_str(), call.arguments.as_str());
        match (&self.search, &self.delegate) {
            _ if name == clarify::NAME => clarify::call(gate, arguments).await,
            (Some(search), _) if name == session_search::NAME => search.call(arguments).await.map(|answer| answer.text),
            _ if name == manage::NAME => match &self.manager {
                Some(manager) => manager.call(gate, &self.skills, arguments).await,
                None => Err(format!("there is no tool `{name}`")),
            },
            (_, Some(delegate)) if name == delegation::NAME => delegate.call(arguments, id, tools).await,
            _ => self.skills.call(name, arguments).await,
        }
    }
}

struct Offered {
    plugin: Arc<dyn Tools>,
    tool: Tool,
}

impl Toolbox {
    /// Lists the tools of every plugin and server. A tool that several of them offer belongs to the one that `owners` names.
    pub(crate) async fn load(
        sources: Sources<'_>,
        owners: &Owners,
        own: OwnTools,
        dispatcher: Arc<HookDispatcher>,
        gate: Arc<Gate>,
        mirrors: Arc<Mirrors>,
    ) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        let mut claims: BTreeMap<String, Vec<Offered>> = BTreeMap::new();
        let mut is_complete = true;
        let mut catalogs = BTreeMap::new();
        let servers: BTreeSet<String> = sources.servers.iter().map(|server| server.name().to_owned()).collect();
        let left_out = |owner: &str, tool: &str, why: &str| {
            format!("{}: its tool `{tool}` is left out: {why}", kind_and_name(&servers, owner))
        };
        for plugin in sources.plugins.iter().chain(sources.servers) {
            let tools = match plugin.catalog().await {
                Ok(tools) => tools,
                Err(error) => {
                    notices.push(format!("{error}; its tools are left out"));
                    is_complete = false;
                    continue;
                }
            };
            let names = tools.iter().map(|tool| tool.schema.name.clone()).collect();
            catalogs.insert(plugin.name().to_owned(), names);
            if own.without.iter().any(|without| without == plugin.name()) {
                continue;
            }
            for tool in tools.into_iter().filter(|tool| own.limits.admit(&tool.schema.name)) {
                let name = tool.schema.name.clone();
                if let Some(why) = unusable(&tool) {
                    notices.push(left_out(plugin.name(), &name, why));
                    continue;
                }
                match screening::tool_of(&kind_and_name(&servers, plugin.name()), tool) {
                    Ok((tool, suspicious)) => {
                        notices.extend(suspicious.iter().map(ToString::to_string));
                        claims.entry(name).or_default().push(Offered { plugin: Arc::clone(plugin), tool });
                    }
                    Err(why) => notices.push(left_out(plugin.name(), &name, &why)),
                }
            }
        }
        let mut offered: HashMap<String, Offered> = HashMap::new();
        for (name, claims) in claims {
            let offered_by: Vec<String> = claims.iter().map(|claim| claim.plugin.name().to_owned()).collect();
            let offered_by: Vec<&str> = offered_by.iter().map(String::as_str).collect();
            let holder = owners.of(&name, offered_by.iter().copied());
            let was_chosen =
                holder.is_some_and(|holder| owners.chosen.get(&name).is_some_and(|chosen| chosen == holder));
            for claim in claims {
                let plugin = claim.plugin.name();
                if holder == Some(plugin) && !offered.contains_key(&name) {
                    offered.insert(name.clone(), claim);
                } else if !was_chosen {
                    notices.push(left_out(plugin, &name, &clash(&name, plugin, holder, &offered_by)));
                }
            }
        }
        let Sources { foreign, readers, previews, .. } = sources;
        let mut toolbox = Self {
            offered,
            own,
            dispatcher,
            gate,
            mirrors,
            is_complete,
            catalogs,
            servers,
            foreign,
            readers,
            previews,
            shelf: None,
        };
        let listing = toolbox.listing();
        let toolsets = listing.keys().cloned().collect();
        toolbox.own.skills.set_tools(OfferedTools { names: listing.into_values().flatten().collect(), toolsets });
        (toolbox, notices)
    }

    /// Replaces the hook dispatcher.
    pub(crate) fn set_dispatcher(&mut self, dispatcher: Arc<HookDispatcher>) {
        self.dispatcher = dispatcher;
    }

    /// The tools of each plugin that listed them, also those that are left out.
    pub(crate) fn catalogs(&self) -> &BTreeMap<String, Vec<String>> {
        &self.catalogs
    }

    /// The names of all tools, also of those that are left out.
    pub(crate) fn every_tool(&self) -> Vec<String> {
        self.catalogs.values().flatten().cloned().chain(own_tools()).collect()
    }

    /// Whether a source of tools is an MCP server.
    pub(crate) fn is_server(&self, name: &str) -> bool {
        self.servers.contains(name)
    }

    /// Whether a tool can quote the conversation, with what strangers wrote in it.
    pub(crate) fn quotes_conversation(&self, tool: &str) -> bool {
        self.offered.get(tool).is_some_and(|offered| self.readers.contains(offered.plugin.name()))
    }

    /// Leaves a tool out until the session is opened again.
    pub(crate) fn leave_out(&mut self, tool: &str) {
        self.offered.remove(tool);
    }

    /// Names the tools that the prompt leaves out.
    pub(crate) fn set_shelf(&mut self, shelf: Option<Shelf>) {
        self.shelf = shelf;
    }

    pub(crate) fn shelf(&self) -> Option<&Shelf> {
        self.shelf.as_ref()
    }

    /// Whether the calls of a tool are counted, so that it has room in the prompts of later sessions: it is on the shelf, or was there.
    pub(crate) fn is_countable(&self, tool: &str) -> bool {
        let is_of_server = || self.offered.get(tool).is_some_and(|offered| self.is_server(offered.plugin.name()));
        self.shelf.as_ref().is_some_and(|shelf| shelf.has(tool) || is_of_server())
    }

    /// The calls, each of a tool on the shelf as a call of the tool itself.
    pub(crate) fn opened(&self, calls: &[ToolCall]) -> Vec<ToolCall> {
        calls.iter().map(|call| self.open(call).and_then(Result::ok).unwrap_or_else(|| call.clone())).collect()
    }

    /// The call of a tool on the shelf that this call stands for, or why it cannot be made. `None` for another call.
    fn open(&self, call: &ToolCall) -> Option<Result<ToolCall, String>> {
        (call.name == shelf::USE && self.shelf.is_some()).then(|| {
            let parameters = |name: &str| Some(self.offered.get(name)?.tool.schema.parameters.as_str());
            shelf::opened(call, parameters, |call, schema| arguments::fitted(call, schema).into_owned())
        })
    }

    /// What the search on the shelf finds.
    fn find(&self, arguments: &str) -> Result<Content, String> {
        let Some(shelf) = &self.shelf else { return Err("every tool is in the prompt".to_owned()) };
        let given: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
        let query = given["query"].as_str().ok_or("`query` must be a text")?;
        let tools: Vec<Owned> = self.schemas().into_iter().filter(|(_, schema)| shelf.has(&schema.name)).collect();
        let answer = shelf::find(query, given["server"].as_str().filter(|server| !server.is_empty()), &tools);
        let structured = (!answer.shown.is_empty()).then(|| found::to_json(answer.shown.iter().map(String::as_str)));
        Ok(Content { structured, ..Content::text(answer.text) })
    }

    /// Whether every plugin listed its tools.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The schemas for the model with their plugins, sorted by name. The host's own tools belong to `hermes`.
    pub(crate) fn schemas(&self) -> Vec<(String, ToolSchema)> {
        let plugins = self.offered.values().map(|offered| {
            let OfferedSchema { name, description, parameters, .. } = offered.tool.schema.clone();
            (offered.plugin.name().to_owned(), ToolSchema { name, description, parameters })
        });
        let own = self.own.schemas().into_iter().map(|schema| (HOST.to_owned(), schema));
        let mut schemas: Vec<(String, ToolSchema)> = plugins.chain(own).collect();
        schemas.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        schemas
    }

    /// All tools with their owners, by name, and what the user is asked about them now.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        let of_shelf = self.shelf.iter().flat_map(Shelf::schemas).map(|schema| (HOST.to_owned(), schema));
        let tools = self.schemas().into_iter().chain(of_shelf).map(|(owner, schema)| {
            let name = schema.name.as_str();
            let consent = match self.offered.get(name) {
                Some(Offered { plugin, tool }) => self.gate.consent(Some(plugin.name()), name, tool.effect),
                None if name == manage::NAME => self.gate.consent_to_skills(name),
                None => match self.gate.consent(None, name, OwnTools::effect(name)) {
                    Consent::Reads if name == delegation::NAME => Consent::Delegates,
                    consent => consent,
                },
            };
            let is_on_shelf = self.shelf.as_ref().is_some_and(|shelf| shelf.has(name));
            OfferedTool { tokens: shelf::size(&schema), name: schema.name, owner, consent, is_on_shelf }
        });
        tools.collect()
    }

    /// The names of all tools by toolset. The host's own tools are toolsets of their own, but those for skills are one.
    fn listing(&self) -> Listing {
        let plugins = self.offered.iter().map(|(name, offered)| (offered.tool.toolset.clone(), name.clone()));
        let own = self.own.schemas().into_iter().map(|schema| match schema.name.as_str() {
            skills::LIST | skills::VIEW | manage::NAME => ("skills".to_owned(), schema.name),
            _ => (schema.name.clone(), schema.name),
        });
        let mut listing = Listing::new();
        for (toolset, name) in plugins.chain(own) {
            listing.entry(toolset).or_default().insert(name);
        }
        listing
    }

    pub(crate) fn skills(&self) -> &SkillCatalog {
        &self.own.skills
    }

    /// Splits calls into runs. Adjacent calls that may run beside each other form one run; every other call is a run of its own.
    pub(crate) fn runs<'c>(&self, calls: &'c [ToolCall]) -> Vec<&'c [ToolCall]> {
        // Tasks run beside each other, but not beside other calls: they may change what those read.
        let delegates = |name: &str| name == delegation::NAME && !self.offered.contains_key(name);
        let beside = |a: &str, b: &str| match (delegates(a), delegates(b)) {
            (false, false) => self.nature(a).parallel && self.nature(b).parallel,
            (a, b) => a && b,
        };
        schedule::runs(calls, beside)
    }

    /// For each call, the earlier one whose answer it shares, if there is one.
    pub(crate) fn originals(&self, calls: &[ToolCall]) -> Vec<Option<usize>> {
        schedule::originals(calls, |name| self.nature(name))
    }

    fn nature(&self, name: &str) -> Nature {
        match self.offered.get(name) {
            Some(offered) => Nature::of(&offered.tool),
            // A question to the user runs alone, and the user may answer it in another way the next time.
            None if name == clarify::NAME => Nature { parallel: false, reads: true, repeatable: false },
            None if name == delegation::NAME || name == manage::NAME => {
                Nature { parallel: false, reads: false, repeatable: false }
            }
            // The host's other tools only read.
            None if OwnTools::NAMES.contains(&name) => Nature { parallel: true, reads: true, repeatable: true },
            None => Nature { parallel: false, reads: true, repeatable: false },
        }
    }

    /// Starts the calls of a run together and returns the answers in the order of the calls; none for a call that shares the answer
    /// of an earlier one. The run belongs to this reply, where `earlier` calls precede it. A call that asks the user runs alone.
    pub(crate) fn start<'a>(
        &'a self,
        run: &'a [ToolCall],
        reply: MessageId,
        earlier: usize,
        originals: &'a [Option<usize>],
    ) -> impl Stream<Item = (&'a ToolCall, Option<Answer>)> + 'a {
        // More calls at once would only compete for the processor.
        const MAX_PARALLEL: usize = 8;
        self.gate.running().run_begins();
        self.gate.record().run_begins();
        let calls = run.iter().zip(originals.iter().skip(earlier)).zip(earlier..);
        let started = calls.map(move |((call, original), at)| async move {
            if original.is_some() {
                return (call, None);
            }
            let _running = self.gate.running().begin().await;
            // Some models use the ids of calls again, so plugins get ids of the host.
            (call, Some(self.call(call, format!("{reply}.{at}")).await))
        });
        stream::iter(started).buffered(MAX_PARALLEL)
    }

    /// Writes a result that is too long for the model into a file, if the model has a tool that reads it.
    pub(crate) async fn keep(
        &self,
        home: &Path,
        session: &SessionId,
        call: &ToolCall,
        (text, is_untrusted): (&str, bool),
    ) -> Option<Kept> {
        // A page of a file is a part of something that is kept already.
        if call.name == READ_FILE || !self.offered.contains_key(READ_FILE) {
            return None;
        }
        let kept = kept_results::keep(home, session, text.to_owned(), is_untrusted).await;
        kept.inspect_err(|error| tracing::warn!(%error, "a long result is not kept as a file")).ok().flatten()
    }

    /// The plugin that a tool belongs to. The host's own tools and unknown names belong to `hermes`.
    fn owner(&self, call: &ToolCall) -> &str {
        self.offered.get(&call.name).map_or(HOST, |offered| offered.plugin.name())
    }

    async fn call(&self, call: &ToolCall, id: String) -> Answer {
        // Hooks and approvals see what the tool gets. The log keeps what the model wrote.
        let call = &*match self.offered.get(&call.name) {
            Some(offered) => arguments::fitted(call, &offered.tool.schema.parameters),
            None => {
                let own = self.own.schemas().into_iter().find(|schema| schema.name == call.name);
                arguments::fitted(call, own.as_ref().map_or("", |schema| &schema.parameters))
            }
        };
        // The user reads the time as that of the tool, not as that of a decision.
        let begun = self.gate.running().measure();
        let result = self.carry_out(call, id).await;
        let elapsed_ms = u64::try_from(self.gate.running().taken(&begun).as_millis()).unwrap_or(u64::MAX);
        let failed = result.is_err();
        let mut refused = match &result {
            Ok(content) => content.refused,
            Err(Failed::Hook(_)) => Some(RefusedBy::Hook),
            Err(Failed::Refused(refused)) => Some(refused_by(refused.by)),
            Err(Failed::Host(_) | Failed::Tool(_)) => None,
        };
        // A tool's error text is as foreign as its results. Errors that Hermes words itself are not.
        let may_be_foreign = match &result {
            Ok(content) => !content.is_of_host,
            Err(Failed::Tool(_)) => true,
            Err(Failed::Host(_) | Failed::Hook(_) | Failed::Refused(_)) => false,
        };
        let is_of_foreign_hook = matches!(&result, Err(Failed::Hook(blocked)) if self.foreign.contains(&blocked.hook));
        let Content { text, images, structured, reminder, whole, .. } =
            result.unwrap_or_else(|failed| Content::text(format!("error: {}", failed.text())));
        let (changes, quoted) = self.gate.record().end(&text);
        refused = refused.or(quoted.filter(|_| failed));
        let is_of_strangers = || {
            self.offered.get(&call.name).is_some_and(|offered| self.is_untrusted(offered))
                || kept_results::is_of_strangers(&call.arguments, &text)
        };
        let is_untrusted = is_of_foreign_hook || may_be_foreign && is_of_strangers();
        let answer = Answer {
            content: text,
            images,
            structured,
            reminder,
            whole,
            is_untrusted,
            failed,
            refused,
            changes,
            elapsed_ms,
        };
        self.dispatcher.after_tool(call, self.owner(call), &answer);
        answer
    }

    fn is_untrusted(&self, offered: &Offered) -> bool {
        let name = offered.plugin.name();
        let source = match (self.is_server(name), self.foreign.contains(name)) {
            (true, _) => Source::Server,
            (false, true) => Source::ForeignPlugin,
            (false, false) => Source::Plugin,
        };
        untrusted::is_of(&offered.tool, source)
    }

    /// The effect of a call, as its plugin describes it. If the plugin fails to answer, the call counts as dangerous.
    async fn deed(&self, offered: &Offered, call: &ToolCall) -> CallEffect {
        let of_tool = CallEffect::of(offered.tool.effect);
        let preview = self.previews.iter().find(|preview| preview.name() == offered.plugin.name());
        let is_asked = of_tool.effect != Effect::Reads && !self.is_server(offered.plugin.name());
        let Some(preview) = preview.filter(|_| is_asked) else { return of_tool };
        match preview.preview(call.name.clone(), call.arguments.clone()).await {
            Ok(CallPreview { effect, sentence }) => {
                CallEffect { dangerous: effect == Effect::Dangerous, sentence, ..of_tool }
            }
            Err(error) => {
                tracing::warn!(%error, tool = call.name, "what the call would do is not known");
                CallEffect { dangerous: true, ..of_tool }
            }
        }
    }

    async fn carry_out(&self, call: &ToolCall, id: String) -> Result<Content, Failed> {
        if !matches!(serde_json::from_str(&call.arguments), Ok(serde_json::Value::Object(_))) {
            return Err(Failed::Host(format!(
                "`{}` was not run, because its arguments are not a JSON object: write them again",
                call.name
            )));
        }
        let offered = self.offered.get(&call.name);
        let is_of_shelf = self.shelf.is_some() && [shelf::SEARCH, shelf::USE].contains(&call.name.as_str());
        if offered.is_none() && !is_of_shelf && !self.own.has(&call.name) {
            let is_shown = |name: &str| self.shelf.as_ref().is_none_or(|shelf| !shelf.has(name));
            let names = self.schemas().into_iter().map(|(_, schema)| schema.name).filter(|name| is_shown(name));
            let further = self.shelf.as_ref().map(|_| format!("further ones with {}", shelf::SEARCH));
            let names: Vec<String> = names.chain(further).collect();
            let name = one_line_within(&call.name, SHOWN_NAME);
            return Err(Failed::Host(format!("there is no tool `{name}`; available tools: {}", names.join(", "))));
        }
        let objections = self.dispatcher.before_tool(call, self.owner(call)).await.map_err(Failed::Hook)?;
        let plugin = offered.map(|offered| offered.plugin.name());
        let deed = match offered {
            Some(offered) => self.deed(offered, call).await,
            None => CallEffect::of(OwnTools::effect(&call.name)),
        };
        match self.gate.tool(plugin, call, deed, objections).await {
            Ok(()) => {}
            Err(refused) if refused.by == Refusal::Plan => {
                return Ok(Content { is_of_host: true, ..Content::unchanged(refused.text) });
            }
            Err(refused) => return Err(Failed::Refused(refused)),
        }
        if is_of_shelf {
            let found = match self.open(call) {
                Some(Err(why)) => Err(why),
                // The other calls were opened before they came here.
                _ => self.find(&call.arguments),
            };
            return found.map_err(Failed::Host);
        }
        let Some(offered) = offered else {
            let text = self.own.call(&self.gate, call, &id, &self.listing()).await;
            return text.map(Content::text).map_err(Failed::Host);
        };
        // Requests of the tool itself, such as more time.
        let extra = offered.tool.extra.clone();
        let invocation = Invocation { id, name: call.name.clone(), arguments: call.arguments.clone(), extra };
        let output = match offered.plugin.call(invocation).await.map_err(|error| error.for_model(&call.name)) {
            Ok(output) => output,
            // The tool has not failed: the user wants nothing changed.
            Err(text) if self.gate.record().is_of_plan(&text) => return Ok(Content::unchanged(text)),
            Err(text) => return Err(Failed::Tool(text)),
        };
        self.mirrors.pass_on(offered.plugin.name(), &output);
        Ok(Content::of(output))
    }
}

/// Why a call has no result.
enum Failed {
    /// Hermes says so.
    Host(String),
    /// The tool says so, or the plugin or the server that it belongs to.
    Tool(String),
    /// A hook did not let it pass.
    Hook(Blocked),
    /// The approvals did not let it pass.
    Refused(Refused),
}

impl Failed {
    fn text(self) -> String {
        match self {
            Self::Host(text)
            | Self::Tool(text)
            | Self::Hook(Blocked { text, .. })
            | Self::Refused(Refused { text, .. }) => text,
        }
    }
}

/// What a tool returned.
struct Content {
    text: String,
    images: Vec<Part>,
    structured: Option<String>,
    reminder: Option<String>,
    whole: Option<String>,
    /// Whether Hermes says this in place of the tool.
    is_of_host: bool,
    /// Who did not let the call do what it was to do.
    refused: Option<RefusedBy>,
}

impl Content {
    fn text(text: String) -> Self {
        let (images, structured, reminder, whole) = (Vec::new(), None, None, None);
        Self { text, images, structured, reminder, whole, is_of_host: false, refused: None }
    }

    /// The answer to a call that the mode `plan` refuses.
    fn unchanged(text: String) -> Self {
        Self { refused: Some(RefusedBy::Mode), ..Self::text(text) }
    }

    /// Converts the images. The text names each image that cannot be sent.
    fn of(output: Output) -> Self {
        let Output { content: mut text, images, structured, extra } = output;
        let (mut reminder, mut whole) = (None, None);
        for (key, text) in extra {
            match key.as_str() {
                REMINDER => _ = reminder.get_or_insert(text),
                WHOLE_TEXT => _ = whole.get_or_insert(text),
                _ => {}
            }
        }
        let mut parts = Vec::new();
        let mut left = hermes_session_store::MOST_IN_A_MESSAGE;
        for image in images {
            let media = match image {
                Image::Url(url) => Media::image_at(&url),
                Image::Bytes(bytes) => Media::image(bytes, None),
            };
            let media = media.map_err(|error| error.to_string()).and_then(|media| {
                let size = media.blob().map_or(0, |blob| blob.size);
                left = left.checked_sub(size).ok_or("the images of one result are too large together")?;
                Ok(media)
            });
            match media {
                Ok(media) => parts.push(Part::Image(media)),
                Err(why) => text.push_str(&format!("\n[an image is left out: {why}]")),
            }
        }
        Self { text, images: parts, structured, reminder, whole, is_of_host: false, refused: None }
    }
}

fn kind_and_name(servers: &BTreeSet<String>, name: &str) -> String {
    let kind = if servers.contains(name) { "MCP server" } else { "plugin" };
    format!("{kind} `{name}`")
}

/// The names of the host's own tools.
pub fn own_tools() -> impl Iterator<Item = String> {
    OwnTools::NAMES.into_iter().map(str::to_owned)
}

/// Why no session can use a tool; `None` if one can.
pub fn unusable(tool: &Tool) -> Option<&'static str> {
    let name = &tool.schema.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Some("its name must be 1 to 64 letters, digits, `_` and `-`");
    }
    if OwnTools::NAMES.contains(&name.as_str()) {
        return Some("the host reserves this name");
    }
    match serde_json::from_str(&tool.schema.parameters) {
        // The scan reads one of the values, and the model's server perhaps the other.
        Ok(serde_json::Value::Object(_)) if hermes_prompt::scan::has_repeated_member(&tool.schema.parameters) => {
            Some("its parameters have a member twice in an object")
        }
        Ok(serde_json::Value::Object(_)) => None,
        _ => Some("its parameters are not a JSON Schema object"),
    }
}
