//! From flags, environment and configuration to an agent at work.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_agent::approval::ApprovalRules;
use hermes_agent::{
    Agent, Approvals, Approver, AuxiliaryModels, Begin, Candidate, Clock, Host, PromptSettings, Settings, TaskModels,
};
use hermes_install::Installer;
use hermes_models::{Provider, Route, Source, Ttl, UnknownTtl, Wanted};
use hermes_plugin_host::{Catalog, Manifest, Nursery, Plugins, PreferredSource, Selection, Variables};
use hermes_prompt::PlatformHint;
use hermes_runtime::Runtime;
use hermes_store::Store;
use serde_json::{Map, Value};

use crate::arguments::{ModelArguments, SessionArguments};
use crate::bundled::BUNDLED;
use crate::compile::{self, Compiling};
use crate::config::Config;
use crate::config::auxiliary::Auxiliary;
use crate::console::Console;
use crate::environment::Environment;
use crate::ephemeral;
use crate::failure::{Failure, Kind};
use crate::home::{Home, create_private};
use crate::logging;

/// What every command that looks into the home begins with.
pub(crate) struct Setup {
    pub(crate) home: Home,
    pub(crate) environment: Environment,
    pub(crate) config: Config,
}

impl Setup {
    /// Reads what is there; nothing is created, and the home of another program is refused.
    pub(crate) fn read() -> Result<Self, Failure> {
        let home = Home::locate()?;
        let environment = Environment::read(&home.dotenv());
        let config = Config::read(&home.config(), &environment)?;
        Ok(Self { home, environment, config })
    }

    /// Tells what is odd about the configuration.
    pub(crate) fn warn(&self, console: Console) {
        for warning in self.environment.warnings().iter().chain(self.config.warnings()) {
            console.warning(warning);
        }
    }

    /// Makes sure that what is written there is written into a home of this program, and that there is one.
    pub(crate) fn own(&self) -> Result<(), Failure> {
        // The store tells a home that belongs to somebody else.
        Ok(Store::open(self.home.path()).map(drop)?)
    }

    /// Which model serves.
    pub(crate) fn route(&self, flags: &ModelArguments) -> Result<Route, Failure> {
        let flags = Wanted {
            provider: flags.provider.clone(),
            model: flags.model.clone(),
            base_url: flags.base_url.clone(),
            ..Wanted::default()
        };
        Ok(hermes_models::resolve(&flags, &|name| self.environment.var(name), &self.configured())?)
    }

    /// Which models serve plugins, where `session` serves the session.
    pub(crate) fn auxiliary(&self, session: &Route) -> Result<Auxiliary, Failure> {
        Auxiliary::read(&self.config, session, &self.configured(), &|name| self.environment.var(name))
    }

    fn configured(&self) -> Wanted {
        Wanted {
            provider: self.config.text("model.provider"),
            model: self.config.text("model.default"),
            base_url: self.config.text("model.base_url"),
            api_key: self.config.text("model.api_key"),
            context_length: self.config.count("model.context_length"),
            api_mode: self.config.text("model.api_mode"),
        }
    }

    /// Which plugins are on.
    pub(crate) fn selection(&self, flags: &ModelArguments) -> Selection {
        let config = &self.config;
        let engine = flags.engine.clone().or_else(|| config.text("context.engine"));
        let engine = engine.unwrap_or_else(|| Selection::ENGINE.to_owned());
        let mut entries = config.entries();
        let defaults = |section: &str, names: &[&'static str]| -> Vec<(&'static str, Value)> {
            let given = |name: &&'static str| Some((*name, config.given(&format!("{section}.{name}"))?.clone()));
            names.iter().filter_map(given).collect()
        };
        let compression = ["threshold", "target_ratio", "protect_first_n", "protect_last_n"];
        fill(&mut entries, &engine, defaults("compression", &compression));
        fill(&mut entries, Selection::MEMORY, defaults("memory", &["memory_char_limit", "user_char_limit"]));
        Selection {
            engine,
            memory: config.text("memory.provider"),
            enabled: config.texts("plugins.enabled"),
            disabled: config.texts("plugins.disabled"),
            entries: entries.into_iter().filter(|(_, entry)| entry.is_object()).collect(),
            variables: {
                let environment = self.environment.clone();
                Variables::new(move |name| environment.var(name))
            },
            settings: config.plugin_settings(),
        }
    }

