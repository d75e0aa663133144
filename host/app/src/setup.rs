//! The home folder with its configuration, and what follows from both: models, plugins, settings of a session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::approval::{ApprovalRules, Listed, RuleLists, UnknownRule};
use hermes_agent::{
    AuxiliaryModels, Candidate, CheckpointSettings, Clock, DelegationSettings, HookEntry, PromptSettings, Room,
    SHELL_HOOKS, SearchSettings, ServedModel, Settings, ShelfSettings, ShellHook, SkillGuard, SkillSettings,
    TaskModels,
};
use hermes_capabilities::process::{SandboxMode, SandboxRules};
use hermes_checkpoints::Limits;
use hermes_config::ApprovalMode;
use hermes_config::settings::{CompressionSection, DelegationSection, Hint, MemorySection, Share, Whole};
use hermes_config::{Auxiliary, Config, Edit, Environment, SandboxChoice};
use hermes_conversation::fence::Marks;
use hermes_diagnostic::Diagnose;
use hermes_install::Installer;
use hermes_install::skills::SkillInstaller;
use hermes_mcp::ServerDefinition;
use hermes_models::{Credential, Effort, Logins, ReadKey, Route, TtlChoice, UnknownTtl, Wanted};
use hermes_plugin_host::services::{Random as _, SystemRandom};
use hermes_plugin_host::{Catalog, PreferredSource, Selection, Variables};
use hermes_prompt::PlatformHint;
use hermes_protocol::Mode;
use hermes_runtime::{Compiler, Runtime};
use jiff::Zoned;
use serde_json::{Map, Value};

use crate::bundled::BUNDLED;
use crate::desk::Tenant;
use crate::{AppError, Home, embedding, ephemeral, learned, store};

/// The home folder, read once at the start of an operation.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The home folder.
    pub home: Home,
    /// Variables of the process and of `.env`.
    pub environment: Environment,
    /// `config.yaml`.
    pub config: Config,
    /// The compiler of plugins.
    pub compiler: Compiler,
    /// The logins of `auth.json`, shared by all sessions.
    pub logins: Logins,
}

/// The model and the engine of the caller, which take precedence over the configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct ModelChoice {
    /// The model's provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The address of an OpenAI-compatible API.
    pub base_url: Option<String>,
    /// The context engine.
    pub engine: Option<String>,
}

/// Reads `config.yaml`. If the file is invalid and the database belongs to another program, the file belongs to that program too.
/// The error then says so instead of asking the user to correct the file.
pub(crate) fn config(home: &Home, environment: &Environment) -> Result<Config, AppError> {
    Config::read(&home.config(), environment).map_err(|error| match store::foreign(home.path()) {
        Some(foreign) if error.code == hermes_config::codes::VALUE => foreign.into(),
        _ => error.into(),
    })
}

impl Setup {
    /// Reads the files of a home. Nothing is created, and the home of another program is refused.
    ///
    /// # Errors
    ///
    /// When `config.yaml` cannot be used.
    pub fn read(home: Home, compiler: Compiler) -> Result<Self, AppError> {
        let environment = Environment::read(&home.dotenv());
        let config = config(&home, &environment)?;
        let logins = Logins::new(home.auth(), home.shared_documents());
        Ok(Self { home, environment, config, compiler, logins })
    }

    /// The home as it would be read with these changes, which are not stored.
    ///
    /// # Errors
    ///
    /// When the changed `config.yaml` could not be used.
    pub fn with_changes(&self, edit: &Edit, variables: &[(String, String)]) -> Result<Self, AppError> {
        let environment = self.environment.with(variables);
        let config = Config::parse(edit.parts().2, self.config.file(), &|name| environment.var(name))?;
        let (home, compiler, logins) = (self.home.clone(), self.compiler.clone(), self.logins.clone());
        Ok(Self { home, environment, config, compiler, logins })
    }

