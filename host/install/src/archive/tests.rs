#![allow(clippy::unwrap_used)]

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn small() -> Caps {
    Caps { entries: 20, file: 1 << 20, total: 2 << 20, ratio: 100, depth: 4 }
}

/// A tar entry with a name as it stands: the crate's own writer refuses bad ones.
fn entry(kind: tar::EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
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

fn file(name: &str) -> Vec<u8> {
    entry(tar::EntryType::Regular, name.as_bytes(), b"x")
}

fn gz(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    entries.iter().for_each(|entry| encoder.write_all(entry).unwrap());
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

/// What becomes of an archive: the files that are there, and the answer. Its neighbours are looked at too.
fn unpacked(bytes: &[u8], caps: Caps) -> (Vec<String>, Result<(), String>) {
    let ground = tempfile::tempdir().unwrap();
    let (archive, into) = (ground.path().join("archive"), ground.path().join("in"));
    fs::write(&archive, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let answer = unpack(&archive, &into, caps).map_err(|error| error.to_string());
    let mut names: Vec<_> = fs::read_dir(ground.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["archive", "in"], "something was written beside the folder");
    let mut found = Vec::new();
    let mut folders = vec![into.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            assert!(kind.is_dir() || kind.is_file(), "{:?}", entry.path());
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.push(path.strip_prefix(&into).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    (found, answer)
}

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn files_and_folders_come_out() {
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
fn names_that_lead_elsewhere_or_mean_two_things_are_refused() {
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
fn names_that_are_one_where_case_is_ignored_are_refused() {
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
fn bombs_are_stopped_by_what_arrives() {
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
    // Beyond what every archive may come to, the ratio counts.
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
fn a_zip_that_says_less_than_it_holds_is_not_believed() {
    let mut bytes = zip_of(&[("bomb", &vec![0; 3 << 20])]);
    // The sizes of the local header and of the directory.
    let whole = (3u32 << 20).to_le_bytes();
    while let Some(at) = bytes.windows(4).position(|window| window == whole) {
        bytes[at..at + 4].copy_from_slice(&16u32.to_le_bytes());
    }
    let (found, answer) = unpacked(&bytes, Caps { file: 1 << 20, ..small() });
    assert!(answer.is_err(), "{found:?}");
}

#[test]
fn what_is_no_archive_is_refused() {
    for bytes in [&b""[..], b"x", b"PK\x03\x04", b"\x1f\x8b\x08\0", b"\x7fELF"] {
        assert!(unpacked(bytes, small()).1.is_err(), "{bytes:?}");
    }
    let cut =
        gz(&[entry(tar::EntryType::Regular, b"a", &(0..9_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>())]);
    assert!(unpacked(&cut[..cut.len() / 2], small()).1.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_names_stay_below_the_folder(names in proptest::collection::vec("[a-bA-B./\\\\ :\u{e9}]{1,12}", 1..6)) {
        let entries: Vec<_> = names.iter().map(|name| entry(tar::EntryType::Regular, name.as_bytes(), b"x")).collect();
        let (found, answer) = unpacked(&gz(&entries), small());
        if answer.is_ok() {
            let mut folded: Vec<_> = found.iter().map(|name| super::folded(name)).collect();
            folded.dedup();
            prop_assert_eq!(folded.len(), found.len());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_unpacked(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), zip in any::<bool>()) {
        let mut archive = zip_of(&[("a/b", b"content")]);
        if !zip {
            archive = gz(&[file("a/b")]);
        }
        let at = bytes.len() % archive.len();
        for (place, byte) in archive[at..].iter_mut().zip(&bytes) {
            *place = *byte;
        }
        let _ = unpacked(&archive, small());
        let _ = unpacked(&bytes, small());
    }
}
