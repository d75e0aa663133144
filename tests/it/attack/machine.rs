//! A machine that is broken: no room, no descriptors, wrong clocks, homes that cannot be used, and commands that run at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hermes_tests::{Home, Reply, Server, binary};
use hermes_zoo::Shell;
use serde_json::{Value, json};

fn server() -> Server {
    Server::answering(|_, number| Reply::text(format!("Answer {number}.")))
}

/// Runs the binary from a shell that first runs this script.
fn shell(home: &Home, script: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{script}; exec \"$0\" \"$@\"")).arg(binary()).args(arguments);
    command.current_dir(home.workspace()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", home.path().parent().unwrap().join("user")).env("HERMES_HOME", home.path());
    command.stdin(Stdio::null()).output().unwrap()
}

/// Checks that a command ended by itself, and not by a panic or a signal.
#[track_caller]
fn ended(name: &str, output: &std::process::Output) -> bool {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(code.is_some_and(|code| code != 101), "{name}: {:?}\n{stderr}", output.status);
    assert!(!stderr.contains("panicked at"), "{name}: {stderr}");
    assert!(output.status.success() || !stderr.trim().is_empty(), "{name}: it failed without a word");
    output.status.success()
}

/// Checks that the home works when the machine does again.
#[track_caller]
fn recovered(name: &str, home: &Home) {
    home.hermes(&["-z", "again"]).run().success();
    let check = home.hermes(&["sessions", "check"]).run();
    assert!(check.status.success(), "{name}: {check}");
}

#[test]
fn limits_of_the_system_end_a_turn_with_an_error_and_later_ones_work() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["-z", "hello"]).run().success();
    let mut worked = 0;
    for limit in [
        "ulimit -n 4",
        "ulimit -n 8",
        "ulimit -n 12",
        "ulimit -n 16",
        "ulimit -n 24",
        "ulimit -n 64",
        // No file may grow, as on a full disk.
        "trap '' XFSZ; ulimit -f 0",
        "trap '' XFSZ; ulimit -f 1",
        "trap '' XFSZ; ulimit -f 64",
    ] {
        worked += usize::from(ended(limit, &shell(&home, limit, &["-z", "hello"])));
        recovered(limit, &home);
    }
    assert!(worked < 9, "no limit was reached");
}

/// Begins with a limit of memory under which the program just starts, so that no thread fits. Each round has room for one more.
/// If the threads fit but not their work, the allocator ends the process, which no program can turn into an error.
#[cfg(target_os = "linux")]
#[test]
fn a_system_that_starts_too_few_threads_is_an_error_in_words() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["-z", "hello"]).run().success();
    let limit = |size: u32| format!("ulimit -v {size}");
    let starts = |size: &u32| shell(&home, &limit(*size), &["--version"]).status.success();
    let least = (1..400).map(|step| step * 4_096).find(starts).expect("the program starts");
    let (mut refused, mut worked) = (0, 0);
    for step in 0..40 {
        let limit = limit(least + step * 1_536);
        let output = shell(&home, &format!("{limit}; exec timeout 120 \"$0\" \"$@\""), &["-z", "hello"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(124), "{limit}: it hangs\n{stderr}");
        assert!(!stderr.contains("panicked at"), "{limit}: {stderr}");
        worked += usize::from(output.status.success());
        refused += usize::from(stderr.contains("no thread can be started"));
    }
    assert!(refused > 0 && worked > 0, "{refused} refused, {worked} worked");
    recovered("few threads", &home);
}

