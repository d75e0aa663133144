//! Variables: those of the process first, then those of `.env` in the home folder.
//!
//! The environment of the process is never changed. `docs/dependencies.md` says why dotenvy does not parse the file.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use hermes_private_files::read_text;

/// The most bytes of `.env`.
const LARGEST: u64 = 1 << 20;

/// The variables of the process and of `.env`.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    from_file: HashMap<String, String>,
    warnings: Vec<String>,
}

impl Environment {
    /// Reads `.env`. A missing file sets nothing.
    pub fn read(dotenv: &Path) -> Self {
        match read_text(dotenv, LARGEST) {
            Ok(text) => Self::parse(&text, dotenv),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Self::default(),
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::IsADirectory => "it is a folder".to_owned(),
                    _ => error.to_string(),
                };
                Self { from_file: HashMap::new(), warnings: vec![format!("{} is not used: {why}", dotenv.display())] }
            }
        }
    }

    fn parse(text: &str, file: &Path) -> Self {
        let mut environment = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // A message never quotes the line, since it may contain a key.
            match assignment(line) {
                Some((name, value)) => drop(environment.from_file.insert(name.to_owned(), value)),
                None => environment.warnings.push(format!(
                    "{}:{}: the line is not KEY=VALUE and is ignored",
                    file.display(),
                    number + 1
                )),
            }
        }
        environment
    }

    /// The value of a variable, unless it is empty.
    pub fn var(&self, name: &str) -> Option<String> {
        let own = std::env::var(name).ok().filter(|value| !value.is_empty());
        own.or_else(|| self.from_file.get(name).filter(|value| !value.is_empty()).cloned())
    }

    /// The variables of the file, whatever the process has.
    pub fn in_file(&self) -> impl Iterator<Item = (&str, &str)> {
        self.from_file.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// These variables as if further values stood at the end of the file.
    pub fn with(&self, values: &[(String, String)]) -> Self {
        let mut environment = self.clone();
        environment.from_file.extend(values.iter().cloned());
        environment
    }

    /// What the user should correct in the file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn assignment(line: &str) -> Option<(&str, String)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if name.is_empty() || !name.chars().all(plain) || name.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    Some((name, unquoted(value)?))
}

/// In single quotes, everything is literal. In double quotes, `\n`, `\"`, `\\` and `\$` are escapes. Without quotes, ` #`
/// begins a comment.
fn unquoted(value: &str) -> Option<String> {
    let after = |rest: &str| rest.trim_start().is_empty() || rest.trim_start().starts_with('#');
    if let Some(rest) = value.strip_prefix('\'') {
        let (inner, rest) = rest.split_once('\'')?;
        return after(rest).then(|| inner.to_owned());
    }
    let Some(rest) = value.strip_prefix('"') else {
        let end = value.find(" #").or_else(|| value.find("\t#")).unwrap_or(value.len());
        let end = if value.starts_with('#') { 0 } else { end };
        return Some(value[..end].trim_end().to_owned());
    };
    let mut inner = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => return after(characters.as_str()).then_some(inner),
            '\\' => match characters.next()? {
                'n' => inner.push('\n'),
                escaped @ ('"' | '\\' | '$') => inner.push(escaped),
                other => inner.extend(['\\', other]),
            },
            other => inner.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_quotes_and_comments() {
        for (line, value) in [
            ("HERMES_T_A=plain", Some("plain")),
            ("export HERMES_T_A=plain", Some("plain")),
            ("HERMES_T_A = spaced out ", Some("spaced out")),
            ("HERMES_T_A=a # b", Some("a")),
            ("HERMES_T_A=a#b", Some("a#b")),
            ("HERMES_T_A='a # $b\\n'", Some("a # $b\\n")),
            ("HERMES_T_A=\"a # \\\"b\\\"\\n\" # c", Some("a # \"b\"\n")),
            ("HERMES_T_A=k==", Some("k==")),
            ("HERMES_T_A=", None),
            ("# HERMES_T_A=x", None),
        ] {
            let environment = Environment::parse(line, Path::new(".env"));
            assert_eq!(environment.var("HERMES_T_A").as_deref(), value, "{line}");
            assert!(environment.warnings().is_empty(), "{line}");
        }
    }

    #[test]
    fn an_invalid_line_is_named_by_its_number_and_not_quoted() {
        let text = "\u{feff}A=1\nsk-secret-without-a-name\nB='open\n9A=x\n";
        let environment = Environment::parse(text, Path::new(".env"));
        assert_eq!(environment.warnings().len(), 3);
        assert!(environment.warnings()[0].starts_with(".env:2:"), "{:?}", environment.warnings());
        assert!(!environment.warnings().join("").contains("secret"));
    }

    #[test]
    fn variables_of_the_process_take_precedence() {
        let environment = Environment::parse("PATH=from-file\nHERMES_T_GAP=filled\n", Path::new(".env"));
        assert_ne!(environment.var("PATH").as_deref(), Some("from-file"));
        assert_eq!(environment.var("HERMES_T_GAP").as_deref(), Some("filled"));
    }
}
