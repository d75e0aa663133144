//! Checks before compiling: that the bytes are a component, that the host speaks the versions of the contract that it was
//! built for, and that it imports only what plugins get.
//!
//! The names of imports and exports carry the versions. The SDK also writes the contract's version into a custom section,
//! which is all that a native library has.

use std::borrow::Cow;
use std::collections::HashMap;

use wasmparser::{Encoding, Parser, Payload};

use crate::contract::{self, Fit, LaterVersions, Name};
use crate::error::LoadError;
use crate::imports::offers;

/// The custom section that an SDK writes: a JSON object with `package` and `sdk`.
const SECTION: &str = "hermes:abi";
const PACKAGE: &str = "hermes:plugin";
/// The most characters of a version or an import that are shown.
const MOST_SHOWN: usize = 64;
/// The most characters of a message about a component.
const MOST_OF_LINE: usize = 400;

/// How much of the contract that a component was built for the host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All of it, or as much as semantic versioning promises.
    Promised,
    /// The part of a later version that the host knows. The plugin's manifest declares that this part is enough.
    Declared,
}

/// Checks that the bytes are a component, that the host speaks the versions it was built for, and that the component
/// imports only what plugins get.
pub(crate) fn check(bytes: &[u8], later: LaterVersions) -> Result<Coverage, LoadError> {
    let read = read(bytes).map_err(|why| LoadError::NotAComponent { why: shown_line(&why) })?;
    let mut coverage = Coverage::Promised;
    let mut check = |package: &str, version: &str| -> Result<(), LoadError> {
        if check_version(package, version, later)? == Coverage::Declared {
            coverage = Coverage::Declared;
        }
        Ok(())
    };
    if read.imports.is_empty() && read.exports.is_empty() {
        check(PACKAGE, &read.stamp.ok_or(LoadError::NoContract)?)?;
    }
    for name in read.imports.iter().chain(&read.exports).filter_map(|name| Name::parse(name)) {
        check(name.package, name.version)?;
    }
    if let Some(import) = read.foreign_import {
        return Err(LoadError::Import { import: shown(&import) });
    }
    check_twins(&read.imports)?;
    Ok(coverage)
}

/// Refuses a component that imports an interface in two versions if the host has one name for both.
fn check_twins(imports: &[String]) -> Result<(), LoadError> {
    let mut linked: HashMap<Cow<'_, str>, &str> = HashMap::new();
    for import in imports {
        let Some(name) = Name::parse(import) else { continue };
        let target = contract::adapted(&name).map_or(Cow::Borrowed(import.as_str()), Cow::Owned);
        if let Some(other) = linked.insert(target, name.version) {
            let interface = shown(&format!("{}/{}", name.package, name.interface));
            let versions = format!("{} and {}", shown(other), shown(name.version));
            return Err(LoadError::TwoVersions { interface, versions });
        }
    }
    Ok(())
}

