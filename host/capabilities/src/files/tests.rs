//! Attacks on the roots. The modules below test the regular behaviour of each operation.

#![allow(clippy::unwrap_used)]

mod operations;
mod searching;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const SECRET: &str = "the canary sings";

/// `root/` is granted, `outside/` is not, and `root/home/` is denied.
struct Fixture {
    base: TempDir,
    roots: Roots,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for dir in ["root/src", "root/home", "outside/dir"] {
            fs::create_dir_all(base.path().join(dir)).unwrap();
        }
        for file in ["root/home/secret", "outside/secret", "outside/dir/secret"] {
            fs::write(base.path().join(file), SECRET).unwrap();
        }
        fs::write(base.path().join("root/src/main.rs"), "fn main() {}\n").unwrap();
        let roots = Self::roots(&base.path().join("root"), &[base.path().join("root/home")]);
        Self { base, roots }
    }

    fn roots(path: &Path, denied: &[PathBuf]) -> Roots {
        Roots::new(
            vec![
                Root::open("workspace", path, true, denied.iter().cloned()).unwrap(),
                Root::open("frozen", path, false, denied.iter().cloned()).unwrap(),
            ],
            Guard::default(),
        )
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.path().join(path)
    }

    fn link(&self, target: impl AsRef<Path>, link: &str) {
        symlink(target, self.at("root").join(link)).unwrap();
    }

    fn read(&self, path: &str) -> Result<String, FilesError> {
        let slice = self.roots.read("workspace", path, 0, MAX_READ)?;
        Ok(String::from_utf8(slice.content).unwrap())
    }

    fn write(&self, path: &str, content: &str, version: Option<&str>) -> Result<String, FilesError> {
        self.roots.write("workspace", path, content.as_bytes(), version, &Agreed::to_all())
    }

    fn names(&self, path: &str) -> Vec<String> {
        self.roots.entries("workspace", path).unwrap().into_iter().map(|entry| entry.path).collect()
    }

    fn search(&self, glob: &str, pattern: Option<&str>) -> Result<Vec<Found>, FilesError> {
        let pattern = pattern.map(|regex| Pattern { regex: regex.to_owned(), ignore_case: false });
        let findings = self.roots.search("workspace", glob, pattern.as_ref(), 0, MAX_FOUND, &|| false)?;
        assert!(!findings.more);
        Ok(findings.found)
    }

    fn globbed(&self, glob: &str) -> Vec<String> {
        self.search(glob, None).unwrap().into_iter().map(|found| found.path).collect()
    }

    /// The result codes of the operations that follow a link at the end of a path: an error code, or `ok`.
    fn follow(&self, path: &str) -> Vec<&'static str> {
        let code = |result: Result<(), FilesError>| result.map_or_else(|error| error.code(), |()| "ok");
        let roots = &self.roots;
        vec![
            code(roots.stat("workspace", path).map(drop)),
            code(roots.entries("workspace", path).map(drop)),
            code(roots.read("workspace", path, 0, 100).map(drop)),
            code(roots.write("workspace", path, b"pwned", None, &Agreed::to_all()).map(drop)),
        ]
    }

    /// The result codes of all operations.
    fn everything(&self, path: &str) -> Vec<&'static str> {
        let code = |result: Result<(), FilesError>| result.map_or_else(|error| error.code(), |()| "ok");
        let roots = &self.roots;
        let mut codes = self.follow(path);
        codes.extend([
            code(roots.rename("workspace", path, "stolen", &Agreed::to_all())),
            code(roots.rename("workspace", "src/main.rs", path, &Agreed::to_all())),
            code(roots.remove("workspace", path, &Agreed::to_all())),
        ]);
        codes
    }

    fn assert_untouched(&self) {
        let mut seen = Vec::new();
        for dir in ["outside", "outside/dir", "root/home"] {
            for entry in self.at(dir).read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    assert_eq!(fs::read_to_string(&path).unwrap(), SECRET, "{}", path.display());
                }
                seen.push(path);
            }
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    }
}

#[test]
fn an_invalid_path_is_refused_by_every_operation() {
    let fixture = Fixture::new();
    let outside = fixture.at("outside/secret").display().to_string();
    let long = "a/".repeat(2049);
    let deep = "a/".repeat(129);
    for path in
        [&outside, "/", "//", "..", "../outside/secret", "src/../../outside/secret", "src/..", "a\0b", &long, &deep]
    {
        assert_eq!(fixture.everything(path), ["bad-path"; 7], "{path:?}");
    }
    fixture.assert_untouched();
    assert_eq!(fixture.read("src//./main.rs").unwrap(), "fn main() {}\n");
    assert_eq!(fixture.names("."), fixture.names(""));
    for path in ["", ".", "./"] {
        assert_eq!(fixture.roots.remove("workspace", path, &Agreed::to_all()).unwrap_err().code(), "bad-path");
        assert_eq!(fixture.roots.rename("workspace", path, "x", &Agreed::to_all()).unwrap_err().code(), "bad-path");
    }
}

