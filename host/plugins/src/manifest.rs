//! `plugin.yaml`: what a plugin calls itself and what it asks for.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A manifest, read and checked.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name by which users select it: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Its own version.
    pub version: semver::Version,
    /// One line for listings.
    pub description: String,
    /// File name of the component, beside the manifest; none when it is not named.
    pub component: Option<String>,
    /// What it asks for.
    pub permissions: Permissions,
    /// Fields that this version does not know.
    pub unknown: Vec<String>,
}

/// What a plugin asks for. Nothing is granted that is not asked for here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// To ask the user's models.
    pub llm: bool,
    /// To read the conversation.
    pub history: bool,
    /// To have a database of its own.
    pub sql: bool,
    /// Names of documents that it keeps.
    pub documents: Vec<String>,
    /// Folders that it works in.
    pub files: Vec<Root>,
}

/// A folder that a plugin asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// `workspace` or `skills`.
    pub root: String,
    /// What it wants to do there.
    #[serde(default)]
    pub access: Access,
}

/// What a plugin may do in a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Look.
    #[default]
    Read,
    /// Look and change.
    Write,
}

/// Why a manifest is no good. The file is named by whoever read it.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no YAML, or a field has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// The name is missing its form.
    #[error("the name `{0}` is not 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter or digit")]
    Name(String),
    /// The version is none.
    #[error("the version `{0}` is no semantic version such as 1.2.0")]
    Version(String),
    /// The component is not a plain file name.
    #[error("the component `{0}` is not the name of a file beside plugin.yaml")]
    Component(String),
    /// A folder is asked for that there is not.
    #[error("there is no folder `{0}` to ask for: `workspace` and `skills` can be")]
    Root(String),
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    component: Option<String>,
    #[serde(default)]
    permissions: Permissions,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

/// Fields that mean something to people or to later versions.
const KNOWN: &[&str] = &["api", "author", "license", "licence", "repository", "homepage", "kind"];

impl Manifest {
    /// Reads the text of a `plugin.yaml`.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let raw: Raw = serde_saphyr::from_str(text).map_err(|error| ManifestError::Syntax(error.to_string()))?;
        if !is_name(&raw.name) {
            return Err(ManifestError::Name(raw.name));
        }
        let version = raw.version.unwrap_or_else(|| "0.0.0".to_owned());
        let version = semver::Version::parse(&version).map_err(|_| ManifestError::Version(version))?;
        if let Some(file) = raw.component.as_ref().filter(|file| !is_file_name(file)) {
            return Err(ManifestError::Component(file.clone()));
        }
        if let Some(root) =
            raw.permissions.files.iter().find(|root| !["workspace", "skills"].contains(&root.root.as_str()))
        {
            return Err(ManifestError::Root(root.root.clone()));
        }
        Ok(Self {
            name: raw.name,
            version,
            description: raw.description,
            component: raw.component,
            permissions: raw.permissions,
            unknown: raw.rest.into_keys().filter(|key| !KNOWN.contains(&key.as_str())).collect(),
        })
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&name.len()) && name.starts_with(plain) && name.chars().all(|c| plain(c) || c == '-' || c == '_')
}

fn is_file_name(file: &str) -> bool {
    !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', '\0'])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_enough() {
        let manifest = Manifest::parse("name: mine\n").unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.to_string().as_str()), ("mine", "0.0.0"));
        assert!(!manifest.permissions.llm && manifest.permissions.files.is_empty());
    }

    #[test]
    fn what_it_asks_for_is_read_and_what_nobody_knows_is_told() {
        let text = "name: mine\nversion: 1.2.0\nauthor: me\ncolour: red\npermissions:\n  llm: true\n  sql: true\n  files:\n    - root: workspace\n      access: write\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.unknown, ["colour"]);
        assert!(manifest.permissions.sql && !manifest.permissions.history);
        assert_eq!(manifest.permissions.files[0].access, Access::Write);
    }

    #[test]
    fn bad_manifests_are_refused() {
        for (text, part) in [
            ("version: 1.0.0\n", "name"),
            ("name: ../evil\n", "../evil"),
            ("name: a\nversion: one\n", "one"),
            ("name: a\ncomponent: ../x.wasm\n", "x.wasm"),
            ("name: a\npermissions:\n  files:\n    - root: /etc\n", "/etc"),
            ("name: a\npermissions:\n  root: true\n", "root"),
            ("name: [a\n", ""),
        ] {
            let error = Manifest::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?} gives {error:?}");
        }
    }
}
