#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::engine::engine;

/// A component with the contract's stamp and a function that returns a number; each number gives other bytes.
pub(super) fn component(number: u8) -> Vec<u8> {
    let stamp = br#"{"package":"hermes:plugin@1.0.0"}"#;
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend([1, 5, 1, 0x60, 0, 1, 0x7f]);
    module.extend([3, 2, 1, 0]);
    module.extend([10, 6, 1, 4, 0, 0x41, number, 0x0b]);
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    bytes.extend([0, u8::try_from(stamp.len() + 11).unwrap(), 10]);
    bytes.extend(b"hermes:abi");
    bytes.extend(stamp);
    bytes.extend([1, u8::try_from(module.len()).unwrap()]);
    bytes.extend(module);
    bytes
}

fn source(bytes: &[u8]) -> Source<'_> {
    Source::new(bytes, LaterVersions::Refused)
}

pub(super) struct Fixture {
    pub(super) root: TempDir,
    pub(super) engine: Engine,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), engine: engine() }
    }

    pub(super) fn folder(&self) -> CodeFolder {
        CodeFolder { path: self.root.path().join("code"), key: self.root.path().join("code.key") }
    }

    /// Loads the component in a new cache, as a new process would. Also returns whether this call compiled it.
    pub(super) fn load(&self, number: u8) -> (Mapped, bool) {
        self.try_load(number).unwrap()
    }

    pub(super) fn try_load(&self, number: u8) -> Result<(Mapped, bool), LoadError> {
        let cache = CodeCache::new(self.folder(), &self.engine);
        let (bytes, compiled) = (component(number), Cell::new(false));
        // A caller that waits for another compiler first sees an elapsed time above zero.
        let progress = |elapsed: Duration| {
            compiled.set(compiled.get() || elapsed.is_zero());
            ControlFlow::Continue(())
        };
        let mapped = cache.load(&self.engine, &Compiler::InProcess, source(&bytes), &progress)?;
        Ok((mapped, compiled.get()))
    }

    /// Like `load`, in a binary with this precompiled artifact.
    fn load_with(&self, number: u8, artifact: Vec<u8>) -> (Mapped, bool) {
        let mut cache = CodeCache::new(self.folder(), &self.engine);
        let artifact = (*blake3::hash(&component(number)).as_bytes(), Packed::Plain(artifact.leak()));
        cache.add_precompiled(vec![artifact].leak());
        let (bytes, compiled) = (component(number), Cell::new(false));
        let progress = |_| {
            compiled.set(true);
            ControlFlow::Continue(())
        };
        let mapped = cache.load(&self.engine, &Compiler::InProcess, source(&bytes), &progress).unwrap();
        (mapped, compiled.get())
    }

    /// Like `load`, for a component under development, in a cache that this process keeps.
    fn draft(&self, cache: &CodeCache, number: u8) -> Mapped {
        let bytes = component(number);
        let source = Source { manner: Manner { draft: true, ..Manner::default() }, ..source(&bytes) };
        cache.load(&self.engine, &Compiler::InProcess, source, &|_| ControlFlow::Continue(())).unwrap()
    }

    pub(super) fn file(&self, number: u8) -> PathBuf {
        CodeCache::new(self.folder(), &self.engine).file(blake3::hash(&component(number)))
    }
}

#[test]
fn compiled_code_is_mapped_at_the_next_load_and_each_source_has_its_own() {
    let fixture = Fixture::new();
    assert!(fixture.load(1).1 && !fixture.load(1).1);
    assert!(fixture.load(2).1 && !fixture.load(1).1 && !fixture.load(2).1);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(
        (mode(&fixture.folder().path), mode(&fixture.folder().key), mode(&fixture.file(1))),
        (0o700, 0o600, 0o600)
    );
}