#[test]
fn links_out_of_the_root_are_not_followed() {
    let fixture = Fixture::new();
    fixture.link(fixture.at("outside/secret"), "absolute");
    fixture.link("../outside/secret", "relative");
    fixture.link("chain-2", "chain-1");
    fixture.link("src/chain-3", "chain-2");
    fixture.link("../../outside/secret", "src/chain-3");
    fixture.link("src/../../root/../outside/secret", "devious");
    fixture.link("../outside/new", "dangling");
    // Leads back into the root, but through a path outside.
    fixture.link("../root/src/main.rs", "returning");
    fixture.link(fixture.at("root/src/main.rs"), "rooted");
    for link in ["absolute", "relative", "chain-1", "chain-2", "devious", "dangling", "returning", "rooted"] {
        assert_eq!(fixture.follow(link), ["outside"; 4], "{link}");
    }
    for (name, target) in
        [("dir", fixture.at("outside")), ("dir-2", PathBuf::from("../outside")), ("dir-3", "/".into())]
    {
        fixture.link(target, name);
        assert_eq!(fixture.everything(&format!("{name}/secret")), ["outside"; 7]);
        assert_eq!(fixture.everything(&format!("{name}/new/deep")), ["outside"; 7]);
        assert_eq!(fixture.roots.entries("workspace", name).unwrap_err().code(), "outside");
    }
    fixture.link("round-2", "round-1");
    fixture.link("round-1", "round-2");
    assert_eq!(fixture.read("round-1").unwrap_err().code(), "bad-path");
    assert_eq!(fixture.search("**", Some("canary")).unwrap(), []);
    assert!(!fixture.globbed("**").iter().any(|path| path.contains("dir") || path.contains("chain")));
    fixture.assert_untouched();
}

#[test]
fn links_inside_are_followed_and_stay_links() {
    let fixture = Fixture::new();
    fixture.link("src/main.rs", "main");
    fixture.link("src", "source");
    fixture.link("../src/./../source/main.rs", "src/round");
    fixture.link("src/new.rs", "coming");
    for path in ["main", "source/main.rs", "src/round"] {
        assert_eq!(fixture.read(path).unwrap(), "fn main() {}\n");
        let stat = fixture.roots.stat("workspace", path).unwrap();
        assert_eq!((stat.kind, stat.size, stat.path), (Kind::File, 13, path.to_owned()));
    }
    let version = fixture.roots.stat("workspace", "main").unwrap().version;
    fixture.write("main", "fn other() {}\n", Some(&version)).unwrap();
    fixture.write("coming", "new", None).unwrap();
    assert_eq!(fs::read_to_string(fixture.at("root/src/main.rs")).unwrap(), "fn other() {}\n");
    assert_eq!(fs::read_to_string(fixture.at("root/src/new.rs")).unwrap(), "new");
    assert!(fixture.at("root/main").is_symlink() && fixture.at("root/coming").is_symlink());

    let kinds: Vec<_> = fixture.roots.entries("workspace", "").unwrap().into_iter().map(|e| (e.path, e.kind)).collect();
    let link = |name: &str| (name.to_owned(), Kind::Link);
    assert_eq!(kinds, [link("coming"), link("main"), link("source"), ("src".to_owned(), Kind::Directory)]);
    assert_eq!(fixture.names("source"), ["source/main.rs", "source/new.rs", "source/round"]);

    fixture.roots.rename("workspace", "main", "moved", &Agreed::to_all()).unwrap();
    assert!(fixture.at("root/moved").is_symlink());
    fixture.roots.remove("workspace", "source", &Agreed::to_all()).unwrap();
    assert!(fixture.at("root/src/main.rs").is_file());
}

