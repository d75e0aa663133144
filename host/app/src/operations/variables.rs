//! Stores values of variables in `.env`.

use std::io::Write as _;
use std::path::Path;

use hermes_private_files::{append_file, read_regular, write_whole};

use crate::AppError;

/// The most bytes of `.env` that are read.
const LARGEST: u64 = 1 << 20;

/// Adds values to `.env`. Earlier lines of the same names are removed: an old key must not stay on the disk.
///
/// # Errors
///
/// When the file cannot be written.
pub fn keep_variables(dotenv: &Path, values: &[(String, String)]) -> Result<(), AppError> {
    if values.is_empty() {
        return Ok(());
    }
    let before = read_regular(dotenv, LARGEST).unwrap_or_default();
    let kept = without(&before, |name| values.iter().any(|(known, _)| known == name));
    let mut lines = String::new();
    if kept.as_ref().unwrap_or(&before).last().is_some_and(|byte| *byte != b'\n') {
        lines.push('\n');
    }
    for (name, value) in values {
        lines.push_str(&format!("{name}={}\n", quoted(value)));
    }
    let written = match kept {
        Some(kept) => write_whole(dotenv, &[kept, lines.into()].concat()),
        None => append_file(dotenv).and_then(|mut file| file.write_all(lines.as_bytes())),
    };
    written.map_err(|source| AppError::Dotenv {
        file: dotenv.to_owned(),
        names: values.iter().map(|(name, _)| name.clone()).collect(),
        source,
    })
}

/// Removes the lines of `.env` that set a variable. False if there is none.
///
/// # Errors
///
/// When the file cannot be written.
pub fn forget_variable(dotenv: &Path, name: &str) -> Result<bool, AppError> {
    let before = read_regular(dotenv, LARGEST).unwrap_or_default();
    let Some(kept) = without(&before, |known| known == name) else { return Ok(false) };
    let failed = |source| AppError::Dotenv { file: dotenv.to_owned(), names: vec![name.to_owned()], source };
    write_whole(dotenv, &kept).map(|()| true).map_err(failed)
}

/// The file without lines that set such a name; none if there is no such line.
fn without(before: &[u8], is_meant: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let sets = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let name = line.strip_prefix("export ").unwrap_or(line).split('=').next().unwrap_or_default().trim();
        line.contains('=') && is_meant(name)
    };
    let lines = || before.split_inclusive(|byte| *byte == b'\n');
    lines().any(|line| sets(&line)).then(|| lines().filter(|line| !sets(line)).collect::<Vec<_>>().concat())
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
    fn a_forgotten_variable_leaves_every_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let dotenv = folder.path().join(".env");
        std::fs::write(&dotenv, "# keys\nexport A_KEY='one'\nA_KEY_TOO=two\n A_KEY = three\n# A_KEY=four").unwrap();
        assert!(!forget_variable(&dotenv, "B_KEY").unwrap());
        assert!(forget_variable(&dotenv, "A_KEY").unwrap());
        assert_eq!(std::fs::read_to_string(&dotenv).unwrap(), "# keys\nA_KEY_TOO=two\n# A_KEY=four");
        assert!(!forget_variable(&dotenv, "A_KEY").unwrap());
        assert!(!forget_variable(&folder.path().join("none"), "A_KEY").unwrap());
    }

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

    #[test]
    fn a_new_value_leaves_no_trace_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let dotenv = folder.path().join(".env");
        std::fs::write(
            &dotenv,
            "# mine\n export HERMES_T_KEY = 'old'\nHERMES_T_KEY_2=two\nnot a line\nHERMES_T_KEY=older",
        )
        .unwrap();
        keep_variables(&dotenv, &[("HERMES_T_KEY".to_owned(), "new".to_owned())]).unwrap();
        let text = std::fs::read_to_string(&dotenv).unwrap();
        assert_eq!(text, "# mine\nHERMES_T_KEY_2=two\nnot a line\nHERMES_T_KEY='new'\n");
    }
}
