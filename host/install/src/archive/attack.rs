//! Attacks by archives: sizes, counts and names that an archive claims, and places where readers disagree.
#![allow(clippy::unwrap_used)]

use super::invariants::unpacked;
use super::tests::{entry, file, gz, small, zip_of};
use super::*;

/// A record at the end of a zip archive.
fn end(entries: u16, bytes: u32, offset: u32, comment: &[u8]) -> Vec<u8> {
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    end.extend(entries.to_le_bytes());
    end.extend(entries.to_le_bytes());
    end.extend(bytes.to_le_bytes());
    end.extend(offset.to_le_bytes());
    end.extend((comment.len() as u16).to_le_bytes());
    end.extend(comment);
    end
}

/// A directory entry for an empty file, with so many bytes of extra fields and of a comment.
fn directory_entry(name: &str, extra: usize, comment: usize) -> Vec<u8> {
    let mut entry = b"PK\x01\x02\x14\0\x14\0".to_vec();
    entry.resize(28, 0);
    for length in [name.len(), extra, comment] {
        entry.extend((length as u16).to_le_bytes());
    }
    entry.resize(46, 0);
    entry.extend(name.as_bytes());
    entry.resize(46 + name.len() + extra + comment, 0);
    entry
}

fn zip_with(directory: &[u8], entries: u16, comment: &[u8]) -> Vec<u8> {
    // A local header in front, so that the file begins like a zip archive.
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.resize(30, 0);
    let offset = bytes.len() as u32;
    bytes.extend(directory);
    bytes.extend(end(entries, directory.len() as u32, offset, comment));
    bytes
}

fn refused(bytes: &[u8], why: &str) {
    let (found, answer) = unpacked(bytes, small());
    match answer {
        Err(error) => assert!(error.to_string().contains(why), "{why:?} is not in {error}"),
        Ok(()) => panic!("{why}: unpacked {found:?}"),
    }
}

#[test]
fn a_directory_of_a_zip_is_bounded_before_it_is_read() {
    let many: Vec<u8> = (0..60_000).flat_map(|at| directory_entry(&format!("{at}"), 0, 0)).collect();
    refused(&zip_with(&many, 60_000, b""), "more than 20 entries");
    // The entries are few, but their extra fields and comments fill the file.
    let wide: Vec<u8> = (0..15).flat_map(|at| directory_entry(&format!("{at}"), 65_000, 65_000)).collect();
    refused(&zip_with(&wide, 15, b""), "central directory is too large");
    // The counts do not fit the file.
    for (entries, bytes, offset) in [(1, 1 << 30, 0), (1, 100, 1 << 30), (20, 4_000, 0), (0, 46, 30)] {
        let mut file = b"PK\x03\x04".to_vec();
        file.extend(end(entries, bytes, offset, b""));
        refused(&file, "central directory is too large");
    }
}

#[test]
fn a_file_that_is_all_directory_takes_no_memory() {
    /// Fails the test if anything but the end of the file is read.
    struct EndOnly(io::Cursor<Vec<u8>>);
    impl Read for EndOnly {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(self.0.position() + (70 << 10) > self.0.get_ref().len() as u64, "the directory was read");
            self.0.read(buffer)
        }
    }
    impl io::Seek for EndOnly {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let directory: Vec<u8> = (0..40_000).flat_map(|at| directory_entry(&format!("{at}"), 200, 0)).collect();
    let bytes = zip_with(&directory, 40_000, b"");
    assert!(bytes.len() > 8 << 20);
    let folder = tempfile::tempdir().unwrap();
    let unpacker = Unpacker::new(folder.path(), bytes.len() as u64, small());
    assert!(zipped(EndOnly(io::Cursor::new(bytes)), unpacker).is_err());
}

#[test]
fn a_zip_with_two_ends_is_not_read_by_the_other_one() {
    let honest = zip_of(&[("a", b"x")]);
    let many: Vec<u8> = (0..1_000).flat_map(|at| directory_entry(&format!("{at}"), 0, 0)).collect();
    // The record of the honest archive is a comment of the other one, and the reverse.
    let (found, answer) = unpacked(&zip_with(&many, 1_000, &honest), small());
    assert!(answer.is_err() || found == ["a"], "{found:?}");
    let mut file = zip_with(&many, 1_000, b"");
    file.extend(&honest);
    let (found, answer) = unpacked(&file, small());
    assert!(answer.is_err() || found.len() <= 1, "{found:?}");
    for comment in [&b"PK\x05\x06"[..], b"text PK\x05\x06 text", &end(0, 0, 0, b"")] {
        let (found, answer) = unpacked(&zip_with(&many, 1_000, comment), small());
        assert!(answer.is_err() || found.is_empty(), "{found:?}");
    }
    // Bytes after the record.
    let mut file = honest.clone();
    file.extend(b"more");
    refused(&file, "comment");
}