#[test]
fn denied_paths_below_a_root_cannot_be_reached_moved_or_seen() {
    let fixture = Fixture::new();
    fixture.link("home", "to-home");
    fixture.link("home/secret", "to-secret");
    fixture.link("src/../to-home", "to-link");
    for path in ["home", "home/secret", "home/new", "home/new/deep", "to-home/secret", "to-link/new"] {
        assert_eq!(fixture.everything(path), ["closed"; 7], "{path}");
    }
    for path in ["to-home", "to-secret", "to-link"] {
        assert_eq!(fixture.follow(path), ["closed"; 4], "{path}");
    }
    assert!(!fixture.names("").contains(&"home".to_owned()));
    assert_eq!(fixture.search("**", Some("(?<unsearched>){0}canary")).unwrap(), [], "nor named as left out");
    assert_eq!(fixture.globbed("home/**"), [""; 0]);

    // Moving a parent would move the denied path too. If the denied path is a link, its target is denied.
    fs::create_dir_all(fixture.at("root/users/me")).unwrap();
    fs::rename(fixture.at("root/home"), fixture.at("root/users/me/.hermes")).unwrap();
    fixture.link("users/me/.hermes", "home");
    for path in ["users", "users/me", "users/me/.hermes"] {
        assert_eq!(
            fixture.roots.rename("workspace", path, "elsewhere", &Agreed::to_all()).unwrap_err().code(),
            "closed",
            "{path}"
        );
    }
    assert_eq!(fixture.read("users/me/.hermes/secret").unwrap_err().code(), "closed");
    fixture.write("users/me/notes", "fine", None).unwrap();
    fs::rename(fixture.at("root/users/me/.hermes"), fixture.at("root/users/me/was-home")).unwrap();
    fs::rename(fixture.at("root/users/me/was-home"), fixture.at("root/real-home")).unwrap();
    fs::remove_file(fixture.at("root/home")).unwrap();
    fs::rename(fixture.at("root/real-home"), fixture.at("root/home")).unwrap();
    fixture.assert_untouched();
}

#[test]
fn a_single_file_can_be_denied() {
    let fixture = Fixture::new();
    let roots = Fixture::roots(&fixture.at("root"), &[fixture.at("root/src/main.rs")]);
    let fixture = Fixture { roots, ..fixture };
    fixture.link("src/main.rs", "link");
    assert_eq!(fixture.everything("src/main.rs"), ["closed"; 7]);
    assert_eq!(fixture.read("link").unwrap_err().code(), "closed");
    assert_eq!(fixture.roots.rename("workspace", "src", "elsewhere", &Agreed::to_all()).unwrap_err().code(), "closed");
}

#[test]
fn a_denied_path_that_does_not_exist_cannot_be_created() {
    let fixture = Fixture::new();
    let roots = Fixture::roots(&fixture.at("root"), &[fixture.at("root/me/.hermes"), fixture.at("root/src/.hermes")]);
    let fixture = Fixture { roots, ..fixture };
    for path in
        ["me", "me/.hermes", "me/.hermes/config.yaml", "src/.hermes", "src/.HERMES", "src/.hermes/deep/config.yaml"]
    {
        assert_eq!(fixture.write(path, "pwned", None).unwrap_err().code(), "closed", "{path}");
        fixture.roots.write("workspace", "evil/.hermes/config.yaml", b"pwned", None, &Agreed::to_all()).unwrap();
        assert_eq!(
            fixture.roots.rename("workspace", "evil", path, &Agreed::to_all()).unwrap_err().code(),
            "closed",
            "{path}"
        );
    }
    fixture.write("me/notes", "fine", None).unwrap();
    assert_eq!(fixture.write("me/.hermes", "pwned", None).unwrap_err().code(), "closed");
    assert_eq!(fixture.roots.rename("workspace", "src", "elsewhere", &Agreed::to_all()).unwrap_err().code(), "closed");
    for path in ["root/me/.hermes", "root/src/.hermes", "root/src/.HERMES"] {
        assert!(!fixture.at(path).exists());
    }
}

#[test]
fn a_root_inside_a_denied_path_refuses_everything() {
    let fixture = Fixture::new();
    for denied in ["root", "root/home", "outside/.."] {
        let roots = Fixture::roots(&fixture.at("root/home"), &[fixture.at(denied)]);
        let fixture = Fixture { roots, base: tempfile::tempdir().unwrap() };
        assert_eq!(fixture.everything("secret"), ["closed"; 7], "{denied}");
        assert_eq!(fixture.roots.entries("workspace", "").unwrap_err().code(), "closed");
        assert_eq!(fixture.search("**", None).unwrap_err().code(), "closed");
    }
    let roots = Fixture::roots(&fixture.at("root/home"), &[fixture.at("root/src"), fixture.at("outside")]);
    assert_eq!(roots.read("workspace", "secret", 0, 100).unwrap().content, SECRET.as_bytes());
}

