//! The memory provider, with the settings that it has in a file of its own. Without its address, conversations would go to
//! another server than there, so a provider whose address stays behind stays behind itself.

use hermes_config::Environment;
use serde_json::{Map, Value, json};

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
        let schema = match self.plugins.get(name) {
            Some(found) if bundled.is_some() || found.folder().is_some() => found.manifest.config.clone(),
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
        let before = (self.edit.clone(), self.report.clone(), self.known);
        let mut unknown = Vec::new();
        let properties = schema.as_ref().map(|schema| &schema["properties"]).cloned().unwrap_or_default();
        for (key, value) in section.iter().filter(|(_, value)| !is_empty(value)) {
            let fits =
                self.plugins.get(name).is_some_and(|found| found.manifest.misfits(&json!({ key: value })).is_empty());
            let is_taken = properties.get(key).is_some() && fits && {
                let to = format!("plugins.entries.{name}.{key}");
                self.take(&to, &to, value)
            };
            let is_address = value.as_str().is_some_and(|text| text.contains("://"));
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
        let known = self.known;
        if self.take(KEY, KEY, &name.into()) && self.known == known {
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
        }
        if !unknown.is_empty() {
            self.report.left(format!("{name}.json: {} has no counterpart here", unknown.join(", ")));
        }
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
