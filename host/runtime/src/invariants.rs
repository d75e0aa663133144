//! Rules that hold for any input. The property tests of this crate and the targets in `fuzz/` call the same functions;
//! each panics if its rule is broken.
#![allow(clippy::unwrap_used)]

pub use crate::code_cache::invariants::compiled_code;
use crate::error::LoadError;
use crate::stamp;

/// What an error may say of a stranger's file and still be read by a person.
const READABLE: usize = 1_000;

/// Bytes as a component's file: it is accepted only if it is one, made for this host's contract; or the reason is
/// short, however long what is in the file.
pub fn stamped(bytes: &[u8]) {
    match stamp::check(bytes) {
        Ok(()) => assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "it has not the head of a component"),
        Err(error) => {
            assert!(error.to_string().len() < READABLE, "an error of {} bytes", error.to_string().len());
            match error {
                LoadError::NotAComponent { why } => assert!(!why.is_empty()),
                LoadError::Version { found, .. } => assert!(!found.starts_with("0.1."), "{found} would do"),
                LoadError::NoContract => {}
                other => panic!("a stamp is no reason for: {other}"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