#[test]
fn a_stream_that_is_full_or_closed_ends_a_command_without_a_panic() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["-z", "hello"]).run().success();
    for (script, arguments) in [
        ("exec >/dev/full", &["sessions", "list"][..]),
        ("exec >/dev/full", &["sessions", "export"]),
        ("exec >/dev/full", &["-z", "hello"]),
        ("exec >/dev/full", &["config", "show"]),
        ("exec >/dev/full", &["--help"]),
        ("exec 2>/dev/full", &["-z", "hello"]),
        ("exec >&-", &["-z", "hello"]),
        ("exec >&-", &["sessions", "list", "--json"]),
        ("exec 2>&-", &["-z", "hello"]),
        ("exec 0<&- 1>&- 2>&-", &["-z", "hello"]),
        ("exec 0<&- 1>&- 2>&-", &["plugins", "list"]),
    ] {
        let output = shell(&home, script, arguments);
        let name = format!("{script} {arguments:?}");
        assert!(output.status.code().is_some_and(|code| code != 101), "{name}: {:?}", output.status);
        recovered(&name, &home);
    }
    home.hermes(&["sessions", "export", "-o", "/dev/full"]).run().refused();
}

/// Makes a place for a home below a folder.
type Place = fn(&Path) -> PathBuf;

const PLACES: &[(&str, Place)] = &[
    ("a file", |root| {
        fs::write(root.join("file"), "x").unwrap();
        root.join("file")
    }),
    ("below a file", |root| {
        fs::write(root.join("file"), "x").unwrap();
        root.join("file/home")
    }),
    ("a device", |_| PathBuf::from("/dev/null")),
    ("below a device", |_| PathBuf::from("/dev/null/home")),
    ("the processes", |_| PathBuf::from("/proc/hermes")),
    ("a read-only file system", |_| PathBuf::from("/sys/hermes")),
    ("a link to itself", |root| {
        symlink("loop", root.join("loop")).unwrap();
        root.join("loop")
    }),
    ("a link that leads nowhere", |root| {
        symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        root.join("dangling")
    }),
    ("a pipe", |root| {
        assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        root.join("pipe")
    }),
    ("a name that is too long", |root| root.join("a".repeat(300))),
    ("a path that is too long", |root| root.join("a/".repeat(3_000))),
];

#[test]
fn a_home_that_cannot_be_one_is_an_error_that_names_it() {
    let server = server();
    let home = Home::with(&server);
    for (name, place) in PLACES {
        let root = tempfile::tempdir().unwrap();
        let at = place(root.path());
        for arguments in
            [&["-z", "hello"][..], &["sessions", "list"], &["plugins", "list"], &["config", "set", "a", "b"]]
        {
            let output = home.hermes(arguments).env("HERMES_HOME", at.to_str().unwrap()).run();
            let code = output.status.code();
            assert!(code.is_some_and(|code| code != 101), "{name} {arguments:?}: {output}");
            if arguments[0] == "-z" {
                assert!(code != Some(0) && !output.stderr.trim().is_empty(), "{name}: {output}");
            }
        }
    }
    assert!(server.requests().is_empty(), "a turn began without a home");
}

#[test]
fn a_clock_that_jumps_loses_no_session() {
    let server = server();
    let home = Home::with(&server);
    let moments = [
        "2026-11-23T10:00:00Z",
        "2025-11-23T10:00:00Z",
        "1970-01-01T00:00:00Z",
        "1969-07-20T20:17:00Z",
        "2076-11-23T10:00:00Z",
        "2038-01-19T03:14:08Z",
        "9999-12-31T23:59:59Z",
        "2026-02-28T23:59:59Z",
        "2026-11-23T10:00:00Z",
    ];
    let mut kept = 0;
    for moment in moments {
        let output = home.hermes(&["-z", "hello"]).at(moment).run();
        let code = output.status.code();
        assert!(code.is_some_and(|code| code != 101), "{moment}: {output}");
        kept += usize::from(code == Some(0));
        let listed = home.hermes(&["sessions", "list", "--json"]).at(moment).run();
        assert!(listed.status.code().is_some_and(|code| code != 101), "{moment}: {listed}");
        assert_eq!(home.sessions_json().len(), kept, "{moment}");
    }
    assert!(kept >= 6, "{kept} sessions");
    for session in home.sessions_json() {
        let id = session["id"].as_str().unwrap();
        home.hermes(&["-z", "go on", "--resume", id]).run().success();
    }
    recovered("all of them", &home);
    for moment in ["", "yesterday", "2026-13-45T99:99:99Z", "-1", "\u{661}970-01-01T00:00:00Z"] {
        let output = home.hermes(&["-z", "hello"]).at(moment).run();
        assert!(output.status.code().is_some_and(|code| code != 101), "{moment:?}: {output}");
    }
}

