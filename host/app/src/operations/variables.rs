//! Stores values of variables in `.env`.

use std::io::Write as _;
use std::path::Path;

use hermes_private_files::{append_file, read_regular};

use crate::AppError;

/// The most bytes of `.env` that are read.
const LARGEST: u64 = 1 << 20;

/// Appends values to `.env`.
///
/// # Errors
///
/// When the file cannot be written.
pub fn keep_variables(dotenv: &Path, values: &[(String, String)]) -> Result<(), AppError> {
    if values.is_empty() {
        return Ok(());
    }
    let before = read_regular(dotenv, LARGEST).unwrap_or_default();
    let mut lines = String::new();
    if before.last().is_some_and(|byte| *byte != b'\n') {
        lines.push('\n');
    }
    for (name, value) in values {
        lines.push_str(&format!("{name}={}\n", quoted(value)));
    }
    let written = append_file(dotenv).and_then(|mut file| file.write_all(lines.as_bytes()));
    written.map_err(|source| AppError::Dotenv {
        file: dotenv.to_owned(),
        names: values.iter().map(|(name, _)| name.clone()).collect(),
        source,
    })
}

/// Quotes a value for `.env`. Single quotes protect every character except themselves.
fn quoted(value: &str) -> String {
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
    format!("\"{escaped}\"")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_config::Environment;

    use super::*;

    #[test]
    fn kept_values_are_read_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let dotenv = folder.path().join(".env");
        std::fs::write(&dotenv, "HERMES_T_FIRST=1").unwrap();
        let values = ["plain", "with blank # and hash", "it's \"both\" \\ $HOME", "$(x) `y`"];
        let values: Vec<(String, String)> =
            (0..).zip(values).map(|(number, value)| (format!("HERMES_T_{number}"), value.to_owned())).collect();
        keep_variables(&dotenv, &values).unwrap();
        let environment = Environment::read(&dotenv);
        assert!(environment.warnings().is_empty(), "{:?}", environment.warnings());
        assert_eq!(environment.var("HERMES_T_FIRST").as_deref(), Some("1"));
        for (name, value) in values {
            assert_eq!(environment.var(&name), Some(value));
        }
    }
}
