//! Starting sessions.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_agent::approval::Mode;
use hermes_agent::{
    Approvals, Begin, Choice, Host, HostSource, ModelChain, ModelRests, Problem, SessionHandle, SessionRules, Settings,
};
use hermes_diagnostic::{Diagnose as _, Diagnostic, Notice};
use hermes_models::Source;
use hermes_plugin_host::{Developed, PluginHost, Plugins, Selection};
use hermes_store::{SessionStore, SqliteSessions, Store};

use crate::bundled::BUNDLED;
use crate::chain::ChosenModel;
use crate::{AppError, ModelChoice, Reporter, Setup, learned};

/// The settings of a front end for its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Model and engine.
    pub choice: ModelChoice,
    /// The folder that new sessions work in.
    pub workspace: PathBuf,
    /// The name of the front end in prompts and in `platform_hints`: `cli`.
    pub platform: String,
    /// Whether each session has one turn only. Plugins are then not watched for changes.
    pub one_shot: bool,
}

/// Which session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// The session whose id begins like this, or a copy of it.
    Resume {
        /// An id, the beginning of one, or a title.
        id: String,
        /// Work on a copy.
        branch: bool,
    },
    /// The newest session of the workspace, or a copy of it.
    Newest {
        /// Work on a copy.
        branch: bool,
    },
}

/// More models than the sessions of a process usually choose.
const MOST_CHOSEN: usize = 16;

/// Starts sessions that share a store, the connections to models, and their plugins' code, watcher and connections.
pub struct Launcher {
    setup: Setup,
    choice: ModelChoice,
    /// The selection of the configuration.
    selection: Selection,
    settings: Settings,
    approvals: Approvals,
    store: Arc<Store>,
    /// The same store, as sessions use it.
    sessions: Arc<dyn SessionStore>,
    plugins: PluginHost,
    /// The model of the configuration, with its fallbacks.
    model: ChosenModel,
    /// How long models that failed are left alone.
    rests: Arc<ModelRests>,
    /// How long requests are tried again.
    keep_trying: Duration,
    /// The models that sessions chose, by the chosen name.
    chosen: Mutex<HashMap<String, ChosenModel>>,
    workspace: PathBuf,
    reporter: Arc<dyn Reporter>,
    /// The plugins under development that the user knows of.
    told: Mutex<BTreeSet<String>>,
    /// Whether a session lasts long enough for plugins to change during it.
    watches: bool,
}

impl Launcher {
    /// Opens everything that a session needs. Anything invalid is reported before anything is written.
    ///
    /// # Errors
    ///
    /// When no model can be chosen, a setting is wrong, or the store cannot be opened.
    pub fn new(setup: Setup, launch: Launch, reporter: Arc<dyn Reporter>) -> Result<Self, AppError> {
        for warning in setup.warnings() {
            reporter.warning(&warning.as_str().into());
        }
        let route = setup.route(&launch.choice)?;
        for note in &route.notes {
            reporter.note(note);
        }
        let mut auxiliary = setup.auxiliary(&route)?;
        for notice in &auxiliary.notices {
            reporter.warning(notice);
        }
        let fallbacks = setup.fallbacks(&route)?;
        for missing in &fallbacks.missing {
            reporter.warning(&Notice::new(format!("{missing}, so it is left out"), missing.diagnose().fix));
        }
        for note in fallbacks.routes.iter().flat_map(|fallback| &fallback.route.notes) {
            reporter.warning(&note.as_str().into());
        }
        let keep_trying = setup.retry_for(launch.one_shot);
        let is_offline_unasked = route.is_offline() && route.source == Source::Nothing;
        // Opening the store detects a home of another program, so this comes before anything is created there.
        let store = Arc::new(Store::open(setup.home.path())?);
        let model = setup.connect(&store, (route, fallbacks), &launch.choice, keep_trying)?;
        let of_tasks = learned::apply_to_tasks(&store, &mut auxiliary);
        let of_tasks = of_tasks.map(|(named, key, route)| learned::notice(route, named, &key));
        for notice in model.notices.iter().cloned().chain(of_tasks) {
            reporter.warning(&notice);
        }
        for line in recovered_undos(&setup) {
            reporter.warning(&line);
        }
        let settings = setup.settings(&launch.platform, launch.one_shot, &auxiliary)?;
        let (rules, listed) = (setup.approval_rules()?, Arc::new(setup.listed_files()?));
        let approvals = Approvals { rules, listed, can_ask: false, mode: setup.mode() };
        setup.check_rules(&approvals.rules, &approvals.listed)?;
        // A refused setting makes this note useless, so the settings are read first.
        if is_offline_unasked {
            reporter.note(
                "no model is configured, so the built-in `offline` model is used, which only follows simple commands; \
                 `hermes setup` sets up a model",
            );
        }
        let cooldown = Duration::from_secs(setup.config.settings().model.cooldown.get().into());
        let rests = Arc::new(ModelRests::new(cooldown, setup.logins.rests().clone()));
        Ok(Self {
            selection: setup.configured_selection(&launch.choice),
            settings,
            approvals,
            plugins: PluginHost::new(Arc::new(setup.runtime()), BUNDLED, setup.home.plugins()),
            watches: !launch.one_shot,
            workspace: launch.workspace,
            choice: launch.choice,
            setup,
            sessions: Arc::new(SqliteSessions::new(Arc::clone(&store))),
            store,
            model,
            rests,
            keep_trying,
            chosen: Mutex::default(),
            told: Mutex::default(),
            reporter,
        })
    }

