//! The argument of `hermes plugins install`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| hermes_install::invariants::source(text));