#[test]
fn precompiled_code_is_copied_into_the_folder_and_mapped_without_a_compiler() {
    let fixture = Fixture::new();
    let artifact = precompiled::compile(&component(1)).unwrap();
    let (mapped, compiled) = fixture.load_with(1, artifact.clone());
    assert!(!compiled && fixture.file(1).exists());
    assert!(!fixture.load(1).1, "the next process maps the copy, with or without the artifact");
    let mut store = wasmtime::Store::new(&fixture.engine, ());
    store.set_epoch_deadline(1_000);
    wasmtime::component::Linker::new(&fixture.engine).instantiate(&mut store, &mapped.component).unwrap();

    // A damaged copy is replaced from the artifact, not compiled.
    alter(&fixture.file(1), |bytes| bytes[100] ^= 1);
    assert!(!fixture.load_with(1, artifact).1);
    assert!(!fixture.load(1).1);
}

#[test]
fn an_unfit_precompiled_artifact_is_refused_and_the_plugin_is_compiled() {
    let artifact = precompiled::compile(&component(1)).unwrap();
    let altered = |at: usize| {
        let mut altered = artifact.clone();
        altered[at] ^= 1;
        altered
    };
    let other = precompiled::compile(&component(2)).unwrap();
    let renamed = [&artifact[..48], &other[48..]].concat();
    for (name, artifact) in [
        ("another format", altered(0)),
        ("another compiler", altered(50)),
        ("another digest", altered(90)),
        ("a byte of the code", altered(200)),
        ("the last byte", altered(artifact.len() - 1)),
        ("cut short", artifact[..artifact.len() / 2].to_vec()),
        ("the header alone", artifact[..112].to_vec()),
        ("another component's code", renamed),
        ("another component", other),
        ("nothing", Vec::new()),
    ] {
        let fixture = Fixture::new();
        assert!(fixture.load_with(1, artifact).1, "{name}: it was used");
        assert!(!fixture.load(1).1, "{name}: the newly compiled code is not mapped");
    }
}

