//! Follows a program to the file that the system executes: through the interpreters of scripts, and through `env`.
//!
//! The system and `env` would look up these files once more at the start of the program, when a plugin may have exchanged them.
//! So if plugins may change a part of the chain, the host starts its end with the arguments that the system would build.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use blake3::Hash;

use super::lookup::is_program;

/// Linux reads this much of the first line of a script.
const LINE: usize = 256;
/// The most interpreters in a row.
const DEEPEST: usize = 4;
/// The most links in a row.
const LINKS: usize = 16;

/// Where plugins may change files, and where the host keeps its own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Folders that plugins may change.
    pub changeable: Vec<PathBuf>,
    /// A folder for copies of programs. Plugins cannot reach it.
    pub private: PathBuf,
}

/// A program with its arguments, as the plugin asks for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: &'a [String],
    /// The folder that it runs in.
    pub(super) folder: &'a Path,
    /// Its whole environment.
    pub(super) environment: &'a [(OsString, OsString)],
}

/// What the host starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    /// The argument 0.
    pub(super) name: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Changes of variables by `env`, in their order; it removes those without a value.
    pub(super) variables: Vec<(OsString, Option<OsString>)>,
    /// The file behind the program's path, if plugins may change a part of the chain.
    pub(super) real: Option<PathBuf>,
    /// The hash of the chain, if plugins may change the content of a file in it.
    pub(super) pin: Option<String>,
}

/// Takes the content of a file that plugins may change: returns the path to use in its place, and its hash.
pub(super) trait Take {
    fn take(&mut self, real: &Path) -> io::Result<(PathBuf, Hash)>;
}

/// Only computes the hash.
pub(super) struct Hashes;

impl Take for Hashes {
    fn take(&mut self, real: &Path) -> io::Result<(PathBuf, Hash)> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(hermes_private_files::open_regular(real)?)?;
        Ok((real.to_owned(), hasher.finalize()))
    }
}

impl Places {
    /// The changeable folders with links resolved.
    pub(super) fn tops(&self) -> Vec<PathBuf> {
        self.changeable.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
    }
}

/// Follows a program.
///
/// # Errors
///
/// When plugins may change a part of the chain, and it cannot be followed to its end.
pub(super) fn follow(asked: Asked<'_>, places: &Places, files: &mut dyn Take) -> io::Result<Start> {
    let mut walk = Walk { asked, tops: places.tops(), files, is_changeable: false, steps: Vec::new() };
    match walk.walk() {
        Ok(start) if walk.is_changeable => {
            Ok(Start { real: walk.steps.first().map(|(real, _)| real.clone()), pin: walk.pin(), ..start })
        }
        Err(error) if walk.is_changeable => Err(error),
        // The system finds the same files, or the same error.
        Ok(_) | Err(_) => Ok(Start {
            program: asked.path.to_owned(),
            name: asked.path.into(),
            arguments: asked.arguments.iter().map(OsString::from).collect(),
            variables: Vec::new(),
            real: None,
            pin: None,
        }),
    }
}

struct Walk<'a> {
    asked: Asked<'a>,
    tops: Vec<PathBuf>,
    files: &'a mut dyn Take,
    /// Whether plugins may change what the chain leads to.
    is_changeable: bool,
    /// The files of the chain, with the hashes of those that plugins may change.
    steps: Vec<(PathBuf, Option<Hash>)>,
}

