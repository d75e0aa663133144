//! The memory provider, with the settings that it has in a file of its own. Without its address, conversations would go to
//! another server than there, so a provider whose address stays behind stays behind itself.
//!
//! A provider sends a key of the user to its address. Without the user's word, only an address of the vendor comes along, or one
//! on this machine if there is no key.

use std::collections::BTreeSet;

use hermes_config::Environment;
use hermes_plugin_host::Permissions;
use serde_json::{Map, Value, json};

use super::places::is_on_this_machine;
use super::{Translator, at, is_empty, shown};
use crate::PeerHome;

const KEY: &str = "memory.provider";
/// The bundled providers that both programs have, each with its address: the key here, the variable there, and another place there.
const BUNDLED: [(&str, &str, &str, &str); 2] =
    [("honcho", "baseUrl", "HONCHO_BASE_URL", "honcho.base_url"), ("mem0", "host", "MEM0_HOST", "mem0.host")];
/// The most bytes of a file of settings.
const LARGEST: u64 = 1 << 20;

impl Translator<'_> {
    pub(super) fn memory_provider(&mut self, root: &Value, peer: &PeerHome) {
        let Some(name) = at(root, KEY).and_then(Value::as_str).filter(|name| !name.is_empty()) else { return };
        self.used.insert(KEY.to_owned());
        let bundled = BUNDLED.iter().find(|(bundled, ..)| *bundled == name);
        // Only the code of a plugin says what it is. The user selected an installed one of this name there for the same purpose.
        let (schema, permissions) = match self.plugins.get(name) {
            Some(found) if bundled.is_some() || found.folder().is_some() => {
                (found.manifest.config.clone(), found.manifest.permissions.clone())
            }
            _ => return self.report.left(format!("{KEY}: no memory provider here is called {name}")),
        };
        if at(&self.own, KEY).is_some_and(|here| here != name) {
            return self.report.left(format!("{KEY}: {KEY} is set here"));
        }
        let mut section = match settings_of(peer, name) {
            Ok(section) => section,
            Err(why) => return self.report.left(format!("{KEY}: {why}")),
        };
        if let Some((_, key, variable, elsewhere)) = bundled {
            // The file may have either name.
            let other = section.remove("base_url").filter(|address| !is_empty(address));
            if let Some(address) = other {
                section.entry(*key).or_insert(address);
            }
            let of_file = peer.within(".env").ok().flatten().map(|file| Environment::read(&file));
            let named = of_file.iter().flat_map(Environment::in_file).find(|(name, _)| name == variable);
            let address = at(root, elsewhere).cloned().or_else(|| Some(named?.1.into()));
            let address = address.filter(|address| !is_empty(address) && !section.contains_key(*key));
            section.extend(address.map(|address| ((*key).to_owned(), address)));
        }
        self.used.insert(name.to_owned());
        let properties = schema.as_ref().map(|schema| &schema["properties"]).cloned().unwrap_or_default();
        let variables: BTreeSet<String> = permissions.secrets.iter().map(|secret| secret.env.to_string()).collect();
        let moved = self.moved(name, &section, &properties, &permissions);
        let before = (self.edit.clone(), self.report.clone(), self.known);
        let mut unknown = Vec::new();
        let news = self.report.taken.len();
        for (key, value) in section.iter().filter(|(_, value)| !is_empty(value)) {
            let fits =
                self.plugins.get(name).is_some_and(|found| found.manifest.misfits(&json!({ key: value })).is_empty());
            let is_taken = properties.get(key).is_some() && fits && {
                let to = format!("plugins.entries.{name}.{key}");
                self.take(&to, &to, value)
            };
            let is_address = !super::addresses(value).is_empty() || moved.iter().any(|(moved, _)| moved == key);
            if is_address && !is_taken {
                (self.edit, self.report, self.known) = before;
                return self.report.left(format!(
                    "{KEY}: the address of {name} cannot be taken ({key}); set it up with `hermes memory setup {name}`"
                ));
            }
            if properties.get(key).is_none() || !fits {
                unknown.push(key.as_str());
            }
        }
        if let Some((key, address)) = moved.iter().find(|(_, address)| self.is_held_back(name, address, &variables)) {
            let with = match variables.is_empty() {
                true => String::new(),
                false => format!(" and the value of {}", variables.iter().cloned().collect::<Vec<_>>().join(", ")),
            };
            (self.edit, self.report, self.known) = before;
            return self.report.left(format!(
                "{KEY}: {name} would send conversations{with} to {} ({key}); --with-keys takes it",
                shown("address", &address.as_str().into())
            ));
        }
        // Also if the provider was here, it gets another address now.
        if self.take(KEY, KEY, &name.into()) && self.report.taken.len() > news {
            let default = |key: &str| properties.get(key).and_then(|property| property.get("default")).cloned();
            let address = bundled.and_then(|(_, key, ..)| section.get(*key).cloned().or_else(|| default(key)));
            let place = match (section.get("mode").and_then(Value::as_str), address) {
                (Some("local" | "oss"), _) => " and keeps it on this machine".to_owned(),
                (_, Some(address)) => format!(" at {}", shown("address", &address)),
                (_, None) => {
                    default("platform_url").map_or_else(String::new, |url| format!(" at {}", shown("url", &url)))
                }
            };
            self.report.right(format!("the memory provider {name} gets what conversations say{place}"));
            for (key, address) in &moved {
                let address = shown("address", &address.as_str().into());
                for variable in &variables {
                    self.report.right(format!(
                        "the value of the variable {variable} goes to {address} (plugins.entries.{name}.{key})"
                    ));
                }
            }
        }
        if !unknown.is_empty() {
            self.report.left(format!("{name}.json: {} has no counterpart here", unknown.join(", ")));
        }
    }
}