/// The interfaces of the contract that a component exports besides `lifecycle`, by name and in the order of their names. Nothing is
/// compiled.
///
/// # Errors
///
/// When the bytes are not a component.
pub fn exported_interfaces(bytes: &[u8]) -> Result<Vec<String>, LoadError> {
    let read = read(bytes).map_err(|why| LoadError::NotAComponent { why })?;
    let interfaces = read.exports.iter().filter_map(|name| Name::parse(name)).map(|name| name.interface);
    let mut found: Vec<String> = interfaces.filter(|name| *name != "lifecycle").map(str::to_owned).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// The draft interfaces that a component imports or exports, in the order of their names: later versions of the host may
/// change or remove them. Nothing is compiled.
///
/// # Errors
///
/// When the bytes are not a component that fits this host.
pub fn draft_interfaces(bytes: &[u8], later: LaterVersions) -> Result<Vec<String>, LoadError> {
    check(bytes, later)?;
    let read = read(bytes).map_err(|why| LoadError::NotAComponent { why })?;
    let names = read.imports.iter().chain(&read.exports);
    let drafts = names.filter(|name| Name::parse(name).is_some_and(|name| contract::is_draft(name.version)));
    let mut drafts: Vec<String> = drafts.map(|name| shown(name)).collect();
    drafts.sort();
    drafts.dedup();
    Ok(drafts)
}

/// A text from an untrusted file, cut and escaped for a person.
fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

/// A message with texts from an untrusted file, as one line that a terminal only shows.
pub(crate) fn shown_line(text: &str) -> String {
    let escaped = |c: char| match c {
        '\n' => " ".to_owned(),
        '"' | '\'' | '\\' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().take(MOST_OF_LINE).map(escaped).collect()
}

/// Checks the stamp of a native library.
pub(crate) fn check_text(stamp: &[u8], later: LaterVersions) -> Result<(), LoadError> {
    check_version(PACKAGE, &stamped(stamp).ok_or(LoadError::NoContract)?, later).map(drop)
}

pub(crate) fn check_version(package: &str, found: &str, later: LaterVersions) -> Result<Coverage, LoadError> {
    match (contract::fit(package, found), later) {
        (Fit::Served | Fit::Later | Fit::Unknown, _) => Ok(Coverage::Promised),
        (Fit::Ahead { .. }, LaterVersions::Accepted) => Ok(Coverage::Declared),
        (Fit::Ahead { served }, LaterVersions::Refused) | (Fit::Incompatible { served }, _) => {
            Err(LoadError::Version { package: shown(package), found: shown(found), served: served.to_owned() })
        }
    }
}

/// What the bytes of a component say about its contract.
struct Read {
    /// The version of the contract in its stamp.
    stamp: Option<String>,
    /// The interfaces of the contract that it imports.
    imports: Vec<String>,
    /// Those that it exports.
    exports: Vec<String>,
    /// The first import that plugins do not get.
    foreign_import: Option<String>,
}

fn read(bytes: &[u8]) -> Result<Read, String> {
    if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    }
    if !bytes.starts_with(b"\0asm") {
        return Err("it begins like another kind of file".to_owned());
    }
    let (mut stamp, mut imports, mut own_exports, mut foreign_import) = (None, Vec::new(), Vec::new(), None);
    let is_ours = |name: &str| Name::parse(name).is_some();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.message().to_owned())? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err("it is a core module; build it as a component, such as for wasm32-wasip2".to_owned());
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == SECTION => stamp = stamped(section.data()),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section.into_iter().flatten() {
                    let name = import.name.name;
                    if is_ours(name) {
                        imports.push(name.to_owned());
                    }
                    if foreign_import.is_none() && !offers(name) {
                        foreign_import = Some(name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                let exports = section.into_iter().flatten().map(|export| export.name.name);
                own_exports.extend(exports.filter(|name| is_ours(name)).map(str::to_owned));
            }
            _ => {}
        }
    }
    Ok(Read { stamp, imports, exports: own_exports, foreign_import })
}

fn stamped(data: &[u8]) -> Option<String> {
    // Linkers may concatenate several stamps: the first one counts.
    let stamp = serde_json::Deserializer::from_slice(data).into_iter::<serde_json::Value>().next()?.ok()?;
    Some(stamp.get("package")?.as_str()?.strip_prefix(PACKAGE)?.strip_prefix('@')?.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> Result<Coverage, LoadError> {
        check(bytes, LaterVersions::Refused)
    }

    #[test]
    fn an_unfit_file_is_refused_with_the_reason() {
        assert!(matches!(refused(b""), Err(LoadError::NotAComponent { why }) if why.contains("empty")));
        assert!(matches!(refused(b"#!/bin/sh\n"), Err(LoadError::NotAComponent { .. })));
        assert!(
            matches!(refused(b"\0asm\x01\0\0\0"), Err(LoadError::NotAComponent { why }) if why.contains("core module"))
        );
        assert!(matches!(refused(b"\0asm\x0d\0\x01\0"), Err(LoadError::NoContract)));
    }

    #[test]
    fn a_stamp_names_the_version() {
        assert_eq!(stamped(br#"{"package":"hermes:plugin@0.2.0","sdk":"x"}"#).as_deref(), Some("0.2.0"));
    }
}
