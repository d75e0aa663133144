//! Checks before compiling: that the bytes are a component, that the host speaks the versions of the contract that it was
//! built for, and that it imports only what plugins get.
//!
//! The names of imports and exports carry the versions. The SDK also writes the contract's version into a custom section,
//! which is all that a native library has.

use wasmparser::{Encoding, Parser, Payload};

use crate::contract::{self, Fit, Name};
use crate::error::LoadError;
use crate::imports;

/// The custom section that an SDK writes: a JSON object with `package` and `sdk`.
const SECTION: &str = "hermes:abi";
const PACKAGE: &str = "hermes:plugin";
/// The most characters of a version or an import that are shown.
const MOST_SHOWN: usize = 64;

/// Checks that the bytes are a component, that the host speaks the versions it was built for, and that the component
/// imports only what plugins get.
pub(crate) fn check(bytes: &[u8]) -> Result<(), LoadError> {
    let read = read(bytes).map_err(|why| LoadError::NotAComponent { why })?;
    if read.names.is_empty() {
        check_version(PACKAGE, &read.stamp.ok_or(LoadError::NoContract)?)?;
    }
    for name in &read.names {
        if let Some(name) = Name::parse(name) {
            check_version(name.package, name.version)?;
        }
    }
    match read.foreign_import {
        Some(import) => Err(LoadError::Import { import: shown(&import) }),
        None => Ok(()),
    }
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

/// A text from an untrusted file, cut and escaped for a person.
fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

/// Checks the stamp of a native library.
pub(crate) fn check_text(stamp: &[u8]) -> Result<(), LoadError> {
    check_version(PACKAGE, &stamped(stamp).ok_or(LoadError::NoContract)?)
}

pub(crate) fn check_version(package: &str, found: &str) -> Result<(), LoadError> {
    match contract::fit(package, found) {
        Fit::Served | Fit::Later | Fit::Unknown => Ok(()),
        Fit::Incompatible { served } => {
            Err(LoadError::Version { package: shown(package), found: shown(found), served: served.to_owned() })
        }
    }
}

/// What the bytes of a component say about its contract.
struct Read {
    /// The version of the contract in its stamp.
    stamp: Option<String>,
    /// The interfaces of the contract that it imports or exports.
    names: Vec<String>,
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
    let (mut stamp, mut names, mut own_exports, mut foreign_import) = (None, Vec::new(), Vec::new(), None);
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
                        names.push(name.to_owned());
                    }
                    if foreign_import.is_none() && !imports::offers(name) {
                        foreign_import = Some(name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                let exports = section.into_iter().flatten().map(|export| export.name.name);
                let ours: Vec<String> = exports.filter(|name| is_ours(name)).map(str::to_owned).collect();
                names.extend(ours.iter().cloned());
                own_exports.extend(ours);
            }
            _ => {}
        }
    }
    Ok(Read { stamp, names, exports: own_exports, foreign_import })
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

    #[test]
    fn an_unfit_file_is_refused_with_the_reason() {
        assert!(matches!(check(b""), Err(LoadError::NotAComponent { why }) if why.contains("empty")));
        assert!(matches!(check(b"#!/bin/sh\n"), Err(LoadError::NotAComponent { .. })));
        assert!(
            matches!(check(b"\0asm\x01\0\0\0"), Err(LoadError::NotAComponent { why }) if why.contains("core module"))
        );
        assert!(matches!(check(b"\0asm\x0d\0\x01\0"), Err(LoadError::NoContract)));
    }

    #[test]
    fn a_stamp_names_the_version() {
        assert_eq!(stamped(br#"{"package":"hermes:plugin@0.2.0","sdk":"x"}"#).as_deref(), Some("0.2.0"));
    }
}
