//! `hermes plugins`: lists plugins with their kinds and states, and dispatches to the commands on plugins.

pub(crate) mod adopt;
pub(crate) mod bindings;
pub(crate) mod choice;
pub(crate) mod command;
pub(crate) mod consent;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod grant;
mod handover;
mod info;
pub(crate) mod install;
mod logs;
pub(crate) mod new;
pub(crate) mod pack;
pub(crate) mod push;
mod readiness;
pub(crate) mod remove;
pub(crate) mod sign;
mod switch;
pub(crate) mod test;
pub(crate) mod update;
pub(crate) mod variables;
mod verify;
pub(crate) mod wit;
mod words;

use std::ops::ControlFlow;
use std::process::ExitCode;

use hermes_app::operations;
use hermes_app::plugins::{Catalog, Found, Manifest, Origin, PluginsError, Runtime, Selection, UNKNOWN};
use hermes_config::most_similar;
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use serde::Serialize;

use crate::approval::listing;
use hermes_app::{CodeStorage, ModelChoice, Role, missing_plugins};

use self::command::PluginsCommand;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::table::{Align, Table};
use crate::text;
use crate::wording;
use hermes_app::Home;

/// What a native library can do, for every screen that shows one.
const NATIVE: &str = "it runs outside the sandbox: whatever its permissions, it can do everything that you can do";

/// A plugin in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Listed {
    name: String,
    version: String,
    description: String,
    /// The exported kinds.
    kinds: Vec<&'static str>,
    /// `bundled`, or the plugin's folder.
    source: String,
    state: State,
    /// Why the plugin cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Listed {
    fn is_bundled(&self) -> bool {
        self.source == Origin::Bundled.to_string()
    }

    /// What it is for, in a word for each of its kinds, without their optional parts.
    fn main_kinds(&self) -> String {
        let word = |kind: &&str| match *kind {
            "context-engine" => Some("engine"),
            "memory-provider" => Some("memory"),
            "tools" => Some("tools"),
            "skills" => Some("skills"),
            "hooks" => Some("hooks"),
            _ => None,
        };
        let words: Vec<&str> = self.kinds.iter().filter_map(word).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The selected context engine.
    Engine,
    /// A memory provider of every session.
    Memory,
    /// Enabled for tools, skills or hooks.
    Enabled,
    /// Disabled.
    Off,
    /// Not granted, so it cannot run.
    Ungranted,
    /// It does not load.
    Broken,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Engine => "engine",
            State::Memory => "memory",
            State::Enabled => "enabled",
            State::Off => "disabled",
            State::Ungranted => "not granted",
            State::Broken => "broken",
        }
    }

    fn tone(self) -> Tone {
        match self {
            State::Broken | State::Ungranted => Tone::Bad,
            State::Off => Tone::Faint,
            State::Engine | State::Memory | State::Enabled => Tone::Good,
        }
    }
}

/// The plugins of this home, and the selection of sessions.
pub(crate) struct Inventory {
    pub(crate) setup: Setup,
    pub(crate) catalog: Catalog,
    pub(crate) selection: Selection,
    runtime: Runtime,
    _code: CodeStorage,
}

impl Inventory {
    pub(crate) fn read(console: Console) -> Result<Self, Failure> {
        Self::of(launch::setup(console)?)
    }

    pub(crate) fn of(setup: Setup) -> Result<Self, Failure> {
        let (catalog, selection) = (setup.catalog(), setup.selection(&ModelChoice::default()));
        let code = CodeStorage::of(&setup.home)?;
        Ok(Self { runtime: code.runtime(&setup.home, setup.compiler.clone()), setup, catalog, selection, _code: code })
    }

    /// The memory providers that can be used, without the built-in memory.
    pub(crate) fn memory_providers(&self) -> Vec<(String, String)> {
        let is_provider = |plugin: &Listed| plugin.why.is_none() && Role::of(&plugin.kinds) == Role::Memory;
        let listed = self.list().into_iter().filter(is_provider);
        listed
            .filter(|plugin| plugin.name != Selection::MEMORY)
            .map(|plugin| (plugin.name, plugin.description))
            .collect()
    }

    /// The plugins with their states, for `/plugins`: those that are used first.
    pub(crate) fn brief(&self, console: Console) -> String {
        let mut listed = self.list();
        listed.sort_by_key(|plugin| plugin.state == State::Off);
        let mut table = Table::new(&[Align::Left; 3]);
        for plugin in &listed {
            let about = plugin.why.as_deref().unwrap_or(&plugin.description);
            table.row([
                (plugin.state.tone(), plugin.state.word().to_owned()),
                (Tone::Plain, text::exact(&plugin.name)),
                (Tone::Plain, text::exact(about)),
            ]);
        }
        table.text(console)
    }

