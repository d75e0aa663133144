//! Opening a native library, and its function tables.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hermes_conversation::one_line;
use hermes_plugin_abi as abi;

use crate::contract::CONTRACT;
use crate::error::LoadError;
use crate::interfaces::interfaces;
use crate::loaded::Exports;
use crate::stamp;

/// An open library that fits the contract. It is never closed, because its code may be on any thread's stack.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    pub(crate) enter: extern "C" fn(abi::Import),
    pub(crate) leave: extern "C" fn(),
    pub(crate) tables: Tables,
}

macro_rules! exports_of_a_library {
    (required $required:ident $required_name:literal $required_table:ident { $($required_functions:tt)* }
     $($(#[$doc:meta])* $interface:ident $name:literal $table:ident { $($functions:tt)* })+) => {
        /// The function tables of a library's interfaces.
        #[derive(Clone, Copy)]
        pub(crate) struct Tables {
            pub(crate) $required: Option<abi::$required_table>,
            $(pub(crate) $interface: Option<abi::$table>,)+
        }

        impl Tables {
            fn of(plugin: abi::PluginRef) -> Self {
                Self {
                    $required: Some(plugin.$required()),
                    $($interface: plugin.$interface().into_option(),)+
                }
            }

            fn exports(&self) -> Exports {
                Exports { $($interface: self.$interface.is_some(),)+ }
            }
        }
    };
}

interfaces!(exports_of_a_library);

/// The libraries that this process has opened, by the hash of their bytes. Each is opened once and never closed.
static OPENED: Mutex<Option<HashMap<blake3::Hash, Library>>> = Mutex::new(None);

fn unfit(why: impl Into<String>) -> LoadError {
    LoadError::Native { why: why.into() }
}

impl Library {
    /// Opens a library from its bytes through a temporary file in `folder`, so that the checked bytes are the ones opened.
    pub(crate) fn open(bytes: &[u8], folder: &Path) -> Result<Self, LoadError> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.get_or_insert_with(HashMap::new);
        let digest = blake3::hash(bytes);
        if let Some(library) = opened.get(&digest) {
            return Ok(*library);
        }
        let at = |source| LoadError::Cache { path: folder.to_owned(), source };
        let ending = std::env::consts::DLL_SUFFIX;
        let mut file = tempfile::Builder::new().prefix("native-").suffix(ending).tempfile_in(folder).map_err(at)?;
        file.write_all(bytes).map_err(at)?;
        // Closed first: Windows does not open a library that is open for writing.
        let path = file.into_temp_path();
        let library = Self::of(header(&path)?)?;
        opened.insert(digest, library);
        Ok(library)
    }

    pub(super) fn of(header: &'static abi::LibHeader) -> Result<Self, LoadError> {
        if header.layout().is_none() {
            return Err(unfit("it does not say how its tables are laid out; build it with the SDK"));
        }
        let plugin = header.init_root_module::<abi::PluginRef>().map_err(|error| {
            tracing::debug!(%error, "a native library does not fit");
            unfit(
                "its tables are laid out in another way than those of this host, as with another version of the SDK or of \
                 the compiler; build it again with the SDK of this version",
            )
        })?;
        stamp::check_text(plugin.stamp().as_bytes())?;
        if plugin.fingerprint() != abi::FINGERPRINT {
            return Err(unfit(format!(
                "it was built with another text of the contract {CONTRACT}; build it again with the SDK of \
                 this version"
            )));
        }
        let library = Self { enter: plugin.enter(), leave: plugin.leave(), tables: Tables::of(plugin) };
        if library.exports().names().is_empty() { Err(LoadError::NoKind) } else { Ok(library) }
    }

    /// The interfaces that it exports.
    pub(crate) fn exports(&self) -> Exports {
        self.tables.exports()
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
