//! `config.yaml`, read and checked.
//!
//! A syntax error or a value that does not fit is an error with its position. An unknown key is a warning, since a later
//! version or another program may know it. Nothing is ever written back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::codes;
use crate::environment::Environment;
use crate::keys::KEYS;
use crate::reader;
use crate::settings::Settings;
use crate::tree::{Content, Node, Place};
use hermes_diagnostic::{Code, Diagnostic, Fix};
use hermes_private_files::read_regular;

/// Another program, whose home looks much like ours, numbers its configurations with this key.
const FOREIGN_MARK: &str = "_config_version";

/// The most bytes of a configuration.
pub(crate) const LARGEST: u64 = 4 << 20;

/// A configuration that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    file: PathBuf,
    exists: bool,
    settings: Settings,
    warnings: Vec<String>,
    /// Whether the first warning is about variables.
    has_unset: bool,
}

impl Config {
    /// Reads the file. A missing file sets nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not valid YAML, has a value that does not fit, or belongs to another program.
    pub fn read(file: &Path, environment: &Environment) -> Result<Self, Diagnostic> {
        let text = match read_regular(file, LARGEST) {
            Ok(bytes) => String::from_utf8(bytes)
                .map_err(|error| refusal(codes::SYNTAX, file, None, not_text(&error), "save the file as UTF-8"))?,
            // If even the home is missing, the store reports it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let (settings, warnings) = (Settings::default(), Vec::new());
                return Ok(Self { file: file.to_owned(), exists: false, settings, warnings, has_unset: false });
            }
            Err(error) => {
                let (why, fix) = match error.kind() {
                    ErrorKind::IsADirectory => ("it is a folder".to_owned(), "move the folder away"),
                    _ => (error.to_string(), "make it a file that you can read"),
                };
                return Err(refusal(codes::UNREADABLE, file, None, why, fix));
            }
        };
        Self::parse(&text, file, &|name| environment.var(name))
    }

    /// Checks a text; `variable` returns the value of `${NAME}`.
    ///
    /// # Errors
    ///
    /// Like [`Config::read`].
    pub fn parse(text: &str, file: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Diagnostic> {
        let mut root =
            Node::parse(text).map_err(|broken| refusal(codes::SYNTAX, file, broken.place, broken.why, broken.fix))?;
        if let Content::Section(entries) = &root.content
            && entries.iter().any(|(name, _, _)| name == FOREIGN_MARK)
        {
            return Err(foreign(file));
        }
        let mut unresolved = Vec::new();
        // The variables in a plugin's own section depend on what the user granted to the plugin.
        root.expand_outside(&["plugins", "entries"], variable, &mut unresolved);
        expand_short_form(&mut root);
        let (settings, found) =
            reader::read(&root).map_err(|misfit| refusal(codes::VALUE, file, misfit.place, misfit.why, misfit.fix))?;
        let unresolved = unset(&unresolved);
        let has_unset = unresolved.is_some();
        let warning = |(place, what): (Place, String)| format!("{}:{}: {what}", file.display(), place.line);
        let warnings = unresolved.into_iter().chain(found).map(warning).collect();
        Ok(Self { file: file.to_owned(), exists: true, settings, warnings, has_unset })
    }

    /// The file, whether it exists or not.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// What the user should correct.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The same without the line about variables that are not set, which concerns only what reads the values.
    pub fn warnings_about_keys(&self) -> &[String] {
        &self.warnings[usize::from(self.has_unset)..]
    }

    /// The values in force: those of the file, and defaults.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the file contains keys of models, or secrets of logins.
    pub fn holds_keys(&self) -> bool {
        let mut tasks = self.settings.auxiliary.tasks.iter();
        let mut logins = self.settings.logins.values().flatten();
        self.settings.model.api_key.is_some()
            || self
                .settings
                .mcp_servers
                .values()
                .flatten()
                .any(|server| !server.env.is_empty() || !server.headers.is_empty())
            || logins.any(|login| login.client_secret.is_some())
            || !self.settings.model.api_keys.is_empty()
            || self.settings.fallback_providers.iter().any(|entry| entry.api_key.is_some())
            || self.settings.custom_providers.iter().any(|row| row.api_key.is_some())
            || self.settings.auxiliary.embeddings.api_key.is_some()
            || tasks.any(|(_, task)| task.api_key.is_some() || !task.fallback_chain.is_empty())
    }

    /// All values in force, nested as in the file. Keys without a value are null; keys and tokens are redacted.
    pub fn shown(&self) -> Value {
        let mut root = serde_json::to_value(&self.settings).unwrap_or_default();
        for key in KEYS.iter() {
            let value = key.path.split('.').try_fold(&mut root, |section, name| section.get_mut(name));
            if let (Some(value @ Value::Null), Some(default)) = (value, key.default()) {
                *value = default.clone();
            }
        }
        crate::redaction::redacted(root)
    }

    /// One value or section of [`Config::shown`], by its dotted key.
    pub fn shown_at(&self, path: &str) -> Option<Value> {
        let root = self.shown();
        path.split('.').try_fold(root, |value, name| match value {
            Value::Object(mut section) => section.remove(name),
            _ => None,
        })
    }
}

/// `model: NAME` is short for a section with `default: NAME`.
fn expand_short_form(root: &mut Node) {
    let Content::Section(entries) = &mut root.content else { return };
    for (_, _, node) in entries.iter_mut().filter(|(name, _, _)| name == "model") {
        if let Content::Text(_) = node.content {
            let place = node.place;
            let text = std::mem::replace(node, Node { place, content: Content::Nothing, expanded: false });
            node.content = Content::Section(vec![("default".to_owned(), place, text)]);
        }
    }
}

fn refusal(code: Code, file: &Path, place: Option<Place>, why: impl Into<String>, fix: impl Into<Fix>) -> Diagnostic {
    let place = place.filter(|place| place.line > 0);
    let at = place.map_or_else(String::new, |place| format!(":{}:{}", place.line, place.column));
    Diagnostic::new(code, format!("{}{at} cannot be used", file.display()), why, fix)
}

/// One line about all variables that are not set, at the place of the first.
fn unset(found: &[(Place, String)]) -> Option<(Place, String)> {
    let (place, first) = found.first()?;
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in found {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let what = match &names[..] {
        [.., _, last] => format!(
            "the variables {} and {last} are not set, so texts such as `${{{first}}}` are used literally; set them",
            names[..names.len() - 1].join(", ")
        ),
        _ => format!("the variable {first} is not set, so the text `${{{first}}}` is used literally; set it"),
    };
    Some((*place, format!("{what} in the environment or in .env beside config.yaml")))
}

fn not_text(error: &std::string::FromUtf8Error) -> String {
    let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("line {line} is not valid UTF-8")
}

fn foreign(file: &Path) -> Diagnostic {
    let home = file.parent().unwrap_or(file).display().to_string();
    Diagnostic::new(
        codes::FOREIGN_HOME,
        format!("{home} cannot be used as home"),
        format!(
            "its config.yaml has `{FOREIGN_MARK}`, so it is the home of Hermes Agent, the Python program; nothing was changed"
        ),
        "set HERMES_HOME to another folder, such as ~/.hermes-home; `hermes import peer` then brings over what Hermes Agent has",
    )
}

#[cfg(test)]
mod tests;
