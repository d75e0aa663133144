//! Repositories, fetched by the user's git: one commit goes into a bare repository and is read as an archive. There is
//! never a working tree, so no hook, link or submodule takes effect.
//!
//! Only the transfer uses the user's configuration, which names proxies, credentials and keys. Commands that read what was
//! fetched run without any configuration of the user or the system, so that none of it, such as a filter, applies to
//! hostile content.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hermes_capabilities::process::{End, OwnProgram};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{Fetched, Fetching, below, made};
use crate::archive::unpack_tar;
use crate::error::{At, InstallError, Reason};
use crate::source::Repository;

/// Longest time of a fetch.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Most bytes of a repository at one commit, packed.
const MOST_PACKED: u64 = 512 << 20;
/// Most memory of git, with the files that it maps.
const MOST_MEMORY: u64 = 2 << 30;
/// Most bytes that are kept of a stream of git; the rest is read and dropped.
const MOST_OUTPUT: u64 = 64 << 10;
/// How often size and time of a fetch are checked.
const POLL: Duration = Duration::from_millis(100);

/// What to do about an error of git.
fn remedy(why: &str, reference: Option<&str>) -> String {
    // Git's own words for a server that only hands out the files of a repository.
    if why.contains("dumb http") {
        return "use a server with git's smart HTTP (`git http-backend`): this one only hands out files, and a fetch of one commit \
                needs more; or give the address of an archive"
            .to_owned();
    }
    match reference {
        Some(reference) => format!("check the address, and that `{reference}` is a branch, a tag or a whole commit id"),
        None => "check the address".to_owned(),
    }
}

pub(super) async fn fetch(repository: &Repository, work: &Path, how: &Fetching<'_>) -> Result<Fetched, InstallError> {
    if repository.url.starts_with("http://") && !how.insecure {
        return Err(InstallError::Insecure(repository.url.clone()));
    }
    how.progress.step(&format!("fetching {repository}"));
    let from = repository.to_string();
    let bare = made(work, "repository")?;
    let folder = made(work, "unpacked")?;
    let failed = |reason: Reason| InstallError::Fetch { from: from.clone(), reason };
    let git = Git { bare: &bare, insecure: how.insecure };

    git.run(&["init", "--quiet", "--bare", "--template=", "."], Configuration::None).await.map_err(failed)?;
    let reference = repository.reference.as_deref().unwrap_or("HEAD");
    let arguments =
        ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", &repository.url, reference];
    git.run(&arguments, Configuration::User).await.map_err(|reason| {
        let usual = remedy(&reason.why, repository.reference.as_deref());
        failed(Reason { fix: reason.fix_or(usual.into()), ..reason })
    })?;
    let commit = git.run(&["rev-parse", "--verify", "FETCH_HEAD^{commit}"], Configuration::None).await;
    let commit = commit.map_err(failed)?.trim().to_owned();
    how.progress.step("unpacking");
    let tree = match &repository.subfolder {
        Some(subfolder) => format!("{commit}:{subfolder}"),
        None => commit.clone(),
    };
    let packed = size_of(&bare);
    let links = git.unpack(&tree, packed, &folder, how).map_err(|error| match error {
        InstallError::Fetch { reason, .. } if repository.subfolder.is_some() => {
            failed(Reason::new(reason.why, "check the folder behind `#`"))
        }
        other => other,
    })?;
    let links = below(&folder, links);
    Ok(Fetched { folder, resolved: Some(commit), archive: None, links })
}

/// Whose configuration a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Configuration {
    /// That of the user and the system, for connections.
    User,
    /// None but the settings of this file.
    None,
}

/// A command with a limit of memory: a small repository can contain objects of any size, which git holds as a whole.
#[cfg(unix)]
fn limited(program: &str) -> Command {
    let mut command = Command::new("sh");
    // Some systems cannot limit memory; there the limits of size and time remain.
    let script = format!("ulimit -v {} 2>/dev/null; exec \"$0\" \"$@\"", MOST_MEMORY >> 10);
    command.args(["-c", &script, program]);
    command
}

#[cfg(not(unix))]
fn limited(program: &str) -> Command {
    Command::new(program)
}

/// The exit code of a shell that did not find the program.
const NOT_FOUND: i32 = 127;

fn not_found() -> Reason {
    Reason::new("`git` is not on the PATH", "install git, or install from an archive")
}

struct Git<'a> {
    bare: &'a Path,
    insecure: bool,
}

