//! Parses a `plugin.yaml` into a [`Manifest`], and reports errors with their position. The text is untrusted, so the size to
//! which aliases may expand it is limited before parsing.

use std::collections::BTreeMap;
use std::fmt;

use hermes_runtime::LimitSet;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Spanned, UserMessageFormatter};

use super::schema::{FIELDS, KINDS, validator};
use super::{Manifest, ManifestError, RequiredVariable, Wrong};
use crate::permission::Permissions;
use crate::yaml;

/// The most bytes of a manifest.
pub(super) const MOST_BYTES: usize = 64 << 10;
const MOST_DESCRIPTION: usize = 500;
const MOST_WORDS: usize = 300;
/// Most characters of a version, which is a column of listings.
const MOST_VERSION: usize = 64;
/// Most targets of native libraries: there are not many more in use.
const MOST_NATIVE: usize = 16;

#[derive(Deserialize)]
struct Raw {
    name: Spanned<String>,
    #[serde(default)]
    version: Option<Spanned<String>>,
    #[serde(default)]
    api: Option<Spanned<String>>,
    #[serde(default)]
    description: Option<Spanned<String>>,
    #[serde(default)]
    author: Option<Spanned<String>>,
    #[serde(default)]
    license: Option<Spanned<String>>,
    #[serde(default)]
    licence: Option<Spanned<String>>,
    #[serde(default)]
    repository: Option<Spanned<String>>,
    #[serde(default)]
    component: Option<Spanned<String>>,
    #[serde(default)]
    native: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    permissions: Option<Permissions>,
    #[serde(default)]
    config: Option<Spanned<serde_json::Value>>,
    #[serde(default)]
    requires_env: Vec<RequiredVariable>,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<serde_json::Value>>,
    #[serde(default)]
    provides: Vec<Spanned<String>>,
    #[serde(default)]
    publisher_key: Option<Spanned<String>>,
}

/// The top-level keys, each with its line.
struct Names(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top;

        impl<'de> Visitor<'de> for Top {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("fields such as `name: mine`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = entries.next_entry::<Spanned<String>, IgnoredAny>()? {
                    names.push((name.value, name.referenced.line()));
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_map(Top)
    }
}

/// Limits that a manifest never needs to exceed.
fn options() -> serde_saphyr::Options {
    yaml::Limits { nodes: 10_000, depth: 24, aliases: 256, bytes: MOST_BYTES }.options()
}

/// Whether the names of fields are checked and the schema of the plugin's configuration is compiled, which takes longer than all the
/// rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigSchema {
    Checked,
    Vouched,
}

/// The fields that no manifest has, with their lines.
fn unknown_names(text: &str) -> Result<Vec<String>, ManifestError> {
    let Names(names) = serde_saphyr::from_str_with_options(text, options()).map_err(|error| syntax(&error))?;
    let known = |name: &str| FIELDS.iter().any(|field| field.name == name);
    let unknown = names.into_iter().filter(|(name, _)| !known(name));
    Ok(unknown.map(|(name, line)| format!("`{name}` (line {line})")).collect())
}

