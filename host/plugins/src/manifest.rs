//! `plugin.yaml`: what a plugin calls itself and what it asks for.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::permission::{EnvironmentName, Permissions};

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
    /// Variables that it cannot do without.
    pub requires_env: Vec<RequiredVariable>,
    /// Fields that this version does not know.
    pub unknown: Vec<String>,
}

/// A variable of the environment that a plugin cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequiredVariable {
    /// Its name.
    pub name: EnvironmentName,
    /// What the user is asked for; may be empty.
    pub prompt: String,
    /// Where one gets it.
    pub url: Option<String>,
    /// Whether it is hidden while it is typed, and kept out of what is shown.
    pub secret: bool,
}

impl<'de> Deserialize<'de> for RequiredVariable {
    /// A name, or a section with `name`, `prompt`, `url` and `secret`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Section {
            name: EnvironmentName,
            #[serde(default)]
            prompt: String,
            #[serde(default)]
            url: Option<String>,
            #[serde(default)]
            secret: bool,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RequiredVariable;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a variable, or a section with `name`, `prompt`, `url` and `secret`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<RequiredVariable, E> {
                let name = EnvironmentName::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(RequiredVariable { name, prompt: String::new(), url: None, secret: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<RequiredVariable, A::Error> {
                let Section { name, prompt, url, secret } =
                    Section::deserialize(de::value::MapAccessDeserializer::new(entries))?;
                Ok(RequiredVariable { name, prompt, url, secret })
            }
        }

        deserializer.deserialize_any(Either)
    }
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
    /// A variable would be both seen by the plugin and kept from it.
    #[error("the variable `{0}` is asked for in `env` and in `secrets`: leave it out of one of them")]
    Secret(EnvironmentName),
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
    #[serde(default)]
    requires_env: Vec<RequiredVariable>,
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
        let Permissions { env, secrets, .. } = &raw.permissions;
        if let Some(secret) = secrets.iter().find(|secret| env.contains(&secret.env)) {
            return Err(ManifestError::Secret(secret.env.clone()));
        }
        Ok(Self {
            name: raw.name,
            version,
            description: raw.description,
            component: raw.component,
            permissions: raw.permissions,
            requires_env: raw.requires_env,
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
        assert!(manifest.permissions.llm.is_none() && manifest.permissions.files.is_empty());
    }

    #[test]
    fn what_it_asks_for_is_read_and_what_nobody_knows_is_told() {
        let text = "name: mine\nversion: 1.2.0\nauthor: me\ncolour: red\npermissions:\n  llm: true\n  sql: true\n  files:\n    - root: workspace\n      access: write\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.unknown, ["colour"]);
        assert!(manifest.permissions.sql && !manifest.permissions.history);
        assert_eq!(manifest.permissions.files[0].access, crate::permission::Access::Write);
    }

    #[test]
    fn variables_that_it_needs_are_named_shortly_or_at_length() {
        let text = "name: a\nrequires_env:\n  - EXAMPLE_REGION\n  - {name: EXAMPLE_KEY, prompt: Your key, url: \"https://example.org/keys\", secret: true}\n";
        let needs = Manifest::parse(text).unwrap().requires_env;
        assert_eq!((needs[0].name.as_str(), needs[0].secret), ("EXAMPLE_REGION", false));
        assert_eq!(
            (needs[1].name.as_str(), needs[1].prompt.as_str(), needs[1].secret),
            ("EXAMPLE_KEY", "Your key", true)
        );
        assert_eq!(needs[1].url.as_deref(), Some("https://example.org/keys"));
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
            ("name: a\nrequires_env: [A-B]\n", "A-B"),
            ("name: a\nrequires_env: [{name: A, hidden: true}]\n", "hidden"),
            (
                "name: a\npermissions:\n  env: [KEY]\n  secrets: [{name: k, env: KEY, audience: \"https://example.org\"}]\n",
                "KEY",
            ),
            ("name: [a\n", ""),
        ] {
            let error = Manifest::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?} gives {error:?}");
        }
    }
}
