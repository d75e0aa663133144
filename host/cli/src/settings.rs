//! `hermes config`: shows the configuration in force, with keys redacted, and changes it.

use std::io::{self, BufRead as _};
use std::process::ExitCode;

use clap::Subcommand;
use hermes_app::operations::{forget_variable, keep_variables};
use hermes_app::{Home, ModelChoice, Setup};
use hermes_config::{Config, Edit, nearest};
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use serde_json::Value;

use crate::console::{Console, printed};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::text;

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the path of config.yaml
    Path,
    /// Print the JSON Schema of config.yaml, for editors
    Schema,
    /// Print all settings in effect, with API keys hidden
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one value or section
    Get {
        /// The setting's key, such as model.default
        key: String,
    },
    /// Change one value of config.yaml, or store a variable such as OPENAI_API_KEY in .env
    Set {
        /// The setting's key, such as model.default, or the variable's name
        key: String,
        /// The new value; `-` reads it from the first line of standard input, which keeps a secret out of the shell's history
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove one value from config.yaml, so that its default holds again
    Unset {
        /// The setting's key, such as model.default
        key: String,
    },
}

pub(crate) fn run(command: &ConfigCommand, console: Console) -> Result<ExitCode, Failure> {
    // These also work with a broken file: they help to correct it.
    match command {
        ConfigCommand::Path => return printed(&format!("{}\n", Home::locate()?.config().display())),
        ConfigCommand::Schema => return printed(&text::json(&hermes_config::schema())),
        ConfigCommand::Set { key, value } if is_variable(key) => return keep(key, &typed(value)?, console),
        ConfigCommand::Unset { key } if is_variable(key) => return forget(key, console),
        _ => {}
    }
    let setup = launch::setup_with_values(console)?;
    let config = &setup.config;
    match command {
        ConfigCommand::Path | ConfigCommand::Schema => Ok(ExitCode::SUCCESS),
        ConfigCommand::Set { key, value } => {
            let mut edit = Edit::of(config.file())?;
            let value = typed(value)?;
            edit.assign(key, &value, &|name| setup.environment.var(name))?;
            check(&setup, &edit, key)?;
            save(&setup, edit, key, console)?;
            end_cooldown(&setup, &value, console);
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Unset { key } => {
            let mut edit = Edit::of(config.file())?;
            if edit.unset(key)? {
                return save(&setup, edit, key, console);
            }
            let why = format!("`{key}` is not set in {}", config.file().display());
            Err(Failure::new(
                Kind::General,
                "nothing was changed",
                why,
                "`hermes config show` lists the values in force",
            ))
        }
        ConfigCommand::Show { json: true } => printed(&text::json(&config.shown())),
        ConfigCommand::Show { json: false } => {
            let origin = if config.exists() { "" } else { " (does not exist; these are the defaults)" };
            printed(&format!("# {}{origin}\n{}", config.file().display(), yaml(config.shown())?))
        }
        ConfigCommand::Get { key } => match config.shown_at(key) {
            Some(Value::String(text)) => printed(&format!("{text}\n")),
            Some(Value::Null) => printed("\n"),
            Some(value @ (Value::Object(_) | Value::Array(_))) => printed(&yaml(value)?),
            Some(value) => printed(&format!("{value}\n")),
            None => {
                let fix = nearest(key).map_or_else(
                    || "`hermes config show` lists all keys".to_owned(),
                    |near| format!("did you mean `{near}`? `hermes config show` lists all keys"),
                );
                let why = format!("`{key}` is not a key of config.yaml");
                Err(Failure::new(Kind::General, "the value cannot be shown", why, fix))
            }
        },
    }
}

/// The variables that name the home folder, where `.env` is.
const HOME_VARIABLES: [&str; 2] = ["HERMES_HOME", "HOME"];

/// Whether a name is that of an environment variable. Keys of the file are in lower case.
fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|each| each.is_ascii_uppercase() || each.is_ascii_digit() || each == '_')
}