    fn list(&self) -> Vec<Listed> {
        self.catalog.all().iter().map(|found| inspect(found, &self.runtime, &self.selection)).collect()
    }

    pub(crate) fn found(&self, name: &str) -> Result<&Found, Failure> {
        self.catalog.get(name).ok_or_else(|| {
            if let Some(problem) = self.catalog.problem_with(name) {
                let what = format!("the plugin `{name}` cannot be used");
                return Diagnostic { what, ..problem.error.diagnose() }.into();
            }
            let names: Vec<&str> = self.catalog.all().iter().map(|found| found.manifest.name.as_str()).collect();
            let why = format!("the plugins are: {}", names.join(", "));
            let near = most_similar(name, names.iter().map(|name| (*name).to_owned()));
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let fix = format!("{near}check the name, or install the plugin with `hermes plugins install SOURCE`");
            let code = UNKNOWN.name().into();
            Failure { code, ..Failure::new(Kind::General, format!("there is no plugin `{name}`"), why, fix) }
        })
    }

    /// The kinds that a plugin exports.
    pub(crate) fn kinds(&self, name: &str) -> Result<Vec<&'static str>, Failure> {
        let found = self.found(name)?;
        let listed = inspect(found, &self.runtime, &self.selection);
        match listed.why {
            None => Ok(listed.kinds),
            Some(why) => {
                let fix = format!(
                    "`hermes plugins info {name}` shows its details; `hermes plugins grant {name}` allows it to run"
                );
                Err(Failure::new(Kind::Plugin, format!("the plugin `{name}` cannot be used"), why, fix))
            }
        }
    }
}

pub(crate) fn run(command: Option<&PluginsCommand>, console: Console) -> Result<ExitCode, Failure> {
    let Some(command) = command else {
        return if console.can_draw() { choice::run(console) } else { list(false, console) };
    };
    match command {
        PluginsCommand::List { json } => list(*json, console),
        PluginsCommand::Info { name, json } => crate::wait(info::run(name, *json, console)),
        PluginsCommand::Doctor { json } => crate::wait(doctor::run(*json, console)),
        PluginsCommand::Stats { json } => info::stats(*json, console),
        PluginsCommand::Logs { name, lines, follow, json } => logs::run(name, *lines, *follow, *json, console),
        PluginsCommand::Enable { name } => switch::enable(name, console),
        PluginsCommand::Disable { name } => switch::disable(name, console),
        PluginsCommand::Install(arguments) => install::run(arguments, console),
        PluginsCommand::Update(arguments) => update::run(arguments, console),
        PluginsCommand::Rollback { name } => update::roll_back(name, console),
        PluginsCommand::Remove(arguments) => remove::run(arguments, console),
        PluginsCommand::Adopt(arguments) => adopt::run(arguments, console),
        PluginsCommand::Grant(arguments) => grant::run(arguments, console),
        PluginsCommand::Revoke { name, permissions } => grant::revoke(name, permissions, console),
        PluginsCommand::Approvals { forget, json } => listing::run(&Home::locate()?, forget.as_deref(), *json, console),
        PluginsCommand::Verify { json } => verify::run(*json, console),
        PluginsCommand::Dev(arguments) => crate::wait(dev::run(arguments, console)),
        PluginsCommand::New(arguments) => new::run(arguments, console),
        PluginsCommand::Test(arguments) => test::run(arguments, console),
        PluginsCommand::Pack(arguments) => pack::run(arguments, console),
        PluginsCommand::Push(arguments) => crate::wait(push::run(arguments, console)),
        PluginsCommand::Sign(arguments) => sign::run(arguments, console),
        PluginsCommand::Wit(arguments) => wit::run(arguments, console),
        PluginsCommand::Bindings(arguments) => bindings::generate(arguments, console),
        PluginsCommand::Component(arguments) => bindings::component(arguments, console),
    }
}

fn warn_of_unknown_fields(manifest: &Manifest, console: Console) {
    for field in &manifest.unknown {
        console.warning(&format!("plugin.yaml of `{}` has an unknown field: {field}", manifest.name));
    }
}

