//! `hermes memory setup`: settings, secrets and a connection test of a memory provider.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hermes_app::operations::keep_variables;
use hermes_app::plugins::{Manifest, RequiredVariable, Selection};
use hermes_app::probe_memory;
use hermes_config::{Edit, most_similar};
use hermes_terminal::Candidate;
use serde_json::{Map, Value, json};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::plugins::{Inventory, variables};
use crate::text;

/// The longest connection test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The provider and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SetupArguments {
    /// The provider [default: asks]
    provider: Option<String>,
    /// A setting of the provider, such as mode=local
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Read the value of this secret from the next line of standard input
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// Do not ask for anything
    #[arg(short, long)]
    yes: bool,
    /// Do not test the connection
    #[arg(long)]
    no_test: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "write KEY=VALUE".to_owned())?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

pub(super) async fn run(arguments: &SetupArguments, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let is_asking = !arguments.yes && arguments.secret.is_empty() && io::stdin().is_terminal();
    let name = match &arguments.provider {
        Some(name) => name.clone(),
        None => choose(&inventory, is_asking, console)?,
    };
    check_kind(&inventory, &name)?;
    let manifest = &inventory.found(&name)?.manifest;

    let mut section = match inventory.setup.config.settings().plugins.entries.0.get(&name) {
        Some(Value::Object(section)) => section.clone(),
        _ => Map::new(),
    };
    let mut changed = Vec::new();
    for (key, value) in &arguments.set {
        let value = parsed(manifest, key, value)?;
        changed.push((key.clone(), value));
    }
    section.extend(changed.iter().cloned());
    if is_asking {
        for key in asked_for(manifest, &section) {
            if let Some(value) = ask(manifest, &key, section.get(&key))? {
                section.insert(key.clone(), value.clone());
                changed.push((key, value));
            }
        }
    }
    let misfits = manifest.misfits(&Value::Object(section.clone()));
    if !misfits.is_empty() {
        let fix = format!("give the values with --set KEY=VALUE; `hermes plugins info {name}` describes the plugin");
        return Err(Failure::new(Kind::Usage, format!("`{name}` was not set up"), misfits.join("; "), fix));
    }
    let secrets = secrets(arguments, &inventory, manifest, &section, is_asking)?;

    let mut edit = Edit::of(&inventory.setup.home.config())?;
    for (key, value) in &changed {
        edit.set(&format!("plugins.entries.{name}.{key}"), value)?;
    }
    let before = inventory.selection.memory.as_deref().filter(|before| *before != name);
    edit.take("plugins.disabled", &name)?;
    edit.set("memory.provider", &json!(name))?;
    let wanted = Inventory::of(inventory.setup.with_changes(&edit, &secrets)?)?;
    // A provider that lacks a right cannot be tested yet. The right names an address, which must be stored before the user can
    // grant it.
    let is_tested = !arguments.no_test && !wanted.lacks_rights(&name);
    let took = if is_tested { Some(test(&wanted, manifest).await?) } else { None };

    // Secrets first: with them, but without the selection, nothing changes.
    keep_variables(&inventory.setup.home.dotenv(), &secrets)?;
    edit.save()?;
    let was = before.map_or_else(String::new, |before| format!(" (was {before})"));
    console.note(&format!("memory.provider: {name}{was}; the change applies to new sessions"));
    if !secrets.is_empty() {
        let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
        console.note(&format!("{} stored in .env, which only you can read", names.join(", ")));
    }
    wanted.warn_of_lacks(&name, console);
    match took {
        Some(took) => console.note(&format!("the connection test succeeded after {} ms", took.as_millis())),
        None if arguments.no_test => {}
        None => console.note(&format!(
            "the connection was not tested, because rights are missing; grant them, then run `hermes memory setup {name}` again"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// The provider that needs nothing else.
const SUGGESTED: &str = "chronicle";

/// A provider that the user picks from a list.
fn choose(inventory: &Inventory, is_asking: bool, console: Console) -> Result<String, Failure> {
    let providers = inventory.memory_providers();
    let names = || providers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if providers.is_empty() {
        let fix = "install one with `hermes plugins install SOURCE`";
        return Err(Failure::new(Kind::Usage, "nothing was set up", "there is no memory provider to choose", fix));
    }
    if !is_asking {
        let why = "cannot ask for the provider: standard input is not a terminal, or you asked not to be asked";
        let fix = format!("name one of them: {}; `{SUGGESTED}` needs no service and no key", names());
        return Err(Failure::new(Kind::Usage, "nothing was set up", why, fix));
    }
    let suggested = providers.iter().position(|(name, _)| name == SUGGESTED).unwrap_or(0);
    let row = |(name, about): &(String, String)| Candidate { text: name.clone(), about: about.clone() };
    let rows = providers.iter().map(row).collect();
    let chosen = crate::question::chosen("Which memory provider?", rows, suggested, console)?;
    chosen.and_then(|at| providers.get(at)).map(|(name, _)| name.clone()).ok_or_else(|| {
        Failure::new(Kind::Interrupted, "nothing was set up", "you cancelled", "try again, or name a provider")
    })
}

fn check_kind(inventory: &Inventory, name: &str) -> Result<(), Failure> {
    let what = || format!("`{name}` was not set up");
    if name == Selection::MEMORY {
        let why = "the built-in memory is always on and needs no setup";
        return Err(Failure::new(Kind::Usage, what(), why, "`hermes memory status` shows it"));
    }
    if !inventory.kinds(name)?.contains(&"memory-provider") {
        let names: Vec<String> = inventory.memory_providers().into_iter().map(|(name, _)| name).collect();
        let fix = format!("the memory providers are: {}", names.join(", "));
        return Err(Failure::new(Kind::Usage, what(), "it is not a memory provider", fix));
    }
    Ok(())
}

fn property<'a>(manifest: &'a Manifest, key: &str) -> Option<&'a Value> {
    manifest.config.as_ref()?.get("properties")?.get(key)
}

/// A value from the command line, by the type in the plugin's schema.
fn parsed(manifest: &Manifest, key: &str, text: &str) -> Result<Value, Failure> {
    let name = &manifest.name;
    let what = || format!("`{name}` was not set up");
    let Some(schema) = property(manifest, key) else {
        let properties =
            manifest.config.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let known: Vec<String> = properties.into_iter().flatten().map(|(key, _)| key.clone()).collect();
        let fix = match most_similar(key, known.iter().cloned()) {
            Some(near) => format!("correct it to `{near}`"),
            None if known.is_empty() => "leave it out".to_owned(),
            None => format!("its settings are: {}", known.join(", ")),
        };
        return Err(Failure::new(Kind::Usage, what(), format!("it has no setting `{key}`"), fix));
    };
    if schema["type"] == "string" || schema["type"].is_null() {
        return Ok(json!(text));
    }
    serde_json::from_str(text).map_err(|error| {
        let why = format!("the value of `{key}` is not {}: {error}", schema["type"]);
        Failure::new(Kind::Usage, what(), why, "write it as JSON, such as 30, true or [\"a\"]")
    })
}

/// The settings to ask for: those that the schema requires, those that decide where data goes, and the mode.
fn asked_for(manifest: &Manifest, section: &Map<String, Value>) -> Vec<String> {
    let Some(schema) = &manifest.config else { return Vec::new() };
    let requested = serde_json::to_string(&manifest.permissions).unwrap_or_default();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let keys = schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key);
    let mut asked: Vec<String> = keys
        .filter(|key| {
            let is_missing = required.contains(&key.as_str()) && !section.contains_key(*key);
            is_missing || *key == "mode" || requested.contains(&format!("${{config.{key}}}"))
        })
        .cloned()
        .collect();
    // The mode decides what else matters, so it comes first.
    asked.sort_by_key(|key| key != "mode");
    asked
}

/// Asks for a setting. None keeps what is there, or the default.
fn ask(manifest: &Manifest, key: &str, current: Option<&Value>) -> Result<Option<Value>, Failure> {
    let Some(schema) = property(manifest, key) else { return Ok(None) };
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let kept = current.or_else(|| schema.get("default")).map_or_else(|| "none".to_owned(), shown);
    let about = schema["description"].as_str().unwrap_or_default();
    let mut err = io::stderr();
    loop {
        let question = text::exact(&format!("{key}: {about} [Enter keeps {kept}]:"));
        write!(err, "{question} ").and_then(|()| err.flush())?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if line.trim().is_empty() {
            return Ok(None);
        }
        match parsed(manifest, key, line.trim()) {
            Ok(value) if schema["enum"].as_array().is_none_or(|values| values.contains(&value)) => {
                return Ok(Some(value));
            }
            Ok(_) => writeln!(err, "choose one of {}", schema["enum"])?,
            Err(failure) => writeln!(err, "{}", text::line(&failure.why))?,
        }
    }
}

/// The variables that a provider needs: those that its manifest asks for, then its other secrets.
fn variables_of(manifest: &Manifest) -> Vec<RequiredVariable> {
    let mut wanted: Vec<RequiredVariable> = manifest.requires_env.clone();
    for secret in &manifest.permissions.secrets {
        if !wanted.iter().any(|known| known.name == secret.env) {
            let name = secret.env.clone();
            wanted.push(RequiredVariable { name, prompt: String::new(), url: None, secret: true });
        }
    }
    wanted
}

/// The values of secrets, from lines of standard input or from the terminal.
fn secrets(
    arguments: &SetupArguments,
    inventory: &Inventory,
    manifest: &Manifest,
    section: &Map<String, Value>,
    is_asking: bool,
) -> Result<Vec<(String, String)>, Failure> {
    let wanted = variables_of(manifest);
    let mut values = Vec::new();
    let mut lines = io::stdin().lock().lines();
    for name in &arguments.secret {
        if !wanted.iter().any(|known| known.name.as_str() == name) {
            let names: Vec<&str> = wanted.iter().map(|known| known.name.as_str()).collect();
            let fix =
                format!("its secrets are: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
            let why = format!("it has no secret `{name}`");
            return Err(Failure::new(Kind::Usage, format!("`{}` was not set up", manifest.name), why, fix));
        }
        let value = lines.next().transpose()?.map(|line| line.trim().to_owned()).unwrap_or_default();
        if value.is_empty() || value.chars().any(char::is_control) {
            let why = format!("standard input has no usable line for {name}");
            let fix = "write one line for each --secret, in their order";
            return Err(Failure::new(Kind::Usage, format!("`{}` was not set up", manifest.name), why, fix));
        }
        values.push((name.clone(), value));
    }
    drop(lines);
    // By convention, the mode `local` needs no service.
    if is_asking && section.get("mode") != Some(&json!("local")) {
        for wanted in wanted.iter().filter(|one| inventory.setup.environment.var(one.name.as_str()).is_none()) {
            let value = variables::read(wanted)?;
            if !value.is_empty() {
                values.push((wanted.name.as_str().to_owned(), value));
            }
        }
    }
    Ok(values)
}

/// Asks the provider once, with a configuration that is not stored yet. Returns how long the answer took.
async fn test(wanted: &Inventory, manifest: &Manifest) -> Result<Duration, Failure> {
    let name = &manifest.name;
    let variables: Vec<String> = variables_of(manifest).iter().map(|one| one.name.to_string()).collect();
    let secrets = if variables.is_empty() { String::new() } else { format!(" or {}", variables.join(", ")) };
    let what = format!("`{name}` was not set up, because its connection test failed; nothing was changed");
    let failed = |why: String| {
        let fix = format!(
            "correct the settings{secrets} and run `hermes memory setup {name}` again, or store them untested with `--no-test`"
        );
        Failure::new(Kind::Plugin, what.clone(), why, fix)
    };
    let probe = tokio::time::timeout(PATIENCE, probe_memory(&wanted.setup, name)).await;
    let probe = probe.map_err(|_| failed(format!("it did not answer within {} s", PATIENCE.as_secs())))?;
    // An error before the question has a remedy of its own.
    let probe = probe.map_err(|error| Failure { what: what.clone(), ..error.into() })?;
    probe.outcome.map_err(failed)?;
    Ok(probe.took)
}
