//! Instructions that are disclosed in three steps: the index in the prompt, one skill, one of its files.

use crate::export::Slot;
use crate::{Error, Plugin};

use crate::bindings::skills::exports::hermes::skills::skills as wit;
pub use wit::{Document, Skill};

/// A plugin that provides skills.
pub trait Skills: Plugin {
    /// All skills. Must return the same list while nothing changed, because it is part of the prompt.
    fn index(&mut self) -> Result<Vec<Skill>, Error>;

    /// A skill by name, or one of its files.
    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error>;
}

impl<S: Slot<Plugin: Skills>> wit::Guest for S {
    fn index() -> Result<Vec<Skill>, Error> {
        S::call("index", |plugin| plugin.index())
    }

    fn view(name: String, path: Option<String>) -> Result<Document, Error> {
        S::call("view", |plugin| plugin.view(&name, path.as_deref()))
    }
}
