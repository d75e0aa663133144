//! Attacks on the roots. What each operation promises to those who do not attack is in the modules below.

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

/// `root/`, which is granted, beside `outside/`, which is not; `root/home/` is denied.
struct Ground {
    base: TempDir,
    roots: Roots,
}

impl Ground {
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
        Roots::new(vec![
            Root::open("workspace", path, true, denied.iter().cloned()).unwrap(),
            Root::open("frozen", path, false, denied.iter().cloned()).unwrap(),
        ])
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
        self.roots.write("workspace", path, content.as_bytes(), version)
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

    /// Every operation that follows a link at the path's end, each with its error's code, or `ok`.
    fn follow(&self, path: &str) -> Vec<&'static str> {
        let code = |result: Result<(), FilesError>| result.map_or_else(|error| error.code(), |()| "ok");
        let roots = &self.roots;
        vec![
            code(roots.stat("workspace", path).map(drop)),
            code(roots.entries("workspace", path).map(drop)),
            code(roots.read("workspace", path, 0, 100).map(drop)),
            code(roots.write("workspace", path, b"pwned", None).map(drop)),
        ]
    }

    /// Every operation, likewise.
    fn everything(&self, path: &str) -> Vec<&'static str> {
        let code = |result: Result<(), FilesError>| result.map_or_else(|error| error.code(), |()| "ok");
        let roots = &self.roots;
        let mut codes = self.follow(path);
        codes.extend([
            code(roots.rename("workspace", path, "stolen")),
            code(roots.rename("workspace", "src/main.rs", path)),
            code(roots.remove("workspace", path)),
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
fn a_path_that_no_root_could_hold_is_refused_by_every_operation() {
    let ground = Ground::new();
    let outside = ground.at("outside/secret").display().to_string();
    let long = "a/".repeat(2049);
    let deep = "a/".repeat(129);
    for path in
        [&outside, "/", "//", "..", "../outside/secret", "src/../../outside/secret", "src/..", "a\0b", &long, &deep]
    {
        assert_eq!(ground.everything(path), ["bad-path"; 7], "{path:?}");
    }
    ground.assert_untouched();
    assert_eq!(ground.read("src//./main.rs").unwrap(), "fn main() {}\n");
    assert_eq!(ground.names("."), ground.names(""));
    for path in ["", ".", "./"] {
        assert_eq!(ground.roots.remove("workspace", path).unwrap_err().code(), "bad-path");
        assert_eq!(ground.roots.rename("workspace", path, "x").unwrap_err().code(), "bad-path");
    }
}

#[test]
fn links_that_lead_out_are_not_followed() {
    let ground = Ground::new();
    ground.link(ground.at("outside/secret"), "absolute");
    ground.link("../outside/secret", "relative");
    ground.link("chain-2", "chain-1");
    ground.link("src/chain-3", "chain-2");
    ground.link("../../outside/secret", "src/chain-3");
    ground.link("src/../../root/../outside/secret", "devious");
    ground.link("../outside/new", "dangling");
    // Back into the root, but by a way that leads out of it.
    ground.link("../root/src/main.rs", "returning");
    ground.link(ground.at("root/src/main.rs"), "rooted");
    for link in ["absolute", "relative", "chain-1", "chain-2", "devious", "dangling", "returning", "rooted"] {
        assert_eq!(ground.follow(link), ["outside"; 4], "{link}");
    }
    for (name, target) in [("dir", ground.at("outside")), ("dir-2", PathBuf::from("../outside")), ("dir-3", "/".into())]
    {
        ground.link(target, name);
        assert_eq!(ground.everything(&format!("{name}/secret")), ["outside"; 7]);
        assert_eq!(ground.everything(&format!("{name}/new/deep")), ["outside"; 7]);
        assert_eq!(ground.roots.entries("workspace", name).unwrap_err().code(), "outside");
    }
    ground.link("round-2", "round-1");
    ground.link("round-1", "round-2");
    assert_eq!(ground.read("round-1").unwrap_err().code(), "bad-path");
    assert_eq!(ground.search("**", Some("canary")).unwrap(), []);
    assert!(!ground.globbed("**").iter().any(|path| path.contains("dir") || path.contains("chain")));
    ground.assert_untouched();
}

#[test]
fn links_inside_are_followed_and_stay_links() {
    let ground = Ground::new();
    ground.link("src/main.rs", "main");
    ground.link("src", "source");
    ground.link("../src/./../source/main.rs", "src/round");
    ground.link("src/new.rs", "coming");
    for path in ["main", "source/main.rs", "src/round"] {
        assert_eq!(ground.read(path).unwrap(), "fn main() {}\n");
        let stat = ground.roots.stat("workspace", path).unwrap();
        assert_eq!((stat.kind, stat.size, stat.path), (Kind::File, 13, path.to_owned()));
    }
    let version = ground.roots.stat("workspace", "main").unwrap().version;
    ground.write("main", "fn other() {}\n", Some(&version)).unwrap();
    ground.write("coming", "new", None).unwrap();
    assert_eq!(fs::read_to_string(ground.at("root/src/main.rs")).unwrap(), "fn other() {}\n");
    assert_eq!(fs::read_to_string(ground.at("root/src/new.rs")).unwrap(), "new");
    assert!(ground.at("root/main").is_symlink() && ground.at("root/coming").is_symlink());

    let kinds: Vec<_> = ground.roots.entries("workspace", "").unwrap().into_iter().map(|e| (e.path, e.kind)).collect();
    let link = |name: &str| (name.to_owned(), Kind::Link);
    assert_eq!(kinds, [link("coming"), link("main"), link("source"), ("src".to_owned(), Kind::Directory)]);
    assert_eq!(ground.names("source"), ["source/main.rs", "source/new.rs", "source/round"]);

    ground.roots.rename("workspace", "main", "moved").unwrap();
    assert!(ground.at("root/moved").is_symlink());
    ground.roots.remove("workspace", "source").unwrap();
    assert!(ground.at("root/src/main.rs").is_file());
}

#[test]
fn what_is_denied_below_a_root_cannot_be_reached_moved_or_seen() {
    let ground = Ground::new();
    ground.link("home", "to-home");
    ground.link("home/secret", "to-secret");
    ground.link("src/../to-home", "to-link");
    for path in ["home", "home/secret", "home/new", "home/new/deep", "to-home/secret", "to-link/new"] {
        assert_eq!(ground.everything(path), ["closed"; 7], "{path}");
    }
    for path in ["to-home", "to-secret", "to-link"] {
        assert_eq!(ground.follow(path), ["closed"; 4], "{path}");
    }
    assert!(!ground.names("").contains(&"home".to_owned()));
    assert_eq!(ground.search("**", Some("canary")).unwrap(), []);
    assert_eq!(ground.globbed("home/**"), [""; 0]);

    // What holds the denied place would carry it away; a link given as the denied place means what it leads to.
    fs::create_dir_all(ground.at("root/users/me")).unwrap();
    fs::rename(ground.at("root/home"), ground.at("root/users/me/.hermes")).unwrap();
    ground.link("users/me/.hermes", "home");
    for path in ["users", "users/me", "users/me/.hermes"] {
        assert_eq!(ground.roots.rename("workspace", path, "elsewhere").unwrap_err().code(), "closed", "{path}");
    }
    assert_eq!(ground.read("users/me/.hermes/secret").unwrap_err().code(), "closed");
    ground.write("users/me/notes", "fine", None).unwrap();
    fs::rename(ground.at("root/users/me/.hermes"), ground.at("root/users/me/was-home")).unwrap();
    fs::rename(ground.at("root/users/me/was-home"), ground.at("root/real-home")).unwrap();
    fs::remove_file(ground.at("root/home")).unwrap();
    fs::rename(ground.at("root/real-home"), ground.at("root/home")).unwrap();
    ground.assert_untouched();
}

#[test]
fn a_single_file_can_be_denied() {
    let ground = Ground::new();
    let roots = Ground::roots(&ground.at("root"), &[ground.at("root/src/main.rs")]);
    let ground = Ground { roots, ..ground };
    ground.link("src/main.rs", "link");
    assert_eq!(ground.everything("src/main.rs"), ["closed"; 7]);
    assert_eq!(ground.read("link").unwrap_err().code(), "closed");
    assert_eq!(ground.roots.rename("workspace", "src", "elsewhere").unwrap_err().code(), "closed");
}

#[test]
fn a_denied_place_that_does_not_exist_is_not_made() {
    let ground = Ground::new();
    let roots = Ground::roots(&ground.at("root"), &[ground.at("root/me/.hermes"), ground.at("root/src/.hermes")]);
    let ground = Ground { roots, ..ground };
    for path in
        ["me", "me/.hermes", "me/.hermes/config.yaml", "src/.hermes", "src/.HERMES", "src/.hermes/deep/config.yaml"]
    {
        assert_eq!(ground.write(path, "pwned", None).unwrap_err().code(), "closed", "{path}");
        ground.roots.write("workspace", "evil/.hermes/config.yaml", b"pwned", None).unwrap();
        assert_eq!(ground.roots.rename("workspace", "evil", path).unwrap_err().code(), "closed", "{path}");
    }
    ground.write("me/notes", "fine", None).unwrap();
    assert_eq!(ground.write("me/.hermes", "pwned", None).unwrap_err().code(), "closed");
    assert_eq!(ground.roots.rename("workspace", "src", "elsewhere").unwrap_err().code(), "closed");
    for path in ["root/me/.hermes", "root/src/.hermes", "root/src/.HERMES"] {
        assert!(!ground.at(path).exists());
    }
}

#[test]
fn a_root_that_lies_in_a_denied_place_refuses_everything() {
    let ground = Ground::new();
    for denied in ["root", "root/home", "outside/.."] {
        let roots = Ground::roots(&ground.at("root/home"), &[ground.at(denied)]);
        let ground = Ground { roots, base: tempfile::tempdir().unwrap() };
        assert_eq!(ground.everything("secret"), ["closed"; 7], "{denied}");
        assert_eq!(ground.roots.entries("workspace", "").unwrap_err().code(), "closed");
        assert_eq!(ground.search("**", None).unwrap_err().code(), "closed");
    }
    let roots = Ground::roots(&ground.at("root/home"), &[ground.at("root/src"), ground.at("outside")]);
    assert_eq!(roots.read("workspace", "secret", 0, 100).unwrap().content, SECRET.as_bytes());
}

#[test]
fn a_directory_swapped_for_a_link_lets_nothing_through() {
    let ground = Ground::new();
    fs::create_dir(ground.at("root/swap")).unwrap();
    fs::write(ground.at("root/swap/secret"), "harmless").unwrap();
    ground.link("home", "to-home");
    ground.link("../outside", "to-outside");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let [swap, aside] = ["root/swap", "root/aside"].map(|path| ground.at(path));
            let links = ["root/to-home", "root/to-outside"].map(|path| ground.at(path));
            for (turn, link) in links.iter().cycle().enumerate() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                fs::rename(&swap, &aside).unwrap();
                // A write may have made a directory in its place, which then gives way.
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
            if let Ok(content) = ground.read("swap/secret") {
                assert_eq!(content, "harmless");
                reads += 1;
            }
            if round % 10 > 0 {
                continue;
            }
            if let Ok(entries) = ground.roots.entries("workspace", "swap") {
                assert!(entries.iter().all(|entry| entry.path != "swap/dir"), "{entries:?}");
            }
            for found in ground.search("**", Some("canary|harmless")).unwrap() {
                assert_eq!(found.text, "harmless");
            }
        }
        for _ in 0..200 {
            let _ = ground.write("swap/secret", "harmless", None);
            let _ = ground.write("swap/dir/secret", "harmless", None);
            let _ = ground.roots.remove("workspace", "swap/dir/secret");
            let _ = ground.roots.remove("workspace", "swap/dir");
        }
        done.store(true, Ordering::Relaxed);
        assert!(reads > 0);
    });
    ground.assert_untouched();
}

