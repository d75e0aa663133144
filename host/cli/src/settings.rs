//! `hermes config`: shows the configuration in force, with keys redacted.

use std::process::ExitCode;

use serde_json::Value;

use crate::arguments::ConfigCommand;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::text;
use hermes_app::Home;
use hermes_config::nearest;

pub(crate) fn run(command: &ConfigCommand, console: Console) -> Result<ExitCode, Failure> {
    // These two also work with a broken file: they help to correct it.
    match command {
        ConfigCommand::Path => return printed(&format!("{}\n", Home::locate()?.config().display())),
        ConfigCommand::Schema => return printed(&text::json(&hermes_config::schema())),
        ConfigCommand::Show { .. } | ConfigCommand::Get { .. } => {}
    }
    let setup = launch::setup(console)?;
    let config = &setup.config;
    match command {
        ConfigCommand::Path | ConfigCommand::Schema => Ok(ExitCode::SUCCESS),
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

fn printed(text: &str) -> Result<ExitCode, Failure> {
    print(text)?;
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
