#![allow(clippy::unwrap_used)]

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::invariants::{self, unpacked};
use super::*;

pub(super) fn small() -> Caps {
    Caps { entries: 20, file: 1 << 20, total: 2 << 20, ratio: 100, depth: 4, links: Links::Refuse }
}

/// A tar entry with an unchecked name: the crate's own writer refuses bad names.
pub(super) fn entry(kind: tar::EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub(super) fn file(name: &str) -> Vec<u8> {
    entry(tar::EntryType::Regular, name.as_bytes(), b"x")
}

pub(super) fn gz(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    entries.iter().for_each(|entry| encoder.write_all(entry).unwrap());
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// `git archive` writes whole blocks; when the last one is behind the end, it fails unless somebody still reads.
#[test]
fn the_padding_behind_a_tar_stream_is_read() {
    let mut bytes = file("plugin.yaml");
    bytes.resize(bytes.len() + 512 + 10_240, 0);
    let folder = tempfile::tempdir().unwrap();
    let mut stream = &bytes[..];
    unpack_tar(&mut stream, 1, folder.path(), small()).unwrap();
    assert!(stream.is_empty(), "{} bytes are left", stream.len());
}

#[test]
fn files_and_folders_are_unpacked() {
    let long = "a-folder-with-a-long-name/".repeat(3) + &"n".repeat(90);
    let entries = [
        entry(
            tar::EntryType::XGlobalHeader,
            b"pax_global_header",
            b"52 comment=0123456789012345678901234567890123456789\n",
        ),
        entry(tar::EntryType::Directory, b"./", b""),
        entry(tar::EntryType::Directory, b"a/", b""),
        file("./a/plugin.yaml"),
        file("b/c/d"),
        entry(tar::EntryType::GNULongName, b"././@LongLink", long.as_bytes()),
        file("cut"),
        entry(tar::EntryType::XHeader, b"pax", b"14 path=e/f/g\n"),
        file("cut"),
    ];
    let (found, answer) = unpacked(&gz(&entries), small());
    assert_eq!(answer, Ok(()));
    for expected in ["a/plugin.yaml", "b/c/d", &long, "e/f/g"] {
        assert!(found.iter().any(|name| name == expected), "{expected} is not in {found:?}");
    }
    assert!(!found.contains(&"cut".to_owned()));
    let (found, answer) = unpacked(&zip_of(&[("a/plugin.yaml", b"x"), ("b", b"")]), small());
    assert_eq!((found, answer), (vec!["a".to_owned(), "a/plugin.yaml".to_owned(), "b".to_owned()], Ok(())));
}

#[test]
fn unsafe_and_ambiguous_names_are_refused() {
    for name in [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "//evil",
        "a//b",
        "..",
        ".",
        "a/..",
        "a/./b",
        "..\\evil",
        "C:\\evil",
        "c:evil",
        "a\u{0}b",
        "a\nb",
        "nul",
        "COM1.txt",
        "a/aux.wasm",
        "lpt\u{b9}",
        "evil.",
        "evil ",
        " evil",
        "a?b",
        "1/2/3/4/5",
    ] {
        let entries = [entry(tar::EntryType::XHeader, b"pax", &pax("path", name.as_bytes())), file("x")];
        let (found, answer) = unpacked(&gz(&entries), small());
        assert!(answer.is_err() && found.is_empty(), "tar {name:?}: {found:?} {answer:?}");
        if !name.contains('\0') {
            let (found, answer) = unpacked(&zip_of(&[(name, b"x")]), small());
            assert!(
                answer.is_err() && found.iter().all(|name| !name.contains("evil")),
                "zip {name:?}: {found:?} {answer:?}"
            );
        }
    }
    let (_, answer) = unpacked(&gz(&[entry(tar::EntryType::Regular, b"\xff\xfe", b"x")]), small());
    assert!(answer.unwrap_err().contains("UTF-8"));
}

fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (rest + 1..).find(|length| rest + length.to_string().len() == *length).unwrap();
    [length.to_string().as_bytes(), b" ", key.as_bytes(), b"=", value, b"\n"].concat()
}

#[test]
fn names_that_differ_only_in_case_are_refused() {
    for pair in [
        ["plugin.yaml", "Plugin.yaml"],
        ["a/x", "A/y"],
        ["\u{e9}", "e\u{301}"],
        ["\u{c9}", "e\u{301}"],
        ["a", "a"],
        ["a", "a/b"],
        ["a/b", "a"],
    ] {
        let (_, answer) = unpacked(&gz(&pair.map(file)), small());
        assert!(answer.is_err(), "{pair:?}");
    }
    assert!(unpacked(&zip_of(&[("plugin.yaml", b"1"), ("PLUGIN.yaml", b"2")]), small()).1.is_err());
}

#[test]
fn links_and_devices_are_refused() {
    use tar::EntryType;
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::GNULongLink,
        EntryType::new(b'V'),
    ] {
        let (found, answer) = unpacked(&gz(&[entry(kind, b"evil", b""), file("evil/x")]), small());
        assert!(answer.is_err() && found.is_empty(), "{kind:?}: {found:?}");
    }
    for key in ["size", "linkpath", "GNU.sparse.major"] {
        let (found, answer) = unpacked(&gz(&[entry(EntryType::XHeader, b"pax", &pax(key, b"1")), file("x")]), small());
        assert!(answer.is_err() && found.is_empty(), "{key}");
    }
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    writer.add_symlink("evil", "/etc", zip::write::SimpleFileOptions::default()).unwrap();
    let (found, answer) = unpacked(&writer.finish().unwrap().into_inner(), small());
    assert!(answer.unwrap_err().contains("link") && found.is_empty());
}

