//! The first opening of a library, in a child process that may die.
//!
//! A library runs code when it is opened. A crash there would end every session of this process without a message.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hermes_conversation::one_line_within;

use crate::compiler::Compiler;

/// The hidden command that opens a library in a process of its own.
pub const TRY_LIBRARY: &str = "try-library";
/// The exit code of a child that cannot use the library, and says why. Any other code is a failure of the child.
pub const EXIT_UNFIT: u8 = 65;
/// How long a library may take to open.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);
const MOST_WORDS: usize = 1 << 10;

/// Opens a library in a child process. Without the path of a program there is none, and nothing is tried.
pub(super) fn open(path: &Path, compiler: &Compiler) -> Result<(), String> {
    let Compiler::Child(process) = compiler else { return Ok(()) };
    run(process.program.as_ref(), path, PATIENCE)
}

fn run(program: &OsStr, path: &Path, patience: Duration) -> Result<(), String> {
    let mut command = Command::new(program);
    // The child takes the end of its input for the end of its parent.
    command.arg(TRY_LIBRARY).arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let failed = |error: std::io::Error| format!("it cannot be tried in a process of its own: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let status = wait(&mut child, patience).map_err(failed)?;
    let mut words = Vec::new();
    if let Some(stderr) = &mut child.stderr
        && status.is_some_and(|status| status.code() == Some(i32::from(EXIT_UNFIT)))
    {
        let _ = stderr.take(MOST_WORDS as u64).read_to_end(&mut words);
    }
    let words = one_line_within(&String::from_utf8_lossy(&words), MOST_WORDS);
    match status {
        None => Err(format!("it does not finish opening within {} s", patience.as_secs())),
        Some(status) if status.success() => Ok(()),
        Some(status) if status.code() == Some(i32::from(EXIT_UNFIT)) && !words.is_empty() => Err(words),
        Some(status) => Err(format!(
            "opening it crashes the program ({}), as with a file that is damaged or was built for another system; build it again",
            end_of(status)
        )),
    }
}

fn end_of(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.to_string()
}

/// Waits for the child. None if its time is up; it is killed then.
fn wait(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > patience {
            // Killing a child that has just ended does no harm.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What becomes of an opening in a child that behaves like this.
    fn tried(script: &str, patience: Duration) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("child");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        run(program.as_ref(), Path::new("/lib.so"), patience)
    }

    #[test]
    fn the_end_of_the_child_decides() {
        let long = Duration::from_secs(60);
        assert_eq!(tried("test $1 = try-library -a $2 = /lib.so", long), Ok(()));
        assert_eq!(tried("echo no symbol >&2; exit 65", long), Err("no symbol".to_owned()));
        let bus = tried("kill -7 $$", long).unwrap_err();
        assert!(bus.contains("signal 7") && bus.contains("build it again"), "{bus}");
        assert!(tried("exit 3", long).unwrap_err().contains("exit status: 3"));
        let hangs = tried("exec sleep 600", Duration::from_millis(200)).unwrap_err();
        assert!(hangs.contains("does not finish opening"), "{hangs}");
    }
}