    /// Lets sessions ask the user for approval: a front end is there to answer.
    #[must_use]
    pub fn asking(mut self, can_ask: bool) -> Self {
        self.approvals.can_ask = can_ask;
        self
    }

    /// Sessions begin in this mode, if one is given, instead of the configured one.
    #[must_use]
    pub fn in_mode(mut self, mode: Option<Mode>) -> Self {
        self.approvals.mode = mode.unwrap_or(self.approvals.mode);
        self
    }

    /// The home and its configuration.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Model and engine of the front end, which take precedence over the configuration.
    pub fn choice(&self) -> &ModelChoice {
        &self.choice
    }

    /// The store of conversations.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The folder that new sessions work in.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Starts a session with its own plugins.
    ///
    /// # Errors
    ///
    /// When a plugin that the session needs is missing or broken, or the session cannot be opened.
    pub async fn begin(self: &Arc<Self>, begin: Begin, rules: SessionRules) -> Result<SessionHandle, AppError> {
        let workspace = match &begin {
            Begin::New => self.workspace.clone(),
            Begin::Resume(id) | Begin::Branch(id) | Begin::Imported { session: id, .. } => {
                let takes_folder = matches!(&begin, Begin::Imported { accepted, .. } if accepted.folder);
                let session = self.sessions.session(id).await.ok();
                // The folder that a stranger's file names is used only if the user accepted it.
                let session = session.filter(|session| !session.imported || takes_folder);
                session.map_or_else(|| self.workspace.clone(), |session| session.workspace)
            }
        };
        if let Some(warning) = wide(&workspace, std::env::home_dir().as_deref()) {
            self.reporter.warning(&warning.as_str().into());
        }
        let chosen = (Arc::clone(self) as Arc<dyn HostSource>, Choice::default());
        Ok(SessionHandle::open(self.host()?, chosen, begin, self.workspace.clone(), rules).await?)
    }

    /// What a session works with.
    ///
    /// # Errors
    ///
    /// When a plugin that the session needs is missing or broken.
    pub fn host(&self) -> Result<Host, AppError> {
        self.host_of(&self.selection(), self.model.clone())
    }

