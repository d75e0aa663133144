//! A plan of a guest's context engine, with the conversation that it is about.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_conversation::invariants::plan(bytes));
