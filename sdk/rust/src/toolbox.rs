//! Typed tools: name, schema and function of each tool in one place, so that they cannot diverge.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
use crate::tools::{Effect, Invocation, Output, Tool};

type Run<P> = Box<dyn Fn(&mut P, &Invocation) -> Result<Output, Error>>;

/// The tools of a plugin `P`.
///
/// The arguments of each tool are a type marked with [`arguments`](crate::arguments). Its doc comment becomes the tool's
/// description, and those of its fields describe the arguments. Invalid arguments are rejected before the function runs.
pub struct Toolbox<P> {
    toolset: String,
    tools: Vec<(Tool, Run<P>)>,
}

impl<P> Toolbox<P> {
    /// An empty toolbox. Its tools belong to this toolset, a group on which skills can depend.
    pub fn new(toolset: impl Into<String>) -> Self {
        Self { toolset: toolset.into(), tools: Vec::new() }
    }

    /// Adds a tool. By default it counts as writing and runs alone.
    #[must_use]
    pub fn tool<A, O>(mut self, name: &str, run: impl Fn(&mut P, A) -> Result<O, Error> + 'static) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        O: Into<Output>,
    {
        let (description, parameters) = described::<A>();
        let tool = Tool::new(name, description, parameters).toolset(&self.toolset);
        let run: Run<P> = Box::new(move |plugin, invocation| run(plugin, invocation.parse()?).map(Into::into));
        self.tools.push((tool, run));
        self
    }

    /// Sets the effect of the tool added last.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        if let Some((tool, _)) = self.tools.last_mut() {
            tool.effect = effect;
        }
        self
    }

    /// Sets whether the tool added last may run in parallel with other calls, on an instance of its own.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        if let Some((tool, _)) = self.tools.last_mut() {
            tool.parallel = parallel;
        }
        self
    }

    /// The list for [`Tools::catalog`](crate::Tools::catalog).
    pub fn catalog(&self) -> Vec<Tool> {
        self.tools.iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// Runs a call, for [`Tools::call`](crate::Tools::call).
    pub fn call(&self, plugin: &mut P, invocation: &Invocation) -> Result<Output, Error> {
        let found = self.tools.iter().find(|(tool, _)| tool.schema.name == invocation.name);
        let (_, run) = found.ok_or_else(|| invocation.unknown())?;
        run(plugin, invocation)
    }
}

/// Description and schema of a type. The schema is reduced to the form that models and providers understand: inlined, and
/// without details that only Rust programs need.
pub(crate) fn described<A: JsonSchema>() -> (String, Value) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    RecursiveTransform(plain).transform(&mut schema);
    let description = schema.remove("description");
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
    schema.remove("title");
    // Providers expect an object, even for a type without fields.
    if schema.get("type").and_then(Value::as_str) != Some("null") {
        schema.insert("type".to_owned(), "object".into());
    }
    (description, schema.to_value())
}

/// Removes the formats of Rust's number types, and `null` beside another type: optional fields are not required anyway.
fn plain(schema: &mut Schema) {
    let is_of_rust = |format: &str| {
        matches!(format, "float" | "double")
            || format.trim_start_matches('u').trim_start_matches("int").parse::<u8>().is_ok()
    };
    if schema.get("format").and_then(Value::as_str).is_some_and(is_of_rust) {
        schema.remove("format");
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    let types = schema.get_mut("type").and_then(Value::as_array_mut);
    let only = types.and_then(|types| {
        types.retain(|name| name != "null");
        if types.len() == 1 { types.pop() } else { None }
    });
    if let Some(only) = only {
        schema.insert("type".to_owned(), only);
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| !value.is_null());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, dead_code)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ErrorKind, arguments};

    /// Trim the
    /// wicks.
    #[arguments]
    struct Trim {
        /// Which lamps.
        lamps: Vec<Lamp>,
        /// By how much.
        how: How,
        /// Millimetres.
        by: Option<u32>,
        #[serde(default)]
        slowly: bool,
    }

    #[arguments]
    struct Lamp {
        /// Painted on it.
        number: u8,
    }

    #[arguments]
    #[serde(rename_all = "lowercase")]
    enum How {
        Short,
        Long,
    }

    struct Keeper(u32);

    fn tools() -> Toolbox<Keeper> {
        let trim = |keeper: &mut Keeper, trim: Trim| {
            keeper.0 += trim.lamps.iter().map(|lamp| u32::from(lamp.number)).sum::<u32>();
            Ok(format!("{} of {}", keeper.0, trim.by.unwrap_or(3)))
        };
        Toolbox::new("lamps").tool("trim", trim).effect(Effect::Dangerous)
    }

    fn call(arguments: &str) -> Result<Output, Error> {
        let invocation =
            Invocation { id: "1".into(), name: "trim".into(), arguments: arguments.into(), extra: Vec::new() };
        tools().call(&mut Keeper(1), &invocation)
    }

    #[test]
    fn a_schema_is_derived_from_the_type_and_its_doc_comments() {
        let [tool] = &tools().catalog()[..] else { panic!("one tool") };
        assert_eq!((tool.toolset.as_str(), tool.effect, tool.parallel), ("lamps", Effect::Dangerous, false));
        assert_eq!(tool.schema.description, "Trim the wicks.");
        let schema: Value = serde_json::from_str(&tool.schema.parameters).unwrap();
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "lamps": {
                        "description": "Which lamps.",
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "number": { "description": "Painted on it.", "type": "integer", "minimum": 0, "maximum": 255 },
                            },
                            "required": ["number"],
                        },
                    },
                    "how": { "description": "By how much.", "type": "string", "enum": ["short", "long"] },
                    "by": { "description": "Millimetres.", "type": "integer", "minimum": 0 },
                    "slowly": { "type": "boolean", "default": false },
                },
                "required": ["lamps", "how"],
            })
        );
    }

    #[test]
    fn valid_arguments_reach_the_function_and_invalid_ones_are_reported() {
        let trimmed = call(r#"{"lamps":[{"number":4},{"number":5}],"how":"short"}"#).unwrap();
        assert_eq!(trimmed, Output::text("10 of 3"));
        for (arguments, part) in [("{}", "lamps"), (r#"{"lamps":[],"how":"wide"}"#, "wide"), ("[]", "trim")] {
            let error = call(arguments).unwrap_err();
            assert!(error.is(ErrorKind::InvalidInput) && error.message.contains(part), "{error}");
        }
    }
}
