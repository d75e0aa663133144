//! The adapter for older versions of the contract, and for later ones as far as the host knows them: it renames imports
//! and exports.
//!
//! A later version only adds to the text of the contract (decision 0010), and wasmtime compares types by their structure.
//! So a component of another version fits the host as soon as its imports and exports have the host's names. wasmtime
//! finds releases of one major version by itself; only names with a pre-release need this (decision 0017).
//!
//! Only the names at the top level of the component change, just before it is compiled. Nested components keep theirs,
//! because they are linked inside of the component. Digests, locks and cache keys belong to the original bytes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use wasmparser::{BinaryReader, ComponentExportSectionReader, ComponentImportSectionReader, Result};

use crate::contract::{self, Name};

/// Magic number and version of a component.
const PREAMBLE: usize = 8;
/// The ids of the sections with imports and exports.
const IMPORTS: u8 = 10;
const EXPORTS: u8 = 11;

/// The component with the names that this host has. Bytes that cannot be read stay as they are, for the compiler to refuse.
pub(crate) fn adapt(bytes: &[u8]) -> Cow<'_, [u8]> {
    match renamed(bytes, |name| contract::adapted(&Name::parse(name)?)) {
        Ok(Some(adapted)) => Cow::Owned(adapted),
        Ok(None) | Err(_) => Cow::Borrowed(bytes),
    }
}

/// A section at the top level of a component.
struct Section<'a> {
    id: u8,
    /// All of it, with id and length.
    whole: &'a [u8],
    content: &'a [u8],
}

/// The sections at the top level of a component.
fn sections(bytes: &[u8]) -> impl Iterator<Item = Result<Section<'_>>> {
    let bytes = bytes.get(PREAMBLE..).unwrap_or_default();
    let mut reader = BinaryReader::new(bytes, 0);
    std::iter::from_fn(move || {
        let begin = reader.original_position();
        let next = || -> Result<Section<'_>> {
            let id = reader.read_u8()?;
            let length = reader.read_var_u32()?;
            let content = reader.read_bytes(length as usize)?;
            Ok(Section { id, whole: &bytes[begin..reader.original_position()], content })
        };
        (begin < bytes.len()).then(next)
    })
}