#[test]
fn zips_in_parts_and_with_64_bit_sizes_are_refused() {
    let honest = zip_of(&[("a", b"x")]);
    let at = honest.len() - 22;
    for (place, bytes, why) in [
        (4, &[1, 0][..], "one part of several"),
        (6, &[1, 0], "one part of several"),
        (8, &[0, 0], "one part of several"),
        (12, &[0xff; 4], "64-bit"),
        (16, &[0xff; 4], "64-bit"),
    ] {
        let mut file = honest.clone();
        file[at + place..at + place + bytes.len()].copy_from_slice(bytes);
        refused(&file, why);
    }
    let mut file = honest.clone();
    file[at + 8..at + 12].copy_from_slice(&[0xff; 4]);
    refused(&file, "64-bit");
    assert!(unpacked(&honest, small()).1.is_ok());
    let commented = {
        let mut file = honest[..honest.len() - 2].to_vec();
        file.extend([7, 0]);
        file.extend(b"comment");
        file
    };
    assert!(unpacked(&commented, small()).1.is_ok(), "a comment is harmless");
}

#[test]
fn entries_over_the_same_bytes_are_counted_each_time() {
    // Fifield's bomb: many entries of the directory lead to one compressed file.
    let zeros = vec![0; 1 << 20];
    let one = zip_of(&[("a", &zeros)]);
    let at = one.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    let entry = &one[at..one.len() - 22];
    let mut directory = Vec::new();
    for name in b'a'..b'a' + 20 {
        let mut entry = entry.to_vec();
        entry[46] = name;
        directory.extend(entry);
    }
    let mut file = one[..at].to_vec();
    file.extend(&directory);
    file.extend(end(20, directory.len() as u32, at as u32, b""));
    refused(&file, "");
}

#[test]
fn the_names_of_the_directory_are_the_checked_ones() {
    // The local header has another name than the directory; the directory's name is checked and used.
    let honest = zip_of(&[("good", b"x")]);
    let mut local = honest.clone();
    let at = local.windows(4).position(|window| window == b"good").unwrap();
    local[at..at + 4].copy_from_slice(b"../x");
    let (found, answer) = unpacked(&local, small());
    assert!(answer.is_err() || found == ["good"], "{found:?}");
    let mut central = honest;
    let at = central.windows(4).rposition(|window| window == b"good").unwrap();
    central[at..at + 4].copy_from_slice(b"../x");
    refused(&central, "leads out of its folder");
}

#[test]
fn a_signature_of_the_archive_cannot_be_smuggled_in() {
    // Names that another system, or a careless join, reads as a file of the host beside the archive.
    for name in
        ["../archive.minisig", "/archive.minisig", "a/../../archive.minisig", "..\\archive.minisig", "C:archive"]
    {
        refused(&gz(&[file(name)]), "the name");
        refused(&zip_of(&[(name, b"x")]), "the name");
    }
}

#[test]
fn two_spellings_of_the_manifest_are_refused() {
    for (one, other) in [
        ("plugin.yaml", "PLUGIN.YAML"),
        ("plugin.yaml", "Plugin.yaml"),
        ("plugin.statement", "plugin.Statement"),
        ("skills/tea/SKILL.md", "Skills/tea/SKILL.md"),
        ("caf\u{e9}.md", "cafe\u{301}.md"),
        ("plugin.yaml", "./plugin.yaml"),
    ] {
        let entries = gz(&[file(one), file(other)]);
        assert!(unpacked(&entries, small()).1.is_err(), "{one} and {other}");
        assert!(unpacked(&zip_of(&[(one, b"x"), (other, b"y")]), small()).1.is_err(), "{one} and {other}");
    }
}

#[test]
fn a_second_archive_behind_the_first_is_not_read() {
    let mut bytes = gz(&[file("a")]);
    bytes.extend(gz(&[file("b")]));
    let (found, answer) = unpacked(&bytes, small());
    assert!(answer.is_err() || found == ["a"], "{found:?}");
    // Entries behind the end of the tar.
    let (found, answer) = unpacked(&gz(&[file("a"), vec![0; 1_024], file("../b"), file("b")]), small());
    assert!(answer.is_err() || found == ["a"], "{found:?}");
}

#[test]
fn extensions_without_end_are_counted() {
    let pax = || entry(tar::EntryType::XHeader, b"pax", b"14 comment=xx\n");
    let endless: Vec<_> = (0..1_000).map(|_| pax()).collect();
    refused(&gz(&endless), "more than 20 entries");
    let long: Vec<_> = (0..1_000).map(|_| entry(tar::EntryType::GNULongName, b"././@LongLink", b"name\0")).collect();
    refused(&gz(&long), "more than 20 entries");
    let huge = entry(tar::EntryType::GNULongName, b"././@LongLink", &vec![b'a'; 70 << 10]);
    refused(&gz(&[huge, file("a")]), "a header is too long");
}

#[test]
fn a_small_archive_of_a_large_file_is_refused() {
    let zeros = vec![0; 3 << 20];
    refused(&gz(&[entry(tar::EntryType::Regular, b"a", &zeros)]), "larger than 1 MiB");
    let parts: Vec<_> =
        (0..15).map(|at| entry(tar::EntryType::Regular, format!("{at}").as_bytes(), &zeros[..1 << 20])).collect();
    refused(&gz(&parts), "its content is larger than 2 MiB");
}

#[test]
fn folders_without_entries_are_counted_too() {
    let names: Vec<String> = (0..12).map(|at| format!("{at}/b/c")).collect();
    refused(&gz(&names.iter().map(|name| file(name)).collect::<Vec<_>>()), "more than 20 entries");
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    refused(&zip_of(&entries), "more than 20 entries");
}
