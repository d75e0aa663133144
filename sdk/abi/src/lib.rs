//! The binary interface between Hermes and a plugin built as a native library.
//!
//! A native library has the same functions as a component, in a list by name: `hermes:tools/tools@1.0.0#call`. A host
//! calls those that it knows, so a library and a host of different releases work together as a component and a host do:
//! the versions in the names decide.
//!
//! Arguments and results cross the boundary as [MessagePack](https://msgpack.org), where records are maps with the names of
//! their fields ([`encode`], [`decode`]). A function takes a tuple of its arguments.
//!
//! `abi_stable` compares the layout of [`Plugin`] when the library is loaded.
//!
//! Each instance runs in a thread of the host. In it the host first calls [`Plugin::enter`], then functions one after another,
//! and finally [`Plugin::leave`]. Imports are called in the same thread while a function runs.

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;
use rmp_serde::config::BytesMode;
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// A function of the contract that a library implements.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct NamedFunction {
    /// Interface, version and function, such as `hermes:tools/tools@1.0.0#call`.
    pub name: RStr<'static>,
    /// The function itself.
    pub call: extern "C" fn(RSlice<'_, u8>) -> Answer,
}

/// The description of a library. It never changes: a host with more fields would refuse the libraries without them. What is new
/// goes into the list of functions.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// The same text as in a component's section `hermes:abi`.
    pub stamp: RStr<'static>,
    /// Called first in every thread, with the way to call the host.
    pub enter: extern "C" fn(Import),
    /// Called last in every thread; drops the instance.
    pub leave: extern "C" fn(),
    /// The functions of `lifecycle` and of the plugin's kinds, in any order.
    #[sabi(last_prefix_field)]
    pub functions: RSlice<'static, NamedFunction>,
}

impl RootModule for PluginRef {
    abi_stable::declare_root_module_statics! {PluginRef}
    const BASE_NAME: &'static str = "hermes_plugin";
    const NAME: &'static str = "hermes_plugin";
    // The version of the description, not of a release: `abi_stable` refuses a library with a lower one than the host's.
    const VERSION_STRINGS: VersionStrings = VersionStrings::new("1.0.0");
}

/// Builds the constructor for a library's header.
pub fn construct(plugin: fn() -> PluginRef) -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(plugin)
}

/// Arguments or a result as bytes.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let mut bytes = Vec::new();
    // Bytes as such: one by one they take twice the room.
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_bytes(BytesMode::ForceAll);
    value.serialize(&mut serializer)?;
    Ok(bytes)
}

/// Reads what [`encode`] wrote. Fields that this side does not know are skipped.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    rmp_serde::from_slice(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Part {
        Text(String),
        Bytes(Vec<u8>),
        Nothing,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        parts: Vec<Part>,
        size: Option<u64>,
        pair: (String, i32),
    }

    #[test]
    fn records_arrive_as_they_were_and_bytes_take_their_own_room() {
        let parts = vec![Part::Text("tea".into()), Part::Bytes(vec![255; 10_000]), Part::Nothing];
        let record = Record { parts, size: None, pair: ("a".into(), -1) };
        let bytes = encode(&(&record, true)).unwrap();
        assert!(bytes.len() < 10_100, "{}", bytes.len());
        assert_eq!(decode::<(Record, bool)>(&bytes).unwrap(), (record, true));
        let answer: Result<Vec<u8>, String> = Ok(vec![200, 0]);
        assert_eq!(decode::<Result<Vec<u8>, String>>(&encode(&answer).unwrap()).unwrap(), answer);
    }

    #[test]
    fn a_field_of_a_later_version_is_skipped_and_a_missing_one_is_an_error() {
        #[derive(Serialize)]
        struct Later {
            added: Vec<u8>,
            pair: (String, i32),
            parts: Vec<Part>,
        }
        let later = Later { added: vec![1], pair: ("a".into(), 2), parts: Vec::new() };
        let read: Record = decode(&encode(&later).unwrap()).unwrap();
        assert_eq!(read, Record { parts: Vec::new(), size: None, pair: ("a".into(), 2) });
        assert!(decode::<WithMore>(&encode(&read).unwrap()).is_err());
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct WithMore {
        added: u32,
    }

    /// The description of a later version, with one more field.
    // The derive generates `unsafe` for fields that a library may lack.
    #[allow(unsafe_code, dead_code)]
    mod later {
        use super::super::{Import, NamedFunction};
        use abi_stable::StableAbi;
        use abi_stable::library::RootModule;
        use abi_stable::sabi_types::VersionStrings;
        use abi_stable::std_types::{RSlice, RStr};

        #[repr(C)]
        #[derive(StableAbi)]
        #[sabi(kind(Prefix(prefix_ref = PluginRef)))]
        #[sabi(missing_field(option))]
        pub(super) struct Plugin {
            pub(super) stamp: RStr<'static>,
            pub(super) enter: extern "C" fn(Import),
            pub(super) leave: extern "C" fn(),
            #[sabi(last_prefix_field)]
            pub(super) functions: RSlice<'static, NamedFunction>,
            pub(super) added: RStr<'static>,
        }

        impl RootModule for PluginRef {
            abi_stable::declare_root_module_statics! {PluginRef}
            const BASE_NAME: &'static str = "hermes_plugin";
            const NAME: &'static str = "hermes_plugin";
            const VERSION_STRINGS: VersionStrings = <super::PluginRef as RootModule>::VERSION_STRINGS;
        }
    }

    extern "C" fn enter(_: Import) {}

    extern "C" fn leave() {}

    /// The header of a library with this description.
    macro_rules! header {
        ($type:ty, $plugin:expr) => {{
            extern "C" fn constructor() -> RootModuleResult {
                abi_stable::library::__call_root_module_loader(|| -> $type { $plugin.leak_into_prefix() })
            }
            // SAFETY: the constructor returns the declared type.
            #[allow(unsafe_code)]
            let header = unsafe { LibHeader::from_constructor::<$type>(constructor, CheckTypeLayout::Yes) };
            let header: &'static LibHeader = Box::leak(Box::new(header));
            header
        }};
    }

    #[test]
    fn a_description_with_more_fields_is_understood() {
        const STAMP: RStr<'static> = RStr::from_str("now");
        let now = header!(PluginRef, Plugin { stamp: STAMP, enter, leave, functions: RSlice::EMPTY });
        assert_eq!(now.init_root_module::<PluginRef>().unwrap().stamp().as_str(), "now");
        let next = header!(
            later::PluginRef,
            later::Plugin { stamp: STAMP, enter, leave, functions: RSlice::EMPTY, added: RStr::from_str("more") }
        );
        assert_eq!(next.init_root_module::<PluginRef>().unwrap().stamp().as_str(), "now");
    }
}