impl Translator<'_> {
    /// The addresses of a section that are neither set here nor the vendor's, with their keys.
    fn moved(
        &self,
        name: &str,
        section: &Map<String, Value>,
        properties: &Value,
        permissions: &Permissions,
    ) -> Vec<(String, String)> {
        let plain = |text: &str| text.trim().trim_end_matches('/').to_owned();
        let defaults = properties.as_object().into_iter().flatten().filter_map(|(_, property)| property.get("default"));
        let vendors: Vec<String> =
            defaults.filter_map(Value::as_str).filter(|text| text.contains("://")).map(plain).collect();
        // An address may lack what makes it look like one.
        let templates = serde_json::to_string(permissions).unwrap_or_default();
        let mut moved = Vec::new();
        for (key, value) in section {
            let is_named = ["}", "."].iter().any(|end| templates.contains(&format!("${{config.{key}{end}")));
            for text in hermes_prompt::scan::texts(value).into_iter().filter(|text| is_named || text.contains("://")) {
                let is_here = at(&self.own, &format!("plugins.entries.{name}.{key}")).is_some_and(|here| here == value);
                if !text.trim().is_empty() && !is_here && !vendors.contains(&plain(text)) {
                    moved.push((key.clone(), text.to_owned()));
                }
            }
        }
        moved
    }

    /// Whether an address needs the user's word: it is elsewhere, or would receive a key of the user.
    fn is_held_back(&self, name: &str, address: &str, variables: &BTreeSet<String>) -> bool {
        let own = at(&self.own, &format!("plugins.entries.{name}")).cloned().unwrap_or_default();
        let has_key = variables.iter().any(|variable| self.setup.environment.var(variable).is_some())
            || hermes_config::redacted(own.clone()) != own;
        !self.with_keys && (has_key || !is_on_this_machine(address))
    }
}

/// The settings of a provider. What they say for this program's name comes before the rest.
fn settings_of(peer: &PeerHome, name: &str) -> Result<Map<String, Value>, String> {
    let file = format!("{name}.json");
    let Some(path) = peer.within(&file)? else { return Ok(Map::new()) };
    let text =
        hermes_private_files::read_text(&path, LARGEST).map_err(|error| format!("{file} cannot be read: {error}"))?;
    let read: Value = serde_json::from_str(&text).map_err(|error| format!("{file} is not JSON: {error}"))?;
    let Value::Object(mut section) = read else { return Err(format!("{file} has no section")) };
    let hosts = section.remove("hosts").unwrap_or_default();
    let own = hosts.get("hermes").and_then(Value::as_object).cloned().unwrap_or_default();
    section.extend(own);
    Ok(section)
}
