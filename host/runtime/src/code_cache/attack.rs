//! Attacks on the cache of compiled code and its key: other kinds of files in the place of both, trailers and seals of other
//! files, and clocks that are wrong.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::tests::{Fixture, alter};
use super::*;

/// Replaces whatever is at a path by a pipe.
fn pipe(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        let _ = fs::remove_file(path);
    }
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn set(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn link(path: &Path, to: impl AsRef<Path>) {
    fs::remove_file(path).unwrap();
    symlink(to, path).unwrap();
}

/// A change to a file of the cache, to the key, or to both.
type Attack = (&'static str, fn(&Fixture, &Path));

/// Code that must be compiled again; the next load maps the new code.
const REPLACED: &[Attack] = &[
    ("a pipe", |_, path| pipe(path)),
    ("a link to a device", |_, path| link(path, "/dev/zero")),
    ("a link to the code of another component", |fixture, path| link(path, fixture.file(2))),
    ("a link that leads nowhere", |_, path| link(path, "/nowhere/at/all")),
    ("a terabyte of nothing", |_, path| File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap()),
    ("one byte", |_, path| set(path, b"x")),
    ("a byte less than a trailer", |_, path| alter(path, |bytes| drop(bytes.drain(..bytes.len() - 111)))),
    ("the trailer alone", |_, path| alter(path, |bytes| drop(bytes.drain(..bytes.len() - 112)))),
    ("two trailers", |_, path| {
        alter(path, |bytes| bytes.extend_from_within(bytes.len() - 112..));
    }),
    ("machine code without a trailer", |_, path| set(path, vec![0xcc; 1 << 16])),
    ("another file format", |_, path| set(path, [b"\x7fELF".as_slice(), &[0; 4_096]].concat())),
    ("a trailer of another version", |_, path| {
        alter(path, |bytes| {
            let at = bytes.len() - 97;
            bytes[at] += 1;
        });
    }),
    ("the tag of another component", |fixture, path| {
        let other = fs::read(fixture.file(2)).unwrap();
        alter(path, |bytes| {
            let at = bytes.len() - 32;
            bytes[at..].copy_from_slice(&other[other.len() - 32..]);
        });
    }),
    ("a key of zeros", |fixture, _| set(&fixture.folder().key, [0; 32])),
    ("a key that is empty", |fixture, _| set(&fixture.folder().key, [])),
    ("a key that is too long", |fixture, _| set(&fixture.folder().key, [7; 33])),
    ("a key of a gigabyte", |fixture, _| {
        File::options().write(true).open(fixture.folder().key).unwrap().set_len(1 << 30).unwrap();
    }),
    ("a key that is a pipe", |fixture, _| pipe(&fixture.folder().key)),
    ("a key that is a link to a device", |fixture, _| link(&fixture.folder().key, "/dev/zero")),
    ("a key that everyone could change", |fixture, _| {
        fs::set_permissions(fixture.folder().key, fs::Permissions::from_mode(0o602)).unwrap();
    }),
];

#[test]
fn whatever_is_in_the_place_of_code_or_key_the_component_is_compiled_again() {
    for (name, attack) in REPLACED {
        let fixture = Fixture::new();
        fixture.load(1);
        fixture.load(2);
        attack(&fixture, &fixture.file(1));
        assert!(fixture.load(1).1, "{name}: it was mapped");
        assert!(!fixture.load(1).1, "{name}: the newly compiled code is not mapped");
    }
}

/// What cannot be replaced: loading ends with an error that names the path.
const FINAL: &[Attack] = &[
    ("a folder in the place of the code", |_, path| {
        fs::remove_file(path).unwrap();
        fs::create_dir_all(path.join("full")).unwrap();
    }),
    ("a folder in the place of the key", |fixture, path| {
        fs::remove_file(path).unwrap();
        fs::remove_file(fixture.folder().key).unwrap();
        fs::create_dir_all(fixture.folder().key.join("full")).unwrap();
    }),
    ("a file in the place of the folder", |fixture, _| {
        fs::remove_dir_all(fixture.folder().path).unwrap();
        fs::write(fixture.folder().path, "x").unwrap();
    }),
    ("a folder in the place of the lock", |fixture, path| {
        fs::remove_file(path).unwrap();
        fs::remove_file(fixture.folder().path.join("compile.lock")).unwrap();
        fs::create_dir(fixture.folder().path.join("compile.lock")).unwrap();
    }),
    ("a pipe in the place of the lock", |fixture, path| {
        fs::remove_file(path).unwrap();
        pipe(&fixture.folder().path.join("compile.lock"));
    }),
    ("a link in the place of the lock", |fixture, path| {
        fs::remove_file(path).unwrap();
        link(&fixture.folder().path.join("compile.lock"), fixture.root.path().join("elsewhere"));
    }),
];

#[test]
fn what_cannot_be_replaced_is_an_error_with_its_path() {
    for (name, attack) in FINAL {
        let fixture = Fixture::new();
        fixture.load(1);
        attack(&fixture, &fixture.file(1));
        let Err(error) = fixture.try_load(1) else { panic!("{name}: it was loaded") };
        assert!(error.to_string().contains(fixture.root.path().to_str().unwrap()), "{name}: {error}");
        assert!(!fixture.root.path().join("elsewhere").exists(), "{name}: a link was followed");
    }
}

#[test]
fn a_folder_that_is_a_link_is_never_mapped_from() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    other.load(1);
    // The code and the key of another installation, as a whole.
    symlink(other.folder().path, fixture.folder().path).unwrap();
    fs::copy(other.folder().key, fixture.folder().key).unwrap();
    for _ in 0..2 {
        let loaded = fixture.try_load(1);
        assert!(loaded.is_err() || loaded.is_ok_and(|(_, compiled)| compiled), "it was mapped through the link");
    }
}

#[test]
fn a_seal_that_is_no_file_delays_nothing_and_admits_nothing() {
    for (name, put) in [
        ("a pipe", pipe as fn(&Path)),
        ("a folder", |path| fs::create_dir_all(path.join("full")).unwrap()),
        ("a link to a device", |path| symlink("/dev/zero", path).unwrap()),
        ("a gigabyte", |path| File::create(path).unwrap().set_len(1 << 30).unwrap()),
    ] {
        let fixture = Fixture::new();
        fixture.load(1);
        let seal = artifact::seal_path(&fixture.file(1));
        let _ = fs::remove_file(&seal);
        put(&seal);
        assert!(!fixture.load(1).1, "{name}: sound code was compiled again");
        alter(&fixture.file(1), |bytes| bytes[64] ^= 1);
        assert!(fixture.load(1).1, "{name}: altered code was mapped");
    }
}

#[test]
fn a_clock_that_is_wrong_evicts_no_code_in_use_and_breaks_none() {
    let fixture = Fixture::new();
    let held = fixture.load(1).0;
    let suffix = CodeCache::new(fixture.folder(), &fixture.engine).suffix();
    let year = Duration::from_secs(365 * 24 * 3_600);
    for now in [SystemTime::UNIX_EPOCH, SystemTime::now() - year, SystemTime::now() + 50 * year] {
        eviction::sweep(&fixture.folder().path, &suffix, &Allowance::standard(), now);
        assert!(fixture.file(1).exists() && !fixture.load(1).1, "{now:?}");
    }
    drop(held);
    // Code from the future is code.
    for moment in [SystemTime::UNIX_EPOCH, SystemTime::now() + 50 * year] {
        File::options().append(true).open(fixture.file(1)).unwrap().set_modified(moment).unwrap();
        assert!(!fixture.load(1).1, "{moment:?}");
    }
}

#[test]
fn eviction_removes_links_and_not_what_they_lead_to() {
    let fixture = Fixture::new();
    drop(fixture.load(1));
    let folder = fixture.folder().path;
    let treasure = fixture.root.path().join("treasure");
    fs::create_dir(&treasure).unwrap();
    fs::write(treasure.join("file.cwasm"), "mine").unwrap();
    symlink(treasure.join("file.cwasm"), folder.join("a-0000000000000000.cwasm")).unwrap();
    symlink(&treasure, folder.join("b-0000000000000000.cwasm")).unwrap();
    symlink(&treasure, folder.join(".tmpabc")).unwrap();
    pipe(&folder.join("c-0000000000000000.cwasm"));
    fs::create_dir_all(folder.join("d-0000000000000000.cwasm/full")).unwrap();
    let suffix = CodeCache::new(fixture.folder(), &fixture.engine).suffix();
    let later = SystemTime::now() + Duration::from_secs(400 * 24 * 3_600);
    eviction::sweep(&folder, &suffix, &Allowance::standard(), later);
    assert_eq!(fs::read_to_string(treasure.join("file.cwasm")).unwrap(), "mine");
    assert!(!folder.join("a-0000000000000000.cwasm").is_symlink() && !folder.join(".tmpabc").is_symlink());
    assert!(fixture.load(1).1, "the unused code was evicted, and is compiled again");
}
