//! Child processes, measured by the kernel.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The command of this program that runs another one between it and the measured one.
pub(crate) const RELAY: &str = "relay";

/// The cost of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) wall: Duration,
    /// The time of all processors; `None` if the system does not report it.
    pub(crate) processor: Option<Duration>,
    /// Peak resident memory in bytes; `None` if the system does not report it.
    pub(crate) peak: Option<u64>,
}

/// A command for [`measure`] and [`output`]. A new process of this program starts it: the kernel counts the memory of the process
/// that starts another one as the other's, and this one has grown.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.arg(RELAY).arg(program);
    Ok(command)
}

/// Runs a command of [`command`] to its end. If it fails, the error contains its stderr.
pub(crate) fn measure(command: &mut Command) -> Result<Run> {
    run(command.stdout(Stdio::null()))
}

/// Does the same, and returns the command's stdout.
pub(crate) fn output(command: &mut Command) -> Result<(Run, String)> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    let run = run(command.stdout(file.try_clone()?))?;
    Ok((run, text(&mut file)?))
}

fn run(command: &mut Command) -> Result<Run> {
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    let program = command.get_args().nth(1).unwrap_or_default().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stderr(errors.try_clone()?).status();
    let status = status.with_context(|| format!("cannot run {program}"))?;
    let text = text(&mut errors)?;
    let (text, report) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    if !status.success() {
        bail!("{program} failed: {status}\n{text}\n{report}");
    }
    read_report(report).with_context(|| format!("{program} was run, but not measured: {report}"))
}

/// Runs a program with its arguments for another process of this program, and writes its cost as the last line of stderr.
pub(crate) fn relay(command: &[&str]) -> Result<()> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let (status, run) = timed(Command::new(program).args(arguments))?;
    if !status.success() {
        bail!("{status}");
    }
    eprintln!("\n{}", report(&run));
    Ok(())
}

fn timed(command: &mut Command) -> Result<(ExitStatus, Run)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    let (status, processor, peak) = wait(child).with_context(|| format!("cannot wait for {program}"))?;
    Ok((status, Run { wall: started.elapsed(), processor, peak }))
}

/// Nanoseconds, nanoseconds and bytes.
fn report(run: &Run) -> String {
    let processor = run.processor.map_or(0, |time| time.as_nanos());
    format!("{} {processor} {}", run.wall.as_nanos(), run.peak.unwrap_or(0))
}

fn read_report(line: &str) -> Option<Run> {
    let mut numbers = line.split(' ').map(|number| number.parse::<u64>().ok());
    let (wall, processor, peak) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let known = |number: u64| (number > 0).then_some(number);
    Some(Run {
        wall: Duration::from_nanos(wall),
        processor: known(processor).map(Duration::from_nanos),
        peak: known(peak),
    })
}

fn text(file: &mut File) -> Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn wait(child: Child) -> std::io::Result<(ExitStatus, Option<Duration>, Option<u64>)> {
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
    let time = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).ok()?))
    };
    let processor = time(usage.ru_utime).zip(time(usage.ru_stime)).map(|(user, system)| user + system);
    Ok((ExitStatus::from_raw(status), processor, peak))
}

#[cfg(not(unix))]
fn wait(mut child: Child) -> std::io::Result<(ExitStatus, Option<Duration>, Option<u64>)> {
    child.wait().map(|status| (status, None, None))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_memory_and_the_processor_time_of_a_run_are_measured() {
        let run = |script| timed(Command::new("sh").args(["-c", script])).unwrap();
        let (status, small) = run("exit 3");
        assert_eq!(status.code(), Some(3));
        let (_, large) = run("x=$(head -c 40000000 /dev/zero | tr '\\0' x); test ${#x} = 40000000");
        assert!(large.peak.unwrap() > 40_000_000 && small.peak < large.peak, "{small:?} {large:?}");
        assert!(large.processor.unwrap() > small.processor.unwrap_or_default() && large.wall > small.wall);
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let run = Run { wall: Duration::from_nanos(7), processor: Some(Duration::from_nanos(5)), peak: Some(3) };
        assert_eq!(read_report(&report(&run)), Some(run));
        let unknown = Run { processor: None, peak: None, ..run };
        assert_eq!(read_report(&report(&unknown)), Some(unknown));
        assert_eq!(read_report("error: no such door"), None);
    }
}