    /// What installs plugins into the home.
    pub(crate) fn installer(&self) -> Installer {
        let settings = self.config.plugin_settings();
        let names = BUNDLED.iter().filter_map(|plugin| Some(Manifest::parse(plugin.manifest).ok()?.name));
        // The user wants another one in its stead, which has to come from somewhere.
        let is_fixed =
            |name: &String| settings.get(name).and_then(|own| own.source) != Some(PreferredSource::Installed);
        Installer::new(self.home.path(), names.filter(is_fixed))
    }

    /// All plugins that there are. What an interrupted command has left is finished first.
    pub(crate) fn catalog(&self) -> Catalog {
        match self.installer().recover(&|_| ()) {
            Ok(None) => {}
            Ok(Some(plugin)) => tracing::warn!(plugin, "an interrupted change of this plugin was finished"),
            Err(error) => tracing::warn!(%error, "an interrupted change of a plugin cannot be finished"),
        }
        Catalog::find(BUNDLED, &self.home.plugins(), &self.config.plugin_settings())
    }

    fn settings(&self, one_shot: bool, auxiliary: &Auxiliary) -> Result<Settings, Failure> {
        const PLATFORM: &str = "cli";
        let config = &self.config;
        let hint = config.platform_hint(PLATFORM);
        Ok(Settings {
            max_turns: config.count("agent.max_turns").unwrap_or(u32::MAX),
            compression: config.flag("compression.enabled"),
            platform: PLATFORM.to_owned(),
            one_shot,
            auxiliary_models: connected(auxiliary)?,
            prompt: PromptSettings {
                system_message: config.text("prompt.system_message"),
                platform_hint: hint
                    .map_or_else(PlatformHint::default, |(replace, append)| PlatformHint { replace, append }),
                environment_hint: config.text("agent.environment_hint"),
                context_files: config.flag("prompt.context_files"),
                context_file_max_chars: config.count("context_file_max_chars").map(|most| most as usize),
            },
            ephemeral: ephemeral::read(config, &self.environment)?,
            cache_ttl: self.cache_ttl()?,
            clock: self.clock()?,
        })
    }

    /// What needs no question.
    pub(crate) fn approval_rules(&self) -> Result<ApprovalRules, Failure> {
        let config = &self.config;
        let rules = ApprovalRules::parse(&config.texts("approvals.allow"), &config.texts("approvals.deny"));
        rules.map_err(|error| {
            let what = format!("{} cannot be used", config.file().display());
            Failure::from_sentence(Kind::Configuration, &what, &error.to_string(), "correct the entry")
        })
    }

    fn cache_ttl(&self) -> Result<Ttl, Failure> {
        let given = self.config.text("prompt_caching.cache_ttl");
        given.map_or(Ok(Ttl::default()), |given| given.parse()).map_err(|error: UnknownTtl| {
            let what = format!("{} cannot be used", self.config.file().display());
            Failure::new(Kind::Configuration, what, error.to_string(), "correct `prompt_caching.cache_ttl`")
        })
    }

    /// `HERMES_CLOCK` sets another moment, for tests of what a new day changes.
    fn clock(&self) -> Result<Clock, Failure> {
        const VARIABLE: &str = "HERMES_CLOCK";
        let Some(moment) = std::env::var_os(VARIABLE).filter(|moment| !moment.is_empty()) else {
            return Ok(Clock::default());
        };
        let moment = moment.to_string_lossy();
        moment.parse().map(Clock::set_to).map_err(|error| {
            let why = format!("{VARIABLE} is `{moment}`: {error}");
            Failure::new(
                Kind::Configuration,
                "the time cannot be told",
                why,
                "unset it, or give a moment such as 2026-11-22T10:00:00Z",
            )
        })
    }
}

