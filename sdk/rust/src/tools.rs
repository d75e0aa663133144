//! Functions that the model may call.

use std::fmt::Display;

use serde::de::DeserializeOwned;

use crate::export::Slot;
use crate::{Error, Plugin, ToolSchema};

use crate::bindings::tools::exports::hermes::plugin::tools as wit;
pub use wit::{Effect, Image, Invocation, Output, Tool};

/// A plugin with functions for the model.
pub trait Tools: Plugin {
    /// Asked once; fixed for the session.
    fn catalog(&self) -> Vec<Tool>;

    /// Runs one of them. The message of an error goes to the model, so it should say how to do better.
    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error>;
}

impl Tool {
    /// A tool that is taken to change things and runs alone, in a toolset of its own name, until told otherwise.
    ///
    /// `parameters` is a JSON Schema object, as text or as a `serde_json::Value`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Display) -> Self {
        let name = name.into();
        Self {
            toolset: name.clone(),
            schema: ToolSchema { name, description: description.into(), parameters: parameters.to_string() },
            parallel: false,
            effect: Effect::Writes,
            extra: Vec::new(),
        }
    }

    /// The group by which users enable it.
    #[must_use]
    pub fn toolset(mut self, toolset: impl Into<String>) -> Self {
        self.toolset = toolset.into();
        self
    }

    /// What a call does to the world.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Whether it may run beside other calls, on an instance of its own.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }
}

impl Invocation {
    /// The arguments as a type of one's own; what does not fit is said to the model.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let arguments = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        serde_json::from_str(arguments)
            .map_err(|error| Error::invalid(format!("arguments of {} do not fit: {error}", self.name)))
    }

    /// The answer to a name that is not in the catalog.
    pub fn unknown(&self) -> Error {
        Error::invalid(format!("no tool named {}", self.name))
    }
}

impl Output {
    /// A text, nothing else.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), images: Vec::new(), extra: Vec::new() }
    }
}

impl From<String> for Output {
    fn from(content: String) -> Self {
        Self::text(content)
    }
}

impl<S: Slot<Plugin: Tools>> wit::Guest for S {
    fn catalog() -> Vec<Tool> {
        S::expect("catalog", |plugin| plugin.catalog())
    }

    fn call(invocation: Invocation) -> Result<Output, Error> {
        S::call("call", |plugin| plugin.call(&invocation))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn invocation(arguments: &str) -> Invocation {
        Invocation { id: "1".into(), name: "roll".into(), arguments: arguments.into(), extra: Vec::new() }
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        let parsed: serde_json::Map<String, serde_json::Value> = invocation(" ").parse().unwrap();
        assert!(parsed.is_empty());
    }

    #[test]
    fn arguments_that_do_not_fit_name_the_tool() {
        #[derive(serde::Deserialize, Debug)]
        struct Arguments {
            #[allow(dead_code)]
            sides: u32,
        }
        let error = invocation(r#"{"sides":"many"}"#).parse::<Arguments>().unwrap_err();
        assert!(error.message.contains("roll") && error.message.contains("u32"), "{error}");
    }

    #[test]
    fn a_schema_may_be_a_value_or_a_text() {
        let value = Tool::new("a", "b", serde_json::json!({"type": "object"}));
        assert_eq!(value, Tool::new("a", "b", r#"{"type":"object"}"#));
        assert_eq!((value.effect, value.parallel), (Effect::Writes, false));
    }
}