#[test]
fn pipes_sockets_and_directories_are_no_files_and_nobody_waits_for_them() {
    let ground = Ground::new();
    assert!(Command::new("mkfifo").arg(ground.at("root/pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(ground.at("root/socket")).unwrap();
    ground.link("pipe", "link");
    for path in ["pipe", "socket", "link", "src", ""] {
        assert_eq!(ground.read(path).unwrap_err().code(), "not-a-file", "{path}");
        assert_eq!(ground.write(path, "x", None).unwrap_err().code(), "not-a-file", "{path}");
    }
    assert_eq!(ground.roots.remove("workspace", "pipe").unwrap_err().code(), "not-a-file");
    assert_eq!(ground.roots.stat("workspace", "pipe").unwrap().kind, Kind::Other);
    assert_eq!(ground.roots.entries("workspace", "src/main.rs").unwrap_err().code(), "not-a-directory");
    assert_eq!(ground.read("src/main.rs/deeper").unwrap_err().code(), "not-a-directory");
    assert_eq!(ground.globbed("*"), ["src/main.rs"]);
    assert_eq!(ground.search("*", Some("main")).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_path_whatever_touches_what_lies_outside(
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
        let ground = Ground::new();
        ground.link(ground.at("outside"), "out");
        ground.link("..", "up");
        ground.link("home", "to-home");
        let path = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
        let roots = &ground.roots;
        if let Ok(slice) = roots.read("workspace", &path, 0, 100) {
            prop_assert!(slice.content != SECRET.as_bytes());
        }
        if let Ok(entries) = roots.entries("workspace", &path) {
            prop_assert!(entries.iter().all(|entry| !entry.path.ends_with("secret")));
        }
        if let Ok(findings) = roots.search("workspace", &path, None, 0, 100, &|| false) {
            prop_assert!(findings.found.iter().all(|found| !found.path.contains("secret")));
        }
        let _ = roots.rename("workspace", &path, other);
        let _ = roots.rename("workspace", other, &path);
        let _ = roots.write("workspace", &path, b"pwned", None);
        let _ = roots.remove("workspace", &path);
        ground.assert_untouched();
        let mut beside: Vec<_> = ground.base.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["outside", "root"]);
    }
}