    /// What the user should correct in `.env` and `config.yaml`.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.environment.warnings().iter().chain(self.config.warnings())
    }

    /// The warnings for commands that read no value of `config.yaml`: variables that are not set do not matter to them.
    pub fn warnings_about_keys(&self) -> impl Iterator<Item = &String> {
        self.environment.warnings().iter().chain(self.config.warnings_about_keys())
    }

    /// A runtime that keeps compiled plugins in this home.
    pub fn runtime(&self) -> Runtime {
        self.home.runtime(self.compiler.clone())
    }

    /// The home of a tenant: its sessions, memories and data are its own; configuration, plugins and logins are the owner's.
    pub(crate) fn of_tenant(&self, tenant: &Tenant) -> Self {
        Self { home: self.home.of_tenant(tenant), ..self.clone() }
    }

    /// Creates the home if it is missing, and makes sure that it belongs to this program.
    ///
    /// # Errors
    ///
    /// When the home belongs to another program or cannot be written.
    pub fn own(&self) -> Result<(), AppError> {
        // Opening the store detects a home of another program.
        self.store().map(drop)
    }

    /// The model of a session.
    ///
    /// # Errors
    ///
    /// When flags, variables and configuration do not name a usable model.
    pub fn route(&self, flags: &ModelChoice) -> Result<Route, AppError> {
        let flags = Wanted {
            provider: flags.provider.clone(),
            model: flags.model.clone(),
            base_url: flags.base_url.clone(),
            ..Wanted::default()
        };
        Ok(hermes_models::resolve(&flags, &|name| self.environment.var(name), &self.configured()?)?)
    }

    /// The models that serve the tasks of plugins; `session` is the model of the session.
    ///
    /// # Errors
    ///
    /// When a section below `auxiliary` is wrong.
    pub fn auxiliary(&self, session: &Route) -> Result<Auxiliary, AppError> {
        Ok(Auxiliary::read(&self.config, session, &self.configured()?, &|name| self.environment.var(name))?)
    }

    /// Reads the key of a route again from the environment, `.env` and `config.yaml`. A key for another address counts as none.
    pub(crate) fn key_reader(&self, route: &Route, choice: &ModelChoice) -> ReadKey {
        let (home, compiler) = (self.home.clone(), self.compiler.clone());
        let (address, choice) = (route.base_url.clone(), choice.clone());
        Arc::new(move || {
            let route = Self::read(home.clone(), compiler.clone()).ok()?.route(&choice).ok()?;
            match route.credential {
                Some(Credential::Key(key)) if route.base_url == address => Some(key),
                _ => None,
            }
        })
    }

    /// How long requests of a session are tried again.
    pub(crate) fn retry_for(&self) -> Duration {
        Duration::from_secs(self.config.settings().model.retry_for.get().into())
    }

    /// How much a model should think; `None` leaves that to its provider.
    pub(crate) fn effort_of(&self, model: &str) -> Option<Effort> {
        let settings = &self.config.settings().model;
        let listed = settings.reasoning_efforts.iter();
        let listed = listed.filter_map(|(name, effort)| Some((name.as_str(), effort.as_ref()?.0)));
        Effort::for_model(model, listed).or(settings.reasoning_effort.map(|effort| effort.0))
    }

    pub(crate) fn configured(&self) -> Result<Wanted, AppError> {
        let model = self.config.settings().model.clone();
        Ok(Wanted {
            provider: model.provider,
            model: model.default,
            base_url: model.base_url,
            api_key: joined(model.api_key.into_iter().chain(model.api_keys)),
            auth: model.auth,
            context_length: model.context_length.map(Whole::get),
            api_mode: model.api_mode,
            providers: self.config.custom_providers()?,
        })
    }

    /// The plugins that sessions use: those of the configuration, and those under development.
    pub fn selection(&self, flags: &ModelChoice) -> Selection {
        self.developing(self.configured_selection(flags), flags)
    }

    /// A selection of the configuration with the plugins that `hermes plugins dev` offers at this moment.
    pub(crate) fn developing(&self, mut selection: Selection, flags: &ModelChoice) -> Selection {
        let developed = hermes_plugin_host::developed(&self.home.plugins());
        if developed.is_empty() {
            return selection;
        }
        let configured = selection.engine.clone();
        selection.develop(&developed, flags.engine.is_some());
        if selection.engine != configured {
            let entry = selection.entries.entry(selection.engine.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(entry) = entry {
                fill_in(entry, for_engine(&self.config.settings().compression));
            }
        }
        selection
    }

    /// The plugins that the configuration selects.
    pub(crate) fn configured_selection(&self, flags: &ModelChoice) -> Selection {
        let settings = self.config.settings();
        let engine = flags.engine.clone().unwrap_or_else(|| settings.context.engine.clone());
        let mut entries = settings.plugins.entries.0.clone();
        let mut passed_on = HashMap::new();
        for (plugin, section, values) in [
            (engine.as_str(), "compression", for_engine(&settings.compression)),
            (Selection::MEMORY, "memory", for_memory(&settings.memory)),
        ] {
            let keys = fill(&mut entries, plugin, values);
            if !keys.is_empty() {
                let keys = keys.iter().map(|key| format!("{section}.{key}"));
                passed_on.entry(plugin.to_owned()).or_insert_with(Vec::new).extend(keys);
            }
        }
        Selection {
            engine,
            memory: settings.memory.provider.clone(),
            embedder: settings.auxiliary.embeddings.plugin.clone(),
            enabled: settings.plugins.enabled.clone(),
            disabled: settings.plugins.disabled.clone(),
            entries: entries.into_iter().filter(|(_, entry)| entry.is_object()).collect(),
            variables: {
                let (environment, secrets) = (self.environment.clone(), self.environment.clone());
                Variables::new(move |name| environment.var(name)).with_secrets(move |name| secrets.again().var(name))
            },
            settings: settings.plugins.host_settings(),
            passed_on,
        }
    }

    /// The installer of plugins for this home.
    pub fn installer(&self) -> Installer {
        let settings = self.config.settings().plugins.host_settings();
        let names = BUNDLED.iter().filter_map(|plugin| Some(plugin.read().ok()?.name));
        // Its name is free if the user wants an installed plugin in its place.
        let (fixed, replaced): (Vec<_>, Vec<_>) =
            names.partition(|name| settings.get(name).and_then(|own| own.source) != Some(PreferredSource::Installed));
        Installer::new(self.home.shared(), fixed).replacing(replaced)
    }

    /// Installs skills into this home.
    pub fn skill_installer(&self) -> SkillInstaller {
        SkillInstaller::new(self.home.shared())
    }

    /// Judges the texts of skills before they are loaded.
    pub fn skill_guard(&self) -> SkillGuard {
        crate::skills::guard(self.skill_installer(), &self.home.skills())
    }

    /// All plugins, bundled and installed. An interrupted change of an installed plugin is finished first.
    pub fn catalog(&self) -> Catalog {
        self.finish_interrupted_change();
        Catalog::find(BUNDLED, &self.home.plugins(), &self.config.settings().plugins.host_settings())
    }

    /// Finishes a change of an installed plugin that was interrupted, if there is one.
    pub(crate) fn finish_interrupted_change(&self) {
        let installer = self.installer();
        match installer.recover(&|_| ()) {
            Ok(None) => {}
            Ok(Some(plugin)) => tracing::warn!(plugin, "an interrupted change of this plugin was finished"),
            Err(error) => tracing::warn!(%error, "an interrupted change of a plugin cannot be finished"),
        }
        if let Err(error) = installer.seal() {
            tracing::warn!(%error, "plugins.lock cannot be sealed");
        }
        if let Err(error) = installer.claim_data() {
            tracing::warn!(%error, "the origin of a plugin's data cannot be recorded");
        }
        match self.skill_installer().recover(&|_| ()) {
            Ok(None) => {}
            Ok(Some(skill)) => tracing::warn!(skill, "an interrupted change of this skill was finished"),
            Err(error) => tracing::warn!(%error, "an interrupted change of a skill cannot be finished"),
        }
    }

    /// When tools go on the shelf.
    pub fn shelf(&self) -> ShelfSettings {
        let settings = &self.config.settings().tool_search;
        ShelfSettings {
            enabled: settings.enabled,
            share: settings.share.get(),
            pinned: settings.pinned.clone(),
            deferred: settings.deferred,
        }
    }

    /// The room for tools in the requests of new sessions, and the model whose window it is.
    ///
    /// # Errors
    ///
    /// When no model can be chosen.
    pub async fn tool_room(&self, choice: &ModelChoice) -> Result<(Room, Route), AppError> {
        let mut route = self.route(choice)?;
        if let Ok(Some(store)) = self.store_to_read() {
            learned::apply(&*store, &mut route).await;
        }
        let fallbacks = self.fallbacks(&route)?.routes;
        let providers = [&route].into_iter().chain(fallbacks.iter().map(|fallback| &fallback.route));
        let room = self.shelf().room(route.model.context_length, providers.map(|route| route.model.provider.as_str()));
        Ok((room, route))
    }

    pub(crate) fn settings(&self, platform: &str, one_shot: bool, auxiliary: &Auxiliary) -> Result<Settings, AppError> {
        let settings = self.config.settings();
        let hint = settings.platform_hints.get(platform).and_then(Option::as_ref).map(Hint::parts).unwrap_or_default();
        Ok(Settings {
            max_turns: settings.agent.max_turns.get(),
            author: None,
            delegation: delegation(&settings.delegation),
            compression: settings.compression.enabled,
            platform: platform.to_owned(),
            one_shot,
            auxiliary_models: connected(auxiliary, &self.logins)?,
            embeddings: embedding::source(&auxiliary.embeddings, &self.logins)?,
            prompt: PromptSettings {
                system_message: settings.prompt.system_message.clone(),
                platform_hint: PlatformHint { replace: hint.replace, append: hint.append },
                environment_hint: settings.agent.environment_hint.clone(),
                context_files: settings.prompt.context_files,
                context_file_max_chars: settings.context_file_max_chars.map(|most| most.get() as usize),
            },
            ephemeral: ephemeral::read(&self.config, &self.environment)?,
            cache_ttl: self.cache_ttl()?,
            warming: settings.prompt_caching.warming.get(),
            prices: self.prices().0,
            clock: self.clock()?,
            marks: marks(),
            mcp: self.mcp_servers()?,
            shell_hooks: self.shell_hooks()?,
            logins: self.logins.clone(),
            tool_owners: settings.plugins.tools.clone(),
            shelf: self.shelf(),
            session_search: SearchSettings {
                enabled: settings.session_search.enabled,
                summaries: settings.session_search.summaries,
                expansion: settings.session_search.expansion,
            },
            skills: SkillSettings {
                config: settings.skills.config.clone(),
                variables: {
                    let environment = self.environment.clone();
                    Variables::new(move |name| environment.var(name))
                },
                guard: self.skill_guard(),
            },
            sandbox: self.sandbox(),
            checkpoints: self.checkpoints(),
        })
    }

    /// The MCP servers that sessions use.
    ///
    /// # Errors
    ///
    /// When a section below `mcp_servers` is no server.
    pub fn mcp_servers(&self) -> Result<Vec<ServerDefinition>, AppError> {
        Ok(self.config.mcp_servers(&|name| std::env::var_os(name))?)
    }

    /// The programs that run at moments of the agent loop.
    ///
    /// # Errors
    ///
    /// When an entry below `hooks` cannot be used.
    pub fn shell_hooks(&self) -> Result<Vec<ShellHook>, AppError> {
        let moments = self.config.settings().hooks.iter();
        let entries = moments.flat_map(|(moment, entries)| {
            entries.iter().flatten().enumerate().map(|(at, entry)| HookEntry {
                moment,
                at,
                matcher: entry.matcher.as_deref(),
                command: &entry.command,
                timeout: Duration::from_secs(entry.timeout.get().into()),
            })
        });
        let environment = hermes_mcp::standard_environment(&|name| std::env::var_os(name));
        let hooks = ShellHook::read_all(entries, &environment);
        hooks.map_err(|source| AppError::Hook { file: self.config.file().to_owned(), source })
    }

    /// How programs that plugins start are confined.
    pub(crate) fn sandbox(&self) -> SandboxRules {
        let settings = &self.config.settings().sandbox;
        SandboxRules {
            mode: match settings.mode {
                SandboxChoice::Auto => SandboxMode::Auto,
                SandboxChoice::Off => SandboxMode::Off,
                SandboxChoice::Require => SandboxMode::Require,
            },
            network: settings.network,
            writable: settings.writable.iter().map(Into::into).collect(),
            hidden: settings.hidden.iter().map(Into::into).collect(),
        }
    }

    /// Whether changes of files are saved, and the limits of their store.
    pub fn checkpoints(&self) -> CheckpointSettings {
        let section = &self.config.settings().checkpoints;
        let limits = Limits::of(section.max_size.get(), section.keep_days.get(), section.max_file_size.get());
        CheckpointSettings { enabled: section.enabled, limits }
    }

    /// The rules that allow or deny actions of plugins without asking.
    ///
    /// # Errors
    ///
    /// When an entry below `approvals` is not a rule.
    pub fn approval_rules(&self) -> Result<ApprovalRules, AppError> {
        let approvals = &self.config.settings().approvals;
        let lists =
            RuleLists { allow: &approvals.allow, reads: &approvals.reads, ask: &approvals.ask, deny: &approvals.deny };
        let rules = ApprovalRules::parse(lists);
        rules.map_err(|source| AppError::Rule { file: self.config.file().to_owned(), source })
    }

    /// The mode in which sessions begin.
    pub(crate) fn mode(&self) -> Mode {
        match self.config.settings().approvals.mode {
            ApprovalMode::Ask => Mode::Ask,
            ApprovalMode::AcceptEdits => Mode::AcceptEdits,
            ApprovalMode::Plan => Mode::Plan,
            ApprovalMode::Auto => Mode::Auto,
        }
    }

    /// Checks that the rules name plugins and programs that exist, whether they are enabled or not. A session checks the tools, which
    /// only it knows.
    ///
    /// # Errors
    ///
    /// When an entry is about nothing.
    pub fn check_rules(&self, rules: &ApprovalRules, listed: &Listed) -> Result<(), AppError> {
        const HOST: &str = "hermes";
        const FURTHER: [&str; 3] = ["unread", "edit", "skills"];
        if rules.all().next().is_none() {
            return Ok(());
        }
        let catalog = self.catalog();
        for rule in rules.all() {
            let (plugin, what) = (rule.plugin(), rule.what());
            let found = catalog.get(plugin);
            let of = |what: String| format!("{plugin}/{what}");
            let programs = || -> Vec<String> {
                let programs = found.iter().flat_map(|found| &found.manifest.permissions.process);
                programs.map(ToString::to_string).collect()
            };
            let unknown = match (what, rule.command()) {
                // A session checks the tools of servers, which only it knows.
                (what, None) if self.is_server(plugin) && what.is_none_or(|what| !what.contains(':')) => None,
                // Shell hooks can ask about every tool.
                (what, None) if self.is_of_hooks(plugin) && what.is_none_or(|what| !what.contains(':')) => None,
                _ if found.is_none() && plugin != HOST => {
                    let names = catalog.all().iter().map(|found| found.manifest.name.as_str()).chain([HOST]);
                    let entries = names.map(|name| match (what, rule.command()) {
                        (Some(what), _) => format!("{name}/{what}"),
                        (None, Some(command)) => format!("{name}({command})"),
                        (None, None) => name.to_owned(),
                    });
                    Some(UnknownRule::new(&rule, entries))
                }
                (None, Some(command)) if programs().is_empty() => {
                    let runs_programs =
                        catalog.all().iter().filter(|found| !found.manifest.permissions.process.is_empty());
                    let entries = runs_programs.map(|found| format!("{}({command})", found.manifest.name));
                    Some(UnknownRule::new(&rule, entries))
                }
                (Some(what), _) => match what.split_once(':') {
                    Some((kind @ ("process" | "variables" | "unconfined"), program)) => {
                        let known = programs();
                        let exists = known.iter().any(|known| known == program);
                        let known = known.into_iter().map(|known| of(format!("{kind}:{known}")));
                        (!exists).then(|| UnknownRule::new(&rule, known))
                    }
                    Some(("files", pattern)) => {
                        let exists = listed.patterns().chain(FURTHER).any(|known| known == pattern);
                        let known = listed.patterns().chain(FURTHER).map(|known| of(format!("files:{known}")));
                        (!exists).then(|| UnknownRule::new(&rule, known))
                    }
                    _ => None,
                },
                (None, _) => None,
            };
            if let Some(source) = unknown {
                return Err(AppError::UnknownRule { file: self.config.file().to_owned(), source });
            }
        }
        Ok(())
    }

    /// Whether an MCP server has this name.
    fn is_server(&self, name: &str) -> bool {
        self.config.settings().mcp_servers.contains_key(name)
    }

    /// Whether shell hooks have this name in rules.
    fn is_of_hooks(&self, name: &str) -> bool {
        name == SHELL_HOOKS && self.config.settings().hooks.values().flatten().next().is_some()
    }

    /// The files that change only with approval.
    ///
    /// # Errors
    ///
    /// When an entry below `approvals.protect` is not a pattern.
    pub fn listed_files(&self) -> Result<Listed, AppError> {
        let further = &self.config.settings().approvals.protect;
        let listed = Listed::new(further, std::env::home_dir().as_deref());
        listed.map_err(|source| AppError::Protected { file: self.config.file().to_owned(), source })
    }

    /// The current time in the user's time zone.
    ///
    /// # Errors
    ///
    /// When `HERMES_CLOCK` is not a moment.
    pub fn now(&self) -> Result<Zoned, AppError> {
        Ok(self.clock()?.local())
    }

    fn cache_ttl(&self) -> Result<TtlChoice, AppError> {
        let given = &self.config.settings().prompt_caching.cache_ttl;
        given.parse().map_err(|source: UnknownTtl| AppError::CacheTtl { file: self.config.file().to_owned(), source })
    }

    /// `HERMES_CLOCK` replaces the current time, for tests of what a new day changes.
    pub(crate) fn clock(&self) -> Result<Clock, AppError> {
        let Some(value) = std::env::var_os("HERMES_CLOCK").filter(|value| !value.is_empty()) else {
            return Ok(Clock::default());
        };
        let value = value.to_string_lossy().into_owned();
        match value.parse() {
            Ok(moment) => Ok(Clock::set_to(moment)),
            Err(error) => Err(AppError::Clock { value, why: format!("{error}") }),
        }
    }
}

