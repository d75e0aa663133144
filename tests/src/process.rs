//! The real binary as a child process that can be watched, interrupted and killed.

use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Generous: reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// A command to run.
pub struct Hermes {
    command: Command,
    stdin: Option<Vec<u8>>,
    talks: bool,
    timeout: Duration,
}

/// The command as a user would type it.
impl fmt::Display for Hermes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hermes")?;
        for argument in self.command.get_args().map(|argument| argument.to_string_lossy()) {
            let is_plain = !argument.is_empty() && !argument.contains([' ', '\n', '"', '*', '?']);
            if is_plain { write!(f, " {argument}")? } else { write!(f, " {argument:?}")? }
        }
        Ok(())
    }
}

impl Hermes {
    /// The binary with only the given environment.
    pub(crate) fn new(home: &Path, user: &Path, workspace: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(workspace).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", user).env("HERMES_HOME", home).env("TZ", "UTC").env("LANG", "C.UTF-8");
        Self { command, stdin: None, talks: false, timeout: PATIENCE }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it below another program, whose last arguments become the command.
    pub fn below(self, around: &[&str]) -> Self {
        let Some((program, arguments)) = around.split_first() else { return self };
        let mut command = Command::new(program);
        command.args(arguments).arg(self.command.get_program()).args(self.command.get_args()).env_clear();
        for (name, value) in self.command.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        Self { command, ..self }
    }

    /// Sets the clock, such as to `2026-11-21T23:50:00Z`; it runs on from there.
    pub fn at(self, moment: &str) -> Self {
        self.env("HERMES_CLOCK", moment)
    }

    /// Runs in another folder.
    pub fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Pipes a text to standard input. Without it standard input is empty.
    pub fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.as_bytes().to_vec());
        self
    }

    /// Sets the time after which the process is killed and the test fails.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts it on a terminal of its own, of which nothing is known (`TERM`), so that nothing is drawn on it.
    #[cfg(unix)]
    pub fn at_terminal(self) -> crate::terminal::Terminal {
        self.at_terminal_of(0, 0)
    }

    /// Starts it on a terminal of this size. 0 means that the terminal does not know its size.
    #[cfg(unix)]
    pub fn at_terminal_of(self, columns: u16, rows: u16) -> crate::terminal::Terminal {
        let Self { command, timeout, .. } = self.env("NO_COLOR", "1");
        crate::terminal::Terminal::spawn(command, timeout, (columns, rows))
    }

    /// Starts it on a terminal of this size that shows colours and can be drawn.
    #[cfg(unix)]
    pub fn at_drawn_terminal(self, columns: u16, rows: u16) -> crate::terminal::Terminal {
        let Self { command, timeout, .. } = self.env("TERM", "xterm-256color");
        crate::terminal::Terminal::spawn(command, timeout, (columns, rows))
    }

    /// The same on a terminal that refuses what it has no room for, instead of letting the writer wait. Another program may leave a
    /// terminal so.
    #[cfg(unix)]
    pub fn at_impatient_terminal(self, columns: u16, rows: u16) -> crate::terminal::Terminal {
        let Self { command, timeout, .. } = self.env("TERM", "xterm-256color");
        crate::terminal::Terminal::spawn_impatient(command, timeout, (columns, rows))
    }

    /// Keeps standard input open, for [`Running::say`].
    pub fn talking(mut self) -> Self {
        self.talks = true;
        self
    }

    /// Runs it until it exits.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Starts it.
    #[track_caller]
    pub fn spawn(mut self) -> Running {
        self.command.stdin(if self.stdin.is_some() || self.talks { Stdio::piped() } else { Stdio::null() });
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.command.get_program().display()));
        let input = if self.talks { child.stdin.take() } else { None };
        if let (Some(text), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            // The program may exit without reading all its input, which breaks the pipe.
            std::thread::spawn(move || drop(pipe.write_all(&text)));
        }
        let stdout = Capture::of(child.stdout.take().expect("stdout is piped"));
        let stderr = Capture::of(child.stderr.take().expect("stderr is piped"));
        Running { child, input, stdout, stderr, deadline: Instant::now() + self.timeout }
    }
}

