//! A model that may serve a task.

use std::sync::Arc;

use hermes_conversation::Model;
use hermes_diagnostic::{Action, Fix};
use hermes_models::{Effort, Provider};

/// Section, provider and model.
pub(super) type Identity = (String, String, String);

/// A connected model that can serve a task.
pub(super) struct Route {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: Model,
    /// The configuration key that names the model; `None` for the session's model.
    pub(super) section: Option<String>,
    /// How much it thinks; none for the provider's default.
    pub(super) effort: Option<Effort>,
}

impl Route {
    pub(super) fn identity(&self) -> Identity {
        let Model { provider, name, .. } = &self.model;
        (self.section.clone().unwrap_or_default(), provider.clone(), name.clone())
    }

    pub(super) fn label(&self) -> String {
        format!("{} of {}", self.model.name, self.model.provider)
    }

    /// What to do when the model fails; `None` for the session's model.
    pub(super) fn remedy(&self) -> Option<Fix> {
        let fix = |section| Fix::words(format!("check `{section}` in config.yaml")).or(Action::Diagnose);
        self.section.as_ref().map(fix)
    }
}
