//! Types of single values: numbers with bounds, names, sections of plugins, hints.

use std::borrow::Cow;
use std::fmt;

use hermes_models::Effort;
use hermes_plugin_host::PluginSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_json::{Map, Value};

use super::named::named;

/// A whole number from `LEAST` to `MOST`. Without `MOST`, a larger number than fits becomes the largest that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Whole<const LEAST: u32, const MOST: u32 = { u32::MAX }>(u32);

impl<const LEAST: u32, const MOST: u32> Whole<LEAST, MOST> {
    /// A number that is known to be in bounds.
    ///
    /// # Panics
    ///
    /// If it is not; used in constants, that is an error of compilation.
    pub const fn new(number: u32) -> Self {
        assert!(number >= LEAST && number <= MOST, "the number is out of bounds");
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = u64::deserialize(deserializer)?;
        let number = u32::try_from(given).unwrap_or(u32::MAX);
        if number < LEAST || number > MOST {
            return Err(D::Error::invalid_value(Unexpected::Unsigned(given), &"a number in bounds"));
        }
        Ok(Self(number))
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("WholeFrom{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match MOST {
            u32::MAX => json_schema!({ "type": "integer", "minimum": LEAST }),
            _ => json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST }),
        }
    }
}

/// A number above 0 and up to 1.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// A tenth.
    pub const TENTH: Self = Self(0.1);

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if share > 0.0 && share <= 1.0 {
            return Ok(Self(share));
        }
        Err(D::Error::invalid_value(Unexpected::Float(share), &"a number above 0 and up to 1"))
    }
}

impl JsonSchema for Share {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
    }
}

/// An amount of US dollars, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Dollars(f64);

impl Dollars {
    /// Nothing.
    pub const NONE: Self = Self(0.0);

    /// The amount.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        if amount >= 0.0 && amount.is_finite() {
            return Ok(Self(amount));
        }
        Err(D::Error::invalid_value(Unexpected::Float(amount), &"an amount of 0 or more"))
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// Whether programs are confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxChoice {
    /// Where the system can do so.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always: without a sandbox, no program runs.
    Require,
}

impl SandboxChoice {
    const NAMES: [(&str, Self); 3] = [("auto", Self::Auto), ("off", Self::Off), ("require", Self::Require)];
}

named!(SandboxChoice);

/// What the user is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Every change and every program.
    #[default]
    Ask,
    /// Programs, but no ordinary change of a file in the workspace.
    AcceptEdits,
    /// Nothing: what changes something is refused.
    Plan,
    /// What the sandbox does not cover.
    Auto,
}

impl ApprovalMode {
    const NAMES: [(&str, Self); 4] =
        [("ask", Self::Ask), ("accept-edits", Self::AcceptEdits), ("plan", Self::Plan), ("auto", Self::Auto)];
}

named!(ApprovalMode);

/// What happens to a message that the user types while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WhileBusy {
    /// It waits for the end of the turn.
    #[default]
    Queue,
    /// It stops the turn, and is sent.
    Interrupt,
    /// It goes into the next tool result; without one it waits for the end of the turn.
    Steer,
}

impl WhileBusy {
    const NAMES: [(&str, Self); 3] = [("queue", Self::Queue), ("interrupt", Self::Interrupt), ("steer", Self::Steer)];
}

named!(WhileBusy);

/// A reasoning effort, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct ReasoningEffort(pub Effort);

impl<'de> Deserialize<'de> for ReasoningEffort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = String::deserialize(deserializer)?;
        let found = Effort::parse(&given).map(Self);
        found.ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&given), &"one of the names of efforts"))
    }
}

impl JsonSchema for ReasoningEffort {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ReasoningEffort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Effort::ALL.map(Effort::as_str) })
    }
}

/// `plugins.entries`: the plugins' own sections as they are in the file, by the plugin's name. An empty one is null.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Entries(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sections;

        impl<'de> Visitor<'de> for Sections {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a section for each plugin")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Map::new();
                while let Some((name, section)) = map.next_entry::<String, Option<Map<String, Value>>>()? {
                    entries.insert(name, section.map_or(Value::Null, Value::Object));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Sections)
    }
}

impl JsonSchema for Entries {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Entries".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": "object" } })
    }
}

/// `plugins.settings.<plugin>`: the host's settings for a plugin, and the section as it is in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginSection {
    settings: PluginSettings,
    given: Value,
}

impl PluginSection {
    /// The settings.
    pub fn settings(&self) -> &PluginSettings {
        &self.settings
    }
}

impl serde::Serialize for PluginSection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PluginSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::Object(Map::deserialize(deserializer)?);
        let settings = PluginSettings::deserialize(&given).map_err(D::Error::custom)?;
        Ok(Self { settings, given })
    }
}

impl JsonSchema for PluginSection {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PluginSection".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(PluginSettings::schema()).unwrap_or_default()
    }
}

/// `platform_hints.<platform>`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Hint {
    /// Text that is appended to the built-in hint.
    Text(String),
    /// A section.
    Parts(HintParts),
}

/// A hint as a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HintParts {
    /// Text in place of the built-in hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<String>,
    /// Text appended to the hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append: Option<String>,
}

impl Hint {
    /// The hint as a section.
    pub fn parts(&self) -> HintParts {
        match self {
            Self::Text(text) => HintParts { replace: None, append: Some(text.clone()) },
            Self::Parts(parts) => parts.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Hint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrParts;

        impl<'de> Visitor<'de> for TextOrParts {
            type Value = Hint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a section")
            }

            fn visit_str<E>(self, text: &str) -> Result<Hint, E> {
                Ok(Hint::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Hint, A::Error> {
                HintParts::deserialize(MapAccessDeserializer::new(map)).map(Hint::Parts)
            }
        }

        deserializer.deserialize_any(TextOrParts)
    }
}
