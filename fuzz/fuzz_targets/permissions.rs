//! Requested permissions and, after a `%`, granted ones.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Some((asked, granted)) = text.split_once('%') {
        hermes_plugin_host::invariants::permissions(asked, granted);
    }
});