/// The value of an argument, or the first line of standard input.
fn typed(value: &str) -> Result<String, Failure> {
    if value != "-" {
        return Ok(value.to_owned());
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Stores a variable in `.env`.
fn keep(name: &str, value: &str, console: Console) -> Result<ExitCode, Failure> {
    let refused = |why: String, fix: String| Err(Failure::new(Kind::Usage, format!("{name} was not stored"), why, fix));
    if value.trim().is_empty() {
        return refused("the value is empty".to_owned(), format!("write `hermes config set {name} VALUE`"));
    }
    if value.contains(['\n', '\r', '\0']) {
        return refused("the value has more than one line".to_owned(), "give one line".to_owned());
    }
    if HOME_VARIABLES.contains(&name) {
        return refused(
            format!("Hermes finds .env through {name}, so it can have no effect there"),
            format!("set {name} in the environment, for example in the profile of your shell"),
        );
    }
    let home = Home::locate()?;
    // The home of another program is left alone, even with a broken configuration.
    let setup = launch::setup(console)?;
    setup.own()?;
    keep_variables(&home.dotenv(), &[(name.to_owned(), value.to_owned())])?;
    console.note(&format!("{name} stored in {}, which only you can read", home.dotenv().display()));
    end_cooldown(&setup, value, console);
    warn_of_environment(name, console);
    Ok(ExitCode::SUCCESS)
}

/// Removes a variable from `.env`.
fn forget(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let dotenv = Home::locate()?.dotenv();
    // The home of another program is left alone, even with a broken configuration.
    launch::setup(console)?.own()?;
    if forget_variable(&dotenv, name)? {
        console.note(&format!("{name} removed from {}", dotenv.display()));
        if std::env::var_os(name).is_some_and(|set| !set.is_empty()) {
            console.warning(&format!("{name} is also set in the environment, where it goes on to count"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let why = format!("{} does not set {name}", dotenv.display());
    let fix =
        "`hermes doctor` says where each key comes from; `unset NAME` in your shell removes one from the environment";
    Err(Failure::new(Kind::General, "nothing was changed", why, fix))
}

/// Ends the cooldown of a key that the provider refused: its account may have credit again.
fn end_cooldown(setup: &Setup, value: &str, console: Console) {
    if setup.end_cooldown_of_key(value) {
        console.note("the cooldown of this key has ended; it is used again");
    }
}

/// Warns if a stored variable has no effect.
pub(crate) fn warn_of_environment(name: &str, console: Console) {
    if std::env::var_os(name).is_some_and(|set| !set.is_empty()) {
        console.warning(&format!("{name} is also set in the environment, which takes precedence over .env"));
    }
}

/// Why no session starts with the approval rules, if one does not.
fn flaw_of_rules(setup: &Setup) -> Option<Diagnostic> {
    let rules = match setup.approval_rules() {
        Ok(rules) => rules,
        Err(error) => return Some(error.diagnose()),
    };
    match setup.listed_files() {
        Ok(listed) => setup.check_rules(&rules, &listed).err().map(|error| error.diagnose()),
        Err(error) => Some(error.diagnose()),
    }
}

/// Refuses a value with which no session would start: a rule about nothing, or one that a plugin does not take.
fn check(setup: &Setup, edit: &Edit, key: &str) -> Result<(), Failure> {
    let changed = setup.with_changes(edit, &[])?;
    let what = format!("{} was not changed", setup.config.file().display());
    if key.starts_with("approvals.") {
        // If the file has a flaw already, this value may correct another one.
        if let (None, Some(error)) = (flaw_of_rules(setup), flaw_of_rules(&changed)) {
            return Err(Diagnostic { what, ..error }.into());
        }
    }
    let selection = changed.selection(&ModelChoice::default());
    // The plugins that get the value, each with its place in their section.
    let places: Vec<(&str, String)> =
        match key.strip_prefix("plugins.entries.").and_then(|entry| entry.split('.').next()) {
            Some(name) => vec![(name, key.to_owned())],
            None => {
                let getting = selection.passed_on.iter().filter(|(_, keys)| keys.iter().any(|passed| passed == key));
                let last = key.rsplit('.').next().unwrap_or(key);
                getting.map(|(name, _)| (name.as_str(), format!("plugins.entries.{name}.{last}"))).collect()
            }
        };
    let catalog = changed.catalog();
    for (name, place) in places {
        let (Some(found), Some(section)) = (catalog.get(name), selection.entries.get(name)) else { continue };
        // A session puts the values of variables in.
        if section.to_string().contains("${") {
            continue;
        }
        // Only mismatches of this key count: the user did not change the others.
        let of_key = |misfit: &String| {
            let rest = misfit.strip_prefix(&place)?;
            (rest.starts_with(':') || rest.starts_with('.')).then(|| format!("{key}{rest}"))
        };
        let mut misfits = found.manifest.misfits(section);
        misfits.extend(found.manifest.unknown_keys(section));
        if let Some(misfit) = misfits.iter().find_map(of_key) {
            let why = if place == key { misfit } else { format!("{misfit} (`{name}` gets this value)") };
            let fix = format!("`hermes plugins info {name}` describes the plugin");
            return Err(Failure::new(Kind::Configuration, what, why, fix));
        }
    }
    Ok(())
}

/// Saves a changed file, and says what holds now.
fn save(setup: &Setup, edit: Edit, key: &str, console: Console) -> Result<ExitCode, Failure> {
    setup.own()?;
    let (before, is_changed) = (setup.config.shown_at(key), edit.is_changed());
    edit.save()?;
    let now = Config::read(setup.config.file(), &setup.environment)?;
    let shown = |value: Option<Value>| match value {
        None | Some(Value::Null) => "not set".to_owned(),
        Some(Value::String(text)) => text::line(&text),
        Some(value) => value.to_string(),
    };
    let key = if key == "model" { "model.default" } else { key };
    if !is_changed {
        console.note(&format!("{key}: {}, as before; nothing was changed", shown(before)));
        return Ok(ExitCode::SUCCESS);
    }
    console.note(&format!(
        "{key}: {} (was {}); {} changed",
        shown(now.shown_at(key)),
        shown(before),
        now.file().display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The configuration in the syntax of the file. Keys without a value are left out.
fn yaml(value: Value) -> Result<String, Failure> {
    let failed = |error: serde_saphyr::SerializeError| {
        Failure::new(
            Kind::General,
            "the settings cannot be shown",
            error.to_string(),
            "try `hermes config show --json`",
        )
    };
    let text = serde_saphyr::to_string(&set(value)).map_err(failed)?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

fn set(value: Value) -> Value {
    match value {
        Value::Object(section) => section
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, set(value)))
            .filter(|(_, value)| !matches!(value, Value::Object(inner) if inner.is_empty()))
            .collect(),
        other => other,
    }
}