    /// The plugins of a session that begins now: those under development may have changed since the last one.
    fn selection(&self) -> Selection {
        let selection = self.setup.developing(self.selection.clone(), &self.choice);
        for Developed { name, used_as } in hermes_plugin_host::developed(&self.setup.home.plugins()) {
            if selection.names().any(|selected| selected == name)
                && self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone())
            {
                self.reporter.note(&format!("`{name}` is under development; sessions use it {}", used_as.phrase()));
            }
        }
        selection
    }

    fn host_of(&self, selection: &Selection, mut chosen: ChosenModel) -> Result<Host, AppError> {
        let effort = self.setup.effort_of(&chosen.served.model.name);
        let mut settings = self.settings.clone();
        let compiling = |name: &str, elapsed| self.reporter.compiling(name, elapsed);
        for served in
            chosen.fallbacks.iter_mut().chain([&mut chosen.served]).chain(settings.auxiliary_models.others_mut())
        {
            learned::refresh(&self.store, served);
        }
        self.setup.finish_interrupted_change();
        // Detects changes on disk, so that a new session gets the plugins of this moment.
        let selected = self.plugins.select(selection, &compiling);
        self.reporter.compiled();
        let mut plugins = selected?;
        if self.watches
            && let Err(error) = self.watch(&mut plugins)
        {
            self.reporter.warning(&error.into());
        }
        for notice in plugins.notices() {
            self.reporter.warning(notice);
        }
        Ok(Host {
            home: self.setup.home.path().to_owned(),
            store: Arc::clone(&self.sessions),
            plugins: Box::new(plugins),
            model: chosen.served.model.clone(),
            chain: Arc::new(ModelChain::new(chosen.served, chosen.fallbacks, Arc::clone(&self.rests))),
            effort,
            engine: selection.engine.clone(),
            settings,
            approvals: self.approvals.clone(),
        })
    }

    /// A chosen model with its fallbacks. Sessions with the same model share its connections.
    fn model_of(&self, model: &str, wanted: &ModelChoice) -> Result<ChosenModel, Problem> {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = chosen.get(model) {
            return Ok(known.clone());
        }
        let connected = self.setup.route(wanted).and_then(|route| {
            let fallbacks = self.setup.fallbacks(&route)?;
            self.setup.connect(&self.store, (route, fallbacks), wanted, self.keep_trying)
        });
        let what = "the model cannot be chosen".to_owned();
        let connected = connected.map_err(|error| Diagnostic { what, ..error.diagnose() })?;
        if chosen.len() == MOST_CHOSEN {
            chosen.clear();
        }
        for notice in &connected.notices {
            self.reporter.warning(notice);
        }
        chosen.insert(model.to_owned(), connected.clone());
        Ok(connected)
    }

    /// Watches the plugins for changes while the session lasts.
    fn watch(&self, plugins: &mut Plugins) -> Result<(), String> {
        let folder = self.setup.home.plugins();
        hermes_private_files::create_folder(&folder)
            .map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
        self.plugins.watch(plugins).map_err(|error| error.to_string())
    }

    /// Finds the session that is meant.
    ///
    /// # Errors
    ///
    /// When there is no such session, or several fit.
    pub fn choose(&self, choice: &SessionChoice) -> Result<Begin, AppError> {
        let (id, branch) = match choice {
            SessionChoice::New => return Ok(Begin::New),
            SessionChoice::Resume { id, branch } => (self.store.resolve_session(id)?, *branch),
            SessionChoice::Newest { branch } => {
                let newest = self.store.newest_session(&self.workspace)?;
                (newest.ok_or_else(|| AppError::NoSessionHere { workspace: self.workspace.clone() })?, *branch)
            }
        };
        Ok(if branch { Begin::Branch(id) } else { Begin::Resume(id) })
    }
}

/// Completes the undos that killed processes left, and says so.
pub fn recovered_undos(setup: &Setup) -> Vec<Notice> {
    const NAMED: usize = 10;
    let store = hermes_checkpoints::Store::in_home(setup.home.path());
    let notices = hermes_checkpoints::recover(&store, &setup.checkpoints().limits).into_iter().map(|recovered| {
        let recovered = match recovered {
            Err(error) => {
                let (_, what, fix) = error.parts();
                return Notice::new(format!("{what}: {error}"), fix);
            }
            Ok(recovered) => recovered,
        };
        let files = hermes_diagnostic::counted(recovered.restored.len() as u64, "file");
        let done = if recovered.backward { "taken back" } else { "completed" };
        let names: Vec<String> = recovered.left.iter().take(NAMED).map(ToString::to_string).collect();
        let left = match recovered.left.len() {
            0 => String::new(),
            count => format!(
                "; {} changed meanwhile and stay as they are: {}",
                hermes_diagnostic::counted(count as u64, "file"),
                names.join(", ")
            ),
        };
        format!("an interrupted undo of session {} is {done}: {files}{left}", recovered.session).into()
    });
    notices.collect()
}

