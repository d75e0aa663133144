//! Where plugins are compiled: in a child process with a memory cap, or in this process where that is harmless. The child has a
//! low priority if no user waits for the code.
//!
//! A compiler takes all cores for seconds and much memory, and its input is untrusted. In a child process, neither its
//! memory use nor a crash affects a session.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::Engine;

use crate::adapter;
use crate::engine;
use crate::error::LoadError;
use crate::executor;
use crate::functions::{FunctionFiles, Functions};
use crate::stamp;

/// How a component is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Manner {
    /// Whether the code is compiled at low priority, because no user waits for it.
    pub background: bool,
    /// Whether the component will soon be replaced, as one under development: it compiles in a fraction of the time, and its
    /// code is slower.
    pub draft: bool,
}

impl Manner {
    /// The child's option for compiling at low priority.
    pub const BACKGROUND: &str = "--background";
    /// The option of the child for code under development.
    pub const DRAFT: &str = "--draft";
    /// The options of the child for functions that were compiled before, and for those of this compilation.
    pub const FUNCTIONS: [&str; 3] = ["--functions", "--functions-bytes", "--functions-to"];

    fn options(self) -> impl Iterator<Item = &'static str> {
        [(self.background, Self::BACKGROUND), (self.draft, Self::DRAFT)]
            .into_iter()
            .filter_map(|(on, name)| on.then_some(name))
    }
}

/// Called several times a second while something is compiled, with the elapsed time. Returning `Break` cancels it.
pub type Progress<'a> = &'a dyn Fn(Duration) -> ControlFlow<()>;

/// The process that compiles.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process: for measurements and tests.
    InProcess,
    /// A child process.
    Child(CompilerProcess),
}

/// A program that compiles its standard input, as [`serve`] does.
#[derive(Debug, Clone)]
pub struct CompilerProcess {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The memory limit in bytes that it sets for itself; used in messages.
    pub memory: u64,
    /// The time limit by the clock.
    pub timeout: Duration,
}

/// The exit code of a child whose input is not a component. Any other code is a failure of the child.
pub const EXIT_NOT_A_COMPONENT: u8 = 65;
/// Bytes of a child's stderr that are kept.
const MAX_STDERR: u64 = 64 << 10;
/// Processor time in seconds that a child may use. The wall time depends on the load of the machine.
const CPU_SECONDS: u64 = 600;
/// How often the host checks whether a child has ended.
const POLL: Duration = Duration::from_millis(10);
/// A part of the engine's messages for components with async functions.
const ASYNC: &str = "the component model async feature";
/// Begins with [`ASYNCHRONOUS`](crate::error::ASYNCHRONOUS).
const SYNCHRONOUS: &str = "it has async functions, and those of the contract are synchronous: build it against the files of wit/, without \
                           async functions (jco: `--backend qjs --backend-qjs-disable-async`)";
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

impl Compiler {
    /// Compiles a component into a file. Only a child uses and writes the functions of earlier compilations.
    pub(crate) fn compile(
        &self,
        engine: &Engine,
        bytes: &[u8],
        into: &File,
        (manner, functions): (Manner, &FunctionFiles),
        progress: Progress<'_>,
    ) -> Result<(), LoadError> {
        match self {
            Self::InProcess => {
                if progress(Duration::ZERO) == ControlFlow::Break(()) {
                    return Err(LoadError::Cancelled);
                }
                let code = if manner.draft {
                    precompile(&engine::draft(true, None), bytes)?
                } else {
                    precompile(engine, bytes)?
                };
                (&*into).write_all(&code).map_err(|error| LoadError::Compile { why: error.to_string() })
            }
            Self::Child(process) => process.compile(bytes, into, (manner, functions), progress),
        }
    }
}

/// The options of the child for the functions of earlier compilations.
fn options_of(files: &FunctionFiles) -> Vec<OsString> {
    let [known, bytes, to] = Manner::FUNCTIONS;
    let mut options = Vec::new();
    if let Some((path, length)) = &files.known {
        options.extend([known.into(), path.clone().into(), bytes.into(), length.to_string().into()]);
    }
    options.extend(files.next.iter().flat_map(|path| [to.into(), path.clone().into()]));
    options
}

/// Compiles a component, with the names of its imports and exports as the host has them.
pub(crate) fn precompile(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    engine.precompile_component(&adapter::adapt(bytes)).map_err(|error| {
        let why = error.chain().last().map_or_else(|| error.to_string(), ToString::to_string);
        // The engine quotes names of the component.
        let why = stamp::shown_line(&why);
        let why = if why.contains(ASYNC) { format!("{SYNCHRONOUS} ({why})") } else { why };
        LoadError::NotAComponent { why }
    })
}