#[test]
fn swapping_a_directory_for_a_link_opens_no_way_out() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.at("root/swap")).unwrap();
    fs::write(fixture.at("root/swap/secret"), "harmless").unwrap();
    fixture.link("home", "to-home");
    fixture.link("../outside", "to-outside");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let [swap, aside] = ["root/swap", "root/aside"].map(|path| fixture.at(path));
            let links = ["root/to-home", "root/to-outside"].map(|path| fixture.at(path));
            for (turn, link) in links.iter().cycle().enumerate() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                fs::rename(&swap, &aside).unwrap();
                // A write may have created a directory at this path; it is then removed.
                let swapped = fs::rename(link, &swap).is_ok();
                (0..turn % 64).for_each(|_| std::hint::spin_loop());
                if swapped {
                    fs::rename(&swap, link).unwrap();
                }
                while fs::rename(&aside, &swap).is_err() {
                    let _ = fs::remove_dir_all(&swap);
                }
                (0..turn % 61).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut reads = 0;
        for round in 0..3_000 {
            if let Ok(content) = fixture.read("swap/secret") {
                assert_eq!(content, "harmless");
                reads += 1;
            }
            if round % 10 > 0 {
                continue;
            }
            if let Ok(entries) = fixture.roots.entries("workspace", "swap") {
                assert!(entries.iter().all(|entry| entry.path != "swap/dir"), "{entries:?}");
            }
            for found in fixture.search("**", Some("canary|harmless")).unwrap() {
                assert_eq!(found.text, "harmless");
            }
        }
        for _ in 0..200 {
            let _ = fixture.write("swap/secret", "harmless", None);
            let _ = fixture.write("swap/dir/secret", "harmless", None);
            let _ = fixture.roots.remove("workspace", "swap/dir/secret", &Agreed::to_all());
            let _ = fixture.roots.remove("workspace", "swap/dir", &Agreed::to_all());
        }
        done.store(true, Ordering::Relaxed);
        assert!(reads > 0);
    });
    fixture.assert_untouched();
}

#[test]
fn pipes_sockets_and_directories_are_not_files_and_never_block() {
    let fixture = Fixture::new();
    assert!(Command::new("mkfifo").arg(fixture.at("root/pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(fixture.at("root/socket")).unwrap();
    fixture.link("pipe", "link");
    for path in ["pipe", "socket", "link", "src", ""] {
        assert_eq!(fixture.read(path).unwrap_err().code(), "not-a-file", "{path}");
        assert_eq!(fixture.write(path, "x", None).unwrap_err().code(), "not-a-file", "{path}");
    }
    assert_eq!(fixture.roots.remove("workspace", "pipe", &Agreed::to_all()).unwrap_err().code(), "not-a-file");
    assert_eq!(fixture.roots.stat("workspace", "pipe").unwrap().kind, Kind::Other);
    assert_eq!(fixture.roots.entries("workspace", "src/main.rs").unwrap_err().code(), "not-a-directory");
    assert_eq!(fixture.read("src/main.rs/deeper").unwrap_err().code(), "not-a-directory");
    assert_eq!(fixture.globbed("*"), ["src/main.rs"]);
    assert_eq!(fixture.search("*", Some("main")).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_path_reaches_outside_of_the_root(
        parts in prop::collection::vec(
            prop_oneof![
                Just("..".to_owned()), Just(".".to_owned()), Just(String::new()), Just("out".to_owned()),
                Just("up".to_owned()), Just("src".to_owned()), Just("home".to_owned()), Just("to-home".to_owned()),
                Just("root".to_owned()), Just("outside".to_owned()), Just("secret".to_owned()), Just("dir".to_owned()),
                "[a-z.~*\\\\\0 ]{1,3}", any::<String>(),
            ],
            0..6,
        ),
        other in prop_oneof![Just("up/outside/new"), Just("to-home/new"), Just("src/new"), Just("out/new")],
        absolute in any::<bool>(),
    ) {
        let fixture = Fixture::new();
        fixture.link(fixture.at("outside"), "out");
        fixture.link("..", "up");
        fixture.link("home", "to-home");
        let path = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
        let roots = &fixture.roots;
        if let Ok(slice) = roots.read("workspace", &path, 0, 100) {
            prop_assert!(slice.content != SECRET.as_bytes());
        }
        if let Ok(entries) = roots.entries("workspace", &path) {
            prop_assert!(entries.iter().all(|entry| !entry.path.ends_with("secret")));
        }
        if let Ok(findings) = roots.search("workspace", &path, None, 0, 100, &|| false) {
            prop_assert!(findings.found.iter().all(|found| !found.path.contains("secret")));
        }
        let _ = roots.rename("workspace", &path, other, &Agreed::to_all());
        let _ = roots.rename("workspace", other, &path, &Agreed::to_all());
        let _ = roots.write("workspace", &path, b"pwned", None, &Agreed::to_all());
        let _ = roots.remove("workspace", &path, &Agreed::to_all());
        fixture.assert_untouched();
        let mut beside: Vec<_> = fixture.base.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["outside", "root"]);
    }
}
