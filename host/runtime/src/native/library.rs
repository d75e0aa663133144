//! Opening a native library, and its functions.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hermes_conversation::one_line;
use hermes_plugin_abi as abi;

use super::{shape, trial};
use crate::compiler::Compiler;
use crate::contract::{LaterVersions, Name};
use crate::error::LoadError;
use crate::exports::Exports;
use crate::interfaces::interfaces;
use crate::stamp;

/// The most characters of a name that are shown.
const MOST_SHOWN: usize = 64;
/// How the names of copies begin.
const PREFIX: &str = "native-";
/// What the bindings put before the name of a function.
const METHOD: &str = "call_";

/// An open library that fits the contract. It is never closed, because its code may be on any thread's stack.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    pub(crate) enter: extern "C" fn(abi::Import),
    pub(crate) leave: extern "C" fn(),
    pub(crate) functions: &'static Functions,
    exports: Exports,
}

/// The functions of a library, by interface and by name with underscores. Those that this host does not know are among them.
pub(crate) struct Functions(HashMap<String, HashMap<String, abi::Function>>);

macro_rules! exports_of_a_library {
    (required $required:ident $required_name:literal { $($required_function:ident $required_call:ident $required_types:tt -> $required_answer:ty;)+ }
     $($(#[$doc:meta])* $interface:ident $name:literal { $($function:ident $call:ident $types:tt -> $answer:ty;)+ })+) => {
        impl Functions {
            /// The exported interfaces. Of each, the library must have all functions.
            fn exports(&self) -> Result<Exports, LoadError> {
                self.has_all($required_name, &[$(stringify!($required_call)),+])?;
                Ok(Exports {
                    $($interface: match self.0.contains_key($name) {
                        true => self.has_all($name, &[$(stringify!($call)),+])?,
                        false => false,
                    },)+
                })
            }
        }
    };
}

interfaces!(exports_of_a_library);

impl Functions {
    /// Sorts the functions of a library. Refuses those of versions that this host does not serve.
    fn of(functions: &[abi::NamedFunction], later: LaterVersions) -> Result<Self, LoadError> {
        let mut sorted = HashMap::<String, HashMap<_, _>>::new();
        for abi::NamedFunction { name, call } in functions {
            let name = name.as_str();
            let parsed =
                name.split_once('#').and_then(|(interface, function)| Some((Name::parse(interface)?, function)));
            let Some((interface, function)) = parsed else {
                let name: String = name.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect();
                return Err(unfit(format!(
                    "it has a function with the unreadable name `{name}`; build it with the SDK"
                )));
            };
            stamp::check_version(interface.package, interface.version, later)?;
            sorted.entry(interface.interface.to_owned()).or_default().insert(function.to_owned(), *call);
        }
        Ok(Self(sorted))
    }

    /// The function behind a method of the bindings, such as `call_session_start`.
    pub(crate) fn get(&self, interface: &str, method: &str) -> Option<abi::Function> {
        self.0.get(interface)?.get(method.strip_prefix(METHOD)?).copied()
    }

    fn has_all(&self, interface: &str, methods: &[&str]) -> Result<bool, LoadError> {
        match methods.iter().find(|method| self.get(interface, method).is_none()) {
            None => Ok(true),
            Some(lacking) => {
                let lacking = lacking.trim_start_matches(METHOD).replace('_', "-");
                Err(unfit(format!("it lacks the function `{interface}.{lacking}`; build it again with the SDK")))
            }
        }
    }
}

/// The libraries that this process has opened, by the hash of their bytes and what was asked for. Each is opened once and never closed.
static OPENED: Mutex<Option<HashMap<(blake3::Hash, LaterVersions), Library>>> = Mutex::new(None);

fn unfit(why: impl Into<String>) -> LoadError {
    LoadError::Native { why: why.into() }
}

impl Library {
    /// Opens a library from its bytes through a temporary file in `folder`, so that the checked bytes are the ones opened.
    /// A file that is no whole library is refused before, and one that crashes dies in a child process.
    pub(crate) fn open(
        bytes: &[u8],
        later: LaterVersions,
        folder: &Path,
        compiler: &Compiler,
    ) -> Result<Self, LoadError> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.get_or_insert_with(HashMap::new);
        let key = (blake3::hash(bytes), later);
        if let Some(library) = opened.get(&key) {
            return Ok(*library);
        }
        shape::check(bytes).map_err(unfit)?;
        sweep(folder);
        let copy = Copy::of(bytes, folder).map_err(|source| LoadError::Cache { path: folder.to_owned(), source })?;
        trial::open(&copy.path, compiler).map_err(unfit)?;
        let library = Self::read(&copy.path, later)?;
        opened.insert(key, library);
        Ok(library)
    }

    /// Opens the library in a file, and reads its description.
    pub(super) fn read(path: &Path, later: LaterVersions) -> Result<Self, LoadError> {
        Self::of(header(path)?, later)
    }

    pub(super) fn of(header: &'static abi::LibHeader, later: LaterVersions) -> Result<Self, LoadError> {
        if header.layout().is_none() {
            return Err(unfit("it does not say how its description is laid out; build it with the SDK"));
        }
        let plugin = header.init_root_module::<abi::PluginRef>().map_err(|error| {
            tracing::debug!(%error, "a native library does not fit");
            unfit(
                "its description is laid out in another way than this host reads it, as with another version of the SDK or of \
                 the compiler; build it again with the SDK of this version",
            )
        })?;
        stamp::check_text(plugin.stamp().as_bytes(), later)?;
        let functions = Functions::of(plugin.functions().as_slice(), later)?;
        let exports = functions.exports()?;
        if exports.names().is_empty() {
            return Err(LoadError::NoKind);
        }
        // The library stays open too.
        let functions = Box::leak(Box::new(functions));
        Ok(Self { enter: plugin.enter(), leave: plugin.leave(), functions, exports })
    }

    /// The interfaces that it exports.
    pub(crate) fn exports(&self) -> Exports {
        self.exports
    }
}

/// A copy of a library, which exists while the library is being opened. It is locked, so that a copy without its process
/// is known.
struct Copy {
    path: tempfile::TempPath,
    _lock: File,
}

impl Copy {
    fn of(bytes: &[u8], folder: &Path) -> io::Result<Self> {
        loop {
            let ending = std::env::consts::DLL_SUFFIX;
            let mut file = tempfile::Builder::new().prefix(PREFIX).suffix(ending).tempfile_in(folder)?;
            file.write_all(bytes)?;
            // Closed first: Windows does not open a library that is open for writing.
            let path = file.into_temp_path();
            let lock = File::open(&path)?;
            // On a file system without locks, copies are left to the next sweep.
            let _ = lock.lock_shared();
            // Another process may have swept it before it was locked.
            if path.exists() {
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

/// Removes the copies of libraries that ended processes left.
pub(crate) fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_copy = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_copy && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// The header of the library in a file. The library stays open for the rest of the process.
#[allow(unsafe_code)]
fn header(path: &Path) -> Result<&'static abi::LibHeader, LoadError> {
    // SAFETY: opening a library runs its initialisation code. The user has granted these very bytes as native code,
    // which includes the right to do anything in this process.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|error| unfit(format!("the system does not open it: {}", cause(&error))))?;
    // SAFETY: a library with this symbol declares it to be such a header. The first bytes of the header are compared
    // with a magic number before anything else of it is read.
    let header = match unsafe { library.get::<abi::AbiHeaderRef>(abi::SYMBOL) } {
        Ok(symbol) => *symbol,
        Err(_) => {
            return Err(unfit(
                "it is not a Hermes plugin: it lacks the symbol `hermes_plugin`; build it with the SDK's feature `native`",
            ));
        }
    };
    // The symbol's target must live as long as the process, even if the library does not fit.
    std::mem::forget(library);
    header.upgrade().map_err(|error| {
        tracing::debug!(%error, "a native library does not fit");
        unfit("it was built with another version of abi_stable; build it again with the SDK of this version")
    })
}

fn cause(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    one_line(&cause)
}

/// The work of the child: opens the library and reads its description.
///
/// # Errors
///
/// Why the library cannot be used.
pub fn try_library(path: &Path) -> Result<(), String> {
    let read = Library::read(path, LaterVersions::Accepted);
    read.map(drop).map_err(|error| match error {
        LoadError::Native { why } => why,
        other => other.to_string(),
    })
}