impl CompilerProcess {
    fn compile(
        &self,
        bytes: &[u8],
        into: &File,
        (manner, functions): (Manner, &FunctionFiles),
        progress: Progress<'_>,
    ) -> Result<(), LoadError> {
        let failed = |what: &str, error: io::Error| LoadError::Compile { why: format!("{what}: {error}") };
        let output = into.try_clone().map_err(|error| failed("its output cannot be opened", error))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(manner.options())
            .args(options_of(functions))
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped());
        // Ctrl-C that stops a turn must not stop a compilation beside it. The child ends with its parent in any case.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            command.spawn().map_err(|error| failed(&format!("{} cannot be run", self.program.display()), error))?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        std::thread::scope(|scope| {
            // Stays open until the child has ended: the child takes the end of its input for the end of its parent.
            let input = std::thread::Builder::new().spawn_scoped(scope, move || {
                let mut stdin = stdin;
                if let Some(stdin) = &mut stdin {
                    // A child that stops reading reports the reason itself.
                    let _ = stdin.write_all(&(bytes.len() as u64).to_le_bytes());
                    let _ = stdin.write_all(bytes);
                    let _ = stdin.flush();
                }
                stdin
            });
            let errors = std::thread::Builder::new().spawn_scoped(scope, move || {
                let mut errors = Vec::new();
                if let Some(mut stderr) = stderr {
                    let _ = (&mut stderr).take(MAX_STDERR).read_to_end(&mut errors);
                    let _ = io::copy(&mut stderr, &mut io::sink());
                }
                String::from_utf8_lossy(&errors).trim().to_owned()
            });
            let started = input.and_then(|input| Ok((input, errors?)));
            let started = started.map_err(|error| failed("the system starts no thread for it", error));
            let ended = started.and_then(|threads| Ok((self.wait(&mut child, progress)?, threads)));
            if ended.is_err() {
                // Killing a child that has just ended does no harm.
                let _ = child.kill();
                let _ = child.wait();
            }
            let (status, (input, errors)) = ended?;
            drop(input.join());
            let errors = errors.join().unwrap_or_default();
            self.check_exit(status, &errors)
        })
    }

    /// Waits until the child ends, its time is up or the caller cancels.
    fn wait(&self, child: &mut Child, progress: Progress<'_>) -> Result<ExitStatus, LoadError> {
        let begun = Instant::now();
        let mut reported: Option<Instant> = None;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => return Err(LoadError::Compile { why: error.to_string() }),
            }
            if begun.elapsed() > self.timeout {
                let why = format!("it was not done after {} s, and was ended", self.timeout.as_secs());
                return Err(LoadError::Compile { why });
            }
            if reported.is_none_or(|reported| reported.elapsed() >= PROGRESS_INTERVAL) {
                reported = Some(Instant::now());
                if progress(begun.elapsed()) == ControlFlow::Break(()) {
                    return Err(LoadError::Cancelled);
                }
            }
            std::thread::sleep(POLL);
        }
    }

    fn check_exit(&self, status: ExitStatus, errors: &str) -> Result<(), LoadError> {
        if status.success() {
            return Ok(());
        }
        if status.code() == Some(i32::from(EXIT_NOT_A_COMPONENT)) {
            return Err(LoadError::NotAComponent { why: errors.to_owned() });
        }
        let limit = self.memory >> 20;
        if errors.contains("memory allocation of") || errors.contains("Cannot allocate memory") {
            return Err(LoadError::Compile { why: format!("that takes more than {limit} MiB of memory") });
        }
        let last = errors.lines().next_back().unwrap_or_default();
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            if signal == libc::SIGXCPU {
                return Err(LoadError::Compile { why: format!("that takes more than {CPU_SECONDS} s of computing") });
            }
            let likely = if signal == libc::SIGKILL { ", as a system does that is short of memory" } else { "" };
            return Err(LoadError::Compile {
                why: format!("the compiler was ended by signal {signal}{likely}; {last}")
                    .trim_end_matches("; ")
                    .to_owned(),
            });
        }
        let why = if last.is_empty() { format!("the compiler ended with {status}") } else { last.to_owned() };
        Err(LoadError::Compile { why })
    }
}

