//! `hermes config`: what is in force, with keys redacted.

use std::process::ExitCode;

use serde_json::Value;

use crate::arguments::ConfigCommand;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use hermes_app::Home;
use hermes_config::nearest;

pub(crate) fn run(command: &ConfigCommand, console: Console) -> Result<ExitCode, Failure> {
    // Both work also while the file is broken: they help to correct it.
    match command {
        ConfigCommand::Path => return printed(&format!("{}\n", Home::locate()?.config().display())),
        ConfigCommand::Schema => return printed(&format!("{:#}\n", hermes_config::schema())),
        ConfigCommand::Show { .. } | ConfigCommand::Get { .. } => {}
    }
    let setup = launch::setup(console)?;
    let config = &setup.config;
    match command {
        ConfigCommand::Path | ConfigCommand::Schema => Ok(ExitCode::SUCCESS),
        ConfigCommand::Show { json: true } => printed(&format!("{:#}\n", config.shown())),
        ConfigCommand::Show { json: false } => {
            let there = if config.exists() { "" } else { " (there is none; these are the defaults)" };
            printed(&format!("# {}{there}\n{}", config.file().display(), yaml(config.shown())?))
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
                Err(Failure::new(Kind::General, "there is nothing to show", format!("there is no key `{key}`"), fix))
            }
        },
    }
}

fn printed(text: &str) -> Result<ExitCode, Failure> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// As a file could have it: keys that nothing sets are left out.
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
