//! The service behind the import `process`: runs granted programs without a shell.
//!
//! [`Programs`] holds which programs may run, and with which variables; the user approves each run ([`Approval`]). A program
//! and everything that it starts end with the call that started it, or with the session if it runs in the [`Background`], and in
//! any case with the host: a supervisor ends them ([`supervise_with`]). Without one, a process that leaves the program's group is
//! out of reach.

#[cfg(all(test, target_os = "linux"))]
mod attack;
mod background;
#[cfg(all(test, target_os = "linux"))]
mod background_tests;
mod chain;
mod child;
mod copies;
mod group;
mod guard;
mod kept;
mod lookup;
pub(crate) mod order;
mod own;
mod ring;
mod running;
mod sandbox;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod variables;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::chain::{Asked, Hashes};
use crate::approval::Approval;
use crate::changes::Changes;
use crate::fault::{Fault, FaultKind};

pub use hermes_sandbox::{Holds, Offer};

pub use background::{Background, Chunk, Listed, ProgramId};
pub use chain::Places;
pub use child::{ShowLine, run};
pub use group::end_all;
pub use order::{Order, Run};
pub use own::OwnProgram;
pub use running::{SupervisorCommand, offer, supervise_with};
pub use sandbox::{Confined, Confinement, NoScratch, Sandbox, SandboxMode, SandboxRules};
#[cfg(target_os = "linux")]
pub use supervisor::serve as supervise;

/// The most arguments of a program.
pub const MAX_ARGUMENTS: usize = 1_000;
/// The most bytes of all arguments together.
pub const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// The most bytes of input of a program.
pub const MAX_INPUT: usize = 8 << 20;
/// The most bytes that are kept of each output.
pub const MAX_OUTPUT: usize = 1 << 20;
/// The most programs of a plugin that run in the background of a session at once.
pub const MAX_BACKGROUND: usize = 8;
/// The most background programs that are remembered after their end.
pub const MAX_ENDED: usize = 16;
/// How long a program may take to end after it is asked to.
pub const GRACE: Duration = Duration::from_millis(250);

/// A folder in which programs may run.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The name by which plugins refer to it.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Folders below it that are closed.
    pub denied: Vec<PathBuf>,
}

/// The programs granted to one plugin.
#[derive(Debug, Clone)]
pub struct ProgramGrant {
    /// Names, which are looked up in `PATH`, and absolute paths.
    pub programs: Vec<String>,
    /// Variables of the user that programs get in addition to the standard ones.
    pub variables: Vec<String>,
    /// Folders that programs may run in.
    pub folders: Vec<Folder>,
    /// Where programs can be changed by plugins. The folders above are such places, too.
    pub places: Places,
    /// How programs are confined; none to run them without a sandbox.
    pub sandbox: Option<Sandbox>,
}

/// The programs of one plugin, with the approval of their runs.
#[derive(Clone)]
pub struct Programs {
    grant: Arc<ProgramGrant>,
    approval: Arc<dyn Approval>,
    background: Background,
    attended: bool,
    changes: Changes,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// The host ended it at its time limit.
    TimedOut,
    /// The plugin or the end of the session stopped it.
    Stopped,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How it ended.
    pub end: End,
    /// Its standard output: beginning and end.
    pub output: Vec<u8>,
    /// Its standard error: beginning and end.
    pub errors: Vec<u8>,
    /// Whether the middle of one of them was omitted.
    pub truncated: bool,
    /// What the sandbox denied, as far as it is known: a line for each.
    pub denied: Vec<String>,
}

impl Programs {
    /// The programs of an instance in a turn, where the user can be asked. All instances of a plugin in a session share
    /// the background.
    pub fn new(grant: ProgramGrant, approval: Arc<dyn Approval>, background: Background) -> Self {
        Self { grant: Arc::new(grant), approval, background, attended: true, changes: Changes::default() }
    }

    /// The same, with changes that are recorded.
    #[must_use]
    pub fn recording(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Who records the changes.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The programs in the background of the session.
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// The same for background work, where no user can be asked.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { attended: false, ..self }
    }

    /// Waits for the user's approval; asks only if `may_ask` is set.
    pub async fn approve(&self, run: &Run, may_ask: bool) -> Result<(), Fault> {
        self.approval.process(run, self.attended && may_ask).await
    }

