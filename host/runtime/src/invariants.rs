//! Rules that hold for any input. The property tests of this crate and the targets in `fuzz/` call the same functions;
//! each panics if its rule is broken.
#![allow(clippy::unwrap_used)]

pub use crate::code_cache::invariants::compiled_code;
use crate::contract::LaterVersions;
use crate::error::LoadError;
use crate::stamp;

/// The most bytes of an error about an untrusted file, so that a person can read it.
const READABLE: usize = 1_000;

/// Checks bytes as a component's file. They are accepted only if they are a component built for this host's contract;
/// otherwise the error is short, however long the file's contents are.
pub fn stamped(bytes: &[u8]) {
    match stamp::check(bytes, LaterVersions::Accepted) {
        Ok(_) => assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "it does not start like a component"),
        Err(error) => {
            assert!(error.to_string().len() < READABLE, "an error of {} bytes", error.to_string().len());
            match error {
                LoadError::NotAComponent { why } => assert!(!why.is_empty()),
                LoadError::Version { found, .. } => assert!(!found.starts_with("0.1."), "{found} is compatible"),
                LoadError::NoContract | LoadError::TwoVersions { .. } => {}
                other => panic!("a stamp cannot cause: {other}"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
