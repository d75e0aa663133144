//! Child processes, measured by the kernel.

use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The cost of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) wall: Duration,
    /// Peak resident memory in bytes; `None` if the system does not report it.
    pub(crate) peak: Option<u64>,
}

/// Runs a command to its end. If it fails, the error contains its stderr.
pub(crate) fn measure(command: &mut Command) -> Result<Run> {
    run(command.stdout(Stdio::null()))
}

/// Does the same, and returns the command's stdout.
pub(crate) fn output(command: &mut Command) -> Result<(Run, String)> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    let run = run(command.stdout(file.try_clone()?))?;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok((run, text))
}

fn run(command: &mut Command) -> Result<Run> {
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(errors.try_clone()?);
    let started = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    let (status, peak) = wait(child).with_context(|| format!("cannot wait for {program}"))?;
    let wall = started.elapsed();
    if !status.success() {
        let mut text = String::new();
        errors.rewind()?;
        errors.read_to_string(&mut text)?;
        bail!("{program} failed: {status}\n{}", text.trim_end());
    }
    Ok(Run { wall, peak })
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn wait(child: Child) -> std::io::Result<(ExitStatus, Option<u64>)> {
    use std::os::unix::process::ExitStatusExt;

    let id = libc::pid_t::try_from(child.id()).map_err(std::io::Error::other)?;
    let mut status = 0;
    // The standard library's wait does not return the usage of the child.
    let usage = loop {
        // SAFETY: an rusage of zeros is a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live locals of the right types. `id` is a child that has not been waited for, and
        // `child` is not used again, so that its id cannot be waited for twice.
        if unsafe { libc::wait4(id, &raw mut status, 0, &raw mut usage) } == id {
            break usage;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    // Linux counts in KiB, macOS in bytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    let peak = u64::try_from(usage.ru_maxrss).ok().map(|count| count * unit);
    Ok((ExitStatus::from_raw(status), peak))
}

#[cfg(not(unix))]
fn wait(mut child: Child) -> std::io::Result<(ExitStatus, Option<u64>)> {
    child.wait().map(|status| (status, None))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_memory_of_a_run_is_measured() {
        let small = measure(Command::new("sh").args(["-c", "true"])).unwrap().peak.unwrap();
        let filled = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); test ${#x} = 40000000";
        let large = measure(Command::new("sh").args(["-c", filled])).unwrap().peak.unwrap();
        assert!(large > 40_000_000 && small < large, "{small} {large}");
    }

    #[test]
    fn a_failed_run_returns_its_stderr() {
        let error = measure(Command::new("sh").args(["-c", "echo no such door >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("no such door") && error.contains('3'), "{error}");
    }
}
