//! The version stamp of an untrusted component, which is read before compiling.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_runtime::invariants::stamped(bytes));
