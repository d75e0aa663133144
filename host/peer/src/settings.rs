//! `config.yaml`: settings that mean the same here, under the names of this program.
//!
//! The result is a plan: an edit of the own file, which keeps its comments and whatever the user has set. Every value that the
//! user wrote there is taken unless it is in force here anyway; none is skipped because it is the default there, since the two
//! defaults may differ. Each passes [`admission`], is checked as `hermes config set` checks it, and stands in the report.

mod admission;
mod exact;
mod hooks;
mod memory;
mod models;
mod places;
mod servers;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hermes_app::Setup;
use hermes_config::{Config, Edit};
use hermes_diagnostic::Diagnose as _;
use hermes_plugin_host::Catalog;
use serde_json::{Map, Value, json};

use self::admission::{Forms, admitted, shown};
use crate::report::{PartReport, first};
use crate::{PeerError, PeerHome};

const NAME: &str = "config.yaml";
const LARGEST: u64 = 1 << 20;

/// Settings with the same meaning: the name there, and the name here.
const SAME: &[(&str, &str)] = &[
    ("agent.max_turns", "agent.max_turns"),
    ("agent.environment_hint", "agent.environment_hint"),
    ("agent.system_prompt", "prompt.ephemeral_system_prompt"),
    ("agent.reasoning_overrides", "model.reasoning_efforts"),
    ("auxiliary.transient_retries", "auxiliary.transient_retries"),
    ("checkpoints.enabled", "checkpoints.enabled"),
    ("checkpoints.max_total_size_mb", "checkpoints.max_size"),
    ("checkpoints.max_file_size_mb", "checkpoints.max_file_size"),
    ("checkpoints.retention_days", "checkpoints.keep_days"),
    ("compression.enabled", "compression.enabled"),
    ("compression.threshold", "compression.threshold"),
    ("compression.target_ratio", "compression.target_ratio"),
    ("compression.protect_first_n", "compression.protect_first_n"),
    ("compression.protect_last_n", "compression.protect_last_n"),
    ("context_file_max_chars", "context_file_max_chars"),
    ("delegation.max_iterations", "delegation.max_iterations"),
    ("delegation.max_concurrent_children", "delegation.max_concurrent_children"),
    ("delegation.max_spawn_depth", "delegation.max_spawn_depth"),
    ("delegation.max_summary_chars", "delegation.max_summary_chars"),
    ("delegation.child_timeout_seconds", "delegation.child_timeout_seconds"),
    ("display.busy_input_mode", "input.while_busy"),
    ("display.show_reasoning", "display.show_reasoning"),
    ("memory.memory_char_limit", "memory.memory_char_limit"),
    ("memory.user_char_limit", "memory.user_char_limit"),
    ("memory.write_approval", "memory.write_approval"),
    ("prompt_caching.cache_ttl", "prompt_caching.cache_ttl"),
    ("skills.config", "skills.config"),
];
/// The beginnings of keys here whose texts become part of prompts.
const PROMPTS: [&str; 4] = ["agent.environment_hint", "platform_hints", "prompt.", "skills.config"];
/// The bundled context engines.
const ENGINES: [&str; 2] = ["compressor", "lossless"];
/// What a program writes for itself.
const IGNORED: [&str; 2] = ["_config_version", "_config_path"];

/// Changes of the own home.
pub(crate) struct Plan {
    pub(crate) edit: Edit,
    /// Files that settings refer to, by their paths here.
    pub(crate) files: Vec<(PathBuf, String)>,
    pub(crate) report: PartReport,
}

