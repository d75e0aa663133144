//! `plugin.yaml`: what a plugin calls itself and what it asks for.
//!
//! Here is what a manifest says, as data. How it is read is in `reading`, and what its fields are called, with the
//! JSON Schema that editors use, in `schema`.

mod reading;
mod schema;

use std::collections::BTreeMap;

use hermes_runtime::LimitSet;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::permission::{EnvironmentName, Permissions};

pub(crate) use reading::is_name;
pub use schema::validator as json_schema;

/// A manifest, read and checked.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name by which users select it: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Its own version.
    pub version: semver::Version,
    /// The versions of `hermes:plugin` that it works with; none where it does not say.
    pub api: Option<semver::VersionReq>,
    /// One line for listings.
    pub description: String,
    /// Who wrote it; may be empty.
    pub author: String,
    /// Under which licence; may be empty.
    pub license: String,
    /// Where its source is; may be empty.
    pub repository: String,
    /// File name of the component, beside the manifest; none when it is not named.
    pub component: Option<String>,
    /// File names of native libraries by target.
    pub native: BTreeMap<String, String>,
    /// What it asks for.
    pub permissions: Permissions,
    /// A JSON Schema of its section `plugins.entries.<name>`.
    pub config: Option<serde_json::Value>,
    /// Variables that it cannot do without.
    pub requires_env: Vec<RequiredVariable>,
    /// Limits that it needs raised.
    pub limits: LimitSet,
    /// What it claims to export; what it is, is read off its exports.
    pub provides: Vec<String>,
    /// The publisher's minisign key, of which the component is signed.
    pub publisher_key: Option<String>,
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

/// Why a manifest is no good, and where. The file is named by whoever read it.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", place(*line, *column))]
pub struct ManifestError {
    /// From 1; 0 where there is no place to name.
    pub line: u64,
    /// From 1.
    pub column: u64,
    /// What is wrong there.
    pub why: Wrong,
}

fn place(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}, column {column}: ") }
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// It is far larger than any manifest.
    #[error("it is larger than {} KiB", reading::MOST_BYTES >> 10)]
    Size,
    /// It is no YAML, or a field has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// The name is missing its form.
    #[error("the name `{0}` is not 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter or digit")]
    Name(String),
    /// The version is none.
    #[error("the version `{0}` is not a semantic version")]
    Version(String),
    /// The range of the contract is none.
    #[error("`api` is `{0}`, which is not a range of versions")]
    Range(String),
    /// The contract that it wants is not the host's.
    #[error("it works with hermes:plugin {asked}, and this version of Hermes speaks {}", hermes_runtime::CONTRACT)]
    Contract {
        /// The range in the manifest.
        asked: String,
    },
    /// The component is not a plain file name.
    #[error("`{0}` is not the name of a file beside plugin.yaml")]
    File(String),
    /// A variable would be both seen by the plugin and kept from it.
    #[error("the variable `{0}` is listed in `env` and in `secrets`")]
    Secret(EnvironmentName),
    /// `config` cannot be used.
    #[error("`config` is no JSON Schema: {0}")]
    Config(String),
    /// A limit that there is not, or a value that it cannot have.
    #[error("{0}")]
    Limit(Box<hermes_runtime::LimitError>),
    /// It claims to be what there is not.
    #[error("`provides` names `{0}`, which is not a kind; the kinds are: {1}")]
    Kind(String, String),
    /// Two names for one field.
    #[error("`license` and `licence` are one field")]
    Licence,
    /// A text that no listing could show.
    #[error("`{field}` is longer than {most} characters")]
    Long {
        /// The field.
        field: &'static str,
        /// What it may have.
        most: usize,
    },
}

impl Wrong {
    /// What to write instead, where the mistake tells.
    pub fn fix(&self) -> Option<&'static str> {
        Some(match self {
            Self::Version(_) => "write one such as 1.2.0",
            Self::Range(_) => "write one such as \"^0.1\"",
            Self::Contract { .. } => "update Hermes or the plugin, whichever is older",
            Self::File(_) => "leave out folders",
            Self::Secret(_) | Self::Licence => "leave out one of them",
            Self::Long { .. } => "shorten it",
            Self::Kind(..) => "name one of them",
            Self::Size | Self::Syntax(_) | Self::Name(_) | Self::Config(_) | Self::Limit(_) => return None,
        })
    }
}

impl Manifest {
    /// Reads the text of a `plugin.yaml`.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        reading::parse(text)
    }

    /// The JSON Schema of `plugin.yaml`, for editors.
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// The native library for this machine.
    pub fn library(&self) -> Option<&str> {
        self.native.get(hermes_runtime::TARGET).map(String::as_str)
    }

    /// What it claims to be and is not, by its exports.
    pub fn claims_beyond(&self, exports: &[&str]) -> Vec<String> {
        self.provides.iter().filter(|claim| !exports.contains(&claim.as_str())).cloned().collect()
    }

    /// Holds the user's section for it to its schema: a line for everything that does not fit.
    pub fn misfits(&self, entry: &serde_json::Value) -> Vec<String> {
        let Some(schema) = &self.config else { return Vec::new() };
        match schema::validator(schema) {
            Ok(validator) => {
                let line = |error: jsonschema::ValidationError<'_>| {
                    let place = error.instance_path().to_string().replace('/', ".");
                    // The value itself is not quoted: it may be a key.
                    let why = error.masked().to_string();
                    format!("plugins.entries.{}{place}: {why}", self.name)
                };
                validator.iter_errors(entry).take(8).map(line).collect()
            }
            Err(why) => vec![format!("`config` in its plugin.yaml is no JSON Schema: {why}")],
        }
    }
}

#[cfg(test)]
mod tests;
