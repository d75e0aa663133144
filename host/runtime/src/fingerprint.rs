//! The fingerprint of a compiler: code with another fingerprint is not mapped.

use std::hash::{Hash, Hasher};

use wasmtime::Engine;

use crate::contract;

/// Part of the compiler's fingerprint: code that another release compiled is not mapped.
const BUILD: &str = concat!("hermes ", env!("CARGO_PKG_VERSION"));

/// Identifies the compiler, its version, its settings, the served versions of the contract, and this build.
pub(crate) fn fingerprint(engine: &Engine) -> [u8; 32] {
    struct Blake(blake3::Hasher);
    impl Hasher for Blake {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            self.0.finalize().as_bytes().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        }
    }
    let mut hasher = Blake(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.update(BUILD.as_bytes());
    hasher.0.update(contract::fingerprint().as_bytes());
    *hasher.0.finalize().as_bytes()
}