pub(super) fn parse(text: &str, schema: ConfigSchema) -> Result<Manifest, ManifestError> {
    if text.len() > MOST_BYTES {
        return Err(ManifestError { line: 0, column: 0, why: Wrong::Size });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let raw: Raw = serde_saphyr::from_str_with_options(text, options()).map_err(|error| syntax(&error))?;
    let unknown = match schema {
        ConfigSchema::Checked => unknown_names(text)?,
        ConfigSchema::Vouched => Vec::new(),
    };

    if !is_plugin_name(&raw.name.value) {
        return Err(at(&raw.name, Wrong::Name(brief(&raw.name.value))));
    }
    let version = match &raw.version {
        None => semver::Version::new(0, 0, 0),
        Some(text) if text.value.len() > MOST_VERSION => return Err(at(text, Wrong::LongVersion(MOST_VERSION))),
        Some(text) => text.value.parse().map_err(|_| at(text, Wrong::Version(brief(&text.value))))?,
    };
    if let Some(file) = raw.native.values().nth(MOST_NATIVE) {
        return Err(at(file, Wrong::ManyNative(MOST_NATIVE)));
    }
    for file in raw.component.iter().chain(raw.native.values()) {
        if !is_file_name(&file.value) {
            return Err(at(file, Wrong::File(brief(&file.value))));
        }
    }
    if let (Some(_), Some(second)) = (&raw.license, &raw.licence) {
        return Err(at(second, Wrong::Licence));
    }
    if schema == ConfigSchema::Checked
        && let Some(config) = &raw.config
        && let Err(why) = validator(&config.value)
    {
        return Err(at(config, Wrong::Config(why)));
    }
    let mut limits = LimitSet::default();
    for (name, value) in &raw.limits {
        limits.set(name, &value.value).map_err(|why| at(value, Wrong::Limit(Box::new(why))))?;
    }
    if let Some(claim) = raw.provides.iter().find(|claim| !KINDS.contains(&claim.value.as_str())) {
        return Err(at(claim, Wrong::Kind(brief(&claim.value), KINDS.join(", "))));
    }
    let permissions = raw.permissions.unwrap_or_default();
    // Only a grant has them: a manifest that says where an address leads would answer the user's question.
    if permissions.addresses().any(|address| address.template().is_some() && address.site().is_some()) {
        return Err(ManifestError { line: 0, column: 0, why: Wrong::Address });
    }
    let is_shown = |name| permissions.env.contains(name) || permissions.process_env.contains(name);
    if let Some(secret) = permissions.secrets.iter().find(|secret| is_shown(&secret.env)) {
        return Err(ManifestError { line: 0, column: 0, why: Wrong::Secret(secret.env.clone()) });
    }
    Ok(Manifest {
        name: raw.name.value,
        version,
        api: range(raw.api.as_ref())?,
        description: words("description", raw.description, MOST_DESCRIPTION)?,
        author: words("author", raw.author, MOST_WORDS)?,
        license: words("license", raw.license.or(raw.licence), MOST_WORDS)?,
        repository: words("repository", raw.repository, MOST_WORDS)?,
        component: raw.component.map(|file| file.value),
        native: raw.native.into_iter().map(|(target, file)| (target, file.value)).collect(),
        permissions,
        config: raw.config.map(|config| config.value),
        requires_env: raw.requires_env,
        limits,
        provides: raw.provides.into_iter().map(|claim| claim.value).collect(),
        publisher_key: raw.publisher_key.map(|key| key.value.trim().to_owned()),
        unknown,
    })
}

/// A value of the manifest for an error message, which must stay readable.
fn brief(value: &str) -> String {
    const MOST: usize = 200;
    match value.char_indices().nth(MOST) {
        None => value.to_owned(),
        Some((at, _)) => format!("{}…", &value[..at]),
    }
}

fn range(api: Option<&Spanned<String>>) -> Result<Option<semver::VersionReq>, ManifestError> {
    let Some(text) = api else { return Ok(None) };
    let range: semver::VersionReq = text.value.parse().map_err(|_| at(text, Wrong::Range(brief(&text.value))))?;
    let served = hermes_runtime::served_contracts().iter();
    let served: Vec<semver::Version> = served.map(|version| version.parse().expect("it is a version")).collect();
    check_range(&range, &served, &text.value).map_err(|why| at(text, why))?;
    Ok(Some(range))
}

/// Checks that a range includes one of the versions that the host serves, the newest one first.
pub(super) fn check_range(range: &semver::VersionReq, served: &[semver::Version], text: &str) -> Result<(), Wrong> {
    if !served.iter().any(|version| range.matches(version)) {
        let is_later = served.first().is_some_and(|newest| begins_above(range, newest));
        let same = |version: &&semver::Version| {
            let released = semver::Version::new(version.major, version.minor, version.patch);
            !version.pre.is_empty() && range.matches(&released)
        };
        if let Some(candidate) = served.iter().find(same) {
            return Err(Wrong::Candidate { requested: brief(text), candidate: candidate.clone() });
        }
        return Err(Wrong::Contract { requested: brief(text), is_later });
    }
    Ok(())
}

/// Whether a range contains only versions above this one, as far as its lower bounds say.
fn begins_above(range: &semver::VersionReq, version: &semver::Version) -> bool {
    let bound = |bound: &semver::Comparator| semver::Version {
        pre: bound.pre.clone(),
        ..semver::Version::new(bound.major, bound.minor.unwrap_or(0), bound.patch.unwrap_or(0))
    };
    let is_upper = |bound: &semver::Comparator| matches!(bound.op, semver::Op::Less | semver::Op::LessEq);
    range.comparators.iter().any(|comparator| !is_upper(comparator) && bound(comparator) > *version)
}

fn words(field: &'static str, text: Option<Spanned<String>>, most: usize) -> Result<String, ManifestError> {
    let Some(text) = text else { return Ok(String::new()) };
    if text.value.chars().count() > most {
        return Err(at(&text, Wrong::Long { field, most }));
    }
    Ok(text.value)
}

fn at<T>(spanned: &Spanned<T>, why: Wrong) -> ManifestError {
    ManifestError { line: spanned.referenced.line(), column: spanned.referenced.column(), why }
}

fn syntax(error: &serde_saphyr::Error) -> ManifestError {
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    let text = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    // The position is already at the front of the message.
    let text = text.split(" at line ").next().unwrap_or(&text);
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = match why.as_str() {
        "expected string scalar" => "the value must be a text".to_owned(),
        "expected sequence start" => "the value must be a list, such as [NAME]".to_owned(),
        _ => why,
    };
    ManifestError { line, column, why: Wrong::Syntax(why) }
}

/// Whether a text can be the name of a plugin.
pub fn is_plugin_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&name.len()) && name.starts_with(plain) && name.chars().all(|c| plain(c) || c == '-' || c == '_')
}

/// Names of files that have another meaning in a plugin's folder.
const RESERVED: [&str; 4] = ["plugin.yaml", "plugin.statement", "minisign.pub", "skills"];

fn is_file_name(file: &str) -> bool {
    !file.is_empty()
        && file.len() <= 255
        && !file.starts_with('.')
        && !RESERVED.iter().any(|reserved| file.eq_ignore_ascii_case(reserved))
        && !file.to_ascii_lowercase().ends_with(".minisig")
        && !file.contains(['/', '\\', ':'])
        && !file.contains(char::is_control)
}