pub(crate) fn plan(peer: &PeerHome, setup: &Setup, with_keys: bool) -> Result<Plan, PeerError> {
    let fresh = || Edit::of(&setup.home.config()).map_err(|error| PeerError::from(hermes_app::AppError::from(error)));
    let none = Config::parse("", Path::new(NAME), &|_| None).map_err(hermes_app::AppError::from)?;
    let mut translator = Translator {
        setup,
        own: parsed(fresh()?.parts().1).unwrap_or_default(),
        defaults: none.shown(),
        edit: fresh()?,
        files: Vec::new(),
        report: PartReport::of("settings"),
        with_keys,
        plugins: Catalog::find(
            hermes_app::BUNDLED,
            &setup.home.plugins(),
            &setup.config.settings().plugins.host_settings(),
        ),
        known: 0,
        used: BTreeSet::new(),
        refused: BTreeSet::new(),
    };
    match read(peer) {
        Ok(None) => {}
        Ok(Some(settings)) => translator.translate(&settings, peer),
        Err(why) => translator.report.left(why),
    }
    let Translator { edit, files, mut report, known, .. } = translator;
    if known > 0 {
        report.known(if known == 1 { "1 setting".to_owned() } else { format!("{known} settings") });
    }
    Ok(Plan { edit, files, report })
}

/// Why no session would start with the changed file.
fn sound(setup: &Setup, edit: &Edit) -> Result<(), String> {
    let words = |error: hermes_app::AppError| error.diagnose().why.clone();
    let after = setup.with_changes(edit, &[]).map_err(words)?;
    after.config.custom_providers().map_err(|error| error.why)?;
    after.config.mcp_servers(&|_| Some("x".into())).map_err(|error| error.why)?;
    after.shell_hooks().map_err(words)?;
    // All rules that an import adds are about `terminal`, which exists.
    after.approval_rules().map(drop).map_err(words)
}

fn read(peer: &PeerHome) -> Result<Option<Map<String, Value>>, String> {
    let Some(file) = peer.within(NAME)? else { return Ok(None) };
    let text =
        hermes_private_files::read_text(&file, LARGEST).map_err(|error| format!("{NAME} cannot be read: {error}"))?;
    match parsed(&text) {
        Some(Value::Object(settings)) => Ok(Some(settings)),
        Some(Value::Null) => Ok(None),
        _ => Err(format!("{NAME} there is not valid YAML with sections")),
    }
}

fn parsed(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Null);
    }
    serde_saphyr::from_str(text).ok()
}

struct Translator<'a> {
    setup: &'a Setup,
    own: Value,
    /// The values in force here without any setting.
    defaults: Value,
    edit: Edit,
    files: Vec<(PathBuf, String)>,
    report: PartReport,
    with_keys: bool,
    /// The plugins here.
    plugins: Catalog,
    known: u64,
    /// Settings of the peer that were looked at, by dotted names.
    used: BTreeSet<String>,
    /// Providers of the peer that stay behind, by their plain names.
    refused: BTreeSet<String>,
}