fn list(json: bool, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    for problem in inventory.catalog.problems() {
        console.warning(&problem_line(&problem.error));
    }
    for found in inventory.catalog.all() {
        warn_of_unknown_fields(&found.manifest, console);
    }
    for missing in missing_plugins(&inventory.selection, &inventory.catalog) {
        let text = format!("{} names the plugin `{}`, which does not exist", missing.key, missing.name);
        console.warning(&wording::with_fix(&text, &missing.fix()));
    }
    for found in inventory.selection.contradictions() {
        console.warning(&wording::with_fix(&found.to_string(), &found.fix()));
    }
    let listed = inventory.list();
    if json {
        let value = serde_json::json!(listed);
        print(&text::json(&value))?;
    } else {
        print(&table(&listed, console))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a component with draft interfaces of the contract, unless the user allows them. `what` says what did not happen.
fn check_drafts(manifest: &Manifest, component: &[u8], allowed: bool, what: &str) -> Result<(), Failure> {
    operations::check_drafts(manifest, component, allowed)
        .map_err(|refused| Diagnostic { what: what.to_owned(), ..refused.diagnose() }.into())
}

/// A problem and its remedy in one line.
pub(crate) fn problem_line(error: &PluginsError) -> String {
    format!("{error}; {}", wording::fix(&error.diagnose().fix))
}

/// Loads a plugin, which compiles it if necessary, and describes it.
fn inspect(found: &Found, runtime: &Runtime, selection: &Selection) -> Listed {
    let manifest = &found.manifest;
    let (kinds, state, why) = match found.load(runtime, &|_| ControlFlow::Continue(())) {
        Ok(loaded) => (loaded.exports().names(), state(&manifest.name, selection), None),
        Err(PluginsError::Ungranted { why, .. }) => {
            (Vec::new(), State::Ungranted, Some(format!("{why}; {}", wording::fix(&why.diagnose().fix))))
        }
        Err(PluginsError::Load { source, .. }) => (Vec::new(), State::Broken, Some(source.to_string())),
        Err(error) => (Vec::new(), State::Broken, Some(problem_line(&error))),
    };
    Listed {
        name: manifest.name.clone(),
        version: manifest.version.to_string(),
        description: manifest.description.clone(),
        kinds,
        source: found.origin.to_string(),
        state,
        why,
    }
}

fn state(name: &str, selection: &Selection) -> State {
    let disabled = selection.disabled.iter().any(|disabled| disabled == name);
    let enabled = Selection::ON.contains(&name) || selection.enabled.iter().any(|enabled| enabled == name);
    if selection.engine == name {
        State::Engine
    } else if selection.memory.as_deref() == Some(name) || (name == Selection::MEMORY && !disabled) {
        State::Memory
    } else if enabled && !disabled || selection.embedder.as_deref() == Some(name) {
        State::Enabled
    } else {
        State::Off
    }
}

fn table(plugins: &[Listed], console: Console) -> String {
    /// On a narrower terminal the description has one line below the rest.
    const WIDE: usize = 90;
    /// The columns before it there, and the one behind it.
    const AROUND: usize = 5;
    let room = console.columns().filter(|columns| *columns < WIDE).map(|columns| columns.saturating_sub(AROUND));
    let mut table = Table::new(&[Align::Left; 5]);
    for plugin in plugins {
        let description = text::exact(&plugin.description);
        let about = match (&plugin.why, room) {
            (Some(why), _) => text::exact(why),
            (None, Some(room)) => text::fitted(&description, room),
            (None, None) => description,
        };
        let about = match plugin.is_bundled() {
            true => about,
            false => format!("{about} · from {}", text::exact(&plugin.source)),
        };
        table.row([
            (plugin.state.tone(), plugin.state.word().to_owned()),
            (Tone::Plain, text::exact(&plugin.name)),
            (Tone::Plain, text::exact(&plugin.version)),
            (Tone::Plain, plugin.main_kinds()),
            (Tone::Plain, about),
        ]);
    }
    table.text(console)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_state_follows_the_selection() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let selection = Selection {
            engine: "lossless".to_owned(),
            memory: Some("honcho".to_owned()),
            embedder: Some("vectors".to_owned()),
            enabled: names(&["audit", "both"]),
            disabled: names(&["files", "both", "lossless"]),
            entries: HashMap::new(),
            variables: hermes_app::plugins::Variables::none(),
            settings: HashMap::new(),
            passed_on: HashMap::new(),
        };
        for (name, expected) in [
            ("lossless", State::Engine),
            ("compressor", State::Off),
            ("honcho", State::Memory),
            ("builtin", State::Memory),
            ("audit", State::Enabled),
            ("vectors", State::Enabled),
            ("local", State::Enabled),
            ("files", State::Off),
            ("both", State::Off),
        ] {
            assert_eq!(state(name, &selection), expected, "{name}");
        }
    }
}
