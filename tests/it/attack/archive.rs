//! Attacks by sources of plugins, through the programs that fetch them.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use hermes_tests::{Home, staged_guest};

#[cfg(target_os = "linux")]
use super::processes::{family_of, program_of};

/// A repository in the workspace with the plugin `keeper` and these attributes.
fn repository(home: &Home, attributes: &str) -> String {
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace("repo/plugin.yaml", manifest);
    home.write_workspace("repo/keeper.wasm", component);
    home.write_workspace("repo/README.md", "id: $Format:%H$\n");
    home.write_workspace("repo/.gitattributes", attributes);
    let folder = home.workspace().join("repo");
    for arguments in
        [&["init", "--quiet", "--initial-branch=main"][..], &["add", "-A"], &["commit", "--quiet", "-m", "x"]]
    {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
        let output = command.args(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    format!("git+file://{}", folder.display())
}

#[test]
fn a_filter_of_the_users_git_does_not_run_on_a_fetched_repository() {
    for (place, attributes_of_user) in [(".gitconfig", None), (".config/git/config", Some(".config/git/attributes"))] {
        let home = Home::new();
        home.config("{}\n");
        let user = home.path().parent().unwrap().join("user");
        let touched = home.workspace().join("touched");
        let config = format!(
            "[filter \"evil\"]\n\tsmudge = touch {0}; cat\n\tprocess = touch {0}\n\trequired = true\n[tar \"tar\"]\n\tcommand = touch {0}\n",
            touched.display()
        );
        for (name, text) in [(place, config.as_str()), (attributes_of_user.unwrap_or("none"), "* filter=evil\n")] {
            fs::create_dir_all(user.join(name).parent().unwrap()).unwrap();
            fs::write(user.join(name), text).unwrap();
        }
        let source = repository(&home, "* filter=evil diff=evil export-subst\n");
        let _ = fs::remove_file(&touched);
        home.hermes(&["plugins", "install", &source, "--yes"]).run().success();
        assert!(!touched.exists(), "{place}: a program of the configuration ran on fetched content");
        assert_eq!(fs::read(home.path().join("plugins/keeper/keeper.wasm")).unwrap(), staged_guest("keeper").1);
    }
}

/// A program `git` in the workspace that runs a script. Returns the PATH to find it.
fn fake_git(home: &Home, script: &str) -> String {
    home.write_workspace("bin/git", format!("#!/bin/sh\n{script}\n"));
    let program = home.workspace().join("bin/git");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn messages_of_git_take_no_memory() {
    let home = Home::new();
    home.config("{}\n");
    // Half a gigabyte on both streams; then the test looks at the memory.
    let flood = "head -c 500000000 /dev/zero | tr '\\0' 'x'";
    let script = format!(
        "{flood} >&2; {flood}; touch {0}/written; while test ! -e {0}/seen; do sleep 0.1; done; exit 1",
        home.workspace().display()
    );
    let path = fake_git(&home, &script);
    let running =
        home.hermes(&["plugins", "install", "git+https://host.example/a.git", "--yes"]).env("PATH", &path).spawn();
    let deadline = Instant::now() + Duration::from_secs(600);
    while !home.workspace().join("written").exists() {
        assert!(Instant::now() < deadline, "the program's messages were not read");
        std::thread::sleep(Duration::from_millis(50));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    home.write_workspace("seen", "");
    let refused = running.wait().refused();
    assert!(peak < 300 << 10, "{peak} KiB");
    assert!(refused.stderr.len() < 4 << 10, "{}", refused.stderr.len());
}

#[test]
fn a_message_of_git_cannot_draw_on_the_terminal() {
    let home = Home::new();
    home.config("{}\n");
    let path =
        fake_git(&home, r"printf 'fatal: \033[2J\033]52;c;eA==\007\302\2331mno such repository\n' >&2; exit 128");
    let install = ["plugins", "install", "git+https://host.example/a.git", "--yes"];
    let refused = home.hermes(&install).env("PATH", &path).run().refused();
    assert!(refused.stderr.contains("no such repository"), "{refused}");
    assert!(!refused.stderr.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{refused}");
}

/// Git must not go on below a server that says nothing, after Hermes was killed.
#[cfg(target_os = "linux")]
#[test]
fn git_ends_with_hermes_when_it_is_killed() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("git+http://{}/x", silent.local_addr().unwrap());
    for signal in ["KILL", "TERM", "HUP"] {
        let home = Home::new();
        home.config("{}\n");
        let running = home.hermes(&["plugins", "install", &source, "--insecure"]).spawn();
        // The connection shows that git waits for the server.
        let (_connection, _) = silent.accept().unwrap();
        let family = family_of(running.id());
        let gits: Vec<u32> =
            family.into_iter().filter(|pid| program_of(*pid).is_some_and(|name| name.starts_with("git"))).collect();
        assert!(!gits.is_empty(), "git does not run");
        let sent = Command::new("kill").args(["-s", signal, &running.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // Git itself gives up after a minute.
        let until = Instant::now() + Duration::from_secs(600);
        while let Some(alive) = gits.iter().find(|pid| program_of(**pid).is_some()) {
            assert!(Instant::now() < until, "{} is alive after {signal}", program_of(*alive).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(10));
        }
        running.wait();
    }
}
