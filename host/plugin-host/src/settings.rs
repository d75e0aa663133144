//! What the user sets for one plugin, in `plugins.settings.<name>`: how much it may use, and what comes of its failures.
//!
//! Not to be confused with `plugins.entries.<name>`, which is the plugin's own and handed to it as it stands.

use std::fmt;

use hermes_runtime::LimitSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the user set for a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginSettings {
    /// Limits that differ from what was granted and from the defaults.
    pub limits: LimitSet,
    /// What happens when it has failed too often in a row.
    pub on_failure: OnFailure,
    /// Where it is taken from, and from nowhere else; a bundled one goes before an installed one where nothing is said.
    pub source: Option<PreferredSource>,
}

/// Where a plugin is taken from.
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
    /// What the host has for its kind: older messages are folded by rule, a turn goes on without the memory, tools answer
    /// with an error, and a tool that a hook should have seen does not run.
    #[default]
    Fallback,
    /// It is off: as above, and its hooks stand in nobody's way.
    Disable,
    /// The turn ends with an error.
    Stop,
}

impl PluginSettings {
    /// Reads a section of the configuration.
    ///
    /// # Errors
    ///
    /// What does not fit, in words that name the key below `plugins.settings`.
    pub fn read(plugin: &str, section: &Value) -> Result<Self, String> {
        Self::deserialize(section).map_err(|error| format!("`plugins.settings.{plugin}`: {error}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_runtime::Limit;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_may_set_some_of_it() {
        let set = PluginSettings::read("mine", &json!({"limits": {"memory": "512MiB"}, "on_failure": "stop"})).unwrap();
        assert_eq!((set.limits.get(Limit::Memory), set.on_failure), (Some(512 << 20), OnFailure::Stop));
        assert_eq!(PluginSettings::read("mine", &json!({})).unwrap(), PluginSettings::default());
    }

    #[test]
    fn what_does_not_fit_is_told_with_plugin_and_key() {
        for (section, part) in [
            (json!({"limits": {"memroy": 1}}), "memroy"),
            (json!({"limits": {"cpu": 5}}), "`cpu`"),
            (json!({"on_failure": "explode"}), "explode"),
            (json!({"limit": {}}), "limit"),
            (json!({"source": "elsewhere"}), "elsewhere"),
        ] {
            let why = PluginSettings::read("mine", &section).unwrap_err();
            assert!(why.contains("plugins.settings.mine") && why.contains(part), "{why}");
        }
    }
}
