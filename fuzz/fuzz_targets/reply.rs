//! The reply of a model server, as a stream and as a whole, in both wire formats.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_models::invariants::reply(bytes));