#[test]
fn decompression_bombs_are_stopped_by_counting_bytes() {
    let zeros = vec![0; 3 << 20];
    let one = entry(tar::EntryType::Regular, b"bomb", &zeros);
    for (caps, word) in [
        (Caps { file: 1 << 20, total: 8 << 20, ..small() }, "larger than 1 MiB"),
        (Caps { file: 8 << 20, total: 2 << 20, ..small() }, "larger than 2 MiB"),
    ] {
        for bytes in [gz(std::slice::from_ref(&one)), zip_of(&[("bomb", &zeros)])] {
            let answer = unpacked(&bytes, caps).1.unwrap_err();
            assert!(answer.contains(word), "{answer}");
        }
    }
    // Above the free allowance, the ratio limits the size.
    let twenty = vec![0; 20 << 20];
    let caps = Caps { file: 64 << 20, total: 64 << 20, ..small() };
    let answer = unpacked(&zip_of(&[("bomb", &twenty)]), caps).1.unwrap_err();
    assert!(answer.contains("100 times"), "{answer}");
    let many: Vec<_> = (0..21).map(|number| file(&number.to_string())).collect();
    assert!(unpacked(&gz(&many), small()).1.unwrap_err().contains("more than 20 entries"));
    let name = entry(tar::EntryType::GNULongName, b"n", &vec![b'n'; 1 << 20]);
    assert!(unpacked(&gz(&[name, file("x")]), small()).1.unwrap_err().contains("too long"));
}

#[test]
fn a_zip_that_understates_its_sizes_is_refused() {
    let mut bytes = zip_of(&[("bomb", &vec![0; 3 << 20])]);
    // The sizes in the local header and in the central directory.
    let whole = (3u32 << 20).to_le_bytes();
    while let Some(at) = bytes.windows(4).position(|window| window == whole) {
        bytes[at..at + 4].copy_from_slice(&16u32.to_le_bytes());
    }
    let (found, answer) = unpacked(&bytes, Caps { file: 1 << 20, ..small() });
    assert!(answer.is_err(), "{found:?}");
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"x", b"PK\x03\x04", b"\x1f\x8b\x08\0", b"\x7fELF"] {
        assert!(unpacked(bytes, small()).1.is_err(), "{bytes:?}");
    }
    let cut =
        gz(&[entry(tar::EntryType::Regular, b"a", &(0..9_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>())]);
    assert!(unpacked(&cut[..cut.len() / 2], small()).1.is_err());
}

/// Generates arbitrary tar headers: any kind, name, link and size, in either format.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"000055\0 7123456xgLKSVMDAX".to_vec());
    let name = prop_oneof![
        "[a-bA-B./\\\\ :\u{e9}]{1,12}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            &b"../evil"[..],
            b"/evil",
            b"a/..",
            b"a/",
            b"./",
            b"con",
            b"a\0b",
            b"\xff",
            b"a/b/c/d/e"
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    let size =
        prop_oneof![4 => Just(None), 1 => prop::sample::select(vec![0, 1, 511, 513, u64::MAX >> 1]).prop_map(Some)];
    let content = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40),
        2 => prop::sample::select(vec![
            &b"14 path=e/f/g\n"[..], b"18 path=../../evil\n", b"11 size=99\n", b"9 path=\n", b"99 path=x\n", b"-1 path=x\n",
            b"20 linkpath=/etc/x\n", b"14 path=a\0b/c\n13 path=last\n", b"../evil\0", b"b/c/d",
        ]).prop_map(<[u8]>::to_vec),
    ];
    (kind, name, size, content).prop_map(|(kind, name, size, content)| {
        let mut bytes = entry(tar::EntryType::new(kind), &name, &content);
        if let Some(size) = size {
            let mut header = tar::Header::new_ustar();
            header.set_size(size);
            bytes[124..136].copy_from_slice(&header.as_bytes()[124..136]);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_headers_stay_below_the_folder(headers in prop::collection::vec(header(), 1..6), cut in 0..600usize) {
        let bytes = headers.concat();
        invariants::tarball(&bytes);
        invariants::tarball(&bytes[..bytes.len() - cut.min(bytes.len())]);
    }

    #[test]
    fn any_names_stay_below_the_folder(
        names in prop::collection::vec("[a-bA-B./\\\\ :\u{e9}]{1,12}|\\PC{1,8}|(\\.\\./)+a", 1..6),
    ) {
        let entries: Vec<_> = names
            .iter()
            .map(|name| [entry(tar::EntryType::XHeader, b"pax", &pax("path", name.as_bytes())), file("cut")].concat())
            .collect();
        let _ = unpacked(&gz(&entries), small());
        let mut once = names.clone();
        once.sort();
        once.dedup();
        let entries: Vec<_> = once.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
        let _ = unpacked(&zip_of(&entries), small());
    }

    #[test]
    fn any_bytes_are_refused_or_unpacked(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let known = [zip_of(&[("a/b", b"content"), ("c", &[0; 3_000])]), gz(&[file("a/b")])];
        for mut archive in known {
            for (at, byte) in &places {
                let at = at.index(archive.len());
                archive[at] = *byte;
            }
            invariants::archive(&archive);
            let at = bytes.len() % archive.len();
            archive.splice(at.., bytes.iter().copied());
            invariants::archive(&archive);
        }
        invariants::archive(&bytes);
        invariants::archive(&[b"PK", &bytes[..]].concat());
        invariants::tarball(&bytes);
    }
}
