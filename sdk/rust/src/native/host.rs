//! The host of a native library: the imports that it hands over, called from the thread of an instance.

use std::cell::Cell;

use hermes_plugin_abi as abi;
use hermes_plugin_abi::{RErr, ROk, RSlice};
use serde::Serialize;
use serde::de::DeserializeOwned;

thread_local! {
    static HOST: Cell<Option<abi::Import>> = const { Cell::new(None) };
}

/// From now on, this thread runs an instance of a native library.
pub(super) fn connect(import: abi::Import) {
    HOST.set(Some(import));
}

/// Whether this thread runs an instance of a native library.
pub(crate) fn in_host() -> bool {
    HOST.get().is_some()
}

/// Calls the host from the thread of an instance.
pub(crate) fn import<A: Serialize, R: DeserializeOwned>(interface: &str, function: &str, arguments: &A) -> R {
    let Some(import) = HOST.get() else {
        panic!("{interface}.{function} was called outside of a host, or in a thread that the plugin created");
    };
    let arguments = abi::encode(arguments).expect("the contract's records are plain data");
    match (import.call)(interface.into(), function.into(), RSlice::from_slice(&arguments)) {
        ROk(bytes) => match abi::decode(&bytes) {
            Ok(value) => value,
            Err(error) => panic!("{interface}.{function} returned an unexpected record: {error}"),
        },
        RErr(why) => panic!("{interface}.{function}: {why}"),
    }
}