#[test]
fn an_environment_of_nonsense_changes_nothing() {
    let server = server();
    let home = Home::with(&server);
    for (name, value) in [
        ("LANG", "\u{1b}[2J"),
        ("LC_ALL", "xx_XX.UTF-99"),
        ("TZ", "Nowhere/At_All"),
        ("TZ", "../../../../etc/passwd"),
        ("TERM", "\u{1b}]0;owned\u{7}"),
        ("TMPDIR", "/nowhere/at/all"),
        ("COLUMNS", "-1"),
        ("LINES", "99999999999999999999"),
        ("PATH", ""),
        ("NO_COLOR", "\u{202e}"),
        ("RUST_LOG", "((((((((((((((((((((((("),
        ("RUST_BACKTRACE", "full"),
        ("XDG_CONFIG_HOME", "/dev/null"),
        ("HTTPS_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("LD_LIBRARY_PATH", "/nowhere"),
    ] {
        let output = home.hermes(&["-z", "hello"]).env(name, value).run().success();
        assert!(output.stdout.starts_with("Answer"), "{name}: {output}");
        assert!(!output.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{name}: {output}");
    }
    // A mask that would make everything public.
    let open = Home::with(&server);
    assert!(ended("umask", &shell(&open, "umask 000", &["-z", "hello"])));
    for path in [open.path(), open.state_db(), open.path().join("SOUL.md")] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o002, 0, "{} is writable by everyone: {mode:o}", path.display());
    }
}

#[test]
fn installations_at_once_leave_lock_and_disk_in_agreement() {
    const NAMES: usize = 4;
    let home = Home::new();
    home.config("{}\n");
    for at in 0..NAMES {
        let folder = format!("p{at}");
        home.write_workspace(
            &format!("{folder}/plugin.yaml"),
            format!("name: p{at}\nversion: 0.1.0\ndescription: one\n"),
        );
        home.write_workspace(&format!("{folder}/p{at}.wasm"), Shell::with_tool("nop").build());
    }
    // Each plugin several times, and removals in between.
    let times = if super::all() { 8 } else { 4 };
    let running: Vec<_> = (0..times * NAMES)
        .map(|at| {
            let (name, path) = (format!("p{}", at % NAMES), format!("./p{}", at % NAMES));
            match at % 7 {
                6 => home.hermes(&["plugins", "remove", &name, "--yes"]).spawn(),
                _ => home.hermes(&["plugins", "install", &path, "--yes"]).spawn(),
            }
        })
        .collect();
    for command in running {
        let output = command.wait();
        assert!(output.status.code().is_some_and(|code| code != 101), "{output}");
        assert!(!output.stderr.contains("panicked at"), "{output}");
    }
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    let locked: Vec<&String> = lock["plugins"].as_object().unwrap().keys().collect();
    let on_disk: Vec<String> = (0..NAMES)
        .map(|at| format!("p{at}"))
        .filter(|name| home.path().join("plugins").join(name).join("plugin.yaml").exists())
        .collect();
    assert_eq!(locked, on_disk.iter().collect::<Vec<_>>());
    assert!(!on_disk.is_empty());
    for name in &on_disk {
        assert!(home.path().join(format!("plugins/{name}/{name}.wasm")).exists(), "{name}");
    }
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert!(on_disk.iter().all(|name| listed.iter().any(|plugin| plugin["name"] == json!(name))), "{listed:?}");
}
