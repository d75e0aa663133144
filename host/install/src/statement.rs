//! The statement that a publisher signs: name, version and the digest of every file of a plugin.
//!
//! A statement is never interpreted to accept a plugin. Hermes writes the statement of the files in front of it, and compares
//! the two texts byte by byte. It reads a statement only to name the files that differ.

use std::collections::BTreeMap;

use hermes_plugin_host::{Digest, Manifest, digest};

use crate::error::Reason;

/// The file with the statement, beside `plugin.yaml`.
pub(crate) const STATEMENT: &str = "plugin.statement";
/// The file with its signature.
pub(crate) const STATEMENT_SIGNATURE: &str = "plugin.statement.minisig";
/// Most bytes of a statement: a line for each file that a plugin may have.
pub(crate) const MOST_BYTES: u64 = 2 << 20;
/// The first line. Another format has another number.
const FORM: &str = "hermes plugin statement 1";
/// How many differences an error names.
const MOST_NAMED: usize = 3;

/// A file of a plugin: its name below the folder, and its content.
pub(crate) type File = (String, Vec<u8>);

/// Whether a statement covers a file: everything but the statement and its signature.
pub(crate) fn covers(name: &str) -> bool {
    name != STATEMENT && name != STATEMENT_SIGNATURE
}

/// The statement for a plugin of these files.
///
/// # Errors
///
/// If a name of a file cannot be written on one line.
pub(crate) fn of(manifest: &Manifest, files: &[File]) -> Result<String, Reason> {
    let mut covered: Vec<&File> = files.iter().filter(|(name, _)| covers(name)).collect();
    covered.sort();
    if let Some((name, _)) = covered.iter().find(|(name, _)| name.contains(char::is_control)) {
        let why = format!("the name of the file {name:?} contains a control character");
        return Err(Reason::new(why, "rename the file"));
    }
    let whole = digest::of_files(covered.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    let mut text = format!("{FORM}\nname {}\nversion {}\ndigest {whole}\n", manifest.name, manifest.version);
    for (name, bytes) in covered {
        text.push_str(&format!("file {} {name}\n", Digest::of(bytes)));
    }
    Ok(text)
}

/// Why a signed statement does not describe the plugin with the statement `found`. None if it does.
pub(crate) fn mismatch(signed: &[u8], found: &str) -> Option<Reason> {
    if signed == found.as_bytes() {
        return None;
    }
    let signed = String::from_utf8_lossy(signed);
    let form = signed.lines().next().unwrap_or_default();
    if form != FORM && form.starts_with("hermes plugin statement ") {
        let why = format!("{STATEMENT} has a format that this version of Hermes does not know");
        return Some(Reason::new(why, "update Hermes"));
    }
    let mut differences = Vec::new();
    for field in ["name", "version"] {
        let (signed, found) = (value(&signed, field), value(found, field));
        if signed != found {
            differences.push(format!("it is for {field} `{}` instead of `{}`", shown(signed), shown(found)));
        }
    }
    let (before, now) = (files(&signed), files(found));
    for (name, digest) in &before {
        match now.get(name) {
            None => differences.push(format!("{} is missing", shown(name))),
            Some(other) if other != digest => differences.push(format!("{} has other content", shown(name))),
            Some(_) => {}
        }
    }
    let added = now.keys().filter(|name| !before.contains_key(*name));
    differences.extend(added.map(|name| format!("{} is not signed", shown(name))));
    let more = differences.len().saturating_sub(MOST_NAMED);
    differences.truncate(MOST_NAMED);
    if differences.is_empty() {
        differences.push(format!("{STATEMENT} is not written as Hermes writes it"));
    }
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    let why = format!("the signed statement does not describe this plugin: {}", differences.join(", "));
    let fix = "do not trust this copy; if you changed it yourself, sign it again with `hermes plugins sign`";
    Some(Reason::new(why, fix))
}

fn value<'a>(statement: &'a str, field: &str) -> &'a str {
    let value = statement.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' '));
    value.unwrap_or_default()
}

/// The digests of a statement by file.
fn files(statement: &str) -> BTreeMap<&str, &str> {
    let lines = statement.lines().filter_map(|line| line.strip_prefix("file ")?.split_once(' '));
    lines.map(|(digest, name)| (name, digest)).collect()
}

/// A part of a foreign statement for an error.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}
