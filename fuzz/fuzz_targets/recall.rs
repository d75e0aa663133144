//! Text that a memory provider recalls, with its message and budget.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_agent::invariants::recall(bytes));
