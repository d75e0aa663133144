#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use async_trait::async_trait;

use super::*;

struct Yes;

#[async_trait]
impl Approval for Yes {
    async fn process(&self, _: &Run, _: bool) -> Result<(), Fault> {
        Ok(())
    }

    async fn file(&self, _: &crate::files::Change, _: bool) -> Result<(), Fault> {
        Ok(())
    }
}

/// A workspace with a folder `sub`, a folder of programs, and an API key in the host's environment.
pub(super) struct Fixture {
    folder: tempfile::TempDir,
    pub(super) variables: HashMap<&'static str, OsString>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work/sub", "work/home", "bin", "outside"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let path = std::env::join_paths([
            PathBuf::from("."),
            PathBuf::new(),
            "work".into(),
            folder.path().join("bin"),
            "/usr/bin".into(),
            "/bin".into(),
        ])
        .unwrap();
        let variables = HashMap::from([
            ("PATH", path),
            ("HOME", "/home/user".into()),
            ("EXAMPLE_API_KEY", "sk-not-to-be-seen".into()),
            ("EDITOR", "vi".into()),
            ("TERM", "xterm".into()),
            ("LD_PRELOAD", "/tmp/evil.so".into()),
        ]);
        Self { folder, variables }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn script(&self, path: &str, text: &str) {
        fs::write(self.at(path), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn find(&self, grant: ProgramGrant, order: Order) -> Result<Run, Fault> {
        let variable = |name: &str| self.variables.get(name).cloned();
        Programs::new(grant, Arc::new(Yes), Background::default()).find(order, &Host::new(&variable))
    }

    pub(super) fn grant(&self, programs: &[&str]) -> ProgramGrant {
        ProgramGrant {
            programs: programs.iter().map(|&name| name.to_owned()).collect(),
            variables: vec!["EDITOR".to_owned(), "PATH".to_owned(), "TERM".to_owned()],
            folders: vec![Folder {
                name: "workspace".to_owned(),
                path: self.at("work"),
                denied: vec![self.at("work/home")],
            }],
            places: Places { changeable: Vec::new(), private: self.at("work/home/private") },
            sandbox: None,
        }
    }

    /// Runs a shell script.
    async fn shell(&self, script: &str, input: &[u8], time: Duration) -> Exit {
        let order = Order { input: input.to_vec(), ..order("sh", &["-c", script]) };
        run(self.find(self.grant(&["sh"]), order).unwrap(), time, None).await.unwrap()
    }
}

pub(super) fn order(program: &str, arguments: &[&str]) -> Order {
    Order {
        program: program.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        environment: Vec::new(),
        root: "workspace".to_owned(),
        folder: String::new(),
        input: Vec::new(),
        background: false,
        merged: false,
    }
}

pub(super) const LONG: Duration = Duration::from_secs(600);

fn is_alive(pid: &str) -> bool {
    // A zombie process is dead.
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until the process is gone, and fails if it stays alive.
fn dies(pid: &str) {
    let until = Instant::now() + LONG;
    while is_alive(pid) {
        assert!(Instant::now() < until, "{pid} is still alive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn only_a_granted_name_is_found() {
    let fixture = Fixture::new();
    fixture.script("bin/tool", "true");
    fixture.script("work/planted", "true");
    fixture.script("work/tool", "true");
    fs::write(fixture.at("bin/data"), "not a program").unwrap();
    fs::create_dir(fixture.at("bin/folder")).unwrap();
    let absolute = fixture.at("bin/tool").display().to_string();
    let grant =
        || fixture.grant(&["tool", "planted", "./tool", "../bin/tool", "data", "folder", "", ".", "..", "a\0b"]);
    // Not the file in the workspace, which an empty, a `.` or a relative entry of PATH would find.
    assert_eq!(fixture.find(grant(), order("tool", &[])).unwrap().path, fixture.at("bin/tool"));
    for (program, code) in [
        (absolute.as_str(), "not-granted"),
        ("sh", "not-granted"),
        ("tool ", "not-granted"),
        ("Tool", "not-granted"),
        ("../bin/tool\0", "not-granted"),
        ("planted", "not-found"),
        ("./tool", "not-found"),
        ("../bin/tool", "not-found"),
        ("data", "not-found"),
        ("folder", "not-found"),
        ("", "not-found"),
        (".", "not-found"),
        ("..", "not-found"),
        ("a\0b", "not-found"),
    ] {
        assert_eq!(fixture.find(grant(), order(program, &[])).unwrap_err().code, code, "{program:?}");
    }
    assert_eq!(fixture.find(fixture.grant(&[&absolute]), order(&absolute, &[])).unwrap().path, fixture.at("bin/tool"));
}

#[test]
fn a_linked_program_is_reported_with_its_target() {
    let fixture = Fixture::new();
    symlink("/bin/sh", fixture.at("bin/innocent")).unwrap();
    symlink(fixture.at("bin/nothing"), fixture.at("bin/dangling")).unwrap();
    let run = fixture.find(fixture.grant(&["innocent"]), order("innocent", &[])).unwrap();
    assert_eq!(run.path, fixture.at("bin/innocent"));
    assert_eq!(run.real, Path::new("/bin/sh").canonicalize().unwrap());
    let error = fixture.find(fixture.grant(&["dangling"]), order("dangling", &[])).unwrap_err();
    assert_eq!(error.code, "not-found");
}

#[test]
fn a_folder_never_leaves_its_root() {
    let fixture = Fixture::new();
    symlink(fixture.at("outside"), fixture.at("work/escape")).unwrap();
    symlink(fixture.at("work/sub"), fixture.at("work/inside")).unwrap();
    symlink(fixture.at("work/home"), fixture.at("work/to-home")).unwrap();
    fs::write(fixture.at("work/file"), "").unwrap();
    let find = |root: &str, folder: &str| {
        let order = Order { root: root.to_owned(), folder: folder.to_owned(), ..order("sh", &[]) };
        fixture.find(fixture.grant(&["sh"]), order).map(|run| run.folder)
    };
    let work = fixture.at("work").canonicalize().unwrap();
    for (folder, found) in
        [("", work.clone()), (".", work.clone()), ("sub", work.join("sub")), ("inside", work.join("sub"))]
    {
        assert_eq!(find("workspace", folder).unwrap(), found);
    }
    for folder in ["..", "sub/../..", "/", "/tmp", "escape", "home", "to-home", "file", "nowhere", "a\0b"] {
        assert_eq!(find("workspace", folder).unwrap_err().code, "folder", "{folder:?}");
    }
    assert_eq!(find("elsewhere", "").unwrap_err().code, "folder");
}

#[test]
fn the_limits_of_programs_are_those_of_the_contract() {
    assert_eq!((MAX_ARGUMENTS, MAX_ARGUMENT_BYTES, MAX_INPUT, MAX_OUTPUT), (1_000, 128 << 10, 8 << 20, 1 << 20));
    assert_eq!((MAX_BACKGROUND, MAX_ENDED, GRACE), (8, 16, Duration::from_millis(250)));
}

#[test]
fn invalid_arguments_and_input_are_refused_before_the_user_is_asked() {
    let fixture = Fixture::new();
    let long = "x".repeat(MAX_ARGUMENT_BYTES);
    for (arguments, input, code) in [
        (vec!["a\0b"], 0, "nul"),
        (vec![long.as_str()], 0, "too-long"),
        (vec!["x"; MAX_ARGUMENTS + 1], 0, "too-long"),
        (vec![], MAX_INPUT + 1, "too-long"),
    ] {
        let order = Order { input: vec![0; input], ..order("sh", &arguments) };
        assert_eq!(fixture.find(fixture.grant(&["sh"]), order).unwrap_err().code, code);
    }
}

#[tokio::test]
async fn arguments_and_input_arrive_unchanged() {
    let fixture = Fixture::new();
    let arguments = ["a\nb", "; touch evil", "$(touch evil)", "*", "", "-rf", "ü"];
    fixture.script("bin/tool", "for each; do printf '<%s>' \"$each\"; done; cat; echo oops >&2; exit 7");
    let order = Order { input: b"said\0so".to_vec(), ..order("tool", &arguments) };
    let exit = run(fixture.find(fixture.grant(&["tool"]), order).unwrap(), LONG, None).await.unwrap();
    let expected = "<a\nb><; touch evil><$(touch evil)><*><><-rf><ü>said\0so";
    assert_eq!(String::from_utf8(exit.output).unwrap(), expected);
    assert_eq!((exit.end, exit.errors.as_slice(), exit.truncated), (End::Exited(7), b"oops\n".as_slice(), false));
    assert!(!fixture.at("work/evil").exists());
}

#[tokio::test]
async fn the_environment_is_small_and_has_no_key() {
    let fixture = Fixture::new();
    let mut run_ = fixture.find(fixture.grant(&["env"]), order("env", &[])).unwrap();
    let exit = run(run_.clone(), LONG, None).await.unwrap();
    let text = String::from_utf8(exit.output).unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["EDITOR", "HOME", "PATH", "TERM"], "{text}");
    assert!(text.contains("TERM=dumb") && !text.contains("sk-"), "{text}");
    // PATH has no entry that depends on the working directory.
    let path = text.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
    assert!(std::env::split_paths(path).all(|folder| folder.is_absolute()), "{path}");
    run_.environment.clear();
    assert_eq!(run(run_, LONG, None).await.unwrap().output, b"", "the program got the host's environment");
}

#[tokio::test]
async fn a_flood_of_output_is_cut_to_its_beginning_and_end() {
    let fixture = Fixture::new();
    let script = "echo begin; head -c 30000000 /dev/zero; echo end; head -c 5000000 /dev/zero >&2";
    let exit = fixture.shell(script, b"", LONG).await;
    assert_eq!((exit.end, exit.truncated), (End::Exited(0), true));
    assert!(exit.output.starts_with(b"begin\n") && exit.output.ends_with(b"end\n"));
    assert!(exit.output.len() < MAX_OUTPUT + 100 && exit.errors.len() < MAX_OUTPUT + 100);
}

#[tokio::test]
async fn unread_input_blocks_nothing() {
    let fixture = Fixture::new();
    let exit = fixture.shell("echo done", &vec![b'x'; MAX_INPUT], LONG).await;
    assert_eq!((exit.end, exit.output.as_slice()), (End::Exited(0), b"done\n".as_slice()));
}

#[tokio::test]
async fn processes_that_outlive_their_program_are_ended_too() {
    let fixture = Fixture::new();
    let exit = fixture.shell("sleep 600 & echo $!", b"", LONG).await;
    assert_eq!(exit.end, End::Exited(0));
    dies(&String::from_utf8(exit.output).unwrap());
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_terminated_and_then_killed() {
    let fixture = Fixture::new();
    let polite =
        fixture.shell("trap 'echo bye; exit 0' TERM; echo $$; sleep 600 & wait", b"", Duration::from_millis(300));
    let polite = polite.await;
    assert_eq!(polite.end, End::TimedOut);
    assert!(String::from_utf8(polite.output).unwrap().ends_with("bye\n"));
    // This one ignores the signal, and so does its child, which holds the outputs open.
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 600; done' & echo $$; while :; do sleep 600; done";
    let deaf = fixture.shell(script, b"", Duration::from_millis(300)).await;
    assert_eq!(deaf.end, End::TimedOut);
    let output = String::from_utf8(deaf.output).unwrap();
    assert_eq!(output.lines().count(), 2, "{output}");
    output.lines().for_each(dies);
}

#[tokio::test]
async fn a_foreign_signal_is_reported() {
    let fixture = Fixture::new();
    assert_eq!(fixture.shell("kill -9 $$", b"", LONG).await.end, End::Killed(9));
}

#[tokio::test]
async fn a_program_ends_when_its_caller_goes_away() {
    let fixture = Fixture::new();
    let script = "trap '' TERM; echo $$ > pid.part; mv pid.part pid; while :; do sleep 600; done";
    let pid = {
        let waiting = fixture.shell(script, b"", LONG);
        tokio::pin!(waiting);
        let file = fixture.at("work/pid");
        loop {
            tokio::select! {
                exit = &mut waiting => panic!("it ended: {exit:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            if let Ok(pid) = fs::read_to_string(&file) {
                break pid;
            }
        }
    };
    let until = Instant::now() + LONG;
    while is_alive(&pid) {
        assert!(Instant::now() < until, "{pid} is still alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_executed_is_reported() {
    let fixture = Fixture::new();
    fs::write(fixture.at("bin/broken"), "#!/nowhere/at/all\n").unwrap();
    fs::set_permissions(fixture.at("bin/broken"), fs::Permissions::from_mode(0o755)).unwrap();
    let found = fixture.find(fixture.grant(&["broken"]), order("broken", &[])).unwrap();
    let error = run(found, LONG, None).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (FaultKind::Unavailable, "not-started"));
}

#[tokio::test]
async fn both_outputs_share_a_pipe_in_the_order_of_the_writes() {
    let fixture = Fixture::new();
    let order = Order { merged: true, ..order("sh", &["-c", "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 5"]) };
    let exit = run(fixture.find(fixture.grant(&["sh"]), order).unwrap(), LONG, None).await.unwrap();
    assert_eq!(
        (exit.end, exit.output.as_slice(), exit.errors.as_slice()),
        (End::Exited(5), &b"1\n2\n3\n4\n"[..], &b""[..])
    );
}

#[tokio::test]
async fn the_last_line_is_shown_while_a_program_runs() {
    let fixture = Fixture::new();
    let script = "echo one; echo two; while [ ! -e shown ]; do sleep 0.05; done; echo three";
    let found = fixture.find(fixture.grant(&["sh"]), order("sh", &["-c", script])).unwrap();
    let (lines, file) = (Arc::<std::sync::Mutex<Vec<String>>>::default(), fixture.at("work/shown"));
    let shown = Arc::clone(&lines);
    let show = Box::new(move |line: &str| {
        shown.lock().unwrap().push(line.to_owned());
        fs::write(&file, "").unwrap();
    });
    let exit = run(found, LONG, Some(show)).await.unwrap();
    assert_eq!(exit.output, b"one\ntwo\nthree\n");
    assert_eq!(lines.lock().unwrap()[0], "two");
}

/// This process has no supervisor that could try a sandbox, so nothing is known about the machine.
#[test]
fn a_sandbox_that_could_not_be_tried_is_no_reason_to_run_without_one() {
    let fixture = Fixture::new();
    let sandbox = |mode| Sandbox {
        rules: SandboxRules { mode, ..SandboxRules::default() },
        home: fixture.at("work/home"),
        writable: vec![fixture.at("work")],
        readable: Vec::new(),
        guarded: Vec::new(),
        listed: Arc::default(),
    };
    let found = |mode| {
        let grant = ProgramGrant { sandbox: Some(sandbox(mode)), ..fixture.grant(&["sh"]) };
        fixture.find(grant, order("sh", &["-c", ":"]))
    };
    for mode in [SandboxMode::Auto, SandboxMode::Require] {
        let refused = found(mode).unwrap_err();
        assert_eq!(refused.code, "not-confined", "{mode:?}");
        assert!(
            refused.message.contains("was not run") && refused.message.contains("try again"),
            "{}",
            refused.message
        );
    }
    assert_eq!(found(SandboxMode::Off).unwrap().confinement, Confinement::Off);
}

#[tokio::test]
async fn a_run_that_must_be_confined_never_starts_without_a_supervisor() {
    let fixture = Fixture::new();
    let scratch = hermes_private_files::TemporaryFolder::new("hermes-test-").unwrap();
    let sandbox = Sandbox {
        rules: SandboxRules::default(),
        home: fixture.at("work/home"),
        writable: vec![fixture.at("work")],
        readable: Vec::new(),
        guarded: Vec::new(),
        listed: Arc::default(),
    };
    let mut found = fixture.find(fixture.grant(&["sh"]), order("sh", &["-c", "echo > ran"])).unwrap();
    found.confinement = Confinement::Confined(Arc::new(Confined::new(sandbox, scratch)));
    let refused = run(found, LONG, None).await.unwrap_err();
    assert!(refused.message.contains("must be confined"), "{}", refused.message);
    assert!(!fixture.at("work/ran").exists());
}
