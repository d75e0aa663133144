//! Variables: those of the process first, then those of `.env` in the home folder.
//!
//! The environment of the process is never changed. `docs/dependencies.md` says why dotenvy does not parse the file.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hermes_private_files::read_regular;

/// The most bytes of `.env`.
const LARGEST: u64 = 1 << 20;

/// The variables of the process and of `.env`.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    file: PathBuf,
    from_file: HashMap<String, String>,
    /// Values that are not in the file yet.
    added: Vec<(String, String)>,
    warnings: Vec<String>,
}

impl Environment {
    /// Reads `.env`. A missing file sets nothing.
    pub fn read(dotenv: &Path) -> Self {
        let read = match read_regular(dotenv, LARGEST) {
            Ok(bytes) => Self::parse(&bytes, dotenv),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Self::default(),
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::IsADirectory => "it is a folder".to_owned(),
                    _ => error.to_string(),
                };
                Self { warnings: vec![format!("{} is not used: {why}", dotenv.display())], ..Self::default() }
            }
        };
        Self { file: dotenv.to_owned(), ..read }
    }

    /// Reads the file again.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::read(&self.file).with(&self.added)
    }

    /// Reads the lines one by one, so that a byte of another encoding costs its own line only.
    fn parse(bytes: &[u8], file: &Path) -> Self {
        let mut environment = Self::default();
        let utf_8 = of_utf_16(bytes);
        let bytes = utf_8.as_deref().unwrap_or(bytes);
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            // A message never quotes the line, since it may contain a key.
            let mut warn = |what: &str| environment.warnings.push(format!("{}:{}: {what}", file.display(), number + 1));
            let Ok(line) = std::str::from_utf8(line) else {
                warn("the line is not UTF-8 text and is ignored");
                continue;
            };
            let Some((name, value)) = assignment(line) else {
                warn("the line is not KEY=VALUE and is ignored");
                continue;
            };
            if let Some(other) = reference(line).filter(|other| value.contains(&format!("${{{other}}}"))) {
                warn(&format!(
                    "`${{{other}}}` in the value of {name} is not replaced by the variable {other}; write the value itself, or \
                     single quotes around the value if it is meant so"
                ));
            }
            environment.from_file.insert(name.to_owned(), value);
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
        environment.added.extend(values.iter().cloned());
        environment
    }

    /// What the user should correct in the file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The text of a file that begins with a mark of UTF-16, as PowerShell writes it.
fn of_utf_16(bytes: &[u8]) -> Option<Vec<u8>> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    Some(String::from_utf16_lossy(&units).into_bytes())
}

/// The other variable that a value seems to contain. Values stay as they are, because a key may have these characters.
fn reference(line: &str) -> Option<&str> {
    let (_, value) = line.split_once('=')?;
    let value = value.trim_start();
    let at = value.find("${").filter(|at| !value.starts_with('\'') && !value[..*at].ends_with('\\'))?;
    let (name, _) = value[at + 2..].split_once('}')?;
    let is_name =
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    is_name.then_some(name)
}

fn assignment(line: &str) -> Option<(&str, String)> {
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace));
    let line = exported.unwrap_or(line);
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
            ("export\tHERMES_T_A=plain", Some("plain")),
            ("export  HERMES_T_A=plain\r\n", Some("plain")),
            ("HERMES_T_A = spaced out ", Some("spaced out")),
            ("HERMES_T_A=a # b", Some("a")),
            ("HERMES_T_A=a#b", Some("a#b")),
            ("HERMES_T_A='a # $b\\n'", Some("a # $b\\n")),
            ("HERMES_T_A=\"a # \\\"b\\\"\\n\" # c", Some("a # \"b\"\n")),
            ("HERMES_T_A=k==", Some("k==")),
            ("HERMES_T_A=", None),
            ("# HERMES_T_A=x", None),
        ] {
            let environment = Environment::parse(line.as_bytes(), Path::new(".env"));
            assert_eq!(environment.var("HERMES_T_A").as_deref(), value, "{line}");
            assert!(environment.warnings().is_empty(), "{line}");
        }
    }

    #[test]
    fn an_invalid_line_is_named_by_its_number_and_not_quoted() {
        let text = "\u{feff}A=1\nsk-secret-without-a-name\nB='open\n9A=x\n";
        let environment = Environment::parse(text.as_bytes(), Path::new(".env"));
        assert_eq!(environment.warnings().len(), 3);
        assert!(environment.warnings()[0].starts_with(".env:2:"), "{:?}", environment.warnings());
        assert!(!environment.warnings().join("").contains("secret"));
    }

    #[test]
    fn variables_of_the_process_take_precedence() {
        let environment = Environment::parse(b"PATH=from-file\nHERMES_T_GAP=filled\n", Path::new(".env"));
        assert_ne!(environment.var("PATH").as_deref(), Some("from-file"));
        assert_eq!(environment.var("HERMES_T_GAP").as_deref(), Some("filled"));
    }
    #[test]
    fn a_byte_of_another_encoding_costs_its_own_line_only() {
        let latin = b"# Schl\xfcssel\nHERMES_T_B=b # f\xfcr mich\nHERMES_T_A=a\n";
        let environment = Environment::parse(latin, Path::new(".env"));
        assert_eq!(environment.var("HERMES_T_A").as_deref(), Some("a"));
        assert_eq!(environment.warnings(), [".env:2: the line is not UTF-8 text and is ignored"]);
        let wide: Vec<u8> = "\u{feff}HERMES_T_A=a\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let environment = Environment::parse(&wide, Path::new(".env"));
        assert_eq!((environment.var("HERMES_T_A").as_deref(), environment.warnings().len()), (Some("a"), 0));
    }

    #[test]
    fn a_reference_to_another_variable_stays_and_is_named() {
        for (line, value, told) in [
            ("HERMES_T_A=${OTHER}/x", "${OTHER}/x", true),
            ("HERMES_T_A=\"a ${OTHER}\"", "a ${OTHER}", true),
            ("HERMES_T_A='${OTHER}'", "${OTHER}", false),
            ("HERMES_T_A=\"\\${OTHER}\"", "${OTHER}", false),
            ("HERMES_T_A=pa$$word${", "pa$$word${", false),
            ("HERMES_T_A=a${b c}", "a${b c}", false),
        ] {
            let environment = Environment::parse(line.as_bytes(), Path::new(".env"));
            assert_eq!(environment.var("HERMES_T_A").as_deref(), Some(value), "{line}");
            assert_eq!(environment.warnings().len(), usize::from(told), "{line}: {:?}", environment.warnings());
        }
    }
}
