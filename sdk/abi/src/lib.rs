//! The binary interface between Hermes and a plugin built as a native library.
//!
//! A native library has the same functions as a component, with one table per interface of the contract. Records cross the
//! boundary as [postcard](https://docs.rs/postcard) bytes, in the field order of `wit/`; each function takes a tuple of its
//! arguments. `abi_stable` compares the layout of the tables when the library is loaded, and [`FINGERPRINT`] checks that both
//! sides were built with the same contract.
//!
//! Each instance runs in a thread of the host. In it the host first calls [`Plugin::enter`], then functions one after another,
//! and finally [`Plugin::leave`]. Imports are called in the same thread while a function runs.

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;

pub use abi_stable::library::{AbiHeaderRef, CheckTypeLayout, LibHeader, LibraryError, RootModuleResult};
pub use abi_stable::prefix_type::PrefixTypeTrait;
pub use abi_stable::std_types::{RErr, ROk, ROption, RResult, RSlice, RStr, RString, RVec};

/// The symbol that a library exports: a [`LibHeader`] that leads to a [`PluginRef`].
pub const SYMBOL: &[u8] = b"hermes_plugin\0";

/// The bytes of a result, or an error, usually the message of a panic.
pub type Answer = RResult<RVec<u8>, RString>;

/// A function of the contract. It takes the bytes of its arguments.
pub type Function = extern "C" fn(RSlice<'_, u8>) -> Answer;

/// The plugin's way to call the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Import {
    /// Takes interface, function and arguments. An error means that the host stopped waiting for the call.
    pub call: extern "C" fn(RStr<'_>, RStr<'_>, RSlice<'_, u8>) -> Answer,
}

/// The description of a library. Kinds that it does not implement are `RNone`.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// The same text as in a component's section `hermes:abi`.
    pub stamp: RStr<'static>,
    /// The [`FINGERPRINT`] that the library was built with.
    pub fingerprint: u64,
    /// Called first in every thread, with the way to call the host.
    pub enter: extern "C" fn(Import),
    /// Called last in every thread; drops the instance.
    pub leave: extern "C" fn(),
    /// The functions of every plugin.
    pub lifecycle: LifecycleRef,
    /// Set by a context engine.
    pub context_engine: ROption<ContextEngineRef>,
    /// Set by a context engine that inserts folded passages.
    pub context_assist: ROption<ContextAssistRef>,
    /// Set by a memory provider.
    pub memory_provider: ROption<MemoryProviderRef>,
    /// Set by a memory provider that takes part in compaction.
    pub memory_events: ROption<MemoryEventsRef>,
    /// Set by a plugin with tools.
    pub tools: ROption<ToolsRef>,
    /// Set by a plugin with skills.
    pub skills: ROption<SkillsRef>,
    /// Set by a plugin with hooks.
    #[sabi(last_prefix_field)]
    pub hooks: ROption<HooksRef>,
}

impl RootModule for PluginRef {
    abi_stable::declare_root_module_statics! {PluginRef}
    const BASE_NAME: &'static str = "hermes_plugin";
    const NAME: &'static str = "hermes_plugin";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

/// Builds the constructor for a library's header.
pub fn construct(plugin: fn() -> PluginRef) -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(plugin)
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $reference:ident { $($function:ident,)* ; $last:ident })+) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = $reference)))]
        #[sabi(missing_field(panic))]
        #[allow(missing_docs)]
        pub struct $table {
            $(pub $function: extern "C" fn(RSlice<'_, u8>) -> Answer,)*
            #[sabi(last_prefix_field)]
            pub $last: extern "C" fn(RSlice<'_, u8>) -> Answer,
        }
    )+};
}

tables! {
    /// `lifecycle`
    Lifecycle LifecycleRef { configure, session_start, ; session_end }
    /// `context-engine`
    ContextEngine ContextEngineRef { model_changed, observe, rewound, assess, prepare, propose, settled, ; status }
    /// `context-assist`
    ContextAssist ContextAssistRef { ; assist }
    /// `memory-provider`
    MemoryProvider MemoryProviderRef { system_prompt, recall, ; sync_turn }
    /// `memory-events`
    MemoryEvents MemoryEventsRef { ; before_compact }
    /// `tools`
    Tools ToolsRef { catalog, ; call }
    /// `skills`
    Skills SkillsRef { index, ; view }
    /// `hooks`
    Hooks HooksRef { interests, ; on_event }
}

/// A hash of the contract's text without comments and white space. Records cross the boundary by field order, so both sides
/// must be built with the same contract.
pub const FINGERPRINT: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < CONTRACT.len() {
        hash = fingerprint(hash, CONTRACT[at].as_bytes());
        at += 1;
    }
    hash
};

const CONTRACT: [&str; 14] = [
    include_str!("../../../wit/1.0.0-rc.1/deps/types.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/host.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/llm.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/history.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/storage.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/files.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/http.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/process.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/lifecycle.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/context-engine.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/memory.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/tools.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/skills.wit"),
    include_str!("../../../wit/1.0.0-rc.1/deps/hooks.wit"),
];

/// FNV-1a over the text without white space and comments.
const fn fingerprint(mut hash: u64, text: &[u8]) -> u64 {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'/' && at + 1 < text.len() && text[at + 1] == b'/' {
            while at < text.len() && text[at] != b'\n' {
                at += 1;
            }
        } else {
            if !text[at].is_ascii_whitespace() {
                hash = (hash ^ text[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            }
            at += 1;
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_and_white_space_leave_the_fingerprint_unchanged() {
        let of = |text: &str| fingerprint(7, text.as_bytes());
        let plain = of("record a { b: u32 }");
        assert_eq!(plain, of("/// Says what it is.\nrecord a {\n  b: u32 // tokens\n}"));
        assert_ne!(plain, of("record a { c: u32 }"));
        assert_ne!(plain, of("record a { b: u64 }"));
    }
}
