#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::*;

const LONG: Duration = Duration::from_secs(600);

fn shell(folder: &Path, script: &str) -> Run {
    Run {
        program: "sh".to_owned(),
        path: PathBuf::from("/bin/sh"),
        real: PathBuf::from("/bin/sh"),
        pin: None,
        places: Places { changeable: Vec::new(), private: folder.join("private") },
        arguments: vec!["-c".to_owned(), script.to_owned()],
        folder: folder.to_owned(),
        input: Vec::new(),
        environment: vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))],
        variables: Vec::new(),
        inherited: Vec::new(),
        background: true,
        merged: false,
        confinement: Confinement::Off,
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    background: Background,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), background: Background::default() }
    }

    fn start(&self, script: &str) -> ProgramId {
        self.background.start(shell(self.folder.path(), script), None, 7).unwrap()
    }

    /// Reads until the program's end, or until the text appears.
    async fn read_until(&self, id: ProgramId, text: &str) -> String {
        let mut output = String::new();
        loop {
            let chunk = self.background.read(id, LONG).await.unwrap();
            output.push_str(&String::from_utf8_lossy(&chunk.output));
            if chunk.end.is_some() || output.contains(text) {
                return output;
            }
        }
    }

    /// Starts a program that prints its number and ignores the request to end.
    async fn deaf(&self) -> (ProgramId, String) {
        let id = self.start("trap '' TERM; echo $$; while :; do sleep 600; done");
        (id, self.read_until(id, "\n").await.trim().to_owned())
    }
}