/// Limits this process to this many bytes of memory and ten minutes of processor time, and lowers its priority if nobody waits
/// for it. A process that exceeds the limits ends. On a system without such limits nothing happens.
pub fn confine(memory: u64, background: bool) {
    /// Compiled code is a few times as large as its source; no plugin reaches a gigabyte.
    const FILE: u64 = 1 << 30;
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
        if background {
            let _ = nice(10);
        }
        let limits =
            [(Resource::As, memory), (Resource::Cpu, CPU_SECONDS), (Resource::Fsize, FILE), (Resource::Core, 0)];
        for (resource, limit) in limits {
            let most = getrlimit(resource).maximum;
            let limit = most.map_or(limit, |most| most.min(limit));
            if let Err(error) = setrlimit(resource, Rlimit { current: Some(limit), maximum: most }) {
                tracing::debug!(%error, ?resource, "the limit cannot be set");
            }
        }
    }
    #[cfg(not(unix))]
    let _ = (memory, background, FILE);
}

/// Why a child produces no code.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The bytes are not a component that this engine compiles.
    #[error("{0}")]
    NotAComponent(String),
    /// Input or output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The work of a child: reads the component's length as eight bytes, then the component, and writes the compiled code.
/// The rest of the input stays unread; it is open as long as the parent lives.
pub fn serve(input: &mut impl Read, output: &mut impl Write, draft: Option<&FunctionFiles>) -> Result<(), ServeError> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    if input.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the component is cut short").into());
    }
    let functions = draft.map(Functions::read);
    let engine = match (&functions, threads_for_compiling()) {
        (Some(functions), parallel) => engine::draft(parallel, Some(Arc::clone(functions))),
        (None, true) => engine::engine(),
        (None, false) => engine::of_one_thread(),
    };
    let code = precompile(&engine, &bytes).map_err(|error| match error {
        LoadError::NotAComponent { why } => ServeError::NotAComponent(why),
        other => ServeError::NotAComponent(other.to_string()),
    })?;
    output.write_all(&code)?;
    output.flush()?;
    if let (Some(functions), Some(files)) = (&functions, draft)
        && let Err(error) = functions.keep(files)
    {
        // The next compilation takes longer.
        tracing::debug!(%error, "compiled functions cannot be kept");
    }
    Ok(())
}

