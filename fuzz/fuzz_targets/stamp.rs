//! The version stamp of a stranger's component, read before anything is compiled.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_runtime::invariants::stamped(bytes));