/// A change to a file or to its surroundings.
type Attack = (&'static str, fn(&Fixture, &Path));

pub(super) fn alter(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

const ATTACKS: &[Attack] = &[
    ("a byte of the code altered", |_, path| alter(path, |bytes| bytes[100] ^= 1)),
    ("the last byte of the code altered", |_, path| {
        alter(path, |bytes| {
            let at = bytes.len() - 113;
            bytes[at] ^= 1;
        });
    }),
    ("a byte of the tag altered", |_, path| alter(path, |bytes| *bytes.last_mut().unwrap() ^= 0x80)),
    ("cut short", |_, path| alter(path, |bytes| bytes.truncate(bytes.len() / 2))),
    ("emptied", |_, path| alter(path, Vec::clear)),
    ("without its tag", |_, path| alter(path, |bytes| bytes.truncate(bytes.len() - 112))),
    ("lengthened", |_, path| alter(path, |bytes| bytes.extend([0; 64]))),
    ("the code of another component", |fixture, path| {
        fs::copy(fixture.file(2), path).unwrap();
    }),
    ("the code of another component under this one's trailer", |fixture, path| {
        let own = fs::read(path).unwrap();
        let mut forged = fs::read(fixture.file(2)).unwrap();
        forged.truncate(forged.len() - 112);
        forged.extend(&own[own.len() - 112..]);
        fs::write(path, forged).unwrap();
    }),
    ("a link to the original file", |_, path| {
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        symlink(aside, path).unwrap();
    }),
    ("a folder", |_, path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        fs::remove_dir(path).unwrap();
        fs::write(path, "").unwrap();
    }),
    ("writable by others", |_, path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap()),
    ("another installation's key", |fixture, _| fs::write(fixture.folder().key, [7; 32]).unwrap()),
    ("no key", |fixture, _| fs::remove_file(fixture.folder().key).unwrap()),
    ("a key that others could read", |fixture, _| {
        fs::set_permissions(fixture.folder().key, fs::Permissions::from_mode(0o644)).unwrap();
    }),
    ("a key that is a link", |fixture, _| {
        let (key, aside) = (fixture.folder().key, fixture.root.path().join("aside"));
        fs::rename(&key, &aside).unwrap();
        symlink(aside, key).unwrap();
    }),
    ("a key that is cut short", |fixture, _| fs::write(fixture.folder().key, [7; 31]).unwrap()),
];

#[test]
fn foreign_or_altered_code_is_compiled_again_and_then_mapped() {
    for (name, attack) in ATTACKS {
        let fixture = Fixture::new();
        fixture.load(1);
        fixture.load(2);
        attack(&fixture, &fixture.file(1));
        assert!(fixture.load(1).1, "{name}: it was mapped");
        assert!(!fixture.load(1).1, "{name}: the newly compiled code is not mapped");
    }
}

#[test]
fn a_folder_that_others_may_enter_is_made_private_before_code_is_mapped() {
    let fixture = Fixture::new();
    fixture.load(1);
    let folder = fixture.folder().path;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.load(1);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_file_of_another_user_is_not_mapped() {
    let fixture = Fixture::new();
    fixture.load(1);
    if !rustix::process::geteuid().is_root() {
        return hermes_test_data::not_installed("root, who can give a file away");
    }
    for path in [fixture.file(1), fixture.folder().key, fixture.folder().path] {
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        if path == fixture.folder().path {
            // Another user's folder cannot be made private again: loading fails, and nothing is mapped from it.
            assert!(matches!(fixture.try_load(1), Err(LoadError::Compile { .. })));
        } else {
            assert!(fixture.load(1).1, "{}", path.display());
        }
    }
}

#[test]
fn a_seal_does_not_hide_a_later_change_whose_time_was_reset() {
    let fixture = Fixture::new();
    fixture.load(1);
    let path = fixture.file(1);
    let sealed = artifact::seal_path(&path);
    fixture.load(1);
    assert!(!sealed.exists(), "a file this young gets no seal");
    std::thread::sleep(Duration::from_millis(3_100));
    assert!(!fixture.load(1).1 && sealed.exists());
    assert!(!fixture.load(1).1);

    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    assert!(fixture.load(1).1);

    fs::write(&sealed, [0; 32]).unwrap();
    assert!(!fixture.load(1).1, "a wrong seal only costs a check");
}

/// A file with a valid seal is mapped without reading it. No other seal may have that effect.
#[test]
fn no_seal_admits_altered_code() {
    use proptest::prelude::*;

    let folder = tempfile::tempdir().unwrap();
    let genuine = folder.path().join("genuine.cwasm");
    invariants::write(&genuine, b"code");
    let altered: Vec<PathBuf> = (0..160).map(|at| folder.path().join(format!("{at}.cwasm"))).collect();
    let length = fs::read(&genuine).unwrap().len();
    for (at, path) in altered.iter().enumerate() {
        invariants::write(path, b"code");
        alter(path, |bytes| bytes[at % length] ^= 1 << (at % 8));
    }
    std::thread::sleep(Duration::from_millis(3_100));
    assert!(invariants::is_mapped(&genuine));
    let genuine_seal = fs::read(artifact::seal_path(&genuine)).unwrap();
    let seal = prop_oneof![prop::collection::vec(any::<u8>(), 0..70), Just(genuine_seal)];
    let mut runner = proptest::test_runner::TestRunner::default();
    let outcome = runner.run(&(prop::sample::select(altered), seal), |(path, seal)| {
        for path in [&path, &genuine] {
            fs::write(artifact::seal_path(path), &seal).unwrap();
        }
        prop_assert!(!invariants::is_mapped(&path), "{}", path.display());
        prop_assert!(invariants::is_mapped(&genuine), "a wrong seal only costs a check");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn mapped_code_is_unchanged_when_its_file_is_replaced() {
    let fixture = Fixture::new();
    let (mapped, _) = fixture.load(1);
    let path = fixture.file(1);
    fs::remove_file(&path).unwrap();
    fs::write(&path, vec![0xcc; 1 << 16]).unwrap();
    assert_eq!(mapped.component.component_type().exports(&fixture.engine).count(), 0);
    let mut store = wasmtime::Store::new(&fixture.engine, ());
    store.set_epoch_deadline(1_000);
    let linker = wasmtime::component::Linker::new(&fixture.engine);
    linker.instantiate(&mut store, &mapped.component).unwrap();
    assert!(fixture.load(1).1);
}

#[test]
fn concurrent_loads_compile_once_and_share_one_key() {
    let fixture = Fixture::new();
    let compiled: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| fixture.load(1).1)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(compiled, 1);
    assert!(!fixture.load(1).1);
}

#[test]
fn eviction_removes_the_least_recently_used_code_and_never_code_in_use() {
    let fixture = Fixture::new();
    let held: Vec<Mapped> = (1..=4).map(|number| fixture.load(number).0).collect();
    let folder = fixture.folder().path;
    let day = Duration::from_secs(24 * 3600);
    let used = |path: &Path, days: u32| {
        File::options().append(true).open(path).unwrap().set_modified(SystemTime::now() - day * days).unwrap();
    };
    for (number, days) in [(1, 4), (2, 3), (3, 2), (4, 1)] {
        used(&fixture.file(number), days);
    }
    let suffix = CodeCache::new(fixture.folder(), &fixture.engine).suffix();
    let each = fs::metadata(fixture.file(1)).unwrap().len();
    let present = || (1..=4).filter(|number| fixture.file(*number).exists()).collect::<Vec<_>>();
    let room_for_two = Allowance { bytes: each * 2, ..Allowance::standard() };
    let sweep = |allowance: &Allowance| eviction::sweep(&folder, &suffix, allowance, SystemTime::now());

    sweep(&room_for_two);
    assert_eq!(present(), [1, 2, 3, 4], "all are in use");
    let mut held = held.into_iter();
    let first = held.next();
    drop(held);
    sweep(&room_for_two);
    assert_eq!(present(), [1, 4], "the oldest is in use");
    drop(first);
    sweep(&Allowance { idle: day * 3, ..Allowance::standard() });
    assert_eq!(present(), [4]);

    let outdated = folder.join(format!("{}-0123456789abcdef.cwasm", "0".repeat(64)));
    let unfinished = folder.join(".tmpabc");
    for path in [&outdated, &unfinished] {
        fs::write(path, "code").unwrap();
        used(path, 8);
    }
    sweep(&Allowance::standard());
    assert!(!outdated.exists() && !unfinished.exists() && folder.join("compile.lock").exists());
    assert_eq!(present(), [4]);
}

#[test]
fn code_under_development_is_apart_and_goes_with_the_next_build_unless_it_is_used() {
    let home = Fixture::new();
    let cache = CodeCache::new(home.folder(), &home.engine);
    let codes = || {
        let names = fs::read_dir(home.folder().path).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".cwasm")).count()
    };
    let first = home.draft(&cache, 1);
    assert!(!home.file(1).exists() && codes() == 1);
    let used = home.draft(&cache, 2);
    assert_eq!(codes(), 2, "the first build is still mapped");
    drop(first);
    drop(home.draft(&cache, 3));
    assert_eq!(codes(), 2, "the first build is gone, the second one is mapped");
    drop(used);
    drop(home.draft(&cache, 3));
    drop(home.draft(&cache, 4));
    assert_eq!(codes(), 1);
    // Whoever installs the same bytes gets code of the usual quality, and a build under development uses it then.
    assert!(home.load(4).1 && home.file(4).exists());
    let before = codes();
    drop(home.draft(&CodeCache::new(home.folder(), &home.engine), 4));
    assert_eq!(codes(), before);
}

#[test]
fn functions_of_another_installation_or_with_other_bytes_are_not_used() {
    let home = Fixture::new();
    let cache = CodeCache::new(home.folder(), &home.engine);
    let folder = cache.folder().unwrap().to_owned();
    let put = |bytes: &[u8]| {
        let mut next = tempfile::NamedTempFile::new_in(&folder).unwrap();
        next.write_all(bytes).unwrap();
        cache.keep_functions(next).unwrap();
    };
    assert_eq!(cache.known_functions(), None);
    put(b"functions");
    assert_eq!(cache.known_functions(), Some((cache.functions(), 9)));
    put(b"");
    assert_eq!(cache.known_functions(), Some((cache.functions(), 9)), "a compiler that wrote nothing takes nothing");
    let other = CodeCache::new(CodeFolder { key: home.root.path().join("other.key"), ..home.folder() }, &home.engine);
    assert_eq!(other.known_functions(), None);
    let mut bytes = fs::read(cache.functions()).unwrap();
    bytes[0] ^= 1;
    fs::write(cache.functions(), bytes).unwrap();
    assert_eq!(cache.known_functions(), None);
}
