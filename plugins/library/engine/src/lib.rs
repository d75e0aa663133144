//! Code shared by the context engines: token budgets, descriptions of parts, parsing of settings, speakers and hashes.

pub mod budget;
pub mod parts;
pub mod settings;
pub mod speaker;

/// FNV-1a, for names and comparisons; not secure against deliberate collisions.
pub fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