impl Walk<'_> {
    fn walk(&mut self) -> io::Result<Start> {
        let mut written = self.asked.path.to_owned();
        let mut name = written.clone().into_os_string();
        let mut arguments: Vec<OsString> = self.asked.arguments.iter().map(OsString::from).collect();
        let mut variables = Vec::new();
        loop {
            let leads_through = self.leads_through(&written);
            self.is_changeable |= leads_through;
            let real = written.canonicalize().map_err(|error| about(&written, &error))?;
            let is_own = self.is_below(&real);
            self.is_changeable |= is_own;
            let (file, hash) = match is_own {
                true => self.files.take(&real).map(|(file, hash)| (file, Some(hash)))?,
                false => (real.clone(), None),
            };
            self.steps.push((real.clone(), hash));
            let Some((interpreter, argument)) = first_line(&file).map_err(|error| about(&written, &error))? else {
                return Ok(Start { program: file, name, arguments, variables, real: None, pin: None });
            };
            if self.steps.len() > DEEPEST {
                return Err(other(format!("more than {DEEPEST} interpreters follow each other")));
            }
            // The path by which the interpreter opens the script.
            let script = if is_own || leads_through { file } else { written };
            arguments.insert(0, script.into());
            written = self.asked.folder.join(&interpreter);
            name = interpreter.clone().into();
            if is_env(&written) && !self.leads_through(&written) {
                let env = Env::parse(argument.as_deref())?;
                written = self.lookup(&env.program)?;
                name = env.program.into();
                arguments.splice(0..0, env.arguments.into_iter().map(OsString::from));
                variables
                    .extend(env.variables.into_iter().map(|(name, value)| (name.into(), value.map(OsString::from))));
            } else {
                arguments.splice(0..0, argument.map(OsString::from));
            }
            if !is_program(&written) {
                self.is_changeable |= self.leads_through(&written);
                return Err(other(format!("its interpreter {:?} cannot be executed", written.display().to_string())));
            }
        }
    }

    /// Finds a program as `env` does.
    fn lookup(&mut self, program: &str) -> io::Result<PathBuf> {
        if program.contains('/') {
            return Ok(self.asked.folder.join(program));
        }
        let (environment, own) = (self.asked.environment, self.asked.folder);
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
        for folder in path.into_iter().flat_map(std::env::split_paths) {
            let found = own.join(folder).join(program);
            // A plugin may put a program there.
            self.is_changeable |= self.leads_through(&found);
            if is_program(&found) {
                return Ok(found);
            }
        }
        Err(other(format!("no folder of PATH has its interpreter {program:?}")))
    }

    fn is_below(&self, real: &Path) -> bool {
        self.tops.iter().any(|top| real.starts_with(top))
    }

    /// Whether a path, or a link that it leads to, lies in a folder that plugins may change. The path may be missing.
    fn leads_through(&self, path: &Path) -> bool {
        let mut at = path.to_owned();
        for _ in 0..LINKS {
            let Some(parent) = at.parent() else { return false };
            let known = parent.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
            if known.is_none_or(|known| self.is_below(&known)) {
                return true;
            }
            match fs::read_link(&at) {
                Ok(target) => at = parent.join(target),
                Err(_) => return false,
            }
        }
        true
    }

    /// The hash of all files that plugins may change, with the places of all.
    fn pin(&self) -> Option<String> {
        match &self.steps[..] {
            [(_, only)] => only.map(|hash| hash.to_hex().to_string()),
            steps if steps.iter().all(|(_, hash)| hash.is_none()) => None,
            steps => {
                let mut hasher = blake3::Hasher::new();
                for (path, hash) in steps {
                    let path = path.as_os_str().as_encoded_bytes();
                    hasher.update(&(path.len() as u64).to_le_bytes()).update(path);
                    hasher.update(&[u8::from(hash.is_some())]);
                    if let Some(hash) = hash {
                        hasher.update(hash.as_bytes());
                    }
                }
                Some(hasher.finalize().to_hex().to_string())
            }
        }
    }
}

fn other(why: String) -> io::Error {
    io::Error::other(why)
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{:?}: {error}", path.display().to_string()))
}

/// The interpreter of a script, and its only argument.
fn first_line(file: &Path) -> io::Result<Option<(String, Option<String>)>> {
    let mut begin = Vec::new();
    hermes_private_files::open_regular(file)?.take(LINE as u64).read_to_end(&mut begin)?;
    let Some(rest) = begin.strip_prefix(b"#!") else { return Ok(None) };
    let line = match rest.split(|byte| *byte == b'\n').next() {
        Some(line) if line.len() < rest.len() || begin.len() < LINE => line,
        _ => return Err(other(format!("its first line is longer than {LINE} bytes"))),
    };
    let line = std::str::from_utf8(line).ok().filter(|line| !line.contains('\0'));
    let line = line.ok_or_else(|| other("its first line is not text".to_owned()))?;
    let blank = [' ', '\t'];
    let line = line.trim_matches(blank);
    let (interpreter, argument) = line.split_once(blank).unwrap_or((line, ""));
    if interpreter.is_empty() {
        return Err(other("its first line names no interpreter".to_owned()));
    }
    let argument = argument.trim_matches(blank);
    Ok(Some((interpreter.to_owned(), (!argument.is_empty()).then(|| argument.to_owned()))))
}

fn is_env(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "env")
}

/// What `env` does with the argument that a first line gives it.
struct Env {
    variables: Vec<(String, Option<String>)>,
    program: String,
    arguments: Vec<String>,
}

impl Env {
    fn parse(argument: Option<&str>) -> io::Result<Self> {
        let unknown = |what: &str| other(format!("its first line starts a program by `env`, and {what}"));
        let argument = argument.ok_or_else(|| unknown("names none"))?;
        let split = argument.strip_prefix("--split-string=").or_else(|| argument.strip_prefix("-S"));
        let words = match split {
            Some(text) if text.contains(['\\', '$', '\'', '"', '#']) => {
                return Err(unknown("quotes, escapes, variables and comments of `-S` are not supported here"));
            }
            Some(text) => text.split_ascii_whitespace().collect(),
            None => vec![argument],
        };
        let mut words = words.into_iter();
        let mut variables = Vec::new();
        while let Some(word) = words.next() {
            let change = match (word, word.split_once('=')) {
                ("-u" | "--unset", _) => (words.next().ok_or_else(|| unknown("names none"))?, None),
                (_, Some(("--unset", name))) => (name, None),
                _ if word.starts_with('-') => {
                    return Err(unknown("of its options only `-S` and `-u` are supported here"));
                }
                (_, Some((name, value))) => (name, Some(value.to_owned())),
                (program, None) => {
                    let arguments = words.map(str::to_owned).collect();
                    return Ok(Self { variables, program: program.to_owned(), arguments });
                }
            };
            if change.0 == "PATH" {
                return Err(unknown("a `PATH` of its own is not supported here"));
            }
            variables.push((change.0.to_owned(), change.1));
        }
        Err(unknown("names none"))
    }
}
