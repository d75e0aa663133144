//! The host's side of the contract in `wit/`, generated.
//!
//! A crate of its own because the generated code is slow to compile and changes only when the contract does.
//! What a component exports is probed interface by interface through the `GuestIndices` of each
//! module under [`exports`]; the world `everything` itself is never instantiated.

#![forbid(unsafe_code)]
// Generated code carries the comments of the contract, where it has any.
#![allow(missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "everything",
    imports: { default: async },
    exports: { default: async },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
});