impl<'a> Section<'a> {
    /// The names in a section of imports or exports, each with the offset of its entry; empty for other sections.
    fn names(&self) -> Result<Vec<(usize, &'a str)>> {
        let reader = BinaryReader::new(self.content, 0);
        match self.id {
            IMPORTS => ComponentImportSectionReader::new(reader)?
                .into_iter_with_offsets()
                .map(|entry| entry.map(|(at, import)| (at, import.name.name)))
                .collect(),
            EXPORTS => ComponentExportSectionReader::new(reader)?
                .into_iter_with_offsets()
                .map(|entry| entry.map(|(at, export)| (at, export.name.name)))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// Writes the section with other names: everything else is copied.
    fn write(
        &self,
        names: &[(usize, &str)],
        renamed: impl Fn(&str) -> Option<String>,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let mut content = Vec::with_capacity(self.content.len());
        let mut copied = 0;
        for (at, name) in names {
            let Some(new) = renamed(name) else { continue };
            // An entry begins with one byte for the form of its name; the name follows with its length.
            let mut entry = BinaryReader::new(&self.content[*at..], 0);
            entry.read_u8()?;
            entry.read_string()?;
            content.extend(&self.content[copied..=*at]);
            write_length(new.len(), &mut content);
            content.extend(new.as_bytes());
            copied = at + entry.original_position();
        }
        content.extend(&self.content[copied..]);
        into.push(self.id);
        write_length(content.len(), into);
        into.extend(content);
        Ok(())
    }
}

/// The component with names replaced by `new_name`; none if no name changes. A name that the component has already, for
/// the same purpose, is not given a second time.
fn renamed(bytes: &[u8], new_name: impl Fn(&str) -> Option<String>) -> Result<Option<Vec<u8>>> {
    let mut all = Vec::new();
    for section in sections(bytes) {
        let section = section?;
        all.extend(section.names()?.into_iter().map(|(_, name)| (section.id, name)));
    }
    let mut taken: HashSet<(u8, Cow<'_, str>)> = all.iter().map(|(id, name)| (*id, Cow::Borrowed(*name))).collect();
    let mut new_names = HashMap::new();
    for (id, name) in all {
        if let Some(new) = new_name(name).filter(|new| taken.insert((id, Cow::Owned(new.clone())))) {
            new_names.insert((id, name), new);
        }
    }
    if new_names.is_empty() {
        return Ok(None);
    }
    let mut adapted = bytes[..PREAMBLE].to_vec();
    for section in sections(bytes) {
        let section = section?;
        let names = section.names()?;
        if names.iter().any(|(_, name)| new_names.contains_key(&(section.id, *name))) {
            section.write(&names, |name| new_names.get(&(section.id, name)).cloned(), &mut adapted)?;
        } else {
            adapted.extend(section.whole);
        }
    }
    Ok(Some(adapted))
}

/// Writes a length in the variable form of WebAssembly.
fn write_length(length: usize, into: &mut Vec<u8>) {
    let mut rest = length;
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or(0x7f);
        rest >>= 7;
        if rest == 0 {
            return into.push(low);
        }
        into.push(low | 0x80);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_zoo::Shell;
    use proptest::prelude::*;

    use super::*;
    use crate::stamp;

    const OURS: &str = "1.0.0";
    const OTHER: &str =
        "1.1.0-some.longer.pre-release.a123456789.b123456789.c123456789.d123456789.e123456789.f123456789";

    fn with(from: &'static str, to: &'static str) -> impl Fn(&str) -> Option<String> {
        move |name| name.contains(from).then(|| name.replace(from, to))
    }

    /// The names of a component's imports and exports.
    fn names(bytes: &[u8]) -> Vec<(u8, String)> {
        let names = sections(bytes).flat_map(|section| {
            let section = section.unwrap();
            section.names().unwrap().into_iter().map(move |(_, name)| (section.id, name.to_owned()))
        });
        names.collect()
    }

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        let mut section = vec![id];
        write_length(content.len(), &mut section);
        section.extend(content);
        section
    }

    /// A section that imports these names as instances of type 0.
    fn imports(names: &[&str]) -> Vec<u8> {
        let mut content = vec![u8::try_from(names.len()).unwrap()];
        for name in names {
            content.push(0);
            write_length(name.len(), &mut content);
            content.extend(name.as_bytes());
            content.extend([5, 0]);
        }
        section(IMPORTS, &content)
    }

    /// A component with these sections, after the type of an empty instance.
    fn component(sections: &[&[u8]]) -> Vec<u8> {
        let instance_type = section(7, &[1, 0x42, 0]);
        [&b"\0asm\x0d\0\x01\0"[..], &instance_type, &sections.concat()].concat()
    }

    #[test]
    fn only_names_change_and_every_other_byte_is_copied() {
        let original = Shell::with_tool("nop").build();
        let adapted = renamed(&original, with(OURS, OTHER)).unwrap().unwrap();
        let expected: Vec<_> = names(&original).into_iter().map(|(id, name)| (id, name.replace(OURS, OTHER))).collect();
        assert_eq!(names(&adapted), expected);
        assert!(expected.iter().any(|(id, name)| *id == EXPORTS && name.contains(OTHER)));
        assert_eq!(renamed(&adapted, with(OTHER, OURS)).unwrap().unwrap(), original);
        // What the compiler sees is a component as before.
        crate::compiler::precompile(&crate::engine::engine(), &adapted).unwrap();
    }

    #[test]
    fn a_component_for_this_host_is_not_copied() {
        assert!(matches!(adapt(&Shell::with_tool("nop").build()), Cow::Borrowed(_)));
    }

    #[test]
    fn the_names_of_nested_components_stay() {
        let name = "hermes:host/log@1.0.0";
        let nested = component(&[&imports(&[name])]);
        let outer = component(&[&section(4, &nested), &imports(&[name])]);
        let adapted = renamed(&outer, with(OURS, "1.1.0")).unwrap().unwrap();
        assert_eq!(adapted, component(&[&section(4, &nested), &imports(&["hermes:host/log@1.1.0"])]));
    }

    #[test]
    fn a_name_is_never_given_twice() {
        let both = component(&[&imports(&["hermes:host/log@1.1.0-draft", "hermes:host/log@1.1.0"])]);
        assert_eq!(renamed(&both, with("1.1.0-draft", "1.1.0")).unwrap(), None);
        let two = component(&[&imports(&["a:b/c@1.0.0-a"]), &imports(&["a:b/c@1.0.0-b"])]);
        let to_one = |name: &str| Some(name[..name.len() - 2].to_owned());
        let adapted = renamed(&two, to_one).unwrap().unwrap();
        assert_eq!(names(&adapted), [(IMPORTS, "a:b/c@1.0.0".to_owned()), (IMPORTS, "a:b/c@1.0.0-b".to_owned())]);
    }

    #[test]
    fn damaged_sections_are_left_to_the_compiler() {
        let ahead = component(&[&imports(&["hermes:host/log@1.1.0-draft"])]);
        assert!(matches!(adapt(&ahead), Cow::Owned(_)));
        let junk: &[&[u8]] = &[
            // A section that is longer than the file, a length that never ends, and a section without its length.
            &[IMPORTS, 0x7f],
            &[IMPORTS, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[EXPORTS],
            // An entry that is not there, one with an unknown form, a name that is longer than its section, and bytes
            // behind the last entry.
            &[IMPORTS, 1, 1],
            &[IMPORTS, 5, 1, 9, 1, b'a', 1],
            &[IMPORTS, 4, 1, 0, 100, b'a'],
            &[IMPORTS, 2, 0, 7],
        ];
        for junk in junk {
            let damaged = [&ahead[..], junk].concat();
            assert!(matches!(adapt(&damaged), Cow::Borrowed(_)), "{junk:?}");
            assert!(crate::compiler::precompile(&crate::engine::engine(), &damaged).is_err(), "{junk:?}");
        }
        for length in 0..PREAMBLE {
            assert!(matches!(adapt(&ahead[..length]), Cow::Borrowed(_)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Damage at any place is copied or left to the compiler; no name is lost.
        #[test]
        fn a_damaged_component_is_adapted_or_left_as_it_is(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = component(&[&imports(&["hermes:host/log@1.1.0-draft", "hermes:host/task@1.0.0"]), &section(0, b"\x01a")]);
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Cow::Owned(adapted) = adapt(&bytes) {
                prop_assert_eq!(names(&adapted).len(), names(&bytes).len());
                prop_assert!(matches!(adapt(&adapted), Cow::Borrowed(_)), "nothing is left to rename");
            }
        }
    }

    #[test]
    fn an_interface_in_two_versions_is_refused_with_both() {
        let both = component(&[&imports(&["hermes:host/log@1.1.0-draft", "hermes:host/log@1.0.0"])]);
        let error = stamp::check(&both, contract::LaterVersions::Accepted).unwrap_err().to_string();
        for part in ["`hermes:host/log`", "1.1.0-draft and 1.0.0", "build it again"] {
            assert!(error.contains(part), "no {part:?} in {error:?}");
        }
    }
}
