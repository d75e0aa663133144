//! The models that providers offer, and a trial of one. `providers.rs` says which providers can be asked.

use hermes_models::CooldownId;

use crate::operations::{ChosenModel, ModelPlace, set_model};
use crate::{AppError, ModelChoice, Setup, learned};

pub use hermes_models::{ListedModel, ModelError, ProviderRow, Route, Source, Trial, WindowSource};

/// A change of the model of new sessions.
#[derive(Debug, Clone)]
pub struct ModelChange {
    /// The new model.
    pub route: Route,
    /// The settings that were removed because they were for the former model.
    pub removed: Vec<&'static str>,
}

/// The known providers that have one address for everybody.
pub fn known_providers() -> impl Iterator<Item = &'static ProviderRow> {
    ProviderRow::with_address()
}

/// A known provider by its name.
pub fn known_provider(name: &str) -> Option<&'static ProviderRow> {
    ProviderRow::by_name(name)
}

impl Setup {
    /// The models that a provider offers, by their names.
    ///
    /// # Errors
    ///
    /// [`AppError::Model`], when the provider does not answer or has no list.
    pub async fn models_of(&self, route: &Route) -> Result<Vec<ListedModel>, AppError> {
        let listed = hermes_models::list_models(route, &self.logins).await?;
        // A list creates no home.
        if let Ok(Some(_)) = self.store_to_read() {
            self.keep_windows(route, &listed).await;
        }
        Ok(listed)
    }

    /// Keeps the windows of a provider's list, for sessions with these models.
    pub async fn keep_windows(&self, route: &Route, listed: &[ListedModel]) {
        if let Ok(store) = self.store() {
            learned::keep_listed(&*store, &route.address(), listed).await;
        }
    }

    /// Sends a small request to a model.
    ///
    /// # Errors
    ///
    /// [`AppError::Model`], when the model does not answer.
    pub async fn try_model(&self, route: &Route) -> Result<Trial, AppError> {
        Ok(hermes_models::try_route(route, &self.logins).await?)
    }

    /// Makes new sessions use another model. Nothing is stored if it could not be used.
    ///
    /// # Errors
    ///
    /// When `config.yaml` cannot be changed, or names no usable model afterwards.
    pub fn switch_model(&self, model: &ChosenModel, place: &ModelPlace) -> Result<ModelChange, AppError> {
        let mut edit = hermes_config::Edit::of(&self.home.config())?;
        let removed = set_model(&mut edit, &self.config.settings().model, place, model)?;
        let route = self.with_changes(&edit, &[])?.route(&ModelChoice::default())?;
        self.own()?;
        edit.save()?;
        // Who chooses a model wants it to be asked.
        self.logins.cooldowns().end(&CooldownId::model(&route));
        Ok(ModelChange { route, removed })
    }

    /// Ends the cooldown of a key, which the user sets again. Returns whether it had one.
    pub fn end_cooldown_of_key(&self, key: &str) -> bool {
        hermes_models::Secret::new(key).is_some_and(|key| self.logins.cooldowns().end_of_key(&key))
    }
}
