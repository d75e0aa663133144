//! `plugin.yaml`: a plugin's description of itself, and what it requests.
//!
//! This module has the manifest as data. `reading` parses it. `schema` has the table of its fields and their JSON Schema.

mod reading;
mod schema;

use std::collections::BTreeMap;

use hermes_runtime::{LaterVersions, LimitSet};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::permission::{EnvironmentName, Permissions};

pub use reading::is_plugin_name;
pub use schema::validator as json_schema;

/// A manifest, read and checked.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name by which users select it: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// The plugin's version.
    pub version: semver::Version,
    /// The supported versions of the contract, if the manifest names them. They include one that the host serves.
    pub api: Option<semver::VersionReq>,
    /// One line for listings.
    pub description: String,
    /// The author; may be empty.
    pub author: String,
    /// The licence; may be empty.
    pub license: String,
    /// The source repository; may be empty.
    pub repository: String,
    /// File name of the component beside the manifest, if the manifest names it.
    pub component: Option<String>,
    /// File names of native libraries by target.
    pub native: BTreeMap<String, String>,
    /// The requested permissions.
    pub permissions: Permissions,
    /// A JSON Schema for its section `plugins.entries.<name>`.
    pub config: Option<serde_json::Value>,
    /// The required environment variables.
    pub requires_env: Vec<RequiredVariable>,
    /// The limits that it requests to raise.
    pub limits: LimitSet,
    /// The kinds that it claims to export. The exports themselves determine its kinds.
    pub provides: Vec<String>,
    /// The publisher's minisign key for the signature of the plugin.
    pub publisher_key: Option<String>,
    /// Unknown fields, each with its line.
    pub unknown: Vec<String>,
}

/// An environment variable that a plugin requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequiredVariable {
    /// Its name.
    pub name: EnvironmentName,
    /// The question to the user; may be empty.
    pub prompt: String,
    /// Where the user can get a value.
    pub url: Option<String>,
    /// Whether the value is hidden while it is typed, and never shown.
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

/// Why a manifest is invalid, and where. The caller knows the file.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", position(*line, *column))]
pub struct ManifestError {
    /// The line, from 1; 0 without a position.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The problem there.
    pub why: Wrong,
}

fn position(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}, column {column}: ") }
}

/// A problem in a manifest.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// The file is too large for a manifest.
    #[error("it is larger than {} KiB", reading::MOST_BYTES >> 10)]
    Size,
    /// The text is not YAML, or a field has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// The name does not have the required form.
    #[error("the name `{0}` is not 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter or digit")]
    Name(String),
    /// The version is not a semantic version.
    #[error("the version `{0}` is not a semantic version")]
    Version(String),
    /// The version is too long for listings.
    #[error("the version is longer than {0} characters")]
    LongVersion(usize),
    /// There are too many native libraries.
    #[error("`native` names libraries for more than {0} targets")]
    ManyNative(usize),
    /// `api` is not a range of versions.
    #[error("`api` is `{0}`, which is not a range of versions")]
    Range(String),
    /// The host does not implement the contract that the plugin needs.
    #[error(
        "it needs version {requested} of the plugin contract, but this version of Hermes has version {}",
        hermes_runtime::CONTRACT
    )]
    Contract {
        /// The range in the manifest.
        requested: String,
        /// Whether the range begins above the host's version.
        is_later: bool,
    },
    /// The range has a release that this host does not have, but not the candidate for it that the host has.
    #[error(
        "`api` is `{requested}`, which does not include {candidate}, the version of this Hermes: a range includes a pre-release only if it names one"
    )]
    Candidate {
        /// The range in the manifest.
        requested: String,
        /// The version that the host has.
        candidate: semver::Version,
    },
    /// The component is not a plain file name.
    #[error("`{0}` is not the name of a file beside plugin.yaml")]
    File(String),
    /// A variable is both readable by the plugin and a secret.
    #[error("the variable `{0}` is listed in `env` or `process_env` and in `secrets`")]
    Secret(EnvironmentName),
    /// An address is not a text.
    #[error("an address in `permissions` is not a text such as ${{config.base_url}}/v1/")]
    Address,
    /// `config` cannot be used.
    #[error("`config` is not a JSON Schema: {0}")]
    Config(String),
    /// An unknown limit, or a value outside of its range.
    #[error("{0}")]
    Limit(Box<hermes_runtime::LimitError>),
    /// `provides` names an unknown kind.
    #[error("`provides` names `{0}`, which is not a kind; the kinds are: {1}")]
    Kind(String, String),
    /// Both spellings of one field.
    #[error("`license` and `licence` are the same field")]
    Licence,
    /// A text is too long for listings.
    #[error("`{field}` is longer than {most} characters")]
    Long {
        /// The field.
        field: &'static str,
        /// The most characters.
        most: usize,
    },
}