/// Marks from the system's random numbers, so that a text cannot predict its own mark.
fn marks() -> Marks {
    Marks::new(|| {
        let mut bytes = [0; 8];
        SystemRandom.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    })
}

fn joined(keys: impl Iterator<Item = String>) -> Option<String> {
    let keys: Vec<String> = keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect();
    (!keys.is_empty()).then(|| keys.join(","))
}

/// A provider for each candidate of each task. Nothing is sent yet.
fn connected(auxiliary: &Auxiliary, logins: &Logins) -> Result<AuxiliaryModels, AppError> {
    let mut models = AuxiliaryModels::new(auxiliary.transient_retries);
    for task in &auxiliary.tasks {
        let mut candidates = Vec::new();
        for candidate in &task.candidates {
            let route = &candidate.route;
            candidates.push(match candidate.is_session {
                true => Candidate::Session { context_length: route.model.context_length },
                false => Candidate::Other {
                    served: ServedModel::of(route, hermes_models::connect(route, logins)?),
                    section: candidate.section.clone(),
                },
            });
        }
        let missing = task.missing.as_ref().map(Diagnose::sentence);
        let served = TaskModels { candidates, timeout: task.timeout, effort: task.effort, missing };
        models.set(&task.name, served);
    }
    Ok(models)
}

