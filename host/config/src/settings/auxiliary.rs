//! The section `auxiliary`: a section of its own for each task, and one key that all tasks share.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{ReasoningEffort, Whole};

/// The task that every session has.
const COMPRESSION: &str = "compression";

/// The keys below `auxiliary` that are not tasks.
const TRANSIENT_RETRIES: &str = "transient_retries";
const EMBEDDINGS: &str = "embeddings";

/// `auxiliary`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliarySection {
    /// The sections of tasks, `compression` first, the others in the order of the file.
    pub tasks: Vec<(String, TaskSection)>,
    /// The model that computes vectors of texts.
    pub embeddings: EmbeddingsSection,
    /// Number of retries with the same model after a connection or server error.
    pub transient_retries: Whole<0, 6>,
}

/// `auxiliary.<task>`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskSection {
    /// The provider for a plugin task such as `compression`: `auto` or `main` for the session's, a known provider, or `custom`.
    pub provider: Option<String>,
    /// The model for the task. The default is the session's, if the provider is the same.
    pub model: Option<String>,
    /// Another address for the task. Without a provider it is called `custom`.
    pub base_url: Option<String>,
    /// The key for the provider or address in this section.
    pub api_key: Option<String>,
    /// Instead of a key: the name of a login, like `model.auth`.
    pub auth: Option<String>,
    /// The variable that contains that key, if `api_key` is not set.
    pub key_env: Option<String>,
    /// The wire format, like `model.api_mode`.
    pub api_mode: Option<String>,
    /// The window of that model, like `model.context_length`.
    pub context_length: Option<Whole<4000>>,
    /// Most seconds for one attempt.
    pub timeout: Whole<1>,
    /// Fallbacks, in order. See below.
    pub fallback_chain: Vec<FallbackSection>,
    /// Additional members of the request body.
    #[schemars(extend("x-no-effect" = true))]
    pub extra_body: Option<Value>,
    /// How much the model thinks for the task, like `model.reasoning_effort`. The default is the provider's.
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// `auxiliary.embeddings`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub struct EmbeddingsSection {
    /// The plugin that computes vectors of texts for the others. The other keys then have no effect.
    pub plugin: Option<String>,
    /// The provider of the embedding model: `auto` or `main` for the session's, a known provider, or `custom`.
    pub provider: Option<String>,
    /// The embedding model. Without it and without a plugin, plugins get no vectors.
    pub model: Option<String>,
    /// Another address. Without a provider it is called `custom`.
    pub base_url: Option<String>,
    /// The key for the provider or address in this section.
    pub api_key: Option<String>,
    /// Instead of a key: the name of a login, like `model.auth`.
    pub auth: Option<String>,
    /// The variable that contains that key, if `api_key` is not set.
    pub key_env: Option<String>,
    /// The length of the vectors, for models that offer several.
    pub dimensions: Option<Whole<1, 4096>>,
    /// Most seconds for one request.
    pub timeout: Whole<1>,
}

impl Default for EmbeddingsSection {
    fn default() -> Self {
        Self {
            plugin: None,
            provider: Some("auto".to_owned()),
            model: None,
            base_url: None,
            api_key: None,
            auth: None,
            key_env: None,
            dimensions: None,
            timeout: const { Whole::new(60) },
        }
    }
}

impl Default for TaskSection {
    fn default() -> Self {
        Self {
            provider: Some("auto".to_owned()),
            model: None,
            base_url: None,
            api_key: None,
            auth: None,
            key_env: None,
            api_mode: None,
            context_length: None,
            timeout: const { Whole::new(120) },
            fallback_chain: Vec::new(),
            extra_body: None,
            reasoning_effort: None,
        }
    }
}

/// An entry of `fallback_providers` or `auxiliary.<task>.fallback_chain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub struct FallbackSection {
    /// The provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The key for the provider or address in this entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Instead of a key: the name of a login, like `model.auth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The variable that contains that key, if `api_key` is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The wire format, like `model.api_mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_mode: Option<String>,
    /// The window of that model, like `model.context_length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<Whole<4000>>,
}

impl Default for AuxiliarySection {
    fn default() -> Self {
        Self {
            tasks: vec![(COMPRESSION.to_owned(), TaskSection::default())],
            embeddings: EmbeddingsSection::default(),
            transient_retries: const { Whole::new(2) },
        }
    }
}

impl Serialize for AuxiliarySection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.tasks.len() + 2))?;
        for (name, task) in &self.tasks {
            map.serialize_entry(name, task)?;
        }
        map.serialize_entry(EMBEDDINGS, &self.embeddings)?;
        map.serialize_entry(TRANSIENT_RETRIES, &self.transient_retries)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for AuxiliarySection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tasks;

        impl<'de> Visitor<'de> for Tasks {
            type Value = AuxiliarySection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sections of tasks")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AuxiliarySection, A::Error> {
                let mut section = AuxiliarySection::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == TRANSIENT_RETRIES {
                        section.transient_retries = map.next_value::<Option<_>>()?.unwrap_or(section.transient_retries);
                        continue;
                    }
                    if name == EMBEDDINGS {
                        section.embeddings = map.next_value::<Option<_>>()?.unwrap_or_default();
                        continue;
                    }
                    let Some(task) = map.next_value::<Option<TaskSection>>()? else { continue };
                    match section.tasks.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => *known = task,
                        None => section.tasks.push((name, task)),
                    }
                }
                Ok(section)
            }
        }

        deserializer.deserialize_map(Tasks)
    }
}

impl JsonSchema for AuxiliarySection {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AuxiliarySection".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let retries = generator.subschema_for::<Whole<0, 6>>();
        let mut retries = retries.to_value();
        retries["description"] = "Number of retries with the same model after a connection or server error.".into();
        retries["default"] = serde_json::json!(Self::default().transient_retries);
        json_schema!({
            "type": "object",
            // The name that stands for the task's in the table of keys.
            "x-name": "<task>",
            "additionalProperties": generator.subschema_for::<TaskSection>(),
            "properties": { EMBEDDINGS: generator.subschema_for::<EmbeddingsSection>(), TRANSIENT_RETRIES: retries },
        })
    }
}
