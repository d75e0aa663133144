//! Compiled code of the real binary: made by a child process, and loaded only from this installation's cache.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

const COMPILING: &str = "compiling the plugin";

fn answering() -> Server {
    Server::answering(|_, _| Reply::text("Yes."))
}

/// A home that does not share code with others.
fn cold(server: &Server) -> Home {
    let home = Home::new();
    home.use_endpoint(&server.url());
    home
}

fn artifacts(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path().join("cache/code")).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "cwasm")).collect();
    files.sort();
    files
}

fn binary() -> PathBuf {
    std::env::var_os("HERMES_BIN").map_or_else(
        || {
            let test = std::env::current_exe().unwrap();
            test.parent().and_then(|deps| deps.parent()).unwrap().join("hermes")
        },
        PathBuf::from,
    )
}

/// The same with an installed plugin, which is selected as engine. No build has compiled it in advance.
fn with_installed_plugin(server: &Server) -> Home {
    let home = cold(server);
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    home.set("context.engine", json!("hostile"));
    // The grant has compiled it.
    fs::remove_dir_all(home.path().join("cache/code")).unwrap();
    home
}

#[test]
fn a_new_home_starts_with_precompiled_plugins() {
    let server = answering();
    let home = cold(&server);
    let first = home.hermes(&["-z", "hi"]).run().success();
    assert!(!first.stderr.contains(COMPILING), "the binary was built without `cargo xtask`, or compiles anew\n{first}");
    assert!(!artifacts(&home).is_empty());
    for file in artifacts(&home) {
        fs::write(file, "altered").unwrap();
    }
    let altered = home.hermes(&["-z", "hi"]).run().success();
    assert!(!altered.stderr.contains(COMPILING), "{altered}");
    assert_eq!(altered.stdout, "Yes.\n");
}

#[test]
fn installed_plugins_are_compiled_once_with_a_notice() {
    let server = answering();
    let home = with_installed_plugin(&server);
    home.hermes(&["-z", "hi"]).run().success().says(&[COMPILING, "hostile"]);
    let again = home.hermes(&["-z", "hi"]).run().success();
    assert!(!again.stderr.contains(COMPILING), "{again}");
}

#[test]
fn changed_or_foreign_code_is_compiled_again() {
    let server = answering();
    let (home, other) = (with_installed_plugin(&server), with_installed_plugin(&server));
    home.hermes(&["-z", "hi"]).run().success();
    let count = 1;

    fs::create_dir_all(other.path().join("cache/code")).unwrap();
    for file in artifacts(&home) {
        fs::copy(&file, other.path().join("cache/code").join(file.file_name().unwrap())).unwrap();
    }
    let foreign = other.hermes(&["-z", "hi"]).run().success();
    assert_eq!(foreign.stderr.matches(COMPILING).count(), count, "{foreign}");

    for file in artifacts(&home) {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    let altered = home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(altered.stderr.matches(COMPILING).count(), count, "{altered}");
    assert_eq!(altered.stdout, "Yes.\n");

    fs::set_permissions(home.path().join("code.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let leaked = home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(leaked.stderr.matches(COMPILING).count(), count, "{leaked}");
    assert_eq!(fs::metadata(home.path().join("code.key")).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Runs the hidden command itself, like the program does.
fn compile(component: &[u8], arguments: &[&str]) -> (Option<i32>, usize, String) {
    let mut child = Command::new(binary())
        .arg("compile-plugin")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let component = component.to_vec();
    // Keep the pipe open until it exits, like a live parent.
    let feeding = std::thread::spawn(move || {
        let fed = input.write_all(&(component.len() as u64).to_le_bytes()).and_then(|()| input.write_all(&component));
        (fed.is_ok(), input)
    });
    let mut output = child.stdout.take().unwrap();
    let mut code = Vec::new();
    std::io::Read::read_to_end(&mut output, &mut code).unwrap();
    let mut stderr = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut stderr).unwrap();
    let status = child.wait().unwrap();
    drop(feeding.join());
    (status.code(), code.len(), stderr)
}

fn hostile() -> Vec<u8> {
    let staged = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/test-guests/hostile/hostile.wasm");
    fs::read(&staged).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask test`", staged.display()))
}

#[test]
fn the_compiler_stays_within_its_memory_and_reports_failure() {
    let (status, code, _) = compile(&hostile(), &[]);
    assert!(status == Some(0) && code > 100_000);
    let (status, _, stderr) = compile(&hostile(), &["--memory=60000000"]);
    assert_ne!(status, Some(0), "it went beyond its memory");
    assert!(stderr.contains("memory") || stderr.contains("thread"), "{stderr}");
}

#[test]
fn the_compiler_refuses_a_file_that_is_not_a_component() {
    let (status, code, stderr) = compile(b"no component", &[]);
    assert_eq!((status, code), (Some(65), 0), "{stderr}");
    assert!(!stderr.trim().is_empty() && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn the_compiler_exits_with_its_parent() {
    let mut child = Command::new(binary())
        .arg("compile-plugin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let component = hostile();
    input.write_all(&(component.len() as u64).to_le_bytes()).unwrap();
    input.write_all(&component[..component.len() / 2]).unwrap();
    drop(input);
    assert_ne!(child.wait().unwrap().code(), Some(0));
}

/// The priority of a process, from its line in `/proc`.
#[cfg(target_os = "linux")]
fn niceness(process: &str) -> i32 {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = line.rsplit_once(") ").unwrap();
    fields.split(' ').nth(16).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn only_code_that_nobody_waits_for_is_compiled_at_low_priority() {
    let own = niceness("self");
    for (arguments, expected) in [(&[][..], own), (&["--draft"], own), (&["--background"], (own + 10).min(19))] {
        let mut child = Command::new(binary())
            .arg("compile-plugin")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The limits come after the priority, and before the component is read.
        let limits = format!("/proc/{}/limits", child.id());
        let begun = std::time::Instant::now();
        while !fs::read_to_string(&limits)
            .unwrap()
            .lines()
            .any(|line| line.starts_with("Max cpu time") && line.contains("600"))
        {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{arguments:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(niceness(&child.id().to_string()), expected, "{arguments:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
