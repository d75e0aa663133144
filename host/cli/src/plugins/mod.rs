//! `hermes plugins`: which there are, what they are by their exports, and whether they are on.

pub(crate) mod dev;

use std::process::ExitCode;

use hermes_plugins::{Catalog, Found, Selection};
use hermes_runtime::{CodeFolder, Runtime};
use serde::Serialize;

use crate::arguments::{ModelArguments, PluginsCommand};
use crate::compile;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::home::Home;
use crate::launch::Setup;
use crate::text;

/// A plugin in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Listed {
    name: String,
    version: String,
    description: String,
    /// What it exports.
    kinds: Vec<&'static str>,
    /// `bundled`, or its folder.
    source: String,
    state: State,
    /// Why it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It is the context engine.
    Engine,
    /// It is a memory of every session.
    Memory,
    /// It is on.
    Enabled,
    /// It is not.
    Off,
    /// It cannot be used.
    Broken,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Engine => "engine",
            State::Memory => "memory",
            State::Enabled => "enabled",
            State::Off => "off",
            State::Broken => "broken",
        }
    }
}

pub(crate) fn run(command: &PluginsCommand, console: Console) -> Result<ExitCode, Failure> {
    let json = match command {
        PluginsCommand::List { json } => json,
        PluginsCommand::Dev(dev) => return crate::wait(dev::run(dev, console)),
    };
    let setup = Setup::read()?;
    setup.warn(console);
    let catalog = setup.catalog();
    let selection = setup.selection(&ModelArguments::default());
    let code = Code::of(&setup.home)?;
    let runtime = code.runtime(&setup.home);
    let listed: Vec<Listed> = catalog.all().iter().map(|found| look_at(found, &runtime, &selection)).collect();
    for problem in catalog.problems() {
        console.warning(&problem.to_string());
    }
    for missing in missing(&selection, &catalog) {
        console.warning(&missing);
    }
    if *json {
        let value = serde_json::json!(listed);
        print(&format!("{value:#}\n"))?;
    } else {
        print(&listed.iter().map(|plugin| line(plugin, console)).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn look_at(found: &Found, runtime: &Runtime, selection: &Selection) -> Listed {
    let manifest = &found.manifest;
    let loaded = found.component().map_err(|error| error.to_string());
    let loaded = loaded.and_then(|bytes| runtime.load(&bytes).map_err(|error| error.to_string()));
    let (kinds, state, why) = match loaded {
        Ok(loaded) => (loaded.exports().names(), state(&manifest.name, selection), None),
        Err(why) => (Vec::new(), State::Broken, Some(why)),
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
    } else if enabled && !disabled {
        State::Enabled
    } else {
        State::Off
    }
}

/// What is selected and not there.
fn missing(selection: &Selection, catalog: &Catalog) -> Vec<String> {
    let engine = ("context.engine", selection.engine.as_str());
    let memory = selection.memory.iter().map(|name| ("memory.provider", name.as_str()));
    let enabled = selection.enabled.iter().map(|name| ("plugins.enabled", name.as_str()));
    std::iter::once(engine)
        .chain(memory)
        .chain(enabled)
        .filter(|(_, name)| catalog.get(name).is_none())
        .map(|(key, name)| format!("{key} names `{name}`, and there is no such plugin"))
        .collect()
}

fn line(plugin: &Listed, console: Console) -> String {
    let tone = match plugin.state {
        State::Broken => Tone::Bad,
        State::Off => Tone::Faint,
        State::Engine | State::Memory | State::Enabled => Tone::Good,
    };
    let state = console.paint(tone, &format!("{:<8}", plugin.state.word()));
    let kinds = if plugin.kinds.is_empty() { "-".to_owned() } else { plugin.kinds.join(", ") };
    let told = plugin.why.as_deref().unwrap_or(&plugin.description);
    let (name, version) = (&plugin.name, &plugin.version);
    format!("{state} {name:<14} {version:<8} {kinds:<24} {:<8}  {}\n", text::line(&plugin.source), text::line(told))
}

/// Where compiled code goes for a command that must not make anything in the home: its folder if that is there, else
/// one that is gone afterwards.
pub(crate) enum Code {
    InHome,
    Passing(tempfile::TempDir),
}

impl Code {
    pub(crate) fn of(home: &Home) -> Result<Self, Failure> {
        if home.code().is_dir() {
            return Ok(Self::InHome);
        }
        let folder = tempfile::Builder::new().prefix("hermes-").tempdir().map_err(|error| {
            let fix = "set TMPDIR to a folder that can be written";
            Failure::new(Kind::General, "plugins cannot be looked at", format!("no temporary folder: {error}"), fix)
        })?;
        Ok(Self::Passing(folder))
    }

    /// One that keeps code there.
    pub(crate) fn runtime(&self, home: &Home) -> Runtime {
        match self {
            Self::InHome => compile::runtime(home),
            Self::Passing(folder) => Runtime::with(CodeFolder::alone(folder.path().join("code")), compile::compiler()),
        }
    }
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
            enabled: names(&["audit", "both"]),
            disabled: names(&["files", "both", "lossless"]),
            entries: HashMap::new(),
        };
        for (name, expected) in [
            ("lossless", State::Engine),
            ("compressor", State::Off),
            ("honcho", State::Memory),
            ("builtin", State::Memory),
            ("audit", State::Enabled),
            ("local", State::Enabled),
            ("files", State::Off),
            ("both", State::Off),
        ] {
            assert_eq!(state(name, &selection), expected, "{name}");
        }
    }
}
