//! A model that may serve a task.

use std::sync::Arc;

use hermes_conversation::Model;
use hermes_diagnostic::{Action, Fix};
use hermes_models::Provider;

/// Section, provider and model.
pub(super) type Identity = (String, String, String);

/// One that may serve, with nothing left open.
pub(super) struct Serving {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: Model,
    /// None for the session's own.
    pub(super) section: Option<String>,
}

impl Serving {
    pub(super) fn identity(&self) -> Identity {
        let Model { provider, name, .. } = &self.model;
        (self.section.clone().unwrap_or_default(), provider.clone(), name.clone())
    }

    pub(super) fn shown(&self) -> String {
        format!("{} of {}", self.model.name, self.model.provider)
    }

    /// Where to put right what is wrong with it, for one that is not the session's.
    pub(super) fn remedy(&self) -> Option<Fix> {
        let fix = |section| Fix::words(format!("check `{section}` in config.yaml")).or(Action::Diagnose);
        self.section.as_ref().map(fix)
    }
}
