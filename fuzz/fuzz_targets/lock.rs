//! A `plugins.lock` with any content.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hermes_plugin_host::invariants::lock(bytes));
