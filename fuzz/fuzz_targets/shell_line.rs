//! A command line that a model wants to run, and the rules about commands.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_agent::invariants::shell_line(bytes));