impl Wrong {
    /// What to write instead, if it follows from the problem.
    pub fn fix(&self) -> Option<&'static str> {
        Some(match self {
            Self::Version(_) => "write a version such as 1.2.0",
            Self::Range(_) => "write one such as \"^1.0.0\"",
            Self::Candidate { .. } => {
                "build the plugin against the candidate and write its version, such as \"^1.1.0-rc.1\""
            }
            Self::Contract { is_later: true, .. } => "update Hermes, or install an older release of the plugin",
            Self::Contract { is_later: false, .. } => "update the plugin",
            Self::File(_) => "write a file name without folders",
            Self::Secret(_) | Self::Licence => "remove one of the two",
            Self::Long { .. } | Self::LongVersion(_) => "shorten it",
            Self::ManyNative(_) => "remove those that nobody uses",
            Self::Kind(..) => "correct `provides`",
            Self::Address => "write the address as a text",
            Self::Size | Self::Syntax(_) | Self::Name(_) | Self::Config(_) | Self::Limit(_) => return None,
        })
    }
}

impl Manifest {
    /// Reads the text of a `plugin.yaml`.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        reading::parse(text, reading::ConfigSchema::Checked)
    }

    /// Reads the manifest of a bundled plugin. A test of the program checks the schemas of their configurations, so a
    /// start does not.
    pub(crate) fn parse_bundled(text: &str) -> Result<Self, ManifestError> {
        reading::parse(text, reading::ConfigSchema::Vouched)
    }

    /// The JSON Schema of `plugin.yaml`, for editors.
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// What to do if its code was built for a later version of the contract than this host's. A manifest with `api` was
    /// accepted, so it lists a version that this host serves.
    pub fn later_versions(&self) -> LaterVersions {
        if self.api.is_some() { LaterVersions::Accepted } else { LaterVersions::Refused }
    }

    /// The native library for this machine.
    pub fn library(&self) -> Option<&str> {
        self.native.get(hermes_runtime::TARGET).map(String::as_str)
    }

    /// The kinds that it claims and does not export.
    pub fn claims_beyond(&self, exports: &[&str]) -> Vec<String> {
        self.provides.iter().filter(|claim| !exports.contains(&claim.as_str())).cloned().collect()
    }

    /// Checks the user's section for the plugin against its schema. Returns a line for each mismatch.
    ///
    /// A key that the schema does not define is one if the plugin takes an address from its section: with `base_url` in place of
    /// `baseUrl`, the plugin would send its requests and a key to the default address.
    pub fn misfits(&self, entry: &serde_json::Value) -> Vec<String> {
        let mut misfits = self.mismatches(entry);
        if misfits.is_empty() && self.permissions.addresses().any(|address| address.template().is_some()) {
            let because = "and the plugin takes an address from this section, so it does not start";
            misfits = self.unknown_keys(entry).iter().map(|key| format!("{key}, {because}")).collect();
        }
        misfits
    }

    /// A line for each key of the user's section that the schema does not define, with the nearest one that it does.
    pub fn unknown_keys(&self, entry: &serde_json::Value) -> Vec<String> {
        let Some(schema) = &self.config else { return Vec::new() };
        let mut lines = Vec::new();
        schema::undefined(schema, entry, &format!("plugins.entries.{}", self.name), &mut lines);
        lines
    }

    fn mismatches(&self, entry: &serde_json::Value) -> Vec<String> {
        let Some(schema) = &self.config else { return Vec::new() };
        match schema::validator(schema) {
            Ok(validator) => {
                let line = |error: ValidationError<'_>| {
                    let place = error.instance_path().to_string().replace('/', ".");
                    // Never quote the value: it may be an API key.
                    let why = match error.kind() {
                        ValidationErrorKind::Enum { options } => one_of(options),
                        _ => error.masked().to_string(),
                    };
                    format!("plugins.entries.{}{place}: {why}", self.name)
                };
                validator.iter_errors(entry).take(8).map(line).collect()
            }
            Err(why) => vec![format!("`config` in its plugin.yaml is not a JSON Schema: {why}")],
        }
    }
}

/// Names the values that a schema admits.
fn one_of(options: &serde_json::Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(ToString::to_string).collect();
    match options.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("the value is not one of {} or {last}", others.join(", "))
        }
        _ => format!("the value is not {}", options.concat()),
    }
}

#[cfg(test)]
mod attack;
#[cfg(test)]
mod tests;
