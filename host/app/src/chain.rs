//! The models that answer a session: the chosen one and its fallbacks.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::ServedModel;
use hermes_config::{Fallback, Fallbacks};
use hermes_diagnostic::Notice;
use hermes_models::{Credential, ReadKey, Route, Waits};
use hermes_session_store::Ledger;

use crate::{AppError, ModelChoice, Setup, learned};

/// A model that was chosen for sessions, and the models that answer while it fails.
#[derive(Clone)]
pub(crate) struct ChosenModel {
    pub(crate) served: ServedModel,
    pub(crate) fallbacks: Vec<ServedModel>,
    /// Windows that are configured larger than the providers said.
    pub(crate) notices: Vec<Notice>,
}

impl Setup {
    /// The models that answer while the model of a session fails.
    ///
    /// # Errors
    ///
    /// When an entry of `fallback_providers` is wrong.
    pub fn fallbacks(&self, session: &Route) -> Result<Fallbacks, AppError> {
        Ok(Fallbacks::read(&self.config, session, &self.configured()?, &|name| self.environment.var(name))?)
    }

    /// The model of a session and its fallbacks, each with its provider and with the window that the provider named in an
    /// earlier session. Nothing is sent yet.
    pub(crate) async fn connect(
        &self,
        store: &dyn Ledger,
        (mut session, mut fallbacks): (Route, Fallbacks),
        choice: &ModelChoice,
        keep_trying: Duration,
    ) -> Result<ChosenModel, AppError> {
        let mut notices = Vec::new();
        if let Some(named) = learned::apply(store, &mut session).await {
            notices.push(learned::notice(&session, named, "model.context_length"));
        }
        for Fallback { section, route } in &mut fallbacks.routes {
            if let Some(named) = learned::apply(store, route).await {
                notices.push(learned::notice(route, named, &format!("{section}.context_length")));
            }
        }
        let served = self.served(&session, keep_trying, self.key_reader(&session, choice))?;
        let fallback = |Fallback { section, route }: &Fallback| {
            self.served(route, keep_trying, self.fallback_key_reader(section, route, choice))
        };
        let fallbacks = fallbacks.routes.iter().map(fallback).collect::<Result<_, _>>()?;
        Ok(ChosenModel { served, fallbacks, notices })
    }

    fn served(&self, route: &Route, keep_trying: Duration, read_key: ReadKey) -> Result<ServedModel, AppError> {
        let silence = self.config.settings().model.silence_timeout;
        let waits = Waits { keep_trying, silence: silence.map(|seconds| Duration::from_secs(seconds.get().into())) };
        let provider = hermes_models::connect_patiently(route, &self.logins, waits, Some(read_key))?;
        Ok(ServedModel::of(route, provider))
    }

    /// Reads the key of a fallback again, like [`Setup::key_reader`].
    fn fallback_key_reader(&self, section: &str, route: &Route, choice: &ModelChoice) -> ReadKey {
        let (home, compiler) = (self.home.clone(), self.compiler.clone());
        let (section, address, choice) = (section.to_owned(), route.base_url.clone(), choice.clone());
        Arc::new(move || {
            let setup = Self::read(home.clone(), compiler.clone()).ok()?;
            let fallbacks = setup.fallbacks(&setup.route(&choice).ok()?).ok()?;
            let route = fallbacks.routes.into_iter().find(|fallback| fallback.section == section)?.route;
            match route.credential {
                Some(Credential::Key(key)) if route.base_url == address => Some(key),
                _ => None,
            }
        })
    }
}
