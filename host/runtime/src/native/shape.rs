//! Whether bytes are a whole shared library for this machine, before the system opens them.
//!
//! The system's loader believes the tables of a file. It maps a segment that the file does not have, and the process dies at
//! the first access, without a message. So everything that the tables promise must lie within the bytes.

use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{Architecture, BinaryFormat, File, FileKind, Object, ObjectKind, ObjectSection, ObjectSegment};

/// Says why the system must not open these bytes, if it must not.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let kind = FileKind::parse(bytes).map_err(|_| not_a_library())?;
    let of_this_machine = match kind {
        FileKind::MachOFat32 => fat(MachOFatFile32::parse(bytes).map_err(cut)?.arches(), bytes)?,
        FileKind::MachOFat64 => fat(MachOFatFile64::parse(bytes).map_err(cut)?.arches(), bytes)?,
        FileKind::Elf32 | FileKind::Elf64 | FileKind::MachO32 | FileKind::MachO64 | FileKind::Pe32 | FileKind::Pe64 => {
            bytes
        }
        _ => return Err(not_a_library()),
    };
    whole(of_this_machine)
}

fn not_a_library() -> String {
    "it is not a shared library".to_owned()
}

fn cut(error: object::Error) -> String {
    format!("it is cut short or damaged ({error}); copy or build it again")
}

/// The part of a file for several processors that is for this one.
fn fat<'a, A: FatArch>(arches: &'a [A], bytes: &'a [u8]) -> Result<&'a [u8], String> {
    let of_this = arches.iter().find(|arch| Some(arch.architecture()) == here());
    of_this.ok_or_else(|| "it has no part for the processor of this machine".to_owned())?.data(bytes).map_err(cut)
}

fn whole(bytes: &[u8]) -> Result<(), String> {
    let file = File::parse(bytes).map_err(cut)?;
    if file.format() != format() {
        return Err(format!("it is a file of another system ({:?} instead of {:?})", file.format(), format()));
    }
    if let Some(here) = here().filter(|here| *here != file.architecture()) {
        return Err(format!("it was built for another processor ({:?} instead of {here:?})", file.architecture()));
    }
    if file.kind() != ObjectKind::Dynamic {
        return Err(format!("{}, but a file of the kind {:?}", not_a_library(), file.kind()));
    }
    file.segments().try_for_each(|segment| segment.data().map(drop)).map_err(cut)?;
    file.sections().try_for_each(|section| section.data().map(drop)).map_err(cut)?;
    // The loader reads these through the tables of the file.
    file.exports().map(drop).map_err(cut)
}

/// The format of this system's libraries.
fn format() -> BinaryFormat {
    if cfg!(windows) { BinaryFormat::Pe } else { BinaryFormat::native_object() }
}

/// The processor of this machine, if this check knows its name.
fn here() -> Option<Architecture> {
    Some(match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        "x86" => Architecture::I386,
        "arm" => Architecture::Arm,
        "riscv64" => Architecture::Riscv64,
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A library of this system that this process has open, so it is whole.
    fn library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let name = files.into_iter().find(|name| name.contains("/libc.so") || name.contains("/libc-")).unwrap();
        std::fs::read(name).unwrap()
    }

    /// The end of the last part that is mapped.
    fn mapped(bytes: &[u8]) -> usize {
        let file = File::parse(bytes).unwrap();
        let ends = file.segments().map(|segment| segment.file_range().0 + segment.file_range().1);
        usize::try_from(ends.max().unwrap()).unwrap()
    }

    /// The same library without a table of sections, as some tools strip it.
    fn without_sections(mut bytes: Vec<u8>) -> Vec<u8> {
        // `e_shoff`, and the three fields with the number of sections.
        bytes[0x28..0x30].fill(0);
        bytes[0x3a..0x40].fill(0);
        bytes
    }

    #[test]
    fn a_whole_library_passes_with_and_without_its_table_of_sections() {
        let library = library();
        check(&library).unwrap();
        check(&without_sections(library)).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_cut_library_is_refused_wherever_it_was_cut(at in 0.0..1.0f64, near in -2i64..3) {
            let library = library();
            let file = File::parse(&*library).unwrap();
            // Half of the cuts are anywhere, the others at the borders of what the tables name.
            let mut borders: Vec<u64> = file
                .segments()
                .map(|segment| segment.file_range())
                .chain(file.sections().filter_map(|section| section.file_range()))
                .flat_map(|(from, size)| [from, from + size])
                .chain([4, 16, 52, 64, library.len() as u64])
                .collect();
            borders.sort_unstable();
            let border = borders[(at * borders.len() as f64) as usize].saturating_add_signed(near);
            for length in [(at * library.len() as f64) as usize, usize::try_from(border).unwrap()] {
                if length < library.len() {
                    prop_assert!(check(&library[..length]).is_err(), "{length} of {} bytes", library.len());
                }
            }
            let bare = without_sections(library);
            let length = (at * mapped(&bare) as f64) as usize;
            prop_assert!(check(&bare[..length]).is_err(), "{length} bytes without sections");
        }

        #[test]
        fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..4000) {
            let _ = check(&bytes);
            let mut library = library();
            library.truncate(200_000);
            for (byte, new) in library.iter_mut().skip(at).zip(&bytes) {
                *byte = *new;
            }
            let _ = check(&library);
        }
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_what_it_is() {
        for (bytes, expected) in [
            (b"".to_vec(), "not a shared library"),
            (b"this is no library".to_vec(), "not a shared library"),
            (b"\0asm\x0d\0\x01\0".to_vec(), "not a shared library"),
            (b"!<arch>\n".to_vec(), "not a shared library"),
            (b"#!/bin/sh\n".to_vec(), "not a shared library"),
        ] {
            let why = check(&bytes).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let mut other = library();
        // `e_machine` of a processor that Hermes is not built for.
        other[0x12..0x14].copy_from_slice(&[43, 0]);
        let why = check(&other).unwrap_err();
        assert!(why.contains("another processor"), "{why}");
        let mut program = library();
        program[0x10] = 2;
        let why = check(&program).unwrap_err();
        assert!(why.contains("not a shared library") && why.contains("Executable"), "{why}");
    }
}