impl Git<'_> {
    fn command(&self, arguments: &[&str], configuration: Configuration) -> Command {
        let mut command = limited("git");
        // The environment must not point to another repository or add settings.
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("GIT_") && !matches!(&*name_text, "GIT_SSH_COMMAND" | "GIT_SSH" | "GIT_SSL_CAINFO")
            {
                command.env_remove(&name);
            }
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1").env("LC_ALL", "C");
        command.env("GIT_ALLOW_PROTOCOL", if self.insecure { "https:ssh:file:http" } else { "https:ssh:file" });
        if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=60 -oServerAliveInterval=20");
        }
        command.env("GIT_ATTR_NOSYSTEM", "1");
        if configuration == Configuration::None {
            command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_SYSTEM", "/dev/null");
            command.env("GIT_CONFIG_GLOBAL", "/dev/null");
            // Versions of git before 2.32 know only these.
            command.env("HOME", self.bare).env("XDG_CONFIG_HOME", self.bare);
        }
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.attributesFile=/dev/null",
            // The bytes must be the same on every machine, so that a digest can be pinned.
            "core.autocrlf=false",
            "core.eol=lf",
            "filter.lfs.smudge=",
            "filter.lfs.process=",
            "filter.lfs.required=false",
            "fetch.fsckObjects=true",
            "gc.auto=0",
            "maintenance.auto=false",
            "submodule.recurse=false",
            "http.followRedirects=initial",
            // Git ends by itself when a server says nothing more.
            "http.lowSpeedLimit=100",
            "http.lowSpeedTime=60",
            "core.packedGitLimit=512m",
            "pack.threads=1",
        ] {
            command.args(["-c", setting]);
        }
        command.arg("--git-dir=.").args(arguments).current_dir(self.bare).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; it ends with the host. Returns the beginning of its standard output, or the first error on its standard error.
    async fn run(&self, arguments: &[&str], configuration: Configuration) -> Result<String, Reason> {
        let started = OwnProgram::start(&self.command(arguments, configuration)).await;
        let mut git = started.map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                not_found()
            } else {
                format!("git cannot be started: {error}").into()
            }
        })?;
        let (stdout, stderr) = (git.output.take(), git.errors.take());
        let output = async { tokio::join!(beginning(stdout), beginning(stderr), git.ended()) };
        tokio::pin!(output);
        let begun = Instant::now();
        let (stdout, stderr, status) = loop {
            tokio::select! {
                output = &mut output => break output,
                () = tokio::time::sleep(POLL) => {
                    if size_of(self.bare) > MOST_PACKED {
                        return Err(format!("it is larger than {} MiB", MOST_PACKED >> 20).into());
                    }
                    if begun.elapsed() > TIMEOUT {
                        return Err(format!("it took longer than {} s", TIMEOUT.as_secs()).into());
                    }
                }
            }
        };
        match status.map_err(|error| error.to_string())? {
            End::Exited(0) => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            End::Exited(NOT_FOUND) if cfg!(unix) => Err(not_found()),
            _ => Err(first_error(&stderr).into()),
        }
    }

    /// Passes a tree as a tar stream to the rules for archives. Returns the names of the links that were left out.
    fn unpack(&self, tree: &str, packed: u64, into: &Path, how: &Fetching<'_>) -> Result<Vec<String>, InstallError> {
        let mut command = self.command(&["archive", "--format=tar", tree], Configuration::None);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().at(self.bare)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let (finished, still_runs) = mpsc::channel::<()>();
        let late = Arc::clone(&child);
        let watch = thread::Builder::new().spawn(move || {
            if still_runs.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
                // Killing git ends its streams, and thereby the caller's wait.
                let _ = late.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
        });
        // Both streams are read at once: git would wait forever for a reader of the other one.
        let messages = thread::Builder::new().spawn(move || {
            let mut messages = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(MOST_OUTPUT).read_to_end(&mut messages);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            messages
        });
        let messages = match watch.and(messages) {
            Ok(messages) => messages,
            Err(error) => {
                let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = child.kill();
                let _ = child.wait();
                let reason = format!("the system starts no thread: {error}");
                return Err(InstallError::Fetch { from: tree.to_owned(), reason: reason.into() });
            }
        };
        let unpacked = match stdout {
            Some(stdout) => unpack_tar(stdout, packed, into, how.caps),
            None => Ok(Vec::new()),
        };
        drop(finished);
        let status = {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            if unpacked.is_err() {
                // It would wait for a reader forever.
                let _ = child.kill();
            }
            child.wait().at(self.bare)?
        };
        let messages = messages.join().unwrap_or_default();
        let links = unpacked?;
        if status.success() {
            return Ok(links);
        }
        Err(InstallError::Fetch { from: tree.to_owned(), reason: first_error(&messages).into() })
    }
}

/// The beginning of a stream. The rest is read, so that the program does not wait, and dropped.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        // A stream that breaks ends; the exit status tells what happened.
        let _ = (&mut stream).take(MOST_OUTPUT).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    kept
}

/// The first error message of git, without its label.
fn first_error(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().map(str::trim);
    let error = lines.find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    let error = error.unwrap_or("git failed without a message");
    error.trim_start_matches("fatal: ").trim_start_matches("error: ").chars().take(300).collect()
}

fn size_of(folder: &Path) -> u64 {
    let mut size = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        size += match entry.file_type() {
            Ok(kind) if kind.is_dir() => size_of(&entry.path()),
            // Git may just have removed the file.
            _ => entry.metadata().map_or(0, |found| found.len()),
        };
    }
    size
}

#[cfg(test)]
mod tests {
    use super::remedy;

    #[test]
    fn the_remedy_fits_the_server() {
        let dumb = remedy("dumb http transport does not support shallow capabilities", Some("v1"));
        assert!(dumb.contains("smart HTTP") && !dumb.contains("v1"), "{dumb}");
        assert!(remedy("couldn't find remote ref v1", Some("v1")).contains("`v1`"));
        assert_eq!(remedy("could not resolve host", None), "check the address");
    }
}
