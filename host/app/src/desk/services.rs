//! What the sessions of one home share: the store, the plugins' code and the connections to models.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_agent::{Begin, ModelCooldowns};
use hermes_plugin_host::PluginHost;
use hermes_session_store::SessionStore;

use super::Beginning;
use crate::bundled::BUNDLED;
use crate::chain::ChosenModel;
use crate::{AppError, ModelChoice, Reporter, Setup};

/// More models than the sessions of a process usually choose.
const MOST_CHOSEN: usize = 16;

pub(super) struct Services {
    pub(super) setup: Setup,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) plugins: PluginHost,
    /// How long models that failed are left alone.
    pub(super) cooldowns: Arc<ModelCooldowns>,
    pub(super) reporter: Arc<dyn Reporter>,
    /// The plugins under development that the user knows of.
    pub(super) told: Mutex<BTreeSet<String>>,
    /// The models that sessions use, with how long their requests are tried again.
    chosen: Mutex<HashMap<(ModelChoice, Duration), ChosenModel>>,
}

impl Services {
    pub(super) fn open(setup: Setup, reporter: Arc<dyn Reporter>) -> Result<Self, AppError> {
        // Opening the store detects a home of another program, so this comes before anything is created there.
        let store = setup.store()?;
        for line in super::recovered_undos(&setup) {
            reporter.warning(&line);
        }
        let cooldown = Duration::from_secs(setup.config.settings().model.cooldown.get().into());
        Ok(Self {
            store,
            plugins: PluginHost::new(Arc::new(setup.runtime()), BUNDLED, setup.home.plugins()),
            cooldowns: Arc::new(ModelCooldowns::new(cooldown, setup.logins.cooldowns().clone())),
            told: Mutex::default(),
            chosen: Mutex::default(),
            setup,
            reporter,
        })
    }

    /// The model of a choice, with its fallbacks. Sessions with the same choice share its connections, and its notices are shown
    /// once.
    pub(super) async fn model(
        &self,
        choice: &ModelChoice,
        keep_trying: Duration,
        connect: impl Future<Output = Result<ChosenModel, AppError>>,
    ) -> Result<ChosenModel, AppError> {
        // The engine has no part in the model.
        let key = (ModelChoice { engine: None, ..choice.clone() }, keep_trying);
        let known = || self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&key) {
            return Ok(known.clone());
        }
        let connected = connect.await?;
        let mut chosen = known();
        // Another session may have chosen the same model meanwhile.
        if let Some(known) = chosen.get(&key) {
            return Ok(known.clone());
        }
        if chosen.len() == MOST_CHOSEN {
            chosen.clear();
        }
        for notice in &connected.notices {
            self.reporter.warning(notice);
        }
        chosen.insert(key, connected.clone());
        Ok(connected)
    }

    /// Finds the session that is meant.
    pub(super) async fn find(&self, begin: &Beginning, workspace: &Path) -> Result<Begin, AppError> {
        let (id, branch) = match begin {
            Beginning::New => return Ok(Begin::New),
            Beginning::Resume { id, branch } => (self.store.resolve_session(id).await?, *branch),
            Beginning::Newest { branch } => {
                let newest = self.store.newest_session(workspace).await?;
                (newest.ok_or_else(|| AppError::NoSessionHere { workspace: workspace.to_owned() })?, *branch)
            }
        };
        Ok(if branch { Begin::Branch(id) } else { Begin::Resume(id) })
    }
}
