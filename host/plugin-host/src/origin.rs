//! The origin of a plugin: where it comes from, whatever its version. Rights, configuration and data belong to an origin.
//!
//! A name says nothing about an author. So a plugin of the same name from another origin starts with nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::lock::Pin;

/// Hosts of repositories where upper and lower case do not matter and an address belongs to one owner.
const FORGES: &[&str] = &["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"];

/// The source of a plugin without version or revision, and the publisher's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginOrigin {
    /// The kind and address of the source in normal form: a path, or an address that begins with `git+`, `oci://` or `https://`.
    pub source: String,
    /// The publisher's public key; none if the plugin is not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

impl PluginOrigin {
    /// The origin of a source, written as in `plugins.lock`.
    pub fn of(source: &str, signer: Option<&str>) -> Self {
        Self { source: normal_form(source), signer: signer.map(str::to_owned) }
    }

    /// The origin of the plugins that are part of Hermes.
    pub fn bundled() -> Self {
        Self { source: "bundled".to_owned(), signer: None }
    }

    /// Whether both have the same source, whatever their keys.
    pub fn has_same_source(&self, other: &Self) -> bool {
        self.source == other.source
    }

    /// Whether a plugin of `newer` inherits from this origin: it has the same source and, if this one is signed, the same
    /// key. An author may begin to sign.
    pub fn is_continued_by(&self, newer: &Self) -> bool {
        self.has_same_source(newer) && (self.signer.is_none() || self.signer == newer.signer)
    }

    /// A short name of this origin for folders.
    pub fn mark(&self) -> String {
        let text = format!("{}\n{}", self.source, self.signer.as_deref().unwrap_or_default());
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }
}

impl fmt::Display for PluginOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.signer.iter().try_for_each(|key| write!(f, " (signed by key {key})"))
    }
}

impl Pin {
    /// The origin of these bytes.
    pub fn origin(&self) -> PluginOrigin {
        PluginOrigin::of(&self.source, self.signer.as_deref())
    }
}

fn normal_form(source: &str) -> String {
    if let Some(image) = source.strip_prefix("oci://") {
        return format!("oci://{}", without_tag(image));
    }
    if let Some(repository) = source.strip_prefix("git+") {
        let (address, _, folder) = divide_address(repository);
        let folder = folder.map(|folder| format!("#{}", folder.trim_end_matches('/'))).unwrap_or_default();
        return format!("git+{}{folder}", repository_address(&address));
    }
    match source.split_once("://") {
        Some(("https" | "http", _)) => file_address(source),
        _ => source.to_owned(),
    }
}

/// An image without its tag or digest. The registry can have a port, so the tag follows the last slash.
fn without_tag(image: &str) -> String {
    let image = image.split('@').next().unwrap_or(image);
    let name = image.rfind('/').map_or(0, |at| at + 1);
    let end = image[name..].find(':').map_or(image.len(), |at| name + at);
    let (registry, repository) = image[..end].split_once('/').unwrap_or((&image[..end], ""));
    format!("{}/{repository}", registry.to_ascii_lowercase())
}

fn repository_address(address: &str) -> String {
    let trimmed = address.trim_end_matches('/');
    let (scheme, rest) = match trimmed.split_once("://") {
        Some((scheme, rest)) => (scheme, rest.to_owned()),
        // `git@host:owner/repo` is short for ssh.
        None => ("ssh", trimmed.replacen(':', "/", 1)),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((&rest, ""));
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = host.to_ascii_lowercase();
    match scheme {
        "https" | "ssh" if FORGES.contains(&host.as_str()) && is_plain(path) => {
            let path = path.to_ascii_lowercase();
            format!("https://{host}/{}", path.strip_suffix(".git").unwrap_or(&path))
        }
        // On other servers each spelling may be another repository, and each user may see other files.
        scheme => format!("{scheme}://{}{host}/{path}", user.map(|user| format!("{user}@")).unwrap_or_default()),
    }
}

/// Whether a path is what it seems to be: a server, or the program that asks it, takes these parts away.
fn is_plain(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    !path.contains(['\\', '?']) && !path.contains("%2f") && !path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// The address of a file. Release files of one repository have one origin, because their owner is the repository's.
fn file_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let Some((host, path)) = rest.split_once('/') else { return address.to_owned() };
    let parts: Vec<&str> = path.split('/').collect();
    if FORGES.contains(&host) && is_plain(path.split('?').next().unwrap_or(path)) {
        let of = |parts: &[&str]| format!("{scheme}://{host}/{}", parts.join("/").to_ascii_lowercase());
        match parts.as_slice() {
            [owner, name, "releases", "download", _, _, ..]
            | [owner, name, "releases", "latest", "download", _, ..] => {
                return of(&[owner, name, "releases"]);
            }
            _ => {}
        }
        if let Some(at) = parts.windows(2).position(|pair| pair == ["-", "releases"])
            && at >= 2
        {
            return of(&parts[..at + 2]);
        }
    }
    address.to_owned()
}

/// Splits an address of a repository into the address itself, the reference after `@` in its path, and the folder after `#`.
pub fn divide_address(text: &str) -> (String, Option<String>, Option<String>) {
    let (before, folder) = match text.split_once('#') {
        Some((before, folder)) => (before, Some(folder.to_owned())),
        None => (text, None),
    };
    // An `@` before the path separates the user's name. The path begins at the first `/`, in the form of ssh at the `:`.
    let path = match before.find("://") {
        Some(at) => before[at + 3..].find('/').map(|path| at + 3 + path),
        None => before.find(['/', ':']),
    };
    let path = path.unwrap_or(before.len());
    match before[path..].find('@') {
        Some(at) => (before[..path + at].to_owned(), Some(before[path + at + 1..].to_owned()), folder),
        None => (before.to_owned(), None, folder),
    }
}

/// The origins of the installed plugins, as this process saw them first.
///
/// A process keeps the configuration and the approvals that it read when it began. They were written for these plugins, so a
/// plugin that replaces one of them from another source waits until Hermes starts again.
#[derive(Debug, Default)]
pub(crate) struct FirstSeen(Mutex<HashMap<String, PluginOrigin>>);

impl FirstSeen {
    /// Whether a plugin has the source that this process saw first under its name.
    pub(crate) fn admits(&self, name: &str, pin: &Pin) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = pin.origin();
        seen.entry(name.to_owned()).or_insert_with(|| now.clone()).has_same_source(&now)
    }
}

#[cfg(test)]
mod tests;
