//! The binary interface between Hermes and a plugin that is a native library.
//!
//! A native library has the same functions as a component: each interface of the contract is a table of them. Records
//! cross as [postcard](https://docs.rs/postcard) bytes, in the order of `wit/`; a function takes the tuple of its
//! arguments. The tables themselves are laid out and compared by `abi_stable` when the library is loaded, and
//! [`FINGERPRINT`] holds both sides to one text of the contract.
//!
//! An instance of the plugin is a thread of the host's: the host calls [`Plugin::enter`] in it first, then functions one
//! after the other, and [`Plugin::leave`] at its end. Imports are called in that thread, while a function runs.

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;

pub use abi_stable::library::{AbiHeaderRef, CheckTypeLayout, LibHeader, LibraryError, RootModuleResult};
pub use abi_stable::prefix_type::PrefixTypeTrait;
pub use abi_stable::std_types::{RErr, ROk, ROption, RResult, RSlice, RStr, RString, RVec};

/// The symbol of a library: a [`LibHeader`] with a [`PluginRef`] behind it.
pub const SYMBOL: &[u8] = b"hermes_plugin\0";

/// The result's bytes, or why there are none: the words of a panic, as a rule.
pub type Answer = RResult<RVec<u8>, RString>;

/// A function of the contract, by the bytes of its arguments.
pub type Function = extern "C" fn(RSlice<'_, u8>) -> Answer;

/// How a plugin calls the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Import {
    /// Interface, function, arguments. An error says that nobody waits for the call any more.
    pub call: extern "C" fn(RStr<'_>, RStr<'_>, RSlice<'_, u8>) -> Answer,
}

/// What a library consists of. A kind that it does not have is left out.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// What a component has in its section `hermes:abi`.
    pub stamp: RStr<'static>,
    /// [`FINGERPRINT`] as the library knows it.
    pub fingerprint: u64,
    /// First in every thread: how to call the host.
    pub enter: extern "C" fn(Import),
    /// Last in every thread: drops the instance.
    pub leave: extern "C" fn(),
    /// As every plugin has it.
    pub lifecycle: LifecycleRef,
    /// Where it is a context engine.
    pub context_engine: ROption<ContextEngineRef>,
    /// Where that brings back what the view folds.
    pub context_assist: ROption<ContextAssistRef>,
    /// Where it is a memory provider.
    pub memory_provider: ROption<MemoryProviderRef>,
    /// Where that wants to be heard at a compaction.
    pub memory_events: ROption<MemoryEventsRef>,
    /// Where it offers tools.
    pub tools: ROption<ToolsRef>,
    /// Where it offers skills.
    pub skills: ROption<SkillsRef>,
    /// Where it watches the loop.
    #[sabi(last_prefix_field)]
    pub hooks: ROption<HooksRef>,
}

impl RootModule for PluginRef {
    abi_stable::declare_root_module_statics! {PluginRef}
    const BASE_NAME: &'static str = "hermes_plugin";
    const NAME: &'static str = "hermes_plugin";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

/// Makes the constructor that a library's header names.
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

/// The contract's text without comments and spaces, as a number: records cross by the order of their fields, so both
/// sides must know the very same.
pub const FINGERPRINT: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < CONTRACT.len() {
        hash = fingerprint(hash, CONTRACT[at].as_bytes());
        at += 1;
    }
    hash
};

const CONTRACT: [&str; 10] = [
    include_str!("../../../wit/types.wit"),
    include_str!("../../../wit/host.wit"),
    include_str!("../../../wit/http.wit"),
    include_str!("../../../wit/process.wit"),
    include_str!("../../../wit/lifecycle.wit"),
    include_str!("../../../wit/context-engine.wit"),
    include_str!("../../../wit/memory-provider.wit"),
    include_str!("../../../wit/skills.wit"),
    include_str!("../../../wit/tools.wit"),
    include_str!("../../../wit/hooks.wit"),
];

/// FNV-1a over what is neither space nor comment.
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
    fn comments_and_spaces_are_no_part_of_the_contract_and_everything_else_is() {
        let of = |text: &str| fingerprint(7, text.as_bytes());
        let plain = of("record a { b: u32 }");
        assert_eq!(plain, of("/// Says what it is.\nrecord a {\n  b: u32 // tokens\n}"));
        assert_ne!(plain, of("record a { c: u32 }"));
        assert_ne!(plain, of("record a { b: u64 }"));
    }
}
