//! Functions that the model can call.

use std::fmt::Display;

use serde::de::DeserializeOwned;

use crate::export::Slot;
use crate::{Error, Extra, Plugin, ToolSchema};

use crate::bindings::tool_preview::exports::hermes::tools::tool_preview as preview;
use crate::bindings::tools::exports::hermes::tools::tools as wit;
pub use wit::{Content, Effect, Image, Invocation, Link, Output, Tool};

/// A plugin with functions for the model.
pub trait Tools: Plugin {
    /// All tools. Called when the session begins; the list is fixed for the session. After an error the session goes on
    /// without them.
    fn catalog(&self) -> Result<Vec<Tool>, Error>;

    /// Runs a tool. The message of an error goes to the model, so it should suggest a fix.
    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error>;
}

impl Tool {
    /// A tool in a toolset of its own name. By default it counts as writing and runs alone.
    ///
    /// `parameters` is a JSON Schema object, as text or as a `serde_json::Value`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Display) -> Self {
        let name = name.into();
        Self {
            toolset: name.clone(),
            schema: ToolSchema {
                name,
                description: description.into(),
                parameters: parameters.to_string(),
                extra: Extra::new(),
            },
            title: None,
            output_schema: None,
            parallel: false,
            effect: Effect::Writes,
            idempotent: false,
            open_world: false,
            extra: Vec::new(),
        }
    }

    /// Sets the group of the tool, on which skills can depend.
    #[must_use]
    pub fn toolset(mut self, toolset: impl Into<String>) -> Self {
        self.toolset = toolset.into();
        self
    }

    /// Sets the name that people see.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the JSON Schema of structured results.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Display) -> Self {
        self.output_schema = Some(schema.to_string());
        self
    }

    /// Sets whether a second call with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets whether the tool deals with an open set of things, such as web pages.
    #[must_use]
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.open_world = open_world;
        self
    }

    /// Sets the effect of a call.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets whether the tool may run in parallel with other calls, on an instance of its own.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }
}

impl Invocation {
    /// A call, for tests. `arguments` is a JSON object, as text or as a `serde_json::Value`.
    pub fn new(name: impl Into<String>, arguments: impl Display) -> Self {
        Self { id: "call-1".to_owned(), name: name.into(), arguments: arguments.to_string(), extra: Extra::new() }
    }

    /// Parses the arguments. An error is reported to the model.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let arguments = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        serde_json::from_str(arguments)
            .map_err(|error| Error::invalid(format!("the arguments of {} are invalid: {error}", self.name)))
    }

    /// The error for a name that is not in the catalog.
    pub fn unknown(&self) -> Error {
        Error::invalid(format!("no tool named {}", self.name))
    }
}

impl Output {
    /// The texts of the output, joined.
    pub fn texts(&self) -> String {
        let text = |part: &Content| if let Content::Text(text) = part { Some(text.clone()) } else { None };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }

    /// An output that is only text.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(content.into())], structured: None, extra: Vec::new() }
    }

    /// Adds an image.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.content.push(Content::Image(image));
        self
    }

    /// Adds a link.
    #[must_use]
    pub fn link(mut self, uri: impl Into<String>, title: impl Into<String>) -> Self {
        let (uri, title) = (uri.into(), Some(title.into()));
        self.content.push(Content::Link(Link { uri, title, media_type: None, extra: Vec::new() }));
        self
    }

    /// Sets the result as JSON, beside the text.
    #[must_use]
    pub fn structured(mut self, json: impl Display) -> Self {
        self.structured = Some(json.to_string());
        self
    }

    /// Sets what the model still has to know when a compaction has hidden the result, such as open tasks. It is valid until the
    /// tool's next result with a reminder. An empty text ends it.
    #[must_use]
    pub fn reminder(mut self, text: impl Into<String>) -> Self {
        self.extra.push(("reminder".to_owned(), text.into()));
        self
    }

    /// Sets a text that is more than the result, such as the page behind a summary. The host keeps it as a file, which the model
    /// can read in parts, and names it behind the result.
    #[must_use]
    pub fn whole_text(mut self, text: impl Into<String>) -> Self {
        self.extra.push(("whole-text".to_owned(), text.into()));
        self
    }

    /// For a tool of a memory provider: says what the call changed in its store, so that other providers can follow.
    #[must_use]
    pub fn memory_write(mut self, action: &str, target: &str, text: &str, previous: Option<&str>) -> Self {
        let write = serde_json::json!({ "action": action, "target": target, "text": text, "previous": previous });
        self.extra.push(("memory-write".to_owned(), write.to_string()));
        self
    }
}

impl From<String> for Output {
    fn from(content: String) -> Self {
        Self::text(content)
    }
}

/// What a call of a tool would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPreview {
    /// Counts for the approval of this call in place of the tool's effect.
    pub effect: Effect,
    /// For the question to the user, such as `Orders 2 packets of tea for 9 €.`
    pub sentence: Option<String>,
}

impl CallPreview {
    /// A call that the user is asked about, with this sentence.
    pub fn dangerous(sentence: impl Into<String>) -> Self {
        Self { effect: Effect::Dangerous, sentence: Some(sentence.into()) }
    }

    /// A call that runs without a question.
    pub fn harmless() -> Self {
        Self { effect: Effect::Writes, sentence: None }
    }
}

/// Implemented by a plugin with tools whose calls differ, beside [`Tools`]: a shop asks before an order above 10 €. Needs version 1.1 of
/// the contract; an older host asks by the tool's own effect.
pub trait ToolPreview: Tools {
    /// What this call would do. Called before each call of a tool whose effect is not [`Effect::Reads`]; must change nothing. After
    /// an error the call counts as dangerous.
    fn preview(&mut self, name: &str, arguments: &str) -> Result<CallPreview, Error>;
}

impl<S: Slot<Plugin: ToolPreview>> preview::Guest for S {
    fn preview(name: String, arguments: String) -> Result<preview::CallPreview, Error> {
        let CallPreview { effect, sentence } = S::call("preview", |plugin| plugin.preview(&name, &arguments))?;
        let effect = match effect {
            Effect::Reads => preview::Effect::Reads,
            Effect::Writes => preview::Effect::Writes,
            Effect::Dangerous => preview::Effect::Dangerous,
        };
        Ok(preview::CallPreview { effect, sentence, extra: Extra::new() })
    }
}

impl<S: Slot<Plugin: Tools>> wit::Guest for S {
    fn catalog() -> Result<Vec<Tool>, Error> {
        S::call("catalog", |plugin| plugin.catalog())
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
    fn missing_arguments_count_as_an_empty_object() {
        let parsed: serde_json::Map<String, serde_json::Value> = invocation(" ").parse().unwrap();
        assert!(parsed.is_empty());
    }

    #[test]
    fn invalid_arguments_name_the_tool() {
        #[derive(serde::Deserialize, Debug)]
        struct Arguments {
            #[allow(dead_code)]
            sides: u32,
        }
        let error = invocation(r#"{"sides":"many"}"#).parse::<Arguments>().unwrap_err();
        assert!(error.message.contains("roll") && error.message.contains("u32"), "{error}");
    }

    #[test]
    fn a_schema_can_be_a_value_or_a_text() {
        let value = Tool::new("a", "b", serde_json::json!({"type": "object"}));
        assert_eq!(value, Tool::new("a", "b", r#"{"type":"object"}"#));
        assert_eq!((value.effect, value.parallel), (Effect::Writes, false));
    }
}