/// The values below `compression` that the engine gets.
fn for_engine(given: &CompressionSection) -> Vec<(&'static str, Value)> {
    let share = |share: Option<Share>| share.map(|share| Value::from(share.get()));
    let number = |number: Option<Whole<0>>| number.map(|number| Value::from(number.get()));
    let values = [
        ("threshold", share(given.threshold)),
        ("target_ratio", share(given.target_ratio)),
        ("protect_first_n", number(given.protect_first_n)),
        ("protect_last_n", number(given.protect_last_n)),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The values below `memory` that the built-in memory gets.
fn for_memory(given: &MemorySection) -> Vec<(&'static str, Value)> {
    let limits = [
        ("memory_char_limit", given.memory_char_limit),
        ("user_char_limit", given.user_char_limit),
        ("facts_char_limit", given.facts_char_limit),
    ];
    let limits = limits.into_iter().filter_map(|(name, value)| Some((name, value?.get().into())));
    let switches = [("write_approval", given.write_approval), ("background_tidy", given.background_tidy)];
    let switches = switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (name, true.into()));
    limits.chain(switches).collect()
}

/// Adds the host's settings for a plugin to the plugin's own section, which takes precedence.
fn fill(entries: &mut Map<String, Value>, plugin: &str, defaults: Vec<(&'static str, Value)>) -> Vec<&'static str> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let entry = entries.entry(plugin).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    match entry {
        Value::Object(entry) => fill_in(entry, defaults),
        _ => Vec::new(),
    }
}

/// Adds what a section does not have, and returns the keys that were added.
fn fill_in(entry: &mut Map<String, Value>, defaults: Vec<(&'static str, Value)>) -> Vec<&'static str> {
    let mut filled = Vec::new();
    for (name, value) in defaults {
        if !entry.contains_key(name) {
            entry.insert(name.to_owned(), value);
            filled.push(name);
        }
    }
    filled
}

/// The settings of delegated tasks.
fn delegation(section: &DelegationSection) -> DelegationSettings {
    let DelegationSection { provider, model, models, .. } = section.clone();
    DelegationSettings {
        max_iterations: section.max_iterations.get(),
        max_concurrent_children: section.max_concurrent_children.get(),
        max_spawn_depth: section.max_spawn_depth.get(),
        max_summary_chars: section.max_summary_chars.get(),
        child_timeout: Some(section.child_timeout_seconds.get())
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds.into())),
        provider,
        model,
        models,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn setup(yaml: &str) -> Setup {
        Setup {
            home: Home::at(Path::new("/h")),
            environment: Environment::default(),
            config: Config::parse(yaml, Path::new("/h/config.yaml"), &|_| None).unwrap(),
            compiler: Compiler::InProcess,
            logins: Logins::new("/h/auth.json".into(), Home::at(Path::new("/h")).shared_documents()),
        }
    }

    #[test]
    fn sections_of_the_host_fill_what_the_plugins_own_sections_leave_open() {
        let yaml = "compression: {threshold: 0.4, protect_last_n: 5}\nmemory: {memory_char_limit: 100}\n\
                    plugins: {entries: {compressor: {threshold: 0.6}, builtin: , mine: {a: 1}}}\n";
        let selection = setup(yaml).selection(&ModelChoice::default());
        assert_eq!(selection.engine, "compressor");
        assert_eq!(selection.entries["compressor"], json!({"threshold": 0.6, "protect_last_n": 5}));
        assert_eq!(selection.entries["builtin"], json!({"memory_char_limit": 100}));
        assert_eq!(selection.entries["mine"], json!({"a": 1}));
    }

    #[test]
    fn the_engine_of_the_command_line_gets_them() {
        let flags = ModelChoice { engine: Some("lossless".to_owned()), ..ModelChoice::default() };
        let selection = setup("context: {engine: nope}\ncompression: {threshold: 0.4}\n").selection(&flags);
        assert_eq!(selection.engine, "lossless");
        assert_eq!(selection.entries["lossless"], json!({"threshold": 0.4}));
        assert_eq!(selection.entries.len(), 1);
    }

    #[test]
    fn nothing_configured_is_the_offline_partner() {
        if hermes_models::PROVIDERS.iter().flat_map(|row| row.keys).any(|key| std::env::var_os(key).is_some()) {
            return;
        }
        let route = setup("").route(&ModelChoice::default()).unwrap();
        assert!(route.is_offline() && route.source == hermes_models::Source::Nothing);
        let failure = setup("model: some-model\n").route(&ModelChoice::default()).unwrap_err();
        assert!(matches!(failure, AppError::Resolve(_)), "{failure}");
    }

    #[test]
    fn an_error_of_the_configuration_names_each_part_once() {
        let refused = Config::parse("model: 5\n", Path::new("/h/config.yaml"), &|_| None).unwrap_err();
        let shown = hermes_diagnostic::Diagnose::diagnose(&AppError::from(refused.clone()));
        assert_eq!(shown, refused);
    }
}