/// A running process; killed when dropped.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    deadline: Instant,
}

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it was started to be talked to");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("it reads what it is told");
    }

    /// Waits until standard error contains the text so many times.
    #[track_caller]
    pub fn wait_for_stderr_times(&self, text: &str, times: usize) {
        self.stderr.wait_for(text, times, self.deadline);
    }

    /// Waits until standard output contains the text so many times.
    #[track_caller]
    pub fn wait_for_stdout_times(&self, text: &str, times: usize) {
        self.stdout.wait_for(text, times, self.deadline);
    }

    /// Waits until standard output contains the text.
    #[track_caller]
    pub fn wait_for_stdout(&self, text: &str) {
        self.stdout.wait_for(text, 1, self.deadline);
    }

    /// Waits until standard error contains the text.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        self.stderr.wait_for(text, 1, self.deadline);
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Kills it, like `kill -9`.
    #[track_caller]
    pub fn kill(mut self) -> Output {
        // Ignore an error: it may have exited already.
        drop(self.child.kill());
        let status = self.child.wait().expect("a child can be waited for");
        self.output(status)
    }

    /// Presses Ctrl-C.
    #[track_caller]
    pub fn interrupt(&self) {
        let sent = Command::new("sh").args(["-c", "kill -INT \"$1\"", "sh", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal could not be sent");
    }

    /// Waits until it exits.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        // Close its input, which ends the chat.
        drop(self.input.take());
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return self.output(status);
            }
            if Instant::now() > self.deadline {
                drop(self.child.kill());
                let status = self.child.wait().expect("a child can be waited for");
                panic!("it did not end in time\n{}", self.output(status));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn output(&mut self, status: ExitStatus) -> Output {
        Output { status, stdout: self.stdout.rest(), stderr: self.stderr.rest() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// The result of a process.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// Panics unless it succeeded.
    #[track_caller]
    pub fn success(self) -> Self {
        assert!(self.status.success(), "it failed\n{self}");
        self
    }

    /// Panics unless it failed with an error of its own, not by a panic or a signal.
    #[track_caller]
    pub fn refused(self) -> Self {
        let code = self.status.code();
        assert!(code.is_some_and(|code| code != 0 && code != 101), "it did not refuse\n{self}");
        assert!(!self.stderr.contains("panicked at"), "it panicked\n{self}");
        assert!(!self.stderr.trim().is_empty(), "it refused without a word\n{self}");
        self
    }

    /// Panics unless it exited with this code; `docs/use/exit-codes.md` has the table.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "\n{self}");
        self
    }

    /// Panics unless standard error contains each of the texts, ignoring case.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        let said = self.stderr.to_lowercase();
        for text in texts {
            assert!(said.contains(&text.to_lowercase()), "stderr does not say `{text}`\n{self}");
        }
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n--- stdout\n{}\n--- stderr\n{}", self.status, self.stdout, self.stderr)
    }
}

/// Reads a pipe to its end, in a thread of its own.
pub(crate) struct Capture {
    shared: Arc<(Mutex<Captured>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    pub(crate) fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let shared: Arc<(Mutex<Captured>, Condvar)> = Arc::default();
        let writer = Arc::clone(&shared);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let count = pipe.read(&mut buffer).unwrap_or(0);
                let mut captured = writer.0.lock().unwrap_or_else(PoisonError::into_inner);
                captured.bytes.extend_from_slice(&buffer[..count]);
                captured.ended = count == 0;
                writer.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Self { shared, reader: Some(reader) }
    }

    /// Everything read so far.
    pub(crate) fn so_far(&self) -> String {
        let captured = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&captured.bytes).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str, time: usize, deadline: Instant) {
        let (captured, changed) = &*self.shared;
        let mut captured = captured.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let so_far = String::from_utf8_lossy(&captured.bytes);
            if so_far.matches(text).count() >= time {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !captured.ended && !left.is_zero(),
                "`{text}` was not written {time} times; there is only:\n{so_far}"
            );
            captured = changed.wait_timeout(captured, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until everything is read that was written, at most so long: another process may hold the other end.
    pub(crate) fn settle(&self, most: Duration) {
        let (captured, changed) = &*self.shared;
        let captured = captured.lock().unwrap_or_else(PoisonError::into_inner);
        drop(changed.wait_timeout_while(captured, most, |captured| !captured.ended));
    }

    /// Everything, after the process has exited.
    pub(crate) fn rest(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        let captured = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&captured.bytes).into_owned()
    }
}

/// The binary under test: `$HERMES_BIN`, or the one beside this test's folder.
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("HERMES_BIN") {
        return binary.into();
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let profile = test.parent().and_then(Path::parent).expect("tests lie in <target>/<profile>/deps");
    let binary = profile.join(format!("hermes{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.is_file(), "{} is not built: run `cargo xtask test`", binary.display());
    binary
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Hermes {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Hermes { command, stdin: None, talks: false, timeout: PATIENCE }
    }

    #[test]
    fn output_streams_and_status_are_captured() {
        let output = shell("cat; echo two >&2; exit 3").stdin("one").run();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.status.code()), ("one", "two\n", Some(3)));
        output.refused().says(&["TWO"]);
    }

    #[test]
    fn output_is_visible_while_it_runs_and_after_a_kill() {
        let running = shell("echo begun; exec sleep 100").spawn();
        running.wait_for_stdout("begun");
        let output = running.kill();
        assert_eq!((output.stdout.as_str(), output.status.code()), ("begun\n", None));
    }

    #[test]
    fn an_interrupt_arrives() {
        let running = shell("trap 'echo stopped; exit 130' INT; echo ready; while :; do sleep 0.05; done").spawn();
        running.wait_for_stdout("ready");
        running.interrupt();
        assert_eq!(running.wait().status.code(), Some(130));
    }

    #[test]
    #[should_panic(expected = "did not end in time")]
    fn a_process_that_never_exits_is_killed() {
        shell("exec sleep 100").timeout(Duration::from_millis(50)).run();
    }

    #[test]
    fn a_panic_does_not_count_as_a_refusal() {
        let panicked = shell("echo 'thread main panicked at x' >&2; exit 101").run();
        assert!(std::panic::catch_unwind(|| panicked.refused()).is_err());
    }
}