/// A warning if the workspace has more in it than a project.
fn wide(workspace: &Path, home: Option<&Path>) -> Option<String> {
    let real = |path: &Path| path.canonicalize().ok();
    let workspace = real(workspace)?;
    let what = if workspace.parent().is_none() {
        "the root of the file system".to_owned()
    } else if home.and_then(real).is_some_and(|home| home.starts_with(&workspace)) {
        format!("{}, which contains your home folder", workspace.display())
    } else {
        return None;
    };
    Some(format!(
        "this session works in {what}: plugins with access to files reach everything there; start Hermes in the folder of a \
         project to limit them"
    ))
}

#[async_trait]
impl HostSource for Launcher {
    async fn host(&self, choice: &Choice) -> Result<Host, Problem> {
        let engine = choice.engine.clone().or_else(|| self.choice.engine.clone());
        let wanted = match &choice.provider {
            // The address and the model of the command line belong to another provider.
            Some(_) => {
                ModelChoice { provider: choice.provider.clone(), model: choice.model.clone(), base_url: None, engine }
            }
            None => {
                let model = choice.model.clone().or_else(|| self.choice.model.clone());
                ModelChoice { model, engine, ..self.choice.clone() }
            }
        };
        let chosen = match (&choice.provider, &choice.model) {
            (None, None) => self.model.clone(),
            (None, Some(model)) => self.model_of(model, &wanted)?,
            (Some(provider), model) => {
                self.model_of(&format!("{provider}/{}", model.as_deref().unwrap_or_default()), &wanted)?
            }
        };
        let host: Result<Host, Problem> = match &choice.engine {
            None => self.host_of(&self.selection(), chosen).map_err(|error| Problem::from(&error)),
            Some(_) => {
                // The same variables, so that sessions with the same engine share their plugins.
                let variables = self.selection.variables.clone();
                let selection = Selection { variables, ..self.setup.selection(&wanted) };
                let host = self.host_of(&selection, chosen);
                let what = || "the context engine was not changed".to_owned();
                host.map_err(|error| Problem::from(Diagnostic { what: what(), ..error.diagnose() }))
            }
        };
        let host = host?;
        Ok(Host { effort: choice.effort.or(host.effort), ..host })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_runtime::Compiler;

    use super::*;
    use crate::{Home, Quiet};

    #[test]
    fn sessions_that_choose_the_same_model_share_its_connections() {
        let home = tempfile::tempdir().unwrap();
        let config = "model: {provider: custom, base_url: \"http://127.0.0.1:9/v1\", default: small}\n";
        fs::write(home.path().join("config.yaml"), config).unwrap();
        let setup = Setup::read(Home::at(home.path()), Compiler::InProcess).unwrap();
        let launch = Launch {
            choice: ModelChoice::default(),
            workspace: home.path().to_owned(),
            platform: "test".to_owned(),
            one_shot: false,
        };
        let launcher = Launcher::new(setup, launch, Arc::new(Quiet)).unwrap();
        let choose = |name: &str| {
            let wanted = ModelChoice { model: Some(name.to_owned()), ..ModelChoice::default() };
            launcher.model_of(name, &wanted).unwrap().served
        };
        let first = choose("large");
        assert_eq!(first.model.name, "large");
        assert!(Arc::ptr_eq(&first.provider, &choose("large").provider));
        let other = choose("medium");
        assert_eq!(other.model.name, "medium");
        assert!(!Arc::ptr_eq(&first.provider, &other.provider));
    }
}
