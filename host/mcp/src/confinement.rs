//! What the program of a server may do on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_capabilities::files::Listed;
use hermes_capabilities::process::{Offer, Sandbox, SandboxMode, SandboxRules, offer};

/// How a server's program is confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Whether it is: where the system can, never, or always.
    pub mode: SandboxMode,
    /// Whether it can use the network.
    pub network: bool,
    /// Folders that the user lets it write, besides that of the session.
    pub writable: Vec<PathBuf>,
    /// Folders where starters of programs keep what they download. It can write them.
    pub caches: Vec<PathBuf>,
    /// Folders and files that it does not see, besides the built-in ones.
    pub hidden: Vec<PathBuf>,
    /// `$HERMES_HOME`, which it does not see either.
    pub home: PathBuf,
    /// The patterns of `approvals.protect`.
    pub protect: Vec<String>,
    /// The files that the context files of the session's folder import: instructions, which it cannot change.
    pub imported: Vec<PathBuf>,
}

/// What becomes of the user's wish on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confined {
    /// The user wants no sandbox.
    Off,
    /// The program runs in one.
    Yes,
    /// The program runs without one, because this machine offers none, for this reason.
    Unavailable(String),
    /// The user wants one, and there is none, for this reason: the program does not run.
    Refused(String),
}

impl Confinement {
    /// None at all.
    pub fn off() -> Self {
        Self {
            mode: SandboxMode::Off,
            network: true,
            writable: Vec::new(),
            caches: Vec::new(),
            hidden: Vec::new(),
            home: PathBuf::new(),
            protect: Vec::new(),
            imported: Vec::new(),
        }
    }

    /// What holds on this machine. The first call of the process finds out what it offers, which takes some milliseconds.
    pub fn here(&self) -> Confined {
        if self.mode == SandboxMode::Off { Confined::Off } else { self.with(offer()) }
    }

    fn with(&self, offer: Result<&Offer, String>) -> Confined {
        match (self.mode, offer) {
            (SandboxMode::Off, _) => Confined::Off,
            (_, Ok(Offer::Confined(_))) => Confined::Yes,
            (SandboxMode::Auto, Ok(Offer::Nothing(why))) => Confined::Unavailable(why.clone()),
            (SandboxMode::Require, Ok(Offer::Nothing(why))) => {
                Confined::Refused(format!("this machine offers no sandbox: {why}"))
            }
            // Nothing is known about the machine.
            (_, Err(why)) => Confined::Refused(format!("Hermes could not find out what this machine offers: {why}")),
        }
    }

    /// Whether it is confined without the network.
    pub fn is_complete(&self) -> bool {
        !self.network && self.here() == Confined::Yes
    }

    /// What the program may do, for the user. Begins with a verb.
    pub fn words(&self) -> String {
        match self.here() {
            Confined::Off => "runs with your rights, without a sandbox".to_owned(),
            Confined::Unavailable(why) => {
                format!("runs with your rights, because this machine offers no sandbox: {why}")
            }
            Confined::Refused(why) => format!("does not run, because {why}"),
            Confined::Yes => {
                let folders = self.writable.iter().map(|path| format!(", {}", path.display())).collect::<String>();
                let network = if self.network { "with the network" } else { "without the network" };
                format!("runs in the sandbox, {network}; it writes only the folder of the session{folders} and caches")
            }
        }
    }