/// Providers for all that may serve a task. Nothing is sent yet.
fn connected(auxiliary: &Auxiliary) -> Result<AuxiliaryModels, Failure> {
    let mut models = AuxiliaryModels::new(auxiliary.transient_retries);
    for task in &auxiliary.tasks {
        let mut candidates = Vec::new();
        for candidate in &task.candidates {
            let route = &candidate.route;
            candidates.push(match candidate.is_session {
                true => Candidate::Session { context_length: route.model.context_length },
                false => Candidate::Other {
                    provider: hermes_models::connect(route)?,
                    model: route.model.clone(),
                    section: candidate.section.clone(),
                },
            });
        }
        let served = TaskModels { candidates, timeout: task.timeout, missing: task.missing.clone() };
        models.set(&task.name, served);
    }
    Ok(models)
}

/// What a plugin's own section sets goes before what a section of the host's sets for it.
fn fill(entries: &mut Map<String, Value>, plugin: &str, defaults: Vec<(&'static str, Value)>) {
    if defaults.is_empty() {
        return;
    }
    let entry = entries.entry(plugin).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    if let Value::Object(entry) = entry {
        for (name, value) in defaults {
            entry.entry(name).or_insert(value);
        }
    }
}

/// Makes agents: one a process, and another at each `/new`.
pub(crate) struct Launcher {
    setup: Setup,
    selection: Selection,
    settings: Settings,
    approvals: Approvals,
    route: Route,
    store: Arc<Store>,
    runtime: Arc<Runtime>,
    provider: Arc<dyn Provider>,
    workspace: PathBuf,
    console: Console,
    /// Whether a session lasts long enough for plugins to change in it.
    watches: bool,
}

impl Launcher {
    /// Opens everything that a session needs. Whatever is refused is refused before anything is written.
    pub(crate) fn new(
        setup: Setup,
        flags: &ModelArguments,
        one_shot: bool,
        verbose: u8,
        console: Console,
    ) -> Result<Self, Failure> {
        setup.warn(console);
        let route = setup.route(flags)?;
        for note in &route.notes {
            console.note(note);
        }
        let auxiliary = setup.auxiliary(&route)?;
        for notice in &auxiliary.notices {
            console.warning(notice);
        }
        let provider = hermes_models::connect(&route)?;
        let workspace = std::env::current_dir().map_err(|error| {
            let why = format!("the current folder cannot be told: {error}");
            Failure::new(Kind::General, "the session cannot begin", why, "change to a folder that is there")
        })?;
        // The store tells a home that belongs to somebody else, so it is opened before anything is made in there.
        let store = Arc::new(Store::open(setup.home.path())?);
        if let Err(error) = logging::start(verbose, Some(&setup.home)) {
            console.warning(&format!("{} cannot be written: {error}", setup.home.logs().display()));
        }
        if route.is_offline() && route.source == Source::Nothing {
            console.note(
                "no model is configured, so the built-in `offline` partner answers; set model.provider and \
                 model.default, or the key of a provider, to talk to a model",
            );
        }
        Ok(Self {
            selection: setup.selection(flags),
            settings: setup.settings(one_shot, &auxiliary)?,
            approvals: Approvals { rules: setup.approval_rules()?, approver: None },
            runtime: Arc::new(compile::runtime(&setup.home)),
            watches: !one_shot,
            setup,
            route,
            store,
            provider,
            workspace,
            console,
        })
    }

    /// With somebody who can be asked.
    pub(crate) fn asking(mut self, approver: Option<Arc<dyn Approver>>) -> Self {
        self.approvals.approver = approver;
        self
    }

    /// The home, for what chat keeps there.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The conversations.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The folder that new sessions work in.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspace.clone()
    }

    /// Takes up a session with plugins of its own.
    pub(crate) async fn begin(&self, begin: Begin) -> Result<Agent, Failure> {
        Ok(Agent::begin(self.host()?, begin, self.workspace.clone()).await?)
    }

    /// What an agent works with.
    pub(crate) fn host(&self) -> Result<Host, Failure> {
        let mut plugins = {
            let shown = Compiling::new(self.console);
            let compiling = |name: &str, elapsed| shown.tell(name, elapsed);
            // Looked for anew: a session begins with what there is by then.
            Plugins::select(&self.runtime, &self.setup.catalog(), &self.selection, &compiling)?
        };
        if self.watches
            && let Err(error) = self.watch(&mut plugins)
        {
            self.console.warning(&error);
        }
        for notice in plugins.notices() {
            self.console.warning(notice);
        }
        Ok(Host {
            home: self.setup.home.path().to_owned(),
            store: Arc::clone(&self.store),
            plugins,
            provider: Arc::clone(&self.provider),
            model: self.route.model.clone(),
            engine: self.selection.engine.clone(),
            settings: self.settings.clone(),
            approvals: self.approvals.clone(),
        })
    }

    /// Looks for newer generations of plugins as long as the session lasts.
    fn watch(&self, plugins: &mut Plugins) -> Result<(), String> {
        let folder = self.setup.home.plugins();
        create_private(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        let nursery = Nursery {
            runtime: Arc::clone(&self.runtime),
            find: {
                let (folder, settings) = (folder.clone(), self.selection.settings.clone());
                Box::new(move || Catalog::find(BUNDLED, &folder, &settings))
            },
            folder,
            selection: self.selection.clone(),
        };
        plugins.watch(nursery).map_err(|error| error.to_string())
    }

    /// Which session the command line means.
    pub(crate) fn which(&self, arguments: &SessionArguments) -> Result<Begin, Failure> {
        let id = match (&arguments.resume, arguments.continue_newest) {
            (Some(id), _) => self.store.resolve_session(id)?,
            (None, true) => self.store.newest_session(&self.workspace)?.ok_or_else(|| {
                let why = format!("there is none in {}", self.workspace.display());
                let fix = "leave out --continue to begin one, or choose one of `hermes sessions list` with --resume";
                Failure::new(Kind::General, "no conversation can be continued", why, fix)
            })?,
            (None, false) => return Ok(Begin::New),
        };
        Ok(if arguments.branch { Begin::Branch(id) } else { Begin::Resume(id) })
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
        }
    }

    #[test]
    fn sections_of_the_host_fill_what_the_plugins_own_sections_leave_open() {
        let yaml = "compression: {threshold: 0.4, protect_last_n: 5}\nmemory: {memory_char_limit: 100}\n\
                    plugins: {entries: {compressor: {threshold: 0.6}, builtin: , mine: {a: 1}}}\n";
        let selection = setup(yaml).selection(&ModelArguments::default());
        assert_eq!(selection.engine, "compressor");
        assert_eq!(selection.entries["compressor"], json!({"threshold": 0.6, "protect_last_n": 5}));
        assert_eq!(selection.entries["builtin"], json!({"memory_char_limit": 100}));
        assert_eq!(selection.entries["mine"], json!({"a": 1}));
    }

    #[test]
    fn the_engine_of_the_command_line_gets_them() {
        let flags = ModelArguments { engine: Some("lossless".to_owned()), ..ModelArguments::default() };
        let selection = setup("context: {engine: nope}\ncompression: {threshold: 0.4}\n").selection(&flags);
        assert_eq!(selection.engine, "lossless");
        assert_eq!(selection.entries["lossless"], json!({"threshold": 0.4}));
        assert_eq!(selection.entries.len(), 1);
    }

    #[test]
    fn nothing_configured_is_the_offline_partner() {
        if hermes_models::KNOWN.iter().flat_map(|known| known.keys).any(|key| std::env::var_os(key).is_some()) {
            return;
        }
        let route = setup("").route(&ModelArguments::default()).unwrap();
        assert!(route.is_offline() && route.source == Source::Nothing);
        let failure = setup("model: some-model\n").route(&ModelArguments::default()).unwrap_err();
        assert_eq!(failure.kind, Kind::Configuration);
    }
}
