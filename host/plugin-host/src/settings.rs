//! The user's settings for one plugin, in `plugins.settings.<name>`: limits, source, and the reaction to failures.
//!
//! `plugins.entries.<name>` is something else: the plugin's own configuration, which the host passes to it unchanged.

use std::fmt;

use hermes_runtime::LimitSet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The user's settings for a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginSettings {
    /// Limits that differ from what was granted and from the defaults.
    pub limits: LimitSet,
    /// What happens when the plugin has failed too often in a row.
    pub on_failure: OnFailure,
    /// The only source of the plugin. By default, a bundled plugin has precedence over an installed one.
    pub source: Option<PreferredSource>,
}

/// The source of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreferredSource {
    /// The program itself.
    Bundled,
    /// A folder below `$HERMES_HOME/plugins`.
    Installed,
}

impl fmt::Display for PreferredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bundled => "bundled",
            Self::Installed => "installed",
        })
    }
}

/// What happens when a plugin has failed too often in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The host's own reaction for each kind: it folds older messages by rule, continues the turn without the memory, answers
    /// tool calls with an error, and does not run a tool that a hook should have seen.
    #[default]
    Fallback,
    /// Like `fallback`, but hooks are skipped.
    Disable,
    /// The turn ends with an error.
    Stop,
}

impl PluginSettings {
    /// The JSON Schema of a section.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "limits": LimitSet::schema(),
                "on_failure": {
                    "enum": [OnFailure::Fallback, OnFailure::Disable, OnFailure::Stop],
                    "default": OnFailure::default(),
                    "description": "What happens when the plugin has failed too often in a row.",
                },
                "source": {
                    "enum": [PreferredSource::Bundled, PreferredSource::Installed],
                    "description": "Where the plugin is taken from. The default is a bundled plugin before an installed one.",
                },
            },
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_runtime::Limit;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_is_optional() {
        let set = PluginSettings::deserialize(json!({"limits": {"memory": "512MiB"}, "on_failure": "stop"})).unwrap();
        assert_eq!((set.limits.get(Limit::Memory), set.on_failure), (Some(512 << 20), OnFailure::Stop));
        assert_eq!(PluginSettings::deserialize(json!({})).unwrap(), PluginSettings::default());
    }

    #[test]
    fn an_error_names_the_wrong_key_or_value() {
        for (section, part) in [
            (json!({"limits": {"memroy": 1}}), "memroy"),
            (json!({"limits": {"cpu": 5}}), "`cpu`"),
            (json!({"on_failure": "explode"}), "explode"),
            (json!({"limit": {}}), "limit"),
            (json!({"source": "elsewhere"}), "elsewhere"),
        ] {
            let why = PluginSettings::deserialize(section).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        }
    }
}
