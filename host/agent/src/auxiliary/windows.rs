//! The windows that providers named when they refused requests of plugins as too long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_models::{LEAST_WINDOW, WindowSource};

use crate::served::ServedModel;

/// The windows that providers named in this session, by address and model. Clones share them.
#[derive(Clone, Default)]
pub(super) struct NamedWindows(Arc<Mutex<HashMap<(String, String), u32>>>);

impl NamedWindows {
    /// Gives a model the window that its provider named.
    pub(super) fn apply(&self, served: &mut ServedModel) {
        let named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = named.get(&key(served))
            && *tokens < served.model.context_length
        {
            (served.model.context_length, served.window_source) = (*tokens, WindowSource::Learned);
        }
    }

    /// Keeps to a window that the provider named, if it is smaller than the known one. Returns whether it is.
    pub(super) fn keep(&self, served: &ServedModel, tokens: u32) -> bool {
        if tokens < LEAST_WINDOW || tokens >= served.model.context_length {
            return false;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key(served), tokens);
        true
    }
}

fn key(served: &ServedModel) -> (String, String) {
    (served.address.clone(), served.model.name.clone())
}
