//! What keeps an enabled plugin from working as it should: the checks that `install` makes, for a plugin that is there.

use hermes_app::plugins::{Found, GrantStatus, drafts_of};
use hermes_app::unset_variables;

use super::Inventory;
use crate::console::Console;
use crate::text;

impl Inventory {
    /// Warns of everything that the plugin lacks, with the command that gives it.
    pub(crate) fn warn_of_lacks(&self, name: &str, console: Console) {
        let Some(found) = self.catalog.get(name) else { return };
        for lack in self.lacks(found) {
            console.warning(&text::line(&format!("`{name}` {lack}")));
        }
    }

    /// Whether the user has not granted a right that the plugin requests under its configuration.
    pub(crate) fn lacks_rights(&self, name: &str) -> bool {
        self.catalog.get(name).is_some_and(|found| !self.missing_rights(found).is_empty())
    }

    /// The lines of rights that a plugin requests under its configuration, and that the user has not granted.
    fn missing_rights(&self, found: &Found) -> Vec<String> {
        let GrantStatus::Granted(entry) = &found.status else { return Vec::new() };
        let requested = found.manifest.permissions_under(&self.selection);
        requested.widening(&entry.pin.granted.clone().unwrap_or_default()).lines()
    }

    /// What the plugin lacks, a line each, without its name in front.
    pub(super) fn lacks(&self, found: &Found) -> Vec<String> {
        let (manifest, name) = (&found.manifest, &found.manifest.name);
        let mut lacks = Vec::new();
        let missing = self.missing_rights(found);
        if !missing.is_empty() {
            lacks.push(format!("was not granted: {}; `hermes plugins grant {name}` asks for it", missing.join("; ")));
        }
        if let GrantStatus::Granted(entry) = &found.status {
            let drafts: Vec<String> =
                drafts_of(found).into_iter().filter(|draft| !entry.pin.drafts.contains(draft)).collect();
            if !drafts.is_empty() {
                lacks.push(format!(
                    "uses draft interfaces that you have not allowed, and a later version of Hermes may remove them: {}; \
                     `hermes plugins grant {name} --allow-draft` allows them",
                    drafts.join(", ")
                ));
            }
        }
        let unset: Vec<String> =
            unset_variables(manifest, &self.setup.environment).map(|wanted| wanted.name.to_string()).collect();
        if !unset.is_empty() {
            lacks.push(format!("needs {}, which is not set; set it in the environment or in .env", unset.join(", ")));
        }
        let section = self.selection.entries.get(name).cloned().unwrap_or_else(|| serde_json::json!({}));
        let misfits = manifest.misfits(&section);
        if !misfits.is_empty() {
            lacks.push(format!(
                "does not start with its current configuration: {}; correct plugins.entries.{name} in config.yaml",
                misfits.join("; ")
            ));
        }
        lacks
    }
}
