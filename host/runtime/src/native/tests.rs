//! Libraries that were not built with this SDK, and files that are not libraries.

// Parts of what the derive generates for a table are not used here.
#![allow(dead_code)]

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_types::VersionStrings;
use hermes_plugin_abi::{
    Answer, CheckTypeLayout, Import, LibHeader, NamedFunction, Plugin, PluginRef, RErr, RSlice, RStr, RootModuleResult,
};

use super::Library;
use crate::compiler::Compiler;
use crate::contract::LaterVersions;
use crate::error::LoadError;

extern "C" fn function(_: RSlice<'_, u8>) -> Answer {
    RErr("never called".into())
}

extern "C" fn enter(_: Import) {}

extern "C" fn leave() {}

const LIFECYCLE: [&str; 3] = [
    "hermes:lifecycle/lifecycle@1.0.0#configure",
    "hermes:lifecycle/lifecycle@1.0.0#session_start",
    "hermes:lifecycle/lifecycle@1.0.0#session_end",
];

fn plugin(stamp: &'static str, names: &[&'static str]) -> PluginRef {
    let functions =
        LIFECYCLE.iter().chain(names).map(|name| NamedFunction { name: RStr::from_str(name), call: function });
    let functions = RSlice::from_slice(Vec::leak(functions.collect()));
    Plugin { stamp: RStr::from_str(stamp), enter, leave, functions }.leak_into_prefix()
}

/// The root module of a library that was built with another draft of the SDK.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = OtherRef)))]
#[sabi(missing_field(panic))]
struct Other {
    stamp: RStr<'static>,
    #[sabi(last_prefix_field)]
    leave: extern "C" fn(),
}

impl RootModule for OtherRef {
    abi_stable::declare_root_module_statics! {OtherRef}
    const BASE_NAME: &'static str = "hermes_plugin";
    const NAME: &'static str = "hermes_plugin";
    const VERSION_STRINGS: VersionStrings = <PluginRef as RootModule>::VERSION_STRINGS;
}

macro_rules! header {
    ($type:ty, $make:expr, $layout:ident) => {{
        extern "C" fn constructor() -> RootModuleResult {
            abi_stable::library::__call_root_module_loader(|| -> $type { $make })
        }
        // SAFETY: the constructor returns the declared type.
        #[allow(unsafe_code)]
        let header = unsafe { LibHeader::from_constructor::<$type>(constructor, CheckTypeLayout::$layout) };
        let header: &'static LibHeader = Box::leak(Box::new(header));
        Library::of(header, LaterVersions::Refused).err()
    }};
}

const STAMP: &str = r#"{"package":"hermes:plugin@1.0.0","sdk":"test"}"#;

fn why(error: Option<LoadError>) -> String {
    let why = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(!why.contains('\n'), "one line: {why}");
    why
}

const TOOLS: [&str; 2] = ["hermes:tools/tools@1.0.0#catalog", "hermes:tools/tools@1.0.0#call"];

#[test]
fn an_unfit_library_is_refused_in_one_line_that_says_what_to_do() {
    let other = why(header!(OtherRef, Other { stamp: RStr::from_str(STAMP), leave }.leak_into_prefix(), Yes));
    assert!(other.contains("laid out in another way") && other.contains("build it again"), "{other}");
    let silent = why(header!(PluginRef, plugin(STAMP, &TOOLS), No));
    assert!(silent.contains("does not say how its description is laid out"), "{silent}");
    let newer = header!(PluginRef, plugin(r#"{"package":"hermes:plugin@9.0.0"}"#, &TOOLS), Yes);
    assert!(matches!(newer, Some(LoadError::Version { .. })), "{newer:?}");
    let newer = header!(PluginRef, plugin(STAMP, &["hermes:tools/tools@2.0.0#call"]), Yes);
    assert!(matches!(newer, Some(LoadError::Version { ref package, .. }) if package == "hermes:tools"), "{newer:?}");
    let empty = header!(PluginRef, plugin(STAMP, &[]), Yes);
    assert!(matches!(empty, Some(LoadError::NoKind)), "{empty:?}");
    let half = why(header!(PluginRef, plugin(STAMP, &TOOLS[..1]), Yes));
    assert!(half.contains("lacks the function `tools.call`") && half.contains("build it again"), "{half}");
    let odd = why(header!(PluginRef, plugin(STAMP, &["tools\n"]), Yes));
    assert!(odd.contains(r"`tools\n`"), "{odd}");
}

#[test]
fn functions_that_the_host_does_not_know_are_left_alone() {
    let known = header!(PluginRef, plugin(STAMP, &TOOLS), Yes);
    assert!(known.is_none(), "{known:?}");
    const ADDED: [&str; 4] =
        ["hermes:dreams/dreams@1.0.0#dream", "hermes:tools/elicitation@1.0.0#ask", TOOLS[0], TOOLS[1]];
    let later = header!(PluginRef, plugin(STAMP, &ADDED), Yes);
    assert!(later.is_none(), "{later:?}");
}

#[test]
fn a_file_that_is_not_a_library_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let opened = Library::open(b"this is no library", LaterVersions::Refused, folder.path(), &Compiler::InProcess);
    let junk = why(opened.err());
    assert!(junk.contains("it is not a shared library"), "{junk}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder exists").count(), 0, "nothing is left");
}

#[test]
fn a_copy_that_a_killed_process_left_is_swept_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "x").expect("a file");
        path
    };
    let (left, used, other) = (write("native-left.so"), write("native-used.so"), write("other.so"));
    let lock = std::fs::File::open(&used).expect("the file exists");
    lock.lock_shared().expect("a lock");
    super::sweep(folder.path());
    assert!(!left.exists() && used.exists() && other.exists());
    drop(lock);
    super::sweep(folder.path());
    assert!(!used.exists());
}
