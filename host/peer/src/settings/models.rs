//! Models: the session's, its fallbacks, providers of the user's own, and the models of tasks.

use hermes_models::ProviderRow;
use serde_json::{Map, Value, json};

use super::places::{self, PLACE, is_same_place, plain};
use super::{Translator, at, copy, is_empty, same};

/// Tasks of models that both programs have.
const TASKS: [&str; 3] = ["compression", "web_extract", "session_search"];
/// What a section of a task may have here, beside its provider.
const OF_TASK: [&str; 7] = ["model", "api_key", "key_env", "api_mode", "context_length", "timeout", "reasoning_effort"];
/// What a row of `fallback_providers` or `fallback_chain` may have here, beside its provider.
const OF_FALLBACK: [&str; 5] = ["model", "api_key", "key_env", "api_mode", "context_length"];
const OF_MODEL: [&str; 3] = ["api_mode", "context_length", "api_key"];
const FORMATS: [&str; 3] = ["chat_completions", "codex_responses", "anthropic_messages"];
/// The members of a row that name keys. A row is useful without them.
const KEYS: [&str; 2] = ["api_key", "key_env"];
/// What fits any model, whatever its place.
const OF_ANY_PLACE: [&str; 2] = ["timeout", "reasoning_effort"];

impl Translator<'_> {
    pub(super) fn model(&mut self, root: &Value, custom: &[String]) {
        let Some(model) = root.get("model").filter(|model| !model.is_null()) else { return };
        self.used.insert("model".to_owned());
        let section = match model {
            Value::String(name) => json!({ "default": name }),
            other => other.clone(),
        };
        let text = |name: &str| section[name].as_str().filter(|text| !text.is_empty() && *text != "auto");
        let Some(name) = text("default").or_else(|| text("model")).or_else(|| text("name")) else { return };
        let mut wanted = Map::new();
        match (text("provider"), text("base_url")) {
            (Some(provider), address) => match self.known_provider(provider, custom) {
                Some(known) => {
                    if known != provider {
                        self.report.changed(format!("the provider {provider} is called {known} here"));
                    }
                    wanted.insert("provider".to_owned(), known.into());
                    address.and_then(|address| wanted.insert("base_url".to_owned(), address.into()));
                }
                None if address.is_some() => {
                    wanted.insert("base_url".to_owned(), address.into());
                }
                None => {
                    self.report.left(format!(
                        "model: the provider {provider} is not known here, or needs a login; run `hermes setup`"
                    ));
                    return;
                }
            },
            (None, Some(address)) => drop(wanted.insert("base_url".to_owned(), address.into())),
            (None, None) => {}
        }
        wanted.insert("default".to_owned(), name.into());
        for key in OF_MODEL {
            if is_format(key, &section[key]) {
                copy(&section, key, &mut wanted, key);
            }
        }
        const NAMED: [&str; 5] = ["default", "model", "name", "provider", "base_url"];
        self.leave_unknown("model", &section, &[&NAMED[..], &OF_MODEL[..]].concat());
        let here = match self.own.get("model") {
            Some(Value::String(name)) => json!({ "default": name }),
            here => here.cloned().unwrap_or_default(),
        };
        // A model of one program with the address of the other would fit nothing, and a key here would go to that address.
        let is_set = places::is_set(&here, &["default"]);
        let is_moved = is_set && !is_same_place(&here, &wanted);
        if is_moved || wanted.iter().any(|(key, value)| !here[key].is_null() && !same(&here[key], value)) {
            self.report.left("model: another one is set here");
            return;
        }
        let keys = if is_set { Vec::new() } else { self.keys_for_model(&wanted) };
        let place = places::receiver(&wanted);
        if let Some(key) = keys.first().filter(|_| !self.with_keys) {
            self.report.left(format!("model: {key} would go to {place}; --with-keys takes it"));
            return;
        }
        let before = (self.edit.clone(), self.report.clone());
        for (key, value) in &wanted {
            let path = format!("model.{key}");
            if !self.take(&path, &path, value) && !KEYS.contains(&key.as_str()) {
                let why = self.report.left.pop().unwrap_or_default();
                (self.edit, self.report) = before;
                self.report.left(format!("model: it is taken as a whole or not at all; {why}"));
                return;
            }
        }
        for key in keys {
            self.report.right(format!("{key} goes to {place} (model)"));
        }
    }

    pub(super) fn fallbacks(&mut self, root: &Value, custom: &[String]) {
        const KEY: &str = "fallback_providers";
        let listed = root[KEY].as_array().cloned().unwrap_or_default();
        let further = match &root["fallback_model"] {
            Value::Array(rows) => rows.clone(),
            single => vec![single.clone()],
        };
        self.used.extend([KEY, "fallback_model"].map(str::to_owned));
        let rows: Vec<Value> = listed.into_iter().chain(further).filter(|row| !is_empty(row)).collect();
        let rows = self.rows(KEY, &rows, custom);
        if !rows.is_empty() {
            self.take(KEY, KEY, &rows.into());
        }
    }

    /// The rows of a list of fallbacks that can be used here.
    fn rows(&mut self, of: &str, entries: &[Value], custom: &[String]) -> Vec<Value> {
        let mut rows = Vec::new();
        for entry in entries {
            let Some(mut row) = self.place(entry, of, custom) else { continue };
            for key in OF_FALLBACK {
                if is_format(key, &entry[key]) {
                    copy(entry, key, &mut row, key);
                }
            }
            copy(entry, "api_key_env", &mut row, "key_env");
            self.leave_unknown(of, entry, &[&OF_FALLBACK[..], &["provider", "base_url", "api_key_env"][..]].concat());
            rows.extend(self.admitted_row(of, row));
        }
        rows
    }

    /// Provider and address of a section; nothing if the provider is not known.
    fn place(&mut self, entry: &Value, of: &str, custom: &[String]) -> Option<Map<String, Value>> {
        let mut row = Map::new();
        let provider = entry["provider"].as_str().filter(|name| !name.is_empty() && *name != "auto");
        copy(entry, "base_url", &mut row, "base_url");
        if let Some(provider) = provider {
            match self.known_provider(provider, custom) {
                Some(known) => drop(row.insert("provider".to_owned(), known.into())),
                None if row.contains_key("base_url") => {}
                None => {
                    self.report.left(format!("{of}: the provider {provider} is not known here, or needs a login"));
                    return None;
                }
            }
        }
        Some(row)
    }

    /// A row without what may not be taken: without its keys, or nothing.
    fn admitted_row(&mut self, of: &str, mut row: Map<String, Value>) -> Option<Value> {
        for key in KEYS {
            let Some(value) = row.get(key) else { continue };
            if let Err(refusal) = super::admitted(key, value, super::Forms::All, self.with_keys) {
                self.report.left(format!("{of}.{key}: {refusal}"));
                row.remove(key);
            }
        }
        let row = Value::Object(row);
        match super::admitted(of, &row, super::Forms::All, self.with_keys) {
            Ok(_) => Some(row),
            Err(refusal) => {
                self.report.left(format!("{of}: {refusal}"));
                None
            }
        }
    }

    /// Rows of both forms of the peer; the result is the names of all rows.
    pub(super) fn custom_providers(&mut self, root: &Value) -> Vec<String> {
        const KEY: &str = "custom_providers";
        const ADDRESSES: [&str; 3] = ["base_url", "url", "api"];
        const OTHERS: [&str; 8] =
            ["name", "api_key", "key_env", "api_key_env", "default_model", "model", "models", "api_mode"];
        self.used.extend([KEY, "providers"].map(str::to_owned));
        let listed = root[KEY].as_array().cloned().unwrap_or_default();
        let keyed = root["providers"].as_object().cloned().unwrap_or_default().into_iter().map(|(name, mut row)| {
            if row.is_object() && row["name"].is_null() {
                row["name"] = name.into();
            }
            row
        });
        let (mut rows, mut names) = (Vec::new(), Vec::new());
        let is_new = at(&self.own, KEY).is_none();
        for entry in listed.into_iter().chain(keyed) {
            let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty());
            let Some(name) = text("name") else { continue };
            let Some(address) = ADDRESSES.into_iter().find_map(text) else {
                self.report.left(format!("providers.{name}: it has no address"));
                continue;
            };
            let of = format!("{KEY}.{name}");
            if let Some(why) = self.why_not_called(name, address).filter(|_| is_new) {
                self.report.left(format!("{of}: {}", hermes_config::redacted_text(&why)));
                self.refused.insert(plain(name));
                continue;
            }
            let mut row = Map::from_iter([("name".to_owned(), name.into()), ("base_url".to_owned(), address.into())]);
            copy(&entry, "api_key_env", &mut row, "key_env");
            copy(&entry, "key_env", &mut row, "key_env");
            copy(&entry, "default_model", &mut row, "model");
            copy(&entry, "model", &mut row, "model");
            copy(&entry, "api_key", &mut row, "api_key");
            if is_format("api_mode", &entry["api_mode"]) {
                copy(&entry, "api_mode", &mut row, "api_mode");
            }
            let windows = entry["models"].as_object().into_iter().flatten().filter_map(|(model, section)| {
                let window = section["context_length"].as_u64()?;
                Some((model.clone(), json!({ "context_length": window })))
            });
            let windows: Map<String, Value> = windows.collect();
            if !windows.is_empty() {
                row.insert("models".to_owned(), windows.into());
            }
            self.leave_unknown(&of, &entry, &[&ADDRESSES[..], &OTHERS[..]].concat());
            if let Some(row) = self.admitted_row(&of, row) {
                names.push(name.to_lowercase().replace(' ', "-"));
                rows.push(row);
            }
        }
        if !rows.is_empty() && !self.take(KEY, KEY, &rows.into()) {
            // The rows were refused, so references to them must be refused as well.
            names.clear();
        }
        names
    }

    pub(super) fn tasks(&mut self, root: &Value, custom: &[String]) {
        const CHAIN: &str = "fallback_chain";
        for task in TASKS {
            let of = format!("auxiliary.{task}");
            let Some(section) = at(root, &of).filter(|section| section.is_object()) else { continue };
            self.used.insert(of.clone());
            let Some(mut row) = self.place(section, &of, custom) else { continue };
            for key in OF_TASK {
                if is_format(key, &section[key]) {
                    copy(section, key, &mut row, key);
                }
            }
            let rows = section[CHAIN].as_array().cloned().unwrap_or_default();
            let rows = self.rows(&format!("{of}.{CHAIN}"), &rows, custom);
            if !rows.is_empty() {
                row.insert(CHAIN.to_owned(), rows.into());
            }
            self.leave_unknown(&of, section, &[&OF_TASK[..], &["provider", "base_url", CHAIN][..]].concat());
            // A key of one address with another address would fit nothing.
            let Some(Value::Object(mut row)) = self.admitted_row(&of, row) else { continue };
            let here = at(&self.own, &of).filter(|here| !is_empty(here));
            if here.is_some_and(|here| !is_same_place(here, &row)) {
                let (kept, moved): (Map<String, Value>, Map<String, Value>) =
                    row.into_iter().partition(|(key, _)| OF_ANY_PLACE.contains(&key.as_str()));
                if !moved.is_empty() {
                    self.report.left(format!(
                        "{of}: {}; this section is set here, and its place is taken as a whole or not at all",
                        places::words(&moved)
                    ));
                }
                row = kept;
            }
            let before = (self.edit.clone(), self.report.clone(), self.known);
            for (key, value) in &row {
                let name = format!("{of}.{key}");
                if !self.take(&name, &name, value) && PLACE.contains(&key.as_str()) {
                    let why = self.report.left.pop().unwrap_or_default();
                    (self.edit, self.report, self.known) = before;
                    self.report.left(format!("{of}: it is taken as a whole or not at all; {why}"));
                    break;
                }
            }
        }
    }

    /// The model of delegated tasks, whose provider has to be one of here.
    pub(super) fn delegation(&mut self, root: &Value, custom: &[String]) {
        const OF: &str = "delegation";
        let Some(section) = at(root, OF).filter(|section| section.is_object()) else { return };
        let text = |name: &str| section[name].as_str().filter(|text| !text.is_empty());
        let (model, provider) = (text("model"), text("provider").filter(|name| *name != "auto"));
        if model.is_none() && provider.is_none() {
            return;
        }
        self.used.extend(["delegation.model", "delegation.provider"].map(str::to_owned));
        if text("base_url").is_some() {
            self.report.left("delegation.model: its address is not in `custom_providers`, which it has to be here");
            return;
        }
        let known = provider.map(|provider| self.known_provider(provider, custom));
        if let (Some(None), Some(provider)) = (&known, provider) {
            self.report.left(format!("{OF}: the provider {provider} is not known here, or needs a login"));
            return;
        }
        let known = known.flatten();
        let wanted: Map<String, Value> =
            known.iter().map(|provider| ("provider".to_owned(), provider.as_str().into())).collect();
        let here = self.own.get(OF).unwrap_or(&Value::Null);
        let is_set = places::is_set(here, &["model", "models"]);
        if is_set && !is_same_place(here, &wanted) {
            self.report.left(format!("{OF}: another model is set here, and it is taken as a whole or not at all"));
            return;
        }
        let key = self.unbound_key().filter(|_| !is_set && !wanted.is_empty());
        if let Some(key) = &key {
            let place = places::receiver(&wanted);
            if !self.with_keys {
                self.report.left(format!("{OF}: {key} would go to {place}; --with-keys takes it"));
                return;
            }
            self.report.right(format!("{key} goes to {place} (delegation.provider)"));
        }
        for (key, value) in [("delegation.provider", known), ("delegation.model", model.map(str::to_owned))] {
            if let Some(value) = value {
                self.take(key, key, &value.into());
            }
        }
    }

    /// A provider by the name that it has here.
    fn known_provider(&self, name: &str, custom: &[String]) -> Option<String> {
        let id = name.strip_prefix("custom:").unwrap_or(name).to_lowercase().replace(' ', "-");
        if custom.contains(&id) {
            return Some(name.to_owned());
        }
        // The name would mean another provider here.
        if self.refused.contains(&plain(name)) {
            return None;
        }
        match name {
            "custom" => Some(name.to_owned()),
            "openai-api" => Some("openai".to_owned()),
            _ => ProviderRow::by_name(name).map(|row| row.id.to_owned()),
        }
    }

    /// Names what a section has besides.
    fn leave_unknown(&mut self, of: &str, section: &Value, known: &[&str]) {
        let members = section.as_object().into_iter().flatten();
        let unknown: Vec<&str> = members
            .filter(|(key, value)| !known.contains(&key.as_str()) && !is_empty(value))
            .map(|(key, _)| key.as_str())
            .collect();
        if !unknown.is_empty() {
            self.report.left(format!("{of}: {} has no counterpart here", unknown.join(", ")));
        }
    }
}

/// Whether a value of this member is understood here; only wire formats differ.
fn is_format(key: &str, value: &Value) -> bool {
    key != "api_mode" || value.as_str().is_some_and(|mode| FORMATS.contains(&mode))
}
