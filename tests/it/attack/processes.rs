//! What the processes of a command take: memory, and workers that must end.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hermes_tests::{Home, Output, Running};

/// The processes that run statements on a database of this home.
pub(super) fn workers_of(home: &Home) -> Vec<u32> {
    let of_home = |process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.flat_map(|file| fs::read_link(file.path())).any(|file| file.starts_with(home.path()))
    };
    // A process that was killed a moment ago may still be listed.
    for _ in 0..30_000 {
        let workers: Vec<u32> = all().into_iter().filter(|process| is(*process, "serve-sql")).filter(of_home).collect();
        if workers.is_empty() {
            return workers;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    all().into_iter().filter(|process| is(*process, "serve-sql")).filter(of_home).collect()
}

/// A running command whose memory is watched, together with that of its children.
pub(super) struct Watched {
    running: Running,
    is_over: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    watch: JoinHandle<()>,
}

impl Watched {
    pub(super) fn start(running: Running) -> Self {
        let (is_over, peak) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (ends, highest, root) = (Arc::clone(&is_over), Arc::clone(&peak), running.id());
        let watch = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                highest.fetch_max(memory_of(root), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { running, is_over, peak, watch }
    }

    pub(super) fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// The output, and the most bytes that all processes had at a moment.
    pub(super) fn wait(self) -> (Output, u64) {
        let output = self.running.wait();
        self.is_over.store(true, Ordering::Relaxed);
        self.watch.join().unwrap();
        (output, self.peak.load(Ordering::Relaxed))
    }
}

/// Bytes of memory of a process and all its descendants, without compilers.
fn memory_of(root: u32) -> u64 {
    family_of(root).into_iter().filter(|process| !is(*process, "compile-plugin")).filter_map(resident).sum()
}

/// A process and all its descendants.
pub(super) fn family_of(root: u32) -> Vec<u32> {
    let processes: Vec<(u32, u32)> =
        all().into_iter().filter_map(|process| Some((process, parent(process)?))).collect();
    let mut family = vec![root];
    let mut at = 0;
    while let Some(of) = family.get(at).copied() {
        family.extend(processes.iter().filter(|(_, parent)| *parent == of).map(|(process, _)| *process));
        at += 1;
    }
    family
}

/// The program that a process runs, without its folder; nothing if the process has ended.
pub(super) fn program_of(process: u32) -> Option<String> {
    let arguments = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let program = String::from_utf8_lossy(arguments.split(|byte| *byte == 0).next()?).into_owned();
    let program = program.rsplit('/').next()?.to_owned();
    (!program.is_empty()).then_some(program)
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is(process: u32, command: &str) -> bool {
    let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|argument| argument == command.as_bytes())
}

fn parent(process: u32) -> Option<u32> {
    status(process, "PPid:")
}

/// The memory that belongs to the process alone: what several map is the program's code.
fn resident(process: u32) -> Option<u64> {
    status(process, "RssAnon:").map(|kib: u64| kib << 10)
}

fn status<T: std::str::FromStr>(process: u32, key: &str) -> Option<T> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(key)?.split_ascii_whitespace().next()?.parse().ok())
}

/// The host is killed while a program starts: its supervisor meets a closed socket before it can say that the program runs.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_starts_while_the_host_is_killed_does_not_stay() {
    use std::io::{IoSlice, Write as _};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    let folder = tempfile::tempdir().expect("a folder");
    let begun = folder.path().join("begun");
    // It ignores everything that can be ignored, and so does what it starts.
    let script = format!(
        "trap '' TERM HUP INT; echo $$ > {0}.part; mv {0}.part {0}; (setsid sleep 600 &); sleep 600",
        begun.display()
    );
    for round in 0..10 {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let nothing = std::fs::File::options().read(true).write(true).open("/dev/null").expect("it is there");
        let streams = [nothing.as_fd(), nothing.as_fd(), nothing.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&streams)));
        sendmsg(&ours, &[IoSlice::new(b"s")], &mut ancillary, SendFlags::NOSIGNAL).expect("the streams are sent");
        ours.write_all(&[0; 4]).expect("no plan of a sandbox is sent");
        drop(ours);
        let mut supervisor = Command::new(hermes_tests::binary())
            .args(["supervise-program", "--", "/bin/sh", "sh", "-c", &script])
            .env("OF_TEST", begun.display().to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .expect("it starts");
        supervisor.wait().expect("it ends");
        let own = format!("OF_TEST={}", begun.display());
        let left = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes())
        });
        let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        for pid in left.iter().filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        assert_eq!(left, Vec::<String>::new(), "round {round}");
    }
}
