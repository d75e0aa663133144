//! An untrusted `plugin.yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| hermes_plugin_host::invariants::manifest(text));
