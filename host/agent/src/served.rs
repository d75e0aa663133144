//! A model with the provider that serves it.

use std::sync::Arc;

use hermes_conversation::Model;
use hermes_models::{CooldownId, Provider, Route, WindowSource};

/// A model with the provider that serves it.
#[derive(Clone)]
pub struct ServedModel {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The model, and its window.
    pub model: Model,
    /// The address of the provider without a query; empty for the built-in partner.
    pub address: String,
    /// Where the window's size comes from.
    pub window_source: WindowSource,
    /// A smaller window that the provider named earlier, if the configuration overrides it.
    pub overridden: Option<u32>,
    /// Names it among the models on cooldown.
    pub cooldown: CooldownId,
}

impl ServedModel {
    /// The model of a route, and the provider that serves it.
    pub fn of(route: &Route, provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            model: route.model.clone(),
            address: route.address(),
            window_source: route.window_source,
            overridden: None,
            cooldown: CooldownId::model(route),
        }
    }

    /// How messages name it.
    pub(crate) fn label(&self) -> String {
        format!("`{}` of {}", self.model.name, self.model.provider)
    }
}
