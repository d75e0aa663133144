//! The service behind the import `process`: programs that were granted by name, run without a shell.
//!
//! What may run, and with what of the environment, is settled when [`Programs`] is made; whether it may run this time is
//! the user's to say ([`Approval`]). A program and all that it leaves in its process group end with the call
//! that started it. What leaves the group on purpose is out of reach: whoever is granted a program grants what it does.

mod approval;
mod child;
mod group;
mod kept;
mod lookup;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::fault::{Fault, FaultKind};

pub use approval::{Approval, Refusal};
pub use child::run;
pub use group::end_all;

/// The most arguments of a program.
pub const MAX_ARGUMENTS: usize = 1_000;
/// The most bytes of all of them.
pub const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// The most bytes that a program is given to read.
pub const MAX_INPUT: usize = 8 << 20;
/// The most bytes that are kept of what it writes to one of its outputs.
pub const MAX_OUTPUT: usize = 1 << 20;
/// How long a program may take to end when it is asked to.
pub const GRACE: Duration = Duration::from_millis(250);

/// A folder that programs may be run in.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The name by which plugins ask for it.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// What below it is not to be entered.
    pub denied: Vec<PathBuf>,
}

/// What is granted to one plugin.
#[derive(Debug, Clone, Default)]
pub struct ProgramGrant {
    /// Names, which are looked up, and absolute paths.
    pub programs: Vec<String>,
    /// Variables that are handed on, beside those that every program gets.
    pub variables: Vec<String>,
    /// Where it may run them.
    pub folders: Vec<Folder>,
}

/// The programs of one plugin, and who says whether they may run.
#[derive(Clone)]
pub struct Programs {
    grant: Arc<ProgramGrant>,
    approval: Arc<dyn Approval>,
    attended: bool,
}

/// A program as a plugin wants it run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// As it was granted.
    pub program: String,
    /// Handed over one by one.
    pub arguments: Vec<String>,
    /// The name of a folder.
    pub root: String,
    /// A directory relative to it.
    pub folder: String,
    /// What it reads.
    pub input: Vec<u8>,
}

/// A program that was found and may be run, if the user agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// As it was granted.
    pub program: String,
    /// Where it was found.
    pub path: PathBuf,
    /// The same without links.
    pub real: PathBuf,
    /// Handed over one by one.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// What it reads.
    pub input: Vec<u8>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// By the host, since its time was up.
    TimedOut,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How it ended.
    pub end: End,
    /// Of its standard output, beginning and end.
    pub output: Vec<u8>,
    /// Of its standard error, beginning and end.
    pub errors: Vec<u8>,
    /// The middle of one of them is left out.
    pub truncated: bool,
}

impl Programs {
    /// For instances that turns wait for: the user can be asked.
    pub fn new(grant: ProgramGrant, approval: Arc<dyn Approval>) -> Self {
        Self { grant: Arc::new(grant), approval, attended: true }
    }

    /// The same for work in the background, where nobody can be asked.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { attended: false, ..self }
    }

    /// Waits for the user's word, if they may be asked.
    pub async fn approve(&self, run: &Run, may_ask: bool) -> Result<(), Fault> {
        self.approval.process(run, self.attended && may_ask).await
    }

    /// Looks whether the order keeps to the grant, and finds the program. Reads the file system.
    pub fn find(&self, order: Order, host: &Host) -> Result<Run, Fault> {
        let Order { program, arguments, root, folder, input } = order;
        if !self.grant.programs.contains(&program) {
            return Err(not_granted(&program, &self.grant.programs));
        }
        check(&arguments, &input)?;
        let path = lookup::program(&program, host)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let folder = lookup::folder(&self.grant.folders, &root, &folder)?;
        let environment = host.environment(&self.grant.variables);
        Ok(Run { program, path, real, arguments, folder, input, environment })
    }
}

/// What the host's own environment gives.
pub struct Host<'a> {
    variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync),
}

impl<'a> Host<'a> {
    /// Reads environment variables with `variable`.
    pub fn new(variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync)) -> Self {
        Self { variable }
    }

    /// Folders of programs. What is relative would depend on where the program runs.
    fn path(&self) -> Vec<PathBuf> {
        let path = (self.variable)("PATH").unwrap_or_default();
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
    }

    fn environment(&self, granted: &[String]) -> Vec<(OsString, OsString)> {
        /// A program that finds no terminal should not look for one.
        const TERM: (&str, &str) = ("TERM", "dumb");
        const ALWAYS: &[&str] = &["HOME", "LANG", "TMPDIR"];
        let path = std::env::join_paths(self.path()).unwrap_or_default();
        let mut environment: Vec<(OsString, OsString)> = vec![("PATH".into(), path), (TERM.0.into(), TERM.1.into())];
        let fixed = |name: &&str| ["PATH", TERM.0].contains(name);
        let names = ALWAYS.iter().copied().chain(granted.iter().map(String::as_str)).filter(|name| !fixed(name));
        for name in names {
            let there = environment.iter().any(|(known, _)| known == name);
            if let Some(value) = (self.variable)(name).filter(|_| !there) {
                environment.push((name.into(), value));
            }
        }
        environment
    }
}

fn not_granted(program: &str, granted: &[String]) -> Fault {
    let granted = if granted.is_empty() { "none".to_owned() } else { granted.join(", ") };
    let why = format!(
        "the program {program:?} was not granted to this plugin; granted are: {granted}; a program is named exactly as its \
         manifest asks for it under `permissions.process`"
    );
    Fault::new(FaultKind::Denied, "not-granted", why)
}

fn invalid(code: &str, why: String) -> Fault {
    Fault::new(FaultKind::InvalidInput, code, why)
}

fn check(arguments: &[String], input: &[u8]) -> Result<(), Fault> {
    if let Some(at) = arguments.iter().position(|argument| argument.contains('\0')) {
        return Err(invalid("nul", format!("argument {} has a NUL character, which no program can be given", at + 1)));
    }
    let bytes: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    if arguments.len() > MAX_ARGUMENTS || bytes > MAX_ARGUMENT_BYTES {
        let why = format!(
            "there are {} arguments with {bytes} bytes: at most {MAX_ARGUMENTS} with {MAX_ARGUMENT_BYTES} bytes can be given; \
             hand over the rest as input",
            arguments.len()
        );
        return Err(invalid("too-long", why));
    }
    if input.len() > MAX_INPUT {
        let why = format!("the input has {} bytes: at most {MAX_INPUT} can be given", input.len());
        return Err(invalid("too-long", why));
    }
    Ok(())
}

/// A path for messages.
fn shown(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}