    /// The same in a word or two.
    pub fn label(&self) -> &'static str {
        match (self.here(), self.network) {
            (Confined::Off, _) => "your rights",
            (Confined::Unavailable(_), _) => "your rights (no sandbox here)",
            (Confined::Refused(_), _) => "does not run",
            (Confined::Yes, true) => "sandbox",
            (Confined::Yes, false) => "sandbox, no network",
        }
    }

    /// The setting that allows what the sandbox denied, if the text of the program reports a denial. `workspace` is the folder of
    /// the session, and `section` the server's in config.yaml.
    pub(crate) fn remedy(&self, workspace: &Path, section: &str, text: &str) -> Option<String> {
        if self.here() != Confined::Yes {
            return None;
        }
        if !self.network && text.lines().any(|line| NO_NETWORK.iter().any(|sign| line.contains(sign))) {
            return Some(format!("the sandbox gives it no network: `network: true` in `{section}` does"));
        }
        let denied = text.lines().filter(|line| DENIED.iter().any(|sign| line.contains(sign)));
        let path = denied.flat_map(paths).map(PathBuf::from).find(|path| !self.may_write(workspace, path))?;
        let folder = wanted(&path, std::env::home_dir().as_deref());
        Some(format!(
            "the sandbox denies it {}: `write: [{}]` in `{section}` allows it",
            path.display(),
            folder.display()
        ))
    }

    fn may_write(&self, workspace: &Path, path: &Path) -> bool {
        let own = [workspace, Path::new("/tmp"), Path::new("/dev"), Path::new("/proc")];
        let folders = self.writable.iter().chain(&self.caches).map(PathBuf::as_path);
        folders.chain(own).any(|folder| path.starts_with(folder))
    }

    /// The sandbox of a start, if there is one; or why it must not start. `workspace` is the folder of the session.
    pub(crate) fn sandbox(&self, workspace: &Path) -> Result<Option<Sandbox>, String> {
        match self.here() {
            Confined::Off | Confined::Unavailable(_) => return Ok(None),
            Confined::Refused(why) => {
                return Err(format!("it runs in a sandbox only, and {why}"));
            }
            Confined::Yes => {}
        }
        let listed = Listed::with_imported(&self.protect, &self.imported, std::env::home_dir().as_deref());
        let listed = listed.map_err(|error| error.to_string())?;
        // The root of the file system is no workspace.
        let is_usable = workspace.parent().is_some() && workspace.is_dir();
        for cache in &self.caches {
            // If it cannot be created, the program says what it misses.
            let _ = fs::create_dir_all(cache);
        }
        Ok(Some(Sandbox {
            rules: SandboxRules {
                mode: self.mode,
                network: self.network,
                writable: self.writable.iter().chain(&self.caches).cloned().collect(),
                hidden: self.hidden.clone(),
            },
            home: self.home.clone(),
            readable: Vec::new(),
            writable: is_usable.then(|| workspace.to_owned()).into_iter().collect(),
            guarded: self.writable.clone(),
            listed: Arc::new(listed),
        }))
    }
}

/// The system's errors about a file that must not be changed or seen.
const DENIED: [&str; 6] =
    ["Read-only file system", "read-only file system", "EROFS", "Permission denied", "permission denied", "EACCES"];
/// The system's errors without a network.
const NO_NETWORK: [&str; 5] = [
    "Network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "Temporary failure in name resolution",
    "network is unreachable",
];

/// The absolute paths of a line.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"`,:;()[]<>".contains(c);
    line.split(ends).filter(|word| word.len() > 1 && word.starts_with('/') && !word.starts_with("//"))
}

/// The folder that a program wants to write for a path: that of a file, but never the user's home or the root.
fn wanted<'p>(path: &'p Path, home: Option<&Path>) -> &'p Path {
    match path.parent() {
        Some(parent) if !path.is_dir() && parent.parent().is_some() && Some(parent) != home && parent.is_dir() => {
            parent
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_line_are_absolute() {
        let of = |line| paths(line).collect::<Vec<_>>();
        assert_eq!(of("[Errno 30] Read-only file system: '/root/.papers'"), ["/root/.papers"]);
        assert_eq!(of("EACCES: permission denied, mkdir \"/home/me/a\" (see https://example.org/b)"), ["/home/me/a"]);
        assert_eq!(of("open a/b: Permission denied: /"), [""; 0]);
    }

    #[test]
    fn the_folder_of_a_file_is_wanted_but_never_the_whole_home() {
        let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let notes = home.path().join("notes");
        fs::create_dir(&notes).unwrap_or_else(|error| panic!("{error}"));
        let folder = |path: &Path| wanted(path, Some(home.path())).to_owned();
        assert_eq!(folder(&notes.join("a.txt")), notes);
        assert_eq!(folder(&notes), notes);
        assert_eq!(folder(&home.path().join(".papers")), home.path().join(".papers"));
        assert_eq!(folder(Path::new("/no-such-folder")), Path::new("/no-such-folder"));
    }

    #[test]
    fn a_wish_for_a_sandbox_is_kept_or_refused() {
        let nothing = Offer::Nothing("user namespace: denied".to_owned());
        let why = || "user namespace: denied".to_owned();
        for (mode, expected) in [
            (SandboxMode::Off, Confined::Off),
            (SandboxMode::Auto, Confined::Unavailable(why())),
            (SandboxMode::Require, Confined::Refused(format!("this machine offers no sandbox: {}", why()))),
        ] {
            assert_eq!(Confinement { mode, ..Confinement::off() }.with(Ok(&nothing)), expected);
        }
        // If the probe of the machine fails, programs do not run without a sandbox.
        let failed = || Err("no process".to_owned());
        let with = |mode| Confinement { mode, ..Confinement::off() }.with(failed());
        assert_eq!(with(SandboxMode::Off), Confined::Off);
        for mode in [SandboxMode::Auto, SandboxMode::Require] {
            assert!(matches!(with(mode), Confined::Refused(why) if why.ends_with(": no process")));
        }
    }
}