fn is_alive(pid: &str) -> bool {
    // A zombie process is dead.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

async fn dies(pid: &str) {
    let until = std::time::Instant::now() + LONG;
    while is_alive(pid) {
        assert!(std::time::Instant::now() < until, "{pid} is still alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_program_answers_line_by_line_until_its_input_is_closed() {
    let fixture = Fixture::new();
    let background = &fixture.background;
    let id = fixture.start("while read -r line; do echo \"got $line\"; done; echo bye >&2; exit 3");
    for line in ["one", "two"] {
        background.write(id, format!("{line}\n").into_bytes()).unwrap();
        assert_eq!(fixture.read_until(id, "\n").await, format!("got {line}\n"));
    }
    assert_eq!(background.read(id, Duration::ZERO).await.unwrap().output, b"");
    assert_eq!(background.wait(id, Duration::from_millis(20)).await.unwrap(), None);
    background.close_input(id).unwrap();
    assert_eq!(background.wait(id, LONG).await.unwrap(), Some(End::Exited(3)));
    let last = background.read(id, LONG).await.unwrap();
    assert_eq!((last.errors.as_slice(), last.end), (b"bye\n".as_slice(), Some(End::Exited(3))));
    assert_eq!(background.write(id, b"x".to_vec()).unwrap_err().code, "input-closed");
    let listed = background.list();
    assert_eq!((listed[0].program.as_str(), listed[0].started_at, listed[0].end), ("sh", 7, Some(End::Exited(3))));
    assert_eq!(background.stop(id).await.unwrap(), End::Exited(3));
}

#[tokio::test]
async fn a_ninth_program_is_refused_until_one_ends() {
    let fixture = Fixture::new();
    let ids: Vec<ProgramId> = (0..MAX_BACKGROUND).map(|_| fixture.start("exec sleep 600")).collect();
    let one_more = || fixture.background.start(shell(fixture.folder.path(), "true"), None, 7);
    assert_eq!(one_more().unwrap_err().code, "too-many");
    assert_eq!(fixture.background.stop(ids[3]).await.unwrap(), End::Stopped);
    let ninth = one_more().unwrap();
    assert!(!ids.contains(&ninth), "a number is used again");
}

#[tokio::test]
async fn programs_that_ended_are_forgotten_in_order() {
    let fixture = Fixture::new();
    let first = fixture.start("exec sleep 600");
    for _ in 1..40 {
        let id = fixture.start("true");
        fixture.background.wait(id, LONG).await.unwrap().unwrap();
    }
    let ids: Vec<u32> = fixture.background.list().iter().map(|listed| listed.id.0).collect();
    assert_eq!((ids.len(), ids[0], ids[1], ids[16]), (1 + 16, first.0, 25, 40));
    // Now the oldest program is the one that ended last.
    fixture.background.stop(first).await.unwrap();
    let ids: Vec<u32> = fixture.background.list().iter().map(|listed| listed.id.0).collect();
    assert_eq!((ids.len(), ids[0], ids[1], ids[15]), (16, first.0, 26, 40));
    assert_eq!(fixture.background.wait(ProgramId(2), LONG).await.unwrap_err().code, "unknown");
    assert_eq!(fixture.background.write(ProgramId(0), Vec::new()).unwrap_err().code, "unknown");
}

#[tokio::test]
async fn an_endless_output_keeps_its_end_and_counts_the_rest() {
    let fixture = Fixture::new();
    let id = fixture.start("head -c 5000000 /dev/zero; echo end; head -c 3000000 /dev/zero >&2; exec sleep 600");
    let until = std::time::Instant::now() + LONG;
    let (mut output, mut lost, mut errors) = (Vec::new(), 0, 0);
    // Nothing is read before everything was written.
    tokio::time::sleep(Duration::from_millis(200)).await;
    while lost + (output.len() as u64) < 5_000_004 || errors < 3_000_000 {
        assert!(std::time::Instant::now() < until, "{lost} {} {errors}", output.len());
        let chunk = fixture.background.read(id, LONG).await.unwrap();
        assert!(chunk.output.len() <= MAX_OUTPUT && chunk.errors.len() <= MAX_OUTPUT);
        output.extend(chunk.output);
        lost += chunk.output_lost;
        errors += chunk.errors.len() as u64 + chunk.errors_lost;
    }
    assert!(output.ends_with(b"end\n"));
}

#[tokio::test]
async fn input_that_nobody_reads_is_limited() {
    let fixture = Fixture::new();
    let id = fixture.start("exec sleep 600");
    let half = vec![b'x'; MAX_INPUT / 2];
    fixture.background.write(id, half.clone()).unwrap();
    fixture.background.write(id, half).unwrap();
    let full = fixture.background.write(id, vec![b'x']).unwrap_err();
    assert_eq!((full.kind, full.code.as_str()), (FaultKind::Exhausted, "input-full"));
}

#[tokio::test]
async fn a_program_has_only_its_time() {
    let fixture = Fixture::new();
    let run = shell(fixture.folder.path(), "trap '' TERM; while :; do sleep 600; done");
    let id = fixture.background.start(run, Some(Duration::from_millis(100)), 7).unwrap();
    assert_eq!(fixture.background.wait(id, LONG).await.unwrap(), Some(End::TimedOut));
}

#[tokio::test]
async fn a_program_that_ignores_the_request_is_killed_with_its_children() {
    let fixture = Fixture::new();
    let id = fixture.start("trap '' TERM; (while :; do sleep 600; done) & echo $! $$; while :; do sleep 600; done");
    let pids = fixture.read_until(id, "\n").await;
    assert_eq!(fixture.background.stop(id).await.unwrap(), End::Stopped);
    for pid in pids.split_whitespace() {
        dies(pid).await;
    }
}

#[tokio::test]
async fn programs_end_with_their_table() {
    let fixture = Fixture::new();
    let (_, pid) = fixture.deaf().await;
    let clone = fixture.background.clone();
    drop(fixture);
    assert!(is_alive(&pid));
    drop(clone);
    dies(&pid).await;
}

#[tokio::test]
async fn a_closed_table_ends_its_programs_and_starts_none() {
    let fixture = Fixture::new();
    let (id, pid) = fixture.deaf().await;
    fixture.background.close();
    dies(&pid).await;
    assert_eq!(fixture.background.wait(id, LONG).await.unwrap(), Some(End::Stopped));
    let refused = fixture.background.start(shell(fixture.folder.path(), "true"), None, 7).unwrap_err();
    assert_eq!(refused.code, "too-many");
    let next = fixture.background.successor();
    let again = next.start(shell(fixture.folder.path(), "true"), None, 7).unwrap();
    assert!(again > id, "a number is used again");
}

#[tokio::test]
async fn only_granted_programs_stay() {
    let fixture = Fixture::new();
    let id = fixture.start("exec sleep 600");
    fixture.background.keep(|program| program == "sh");
    assert_eq!(fixture.background.wait(id, Duration::from_millis(20)).await.unwrap(), None);
    fixture.background.keep(|program| program == "git");
    assert_eq!(fixture.background.wait(id, LONG).await.unwrap(), Some(End::Stopped));
}

#[tokio::test]
async fn a_program_that_cannot_start_leaves_nothing() {
    let fixture = Fixture::new();
    let run = Run { path: PathBuf::from("/nowhere/at/all"), ..shell(fixture.folder.path(), "true") };
    assert_eq!(fixture.background.start(run, None, 7).unwrap_err().code, "not-started");
    assert!(fixture.background.list().is_empty());
}

#[test]
fn a_plugin_sets_harmless_variables_only() {
    let set = |name: &str, value: &str| variables::check(&[(name.to_owned(), value.to_owned())]);
    for name in ["PORT", "_x", "GIT_DIR", "ld", "ENVIRONMENT"] {
        assert!(set(name, "a b\n").is_ok(), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "TERM",
        "LD_PRELOAD",
        "ld_preload",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "BASH_FUNC_ls",
        "",
        "1A",
        "A B",
        "A=B",
        "ä",
        "A\0B",
    ] {
        assert_eq!(set(name, "x").unwrap_err().code, "variable", "{name:?}");
    }
    assert_eq!(set("A", "a\0b").unwrap_err().code, "nul");
    let many = vec![("A".to_owned(), String::new()); 65];
    assert_eq!(variables::check(&many).unwrap_err().code, "too-long");
    assert_eq!(set("A", &"x".repeat(32 << 10)).unwrap_err().code, "too-long");
    let environment = variables::add(
        vec![("LANG".into(), "C".into()), ("PATH".into(), "/bin".into())],
        &[("LANG".to_owned(), "de".to_owned()), ("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())],
    );
    let names: Vec<_> = environment.iter().map(|(name, value)| format!("{name:?}={value:?}")).collect();
    assert_eq!(names, [r#""PATH"="/bin""#, r#""LANG"="de""#, r#""A"="2""#]);
}

/// Programs that do not want to end, and plugins that use programs which are not there.
mod attack {
    use super::*;

    #[tokio::test]
    async fn whatever_a_program_does_a_stop_ends_it_with_its_children() {
        for (name, script) in [
            ("it closes its outputs", "echo $$; exec >&- 2>&-; while :; do sleep 600; done"),
            ("it stops itself", "echo $$; kill -STOP $$; sleep 600"),
            ("it ignores every signal", "trap '' TERM INT HUP QUIT USR1 PIPE; echo $$; while :; do sleep 600; done"),
            ("it asks itself to go on", "trap 'kill -CONT $$' TERM; echo $$; while :; do sleep 600; done"),
            ("it floods both outputs", "echo $$; yes >&2 & yes"),
            ("it has many children", "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; echo $$; wait"),
            ("its children ignore signals", "(trap '' TERM; while :; do sleep 600; done) & echo $! $$; wait"),
            ("it replaces itself", "echo $$; exec sh -c 'trap \"\" TERM; while :; do sleep 600; done'"),
            ("it never reads", "exec 0<&-; echo $$; sleep 600"),
        ] {
            let fixture = Fixture::new();
            let id = fixture.start(script);
            let pids = fixture.read_until(id, "\n").await;
            let pids: Vec<String> = pids.lines().next().unwrap_or_default().split(' ').map(str::to_owned).collect();
            assert!(pids.iter().all(|pid| is_alive(pid)), "{name}: {pids:?}");
            assert_eq!(fixture.background.stop(id).await.unwrap(), End::Stopped, "{name}");
            for pid in pids {
                dies(&pid).await;
            }
            // The place is free again, and the number is not used again.
            assert!(fixture.start("exec sleep 600") > id, "{name}");
        }
    }

    #[tokio::test]
    async fn the_end_of_a_program_is_the_end_of_what_it_left_running() {
        for script in ["sleep 600 & echo $!", "sleep 600 >/dev/null 2>&1 & echo $!", "(sleep 600 & echo $!)"] {
            let fixture = Fixture::new();
            let id = fixture.start(script);
            let pid = fixture.read_until(id, "\n").await.trim().to_owned();
            assert_eq!(fixture.background.wait(id, LONG).await.unwrap(), Some(End::Exited(0)), "{script}");
            dies(&pid).await;
        }
    }

    #[tokio::test]
    async fn numbers_that_no_program_has_are_errors_for_every_call() {
        let fixture = Fixture::new();
        let own = fixture.start("exec sleep 600");
        let background = &fixture.background;
        for id in [0, 2, 7, u32::MAX].map(ProgramId) {
            let codes = [
                background.read(id, Duration::MAX).await.unwrap_err().code,
                background.write(id, b"x".to_vec()).unwrap_err().code,
                background.close_input(id).unwrap_err().code,
                background.wait(id, Duration::MAX).await.unwrap_err().code,
                background.stop(id).await.unwrap_err().code,
            ];
            assert_eq!(codes, ["unknown"; 5], "{id:?}");
        }
        // Programs of another session are not there either.
        let other = Fixture::new();
        assert_eq!(other.background.stop(own).await.unwrap_err().code, "unknown");
        assert_eq!(background.wait(own, Duration::ZERO).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_time_of_any_length_is_a_time() {
        let fixture = Fixture::new();
        let start =
            |time| fixture.background.start(shell(fixture.folder.path(), "exec sleep 600"), Some(time), 7).unwrap();
        let (none, all) = (start(Duration::ZERO), start(Duration::MAX));
        assert_eq!(fixture.background.wait(none, Duration::MAX).await.unwrap(), Some(End::TimedOut));
        assert_eq!(fixture.background.wait(all, Duration::from_millis(20)).await.unwrap(), None);
        // A reader that waits for ever gets the end.
        let (read, stopped) = tokio::join!(fixture.background.read(all, Duration::MAX), fixture.background.stop(all));
        assert_eq!((read.unwrap().end, stopped.unwrap()), (Some(End::Stopped), End::Stopped));
    }

    #[tokio::test]
    async fn many_stops_at_once_have_one_answer() {
        let fixture = Fixture::new();
        let (id, pid) = fixture.deaf().await;
        let stops = (0..50).map(|_| {
            let background = fixture.background.clone();
            tokio::spawn(async move { background.stop(id).await })
        });
        for stop in stops.collect::<Vec<_>>() {
            assert_eq!(stop.await.unwrap().unwrap(), End::Stopped);
        }
        dies(&pid).await;
    }

    #[tokio::test]
    async fn programs_that_cannot_start_take_no_place() {
        let fixture = Fixture::new();
        let at = |name: &str| fixture.folder.path().join(name);
        let executable = |name: &str, content: &[u8]| {
            fs::write(at(name), content).unwrap();
            fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        executable("gone", b"#!/nowhere/at/all\n");
        executable("long", &[b"#!/".as_slice(), &[b'a'; 10_000], b"\n"].concat());
        executable("elf", b"\x7fELF garbage");
        fs::write(at("plain"), "#!/bin/sh\n").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["gone", "long", "elf", "plain", "folder", "loop", "pipe", "nothing"] {
            for _ in 0..3 {
                let run = Run { path: at(name), real: at(name), ..shell(fixture.folder.path(), "true") };
                assert_eq!(fixture.background.start(run, None, 7).unwrap_err().code, "not-started", "{name}");
            }
        }
        let run = Run { folder: at("no folder"), ..shell(fixture.folder.path(), "true") };
        assert_eq!(fixture.background.start(run, None, 7).unwrap_err().code, "not-started");
        assert!(fixture.background.list().is_empty());
        for _ in 0..MAX_BACKGROUND {
            fixture.start("exec sleep 600");
        }
    }

    #[tokio::test]
    async fn input_goes_to_a_program_that_takes_it_and_to_no_other() {
        let fixture = Fixture::new();
        let background = &fixture.background;
        let ended = fixture.start("true");
        background.wait(ended, LONG).await.unwrap();
        assert_eq!(background.write(ended, b"x".to_vec()).unwrap_err().code, "input-closed");
        let id = fixture.start("exec cat");
        assert_eq!(background.write(id, vec![b'x'; MAX_INPUT + 1]).unwrap_err().code, "input-full");
        background.write(id, vec![0, 0xff, b'\n']).unwrap();
        background.close_input(id).unwrap();
        background.close_input(id).unwrap();
        assert_eq!(background.write(id, b"late".to_vec()).unwrap_err().code, "input-closed");
        let mut output = Vec::new();
        loop {
            let chunk = background.read(id, LONG).await.unwrap();
            output.extend(chunk.output);
            if chunk.end.is_some() {
                break;
            }
        }
        assert_eq!(output, [0, 0xff, b'\n']);
    }
}
