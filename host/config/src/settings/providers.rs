//! The section `custom_providers`: providers of the user.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Whole;

/// An entry of `custom_providers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomProviderSection {
    /// The name for `model.provider` and `--provider`.
    pub name: String,
    /// Where its API begins.
    pub base_url: String,
    /// The key for that address, preferably as a variable such as `${NAME}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// The variable that contains that key, if `api_key` is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The wire format, like `model.api_mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_mode: Option<String>,
    /// How it reads schemas of tools: `openai`, `openai-strict`, `anthropic`, `gemini` or `llama.cpp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<String>,
    /// The model when none is named. The default is the only one in `models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its models, each with settings of its own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Option<CustomModelSection>>,
}

/// A model of `custom_providers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomModelSection {
    /// The model's window in tokens, like `model.context_length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<Whole<2000>>,
}
