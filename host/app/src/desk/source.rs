//! What one session works with: a [`Host`] for its beginning, and further ones when it switches its model or its engine.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_agent::{Approvals, Begin, Choice, Host, HostSource, ModelChain, Settings};
use hermes_diagnostic::{Diagnose as _, Diagnostic, Notice};
use hermes_models::Source;
use hermes_plugin_host::{Developed, Plugins, Selection};
use hermes_protocol::Problem;

use super::SessionRequest;
use super::services::Services;
use crate::chain::ChosenModel;
use crate::{AppError, ModelChoice, Reporter, Setup, learned};

/// The environment of a session as its request and the configuration decide it.
pub(super) struct SessionSource {
    services: Arc<Services>,
    choice: ModelChoice,
    /// The selection of the configuration.
    selection: Selection,
    settings: Settings,
    approvals: Approvals,
    /// The model of the request, with its fallbacks.
    model: ChosenModel,
    /// How long requests are tried again.
    keep_trying: Duration,
    /// Whether the session lasts long enough for plugins to change during it.
    watches: bool,
}

impl SessionSource {
    /// Reads everything that the session needs. `services` opens the store, so it is called once nothing else can be invalid.
    pub(super) async fn new(
        setup: &Setup,
        request: &SessionRequest,
        reporter: &Arc<dyn Reporter>,
        services: impl FnOnce() -> Result<Arc<Services>, AppError>,
    ) -> Result<Self, AppError> {
        for warning in setup.warnings() {
            reporter.warning(&warning.as_str().into());
        }
        let route = setup.route(&request.model)?;
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
        let is_one_turn = request.lifetime.is_one_turn();
        let keep_trying = setup.retry_for();
        let is_offline_unasked = route.is_offline() && route.source == Source::Nothing;
        let services = services()?;
        // `services.setup` is the tenant's, if there is one: its home has files of its own.
        let setup = &services.setup;
        let connect = setup.connect(&*services.store, (route, fallbacks), &request.model, keep_trying);
        let model = services.model(&request.model, keep_trying, connect).await?;
        for (named, key, route) in learned::apply_to_tasks(&*services.store, &mut auxiliary).await {
            reporter.warning(&learned::notice(route, named, &key));
        }
        let mut settings = setup.settings(&request.platform, is_one_turn, &auxiliary)?;
        settings.author.clone_from(&request.author);
        for server in &request.servers {
            settings.mcp.retain(|configured| configured.name != server.name);
            settings.mcp.push(server.clone());
        }
        let (rules, listed) = (setup.approval_rules()?, Arc::new(setup.listed_files()?));
        let mode = request.mode.unwrap_or_else(|| setup.mode());
        let approvals = Approvals { rules, listed, can_ask: request.can_ask, mode };
        setup.check_rules(&approvals.rules, &approvals.listed)?;
        // A refused setting makes this note useless, so the settings are read first.
        if is_offline_unasked {
            reporter.note(
                "no model is configured, so the built-in `offline` model is used, which only follows simple commands; \
                 `hermes setup` sets up a model",
            );
        }
        Ok(Self {
            selection: setup.configured_selection(&request.model),
            choice: request.model.clone(),
            watches: !is_one_turn,
            settings,
            approvals,
            model,
            keep_trying,
            services,
        })
    }

    /// Which session the request means. Of an imported one, only what the user accepted is used.
    pub(super) async fn begin(&self, request: &SessionRequest) -> Result<Begin, AppError> {
        let begin = self.services.find(&request.begin, &request.workspace).await?;
        Ok(match begin {
            Begin::Resume(id) if self.services.store.session(&id).await?.imported => {
                Begin::Imported { session: id, accepted: request.accepted }
            }
            begin => begin,
        })
    }

    /// Warns if the session works in a folder that has more in it than a project.
    pub(super) async fn warn_of_wide_workspace(&self, begin: &Begin, request: &SessionRequest) {
        let workspace = match begin {
            Begin::New => None,
            Begin::Resume(id) | Begin::Branch(id) | Begin::Imported { session: id, .. } => {
                let takes_folder = matches!(begin, Begin::Imported { accepted, .. } if accepted.folder);
                let session = self.services.store.session(id).await.ok();
                // The folder that a stranger's file names is used only if the user accepted it.
                session.filter(|session| !session.imported || takes_folder).map(|session| session.workspace)
            }
        };
        let workspace = workspace.unwrap_or_else(|| request.workspace.clone());
        if let Some(warning) = wide(&workspace, std::env::home_dir().as_deref()) {
            self.services.reporter.warning(&warning.as_str().into());
        }
    }

    /// What a session that begins now works with.
    pub(super) async fn host_now(&self) -> Result<Host, AppError> {
        self.host_of(&self.selection(), self.model.clone()).await
    }