    /// Checks the order against the grant and finds the program. Reads the file system.
    pub fn find(&self, order: Order, host: &Host) -> Result<Run, Fault> {
        let Order { program, arguments, environment: variables, root, folder, input, background, merged } = order;
        if !self.grant.programs.contains(&program) {
            return Err(not_granted(&program, &self.grant.programs));
        }
        check(&arguments, &input)?;
        variables::check(&variables)?;
        let path = lookup::program(&program, host)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let folder = lookup::folder(&self.grant.folders, &root, &folder)?;
        let own = host.environment(&self.grant.variables);
        let inherited = self.grant.variables.iter().filter(|name| own.iter().any(|(known, _)| known == name.as_str()));
        let inherited = inherited.filter(|name| !variables.iter().any(|(set, _)| set == *name)).cloned().collect();
        let environment = variables::add(own, &variables);
        let mut places = self.grant.places.clone();
        places.changeable.extend(self.grant.folders.iter().map(|folder| folder.path.clone()));
        let asked = Asked { path: &path, arguments: &arguments, folder: &folder, environment: &environment };
        let start = chain::follow(asked, &places, &mut Hashes).map_err(|error| not_followed(&path, &error))?;
        let (real, pin) = (start.real.unwrap_or(real), start.pin);
        let confinement = self.confinement()?;
        Ok(Run {
            program,
            path,
            real,
            pin,
            places,
            arguments,
            folder,
            input,
            environment,
            variables,
            inherited,
            background,
            merged,
            confinement,
        })
    }

    /// How the programs of this plugin are confined on this machine.
    fn confinement(&self) -> Result<Confinement, Fault> {
        let Some(sandbox) = self.grant.sandbox.as_ref().filter(|sandbox| sandbox.rules.mode != SandboxMode::Off) else {
            return Ok(Confinement::Off);
        };
        match offer().map_err(|why| not_tried(&why))? {
            Offer::Nothing(why) if sandbox.rules.mode == SandboxMode::Require => Err(not_confined(why)),
            Offer::Nothing(why) => Ok(Confinement::Unavailable(why.clone())),
            // Whatever fails from here on fails this run. It never runs without its sandbox.
            Offer::Confined(_) => Ok(Confinement::Confined(Arc::new(Confined {
                sandbox: sandbox.clone(),
                readable: self.grant.folders.iter().map(|folder| folder.path.clone()).collect(),
                closed: self.grant.folders.iter().flat_map(|folder| folder.denied.iter().cloned()).collect(),
                scratch: self.background.scratch(&sandbox.home).map_err(|error| no_temporary_folder(&error))?,
            }))),
        }
    }
}

/// The host's own environment.
pub struct Host<'a> {
    variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync),
}

impl<'a> Host<'a> {
    /// Reads environment variables with `variable`.
    pub fn new(variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync)) -> Self {
        Self { variable }
    }

    /// Folders of programs. Relative ones are left out: they would depend on the program's folder.
    fn path(&self) -> Vec<PathBuf> {
        let path = (self.variable)("PATH").unwrap_or_default();
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
    }

    fn environment(&self, granted: &[String]) -> Vec<(OsString, OsString)> {
        /// There is no terminal, so programs should not expect one.
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

fn not_confined(why: &str) -> Fault {
    let why = format!(
        "programs run only in a sandbox (`sandbox.mode: require`), and this machine offers none: {why}; `hermes doctor` says \
         more, and `sandbox.mode: auto` in config.yaml runs programs without one"
    );
    Fault::new(FaultKind::Unavailable, "not-confined", why)
}

/// Nothing is known about the machine, so this says nothing about other runs.
fn not_tried(why: &str) -> Fault {
    let why = format!(
        "the program was not run, because Hermes could not find out whether this machine can confine it: {why}; end other programs \
         if processes, memory or files ran out, and try again"
    );
    Fault::new(FaultKind::Unavailable, "not-confined", why)
}

fn no_temporary_folder(error: &std::io::Error) -> Fault {
    let why = format!(
        "the program was not run, because the temporary folder of its sandbox cannot be made: {error}; make room there if the \
         disk is full, and try again"
    );
    Fault::new(FaultKind::Unavailable, "not-confined", why)
}

fn not_followed(path: &Path, error: &std::io::Error) -> Fault {
    let why = format!(
        "{} cannot be started, because plugins may change what it runs, and that cannot be followed: {error}; write the path of a \
         program into its first line, or move it out of the workspace",
        shown(path)
    );
    Fault::new(FaultKind::Unavailable, "not-started", why)
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

/// A path for a message.
fn shown(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}
