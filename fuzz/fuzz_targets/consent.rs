//! Requested permissions and, after a `%`, a text of the plugin: as its consent screen, and as a reply.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| {
    let (asked, text) = input.split_once('%').unwrap_or(("", input));
    hermes_cli::invariants::consent(asked, text);
    hermes_cli::invariants::reply(text);
});