/// Whether the system starts the threads with which wasmtime compiles; it panics without them.
fn threads_for_compiling() -> bool {
    executor::starts(std::thread::available_parallelism().map_or(1, usize::from)).is_ok()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;
    use std::io::Seek;

    use super::*;

    const PLAIN: (Manner, &FunctionFiles) =
        (Manner { background: false, draft: false }, &FunctionFiles { known: None, next: None });

    fn shell(script: &str) -> CompilerProcess {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        CompilerProcess { program: "sh".into(), arguments, memory: 512 << 20, timeout: Duration::from_secs(60) }
    }

    fn compile(script: &str) -> Result<Vec<u8>, String> {
        let mut into = tempfile::tempfile().unwrap();
        let done = shell(script).compile(&vec![b'x'; 1 << 20], &into, PLAIN, &|_| ControlFlow::Continue(()));
        done.map_err(|error| error.to_string())?;
        into.rewind().unwrap();
        let mut written = Vec::new();
        into.read_to_end(&mut written).unwrap();
        Ok(written)
    }

    #[test]
    fn a_child_gets_the_component_with_its_length_and_its_output_is_kept() {
        let length = 8 + (1 << 20);
        let written = compile(&format!("head -c {length} | wc -c")).unwrap();
        assert_eq!(String::from_utf8_lossy(&written).trim(), length.to_string());
    }

    #[test]
    fn a_failed_child_is_reported_in_words() {
        for (script, expected) in [
            ("echo bad magic >&2; exit 65", "it is not a WebAssembly component: bad magic"),
            (
                "echo 'memory allocation of 99 bytes failed' >&2; kill -6 $$",
                "it could not be compiled: that takes more than 512 MiB of memory",
            ),
            (
                "kill -9 $$",
                "it could not be compiled: the compiler was ended by signal 9, as a system does that is short of memory",
            ),
            ("kill -XCPU $$", "it could not be compiled: that takes more than 600 s of computing"),
            ("kill -11 $$", "it could not be compiled: the compiler was ended by signal 11"),
            ("echo first >&2; echo no room >&2; exit 1", "it could not be compiled: no room"),
            ("exit 3", "it could not be compiled: the compiler ended with exit status: 3"),
        ] {
            assert_eq!(compile(script).unwrap_err(), expected, "{script}");
        }
        let missing = CompilerProcess { program: "/nowhere/hermes".into(), ..shell("") };
        let into = tempfile::tempfile().unwrap();
        let error = missing.compile(b"", &into, PLAIN, &|_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.to_string().contains("/nowhere/hermes cannot be run"), "{error}");
    }

    #[test]
    fn a_child_is_killed_when_its_time_is_up_or_the_caller_cancels() {
        let into = tempfile::tempfile().unwrap();
        let slow = CompilerProcess { timeout: Duration::from_millis(50), ..shell("exec sleep 100") };
        let error = slow.compile(b"x", &into, PLAIN, &|_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.to_string().contains("it was not done after"), "{error}");

        let reports = Cell::new(0);
        let stopped = shell("exec sleep 100").compile(b"x", &into, PLAIN, &|_| {
            reports.set(reports.get() + 1);
            if reports.get() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert!(matches!(stopped, Err(LoadError::Cancelled)));
        assert_eq!(reports.get(), 3);
    }

    #[test]
    fn a_draft_is_other_code_that_the_same_engine_loads() {
        let bytes = hermes_zoo::Shell::with_tool("nop").build();
        let code = precompile(&engine::draft(true, None), &bytes).unwrap();
        assert!(code != precompile(&engine::engine(), &bytes).unwrap());
        // SAFETY: the compiler of this process wrote these bytes.
        #[allow(unsafe_code)]
        let loaded = unsafe { wasmtime::component::Component::deserialize(&engine::engine(), &code) };
        loaded.unwrap();
    }

    #[test]
    fn a_draft_keeps_its_functions_for_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        [&first, &second].into_iter().for_each(|path| std::fs::write(path, "").unwrap());
        let bytes = hermes_zoo::Shell::with_tool("nop").build();
        let serve = |files: &FunctionFiles| {
            let input = [&(bytes.len() as u64).to_le_bytes()[..], &bytes].concat();
            let mut output = Vec::new();
            serve(&mut input.as_slice(), &mut output, Some(files)).unwrap();
            output
        };
        let one = serve(&FunctionFiles { known: None, next: Some(first.clone()) });
        let length = std::fs::metadata(&first).unwrap().len();
        assert!(length > 0);
        let two = serve(&FunctionFiles { known: Some((first, length)), next: Some(second.clone()) });
        assert!(one == two, "functions that were kept give the same code");
        assert!(std::fs::metadata(&second).unwrap().len() >= length);
    }

    #[test]
    fn the_options_of_a_child_say_who_waits_and_what_is_known() {
        let manner = Manner { background: true, draft: true };
        assert_eq!(manner.options().collect::<Vec<_>>(), ["--background", "--draft"]);
        assert_eq!(Manner::default().options().count(), 0);
        let files = FunctionFiles { known: Some(("/a".into(), 7)), next: Some("/b".into()) };
        assert_eq!(options_of(&files), ["--functions", "/a", "--functions-bytes", "7", "--functions-to", "/b"]);
        assert!(options_of(&FunctionFiles::default()).is_empty());
    }

    #[test]
    fn one_thread_compiles_the_same_code() {
        let bytes = hermes_zoo::Shell::with_tool("nop").build();
        let [many, one] =
            [engine::engine(), engine::of_one_thread()].map(|engine| precompile(&engine, &bytes).unwrap());
        assert!(many == one);
    }

    #[test]
    fn a_component_with_async_functions_is_refused_with_the_way_out() {
        // A section of canonical functions with `task.cancel`.
        let cancels = b"\0asm\x0d\0\x01\0\x08\x02\x01\x05";
        let error = precompile(&engine::engine(), cancels).unwrap_err().to_string();
        assert!(error.contains("has async functions") && error.contains("--backend-qjs-disable-async"), "{error}");
    }

    #[test]
    fn a_child_compiles_the_same_code_as_this_process() {
        let component = b"\0asm\x0d\0\x01\0";
        let mut input = (component.len() as u64).to_le_bytes().to_vec();
        input.extend(component);
        let mut output = Vec::new();
        serve(&mut input.as_slice(), &mut output, None).unwrap();
        assert_eq!(output, engine::engine().precompile_component(component).unwrap());
        for input in [&b""[..], &[255; 8], &[9, 0, 0, 0, 0, 0, 0, 0, b'x']] {
            assert!(matches!(serve(&mut { input }, &mut Vec::new(), None), Err(ServeError::Io(_))));
        }
        let junk = [&4u64.to_le_bytes()[..], b"junk"].concat();
        assert!(matches!(serve(&mut junk.as_slice(), &mut Vec::new(), None), Err(ServeError::NotAComponent(_))));
    }
}