    /// The plugins of a session that begins now: those under development may have changed since the last one.
    fn selection(&self) -> Selection {
        let Services { setup, told, reporter, .. } = &*self.services;
        let selection = setup.developing(self.selection.clone(), &self.choice);
        for Developed { name, used_as } in hermes_plugin_host::developed(&setup.home.plugins()) {
            if selection.names().any(|selected| selected == name)
                && told.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone())
            {
                reporter.note(&format!("`{name}` is under development; sessions use it {}", used_as.phrase()));
            }
        }
        selection
    }

    async fn host_of(&self, selection: &Selection, mut chosen: ChosenModel) -> Result<Host, AppError> {
        let Services { setup, reporter, store, plugins, .. } = &*self.services;
        let effort = setup.effort_of(&chosen.served.model.name);
        let mut settings = self.settings.clone();
        for served in
            chosen.fallbacks.iter_mut().chain([&mut chosen.served]).chain(settings.auxiliary_models.others_mut())
        {
            learned::refresh(&**store, served).await;
        }
        setup.finish_interrupted_change();
        // Detects changes on disk, so that a new session gets the plugins of this moment.
        let selected = plugins.select(selection, &|name, elapsed| reporter.compiling(name, elapsed));
        reporter.compiled();
        let mut selected = selected?;
        if self.watches
            && let Err(error) = self.watch(&mut selected)
        {
            reporter.warning(&error.into());
        }
        for notice in selected.notices() {
            reporter.warning(notice);
        }
        Ok(Host {
            home: setup.home.path().to_owned(),
            documents: setup.home.documents(),
            store: Arc::clone(store),
            plugins: Box::new(selected),
            model: chosen.served.model.clone(),
            chain: Arc::new(ModelChain::new(chosen.served, chosen.fallbacks, Arc::clone(&self.services.cooldowns))),
            effort,
            engine: selection.engine.clone(),
            settings,
            approvals: self.approvals.clone(),
        })
    }

    /// A chosen model with its fallbacks. Sessions with the same model share its connections.
    async fn model_of(&self, wanted: &ModelChoice) -> Result<ChosenModel, Problem> {
        let setup = &self.services.setup;
        let connect = async {
            let route = setup.route(wanted)?;
            let fallbacks = setup.fallbacks(&route)?;
            setup.connect(&*self.services.store, (route, fallbacks), wanted, self.keep_trying).await
        };
        let connected = self.services.model(wanted, self.keep_trying, connect).await;
        let what = "the model cannot be chosen".to_owned();
        Ok(connected.map_err(|error| Diagnostic { what, ..error.diagnose() })?)
    }

    /// Watches the plugins for changes while the session lasts.
    fn watch(&self, plugins: &mut Plugins) -> Result<(), String> {
        let folder = self.services.setup.home.plugins();
        hermes_private_files::create_folder(&folder)
            .map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
        self.services.plugins.watch(plugins).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl HostSource for SessionSource {
    async fn host(&self, choice: &Choice) -> Result<Host, Problem> {
        let engine = choice.engine.clone().or_else(|| self.choice.engine.clone());
        let wanted = match &choice.provider {
            // The address and the model of the request belong to another provider.
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
            _ => self.model_of(&wanted).await?,
        };
        let host: Result<Host, Problem> = match &choice.engine {
            None => self.host_of(&self.selection(), chosen).await.map_err(|error| Problem::from(&error)),
            Some(_) => {
                // The same variables, so that sessions with the same engine share their plugins.
                let variables = self.selection.variables.clone();
                let selection = Selection { variables, ..self.services.setup.selection(&wanted) };
                let host = self.host_of(&selection, chosen).await;
                let what = || "the context engine was not changed".to_owned();
                host.map_err(|error| Problem::from(Diagnostic { what: what(), ..error.diagnose() }))
            }
        };
        let host = host?;
        Ok(Host { effort: choice.effort.or(host.effort), ..host })
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_runtime::Compiler;

    use super::*;
    use crate::{Desk, Home, Quiet};

    #[tokio::test]
    async fn sessions_that_choose_the_same_model_share_its_connections() {
        let home = tempfile::tempdir().unwrap();
        let config = "model: {provider: custom, base_url: \"http://127.0.0.1:9/v1\", default: small}\n";
        fs::write(home.path().join("config.yaml"), config).unwrap();
        let setup = Setup::read(Home::at(home.path()), Compiler::InProcess).unwrap();
        let desk = Desk::new(setup, Arc::new(Quiet));
        let source = desk.source(&SessionRequest::new("test", home.path())).await.unwrap();
        let choose = async |name: &str| {
            let wanted = ModelChoice { model: Some(name.to_owned()), ..ModelChoice::default() };
            source.model_of(&wanted).await.unwrap().served
        };
        let first = choose("large").await;
        assert_eq!(first.model.name, "large");
        assert!(Arc::ptr_eq(&first.provider, &choose("large").await.provider));
        let other = choose("medium").await;
        assert_eq!(other.model.name, "medium");
        assert!(!Arc::ptr_eq(&first.provider, &other.provider));
    }
}
