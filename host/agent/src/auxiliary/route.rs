//! A model that may serve a task.

use hermes_conversation::Model;
use hermes_diagnostic::{Action, Fix};
use hermes_models::Effort;

use crate::served::ServedModel;

/// Section, provider and model.
pub(super) type Identity = (String, String, String);

/// A connected model that can serve a task.
pub(super) struct Route {
    /// The window is the smallest of those that count: configured, learned, and the one that the provider named in this session.
    pub(super) served: ServedModel,
    /// The configuration key that names the model; `None` for the session's model.
    pub(super) section: Option<String>,
    /// How much it thinks; none for the provider's default.
    pub(super) effort: Option<Effort>,
}

impl Route {
    pub(super) fn identity(&self) -> Identity {
        let Model { provider, name, .. } = &self.served.model;
        (self.section.clone().unwrap_or_default(), provider.clone(), name.clone())
    }

    pub(super) fn label(&self) -> String {
        format!("{} of {}", self.served.model.name, self.served.model.provider)
    }

    /// What to do when the model fails; `None` for the session's model.
    pub(super) fn remedy(&self) -> Option<Fix> {
        let fix = |section| Fix::words(format!("check `{section}` in config.yaml")).or(Action::Diagnose);
        self.section.as_ref().map(fix)
    }
}
