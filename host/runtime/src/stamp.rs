//! The version of the contract that a component was built for.
//!
//! The SDK writes it into a custom section; otherwise the names of imports and exports carry it. It is read before
//! anything is compiled, so that an outdated plugin gets a clear error instead of a type mismatch.

use wasmparser::{Encoding, Parser, Payload};

use crate::error::LoadError;
use crate::imports;

/// The version that this host supports.
pub const OFFERED: &str = "0.1.0";
/// The custom section that an SDK writes: a JSON object with `package` and `sdk`.
const SECTION: &str = "hermes:abi";
const PACKAGE: &str = "hermes:plugin";
/// The most characters of a version or an import that are shown.
const MOST_SHOWN: usize = 64;

/// Checks that the bytes are a component, that the host speaks the version it was built for, and that the component
/// imports only what plugins get.
pub(crate) fn check(bytes: &[u8]) -> Result<(), LoadError> {
    let read = read(bytes).map_err(|why| LoadError::NotAComponent { why })?;
    check_version(read.version)?;
    match read.foreign_import {
        Some(import) => Err(LoadError::Import { import: shown(&import) }),
        None => Ok(()),
    }
}

/// A text from an untrusted file, cut and escaped for a person.
fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

/// Checks the stamp of a native library.
pub(crate) fn check_text(stamp: &[u8]) -> Result<(), LoadError> {
    check_version(stamped(stamp))
}

fn check_version(found: Option<String>) -> Result<(), LoadError> {
    let found = found.ok_or(LoadError::NoContract)?;
    if compatible(&found) {
        return Ok(());
    }
    Err(LoadError::Version { found: shown(&found), offered: OFFERED.to_owned() })
}

/// Before 1.0, a minor version may break compatibility.
fn compatible(found: &str) -> bool {
    let minor = |version: &str| version.splitn(3, '.').take(2).map(str::to_owned).collect::<Vec<_>>();
    minor(found) == minor(OFFERED)
}

/// What the bytes of a component say about its contract.
struct Read {
    /// The version of the contract that it was built for.
    version: Option<String>,
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
    let (mut stamp, mut named, mut foreign_import) = (None, None, None);
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
                    named = named.or_else(|| version_of(name));
                    if foreign_import.is_none() && !imports::offers(name) {
                        foreign_import = Some(name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section.into_iter().flatten() {
                    named = named.or_else(|| version_of(export.name.name));
                }
            }
            _ => {}
        }
    }
    Ok(Read { version: stamp.or(named), foreign_import })
}

fn stamped(data: &[u8]) -> Option<String> {
    // Linkers may concatenate several stamps: the first one counts.
    let stamp = serde_json::Deserializer::from_slice(data).into_iter::<serde_json::Value>().next()?.ok()?;
    Some(stamp.get("package")?.as_str()?.strip_prefix(PACKAGE)?.strip_prefix('@')?.to_owned())
}

/// `hermes:plugin/tools@0.1.0` gives `0.1.0`.
fn version_of(name: &str) -> Option<String> {
    Some(name.strip_prefix(PACKAGE)?.strip_prefix('/')?.split_once('@')?.1.to_owned())
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
    fn versions_are_read_from_names_and_stamps() {
        assert_eq!(version_of("hermes:plugin/tools@0.1.3").as_deref(), Some("0.1.3"));
        assert_eq!(version_of("wasi:io/streams@0.2.6"), None);
        assert_eq!(stamped(br#"{"package":"hermes:plugin@0.2.0","sdk":"x"}"#).as_deref(), Some("0.2.0"));
        assert!(compatible("0.1.9") && !compatible("0.2.0") && !compatible("1.1.0"));
    }
}