impl Translator<'_> {
    fn translate(&mut self, settings: &Map<String, Value>, peer: &PeerHome) {
        let root = Value::Object(settings.clone());
        let custom = self.custom_providers(&root);
        self.model(&root, &custom);
        self.effort(&root);
        self.fallbacks(&root, &custom);
        for (from, to) in SAME {
            if let Some(value) = at(&root, from) {
                self.take(from, to, value);
            }
        }
        self.plugins(&root);
        self.memory_provider(&root, peer);
        self.delegation(&root, &custom);
        self.approvals(&root);
        self.tasks(&root, &custom);
        self.servers(&root);
        self.hooks(&root);
        self.hints(&root);
        self.prefill(&root, peer);
        self.name_the_rest(settings);
    }

    /// Sets a key, unless the user has set it here. Whether the value is in force afterwards.
    fn take(&mut self, from: &str, to: &str, value: &Value) -> bool {
        self.used.insert(from.to_owned());
        if is_empty(value) {
            return false;
        }
        let default = at(&self.defaults, to);
        match at(&self.own, to) {
            Some(here) if same(here, value) => self.known += 1,
            Some(_) => {
                self.report.left(format!("{from}: {to} is set here"));
                return false;
            }
            None if default.is_some_and(|default| same(default, value)) => self.known += 1,
            None => {
                if let Err(why) = self.set(to, value, "") {
                    self.report.left(format!("{from}: {why}"));
                    return false;
                }
                self.report.taken(format!("{to}: {}", shown(to, value)));
                if to == "checkpoints.enabled" && *value == false {
                    self.report.right("files are no longer saved before they change: /undo restores nothing");
                }
                if from != to {
                    self.report.changed(format!("{from} is called {to} here"));
                }
            }
        }
        true
    }

    /// Sets a key. Everything that is set passes here. `receiver` is who gets what variables hold; if it is empty, the addresses
    /// in the value are.
    fn set(&mut self, to: &str, value: &Value, receiver: &str) -> Result<(), String> {
        let is_prompt = PROMPTS.iter().any(|start| to.starts_with(start));
        let is_command =
            to.starts_with("hooks.") || [".command", ".args", ".cwd", ".env"].iter().any(|end| to.ends_with(end));
        let forms = match (is_prompt, is_command) {
            (true, _) => Forms::Braces,
            (false, true) => Forms::OfProgram,
            (false, false) => Forms::All,
        };
        let variables = admitted(to, value, forms, self.with_keys).map_err(|refusal| refusal.to_string())?;
        let before = self.edit.clone();
        if let Err(why) = self.assign(to, value) {
            self.edit = before;
            return Err(why);
        }
        let addresses = addresses(value);
        let receiver =
            if receiver.is_empty() && !addresses.is_empty() { addresses.join(", ") } else { receiver.to_owned() };
        let receiver = if receiver.is_empty() { "the provider of the model".to_owned() } else { receiver };
        for name in variables {
            self.report.right(format!("the value of the variable {name} goes to {receiver} ({to})"));
        }
        if !to.starts_with("mcp_servers.") {
            for address in addresses {
                self.report.right(format!("requests go to {address} ({to})"));
            }
        }
        if is_prompt {
            self.report.right(format!("prompts contain the text of {to}: {}", shown(to, value)));
        }
        Ok(())
    }

    fn assign(&mut self, to: &str, value: &Value) -> Result<(), String> {
        // A variable may be set later; its value is not needed to check a text.
        let variable = |_: &str| Some("1".to_owned());
        if let Err(error) = self.edit.assign_value(to, value, &variable) {
            // A number in quotation marks is still meant as a number.
            let scalar = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            match scalar.filter(|scalar| scalar.is_number() || scalar.is_boolean()) {
                Some(scalar) if self.edit.assign_value(to, &scalar, &variable).is_ok() => {}
                _ => return Err(error.why),
            }
        }
        // A server has several keys, and is checked as a whole.
        if to.starts_with("mcp_servers.") { Ok(()) } else { sound(self.setup, &self.edit) }
    }

    /// How much the model thinks. The other words for `none` are those of the peer.
    fn effort(&mut self, root: &Value) {
        const KEY: &str = "agent.reasoning_effort";
        let Some(effort) = at(root, KEY) else { return };
        let word = effort.as_str().map(|effort| effort.trim().to_lowercase());
        let value = match (effort, word.as_deref()) {
            (Value::Bool(false), _) | (_, Some("false" | "disabled" | "off" | "no")) => json!("none"),
            (_, Some(word)) => json!(word),
            (other, None) => other.clone(),
        };
        self.take(KEY, "model.reasoning_effort", &value);
    }

    /// Plugins that both programs have under the same name: the context engine, the built-in memory, the search engine.
    fn plugins(&mut self, root: &Value) {
        const ENGINE: &str = "context.engine";
        if let Some(name) = at(root, ENGINE).and_then(Value::as_str).filter(|name| !name.is_empty()) {
            self.used.insert(ENGINE.to_owned());
            // Only the code of a plugin says what it is. The user selected an installed one of this name there for the same purpose.
            match self.plugins.get(name).is_some_and(|found| ENGINES.contains(&name) || found.folder().is_some()) {
                true => drop(self.take(ENGINE, ENGINE, &name.into())),
                false => self.report.left(format!("{ENGINE}: no context engine here is called {name}")),
            }
        }
        let web = ["web.search_backend", "web.backend"].into_iter().find_map(|key| {
            let name = at(root, key)?.as_str().filter(|name| !name.is_empty())?;
            Some((key, name))
        });
        if let Some((key, name)) = web {
            let misfits = self.plugins.get("web").map(|found| found.manifest.misfits(&json!({ "backend": name })));
            self.used.insert(key.to_owned());
            match misfits {
                Some(misfits) if misfits.is_empty() => {
                    self.take(key, "plugins.entries.web.backend", &name.into());
                }
                _ => self.report.left(format!("{key}: {name} is no search engine that is known here")),
            }
        }
        // The two files are one memory here.
        let files = ["memory.memory_enabled", "memory.user_profile_enabled"];
        let off: Vec<&str> = files.into_iter().filter(|key| at(root, key) == Some(&false.into())).collect();
        self.used.extend(files.map(str::to_owned));
        match off[..] {
            [] => {}
            [key] => self.report.left(format!("{key}: here MEMORY.md and USER.md are on or off together")),
            _ => {
                self.take(files[0], "plugins.disabled", &json!(["builtin"]));
            }
        }
    }

    fn approvals(&mut self, root: &Value) {
        const MODE: &str = "approvals.mode";
        const DENY: &str = "approvals.deny";
        if let Some(mode) = at(root, MODE) {
            self.used.insert(MODE.to_owned());
            match mode.as_str() {
                Some("smart") => self.report.left("approvals.mode: a model decided there; here Hermes asks"),
                Some("manual") => drop(self.take(MODE, MODE, &json!("ask"))),
                _ => self.report.left("approvals.mode: it turned questions off; see `auto` in docs/use/approvals.md"),
            }
        }
        self.used.insert(DENY.to_owned());
        let patterns = at(root, DENY).and_then(Value::as_array).into_iter().flatten();
        let patterns: Vec<&str> =
            patterns.filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).collect();
        let mut rules: Vec<Value> = Vec::new();
        for pattern in patterns {
            let with: Vec<Value> = rules.iter().cloned().chain([format!("terminal({pattern})").into()]).collect();
            // Add one pattern at a time, so that an invalid one does not exclude the others.
            let mut alone = self.edit.clone();
            let set = alone.assign_value(DENY, &with.clone().into(), &|_| None).map_err(|error| error.why);
            match set.and_then(|()| sound(self.setup, &alone)) {
                Ok(()) => rules = with,
                Err(why) => self.report.left(format!("approvals.deny: `{pattern}` is not denied here: {why}")),
            }
        }
        if !rules.is_empty() && self.take(DENY, DENY, &rules.into()) {
            self.report
                .changed("approvals.deny: here a pattern compares the words of a command; see docs/use/approvals.md");
        }
    }

    /// Names what has no counterpart: whole sections, and the unused keys of the other sections.
    fn name_the_rest(&mut self, settings: &Map<String, Value>) {
        let mut names = Vec::new();
        for (name, value) in settings.iter().filter(|(name, _)| !IGNORED.contains(&name.as_str())) {
            if self.used.contains(name) {
                continue;
            }
            self.name_within(name, value, &mut names);
        }
        if !names.is_empty() {
            let lines: Vec<String> = names.chunks(8).map(|names| names.join(", ")).collect();
            self.report.left("settings without a counterpart here:");
            first(lines, "line").into_iter().for_each(|line| self.report.left(line));
        }
    }

    fn name_within(&self, name: &str, value: &Value, names: &mut Vec<String>) {
        let prefix = format!("{name}.");
        let is_used = self.used.iter().any(|used| used.starts_with(&prefix));
        match value {
            Value::Object(section) if is_used => {
                for (key, value) in section {
                    let key = format!("{prefix}{key}");
                    if !self.used.contains(&key) && !is_empty(value) {
                        self.name_within(&key, value, names);
                    }
                }
            }
            _ => names.push(name.to_owned()),
        }
    }
}

/// The texts of a value that are addresses.
fn addresses(value: &Value) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in hermes_prompt::scan::texts(value) {
        if text.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|each| each.is_ascii_alphabetic())) {
            found.push(hermes_config::redacted_text(text));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn copy(from: &Value, name: &str, to: &mut Map<String, Value>, key: &str) {
    let value = &from[name];
    if !is_empty(value) {
        to.insert(key.to_owned(), value.clone());
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn at<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(root, |section, name| section.get(name)).filter(|value| !value.is_null())
}

/// Equal values; 1 and 1.0 are equal.
fn same(left: &Value, right: &Value) -> bool {
    left == right || left.as_f64().is_some_and(|number| right.as_f64() == Some(number))
}
