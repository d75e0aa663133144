//! A grant, another grant and a URL, one per line; and an IP address.
#![no_main]

use hermes_capabilities::invariants;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    invariants::granted(next(), next(), next());
    if let Some((bits, _)) = text.as_bytes().split_first_chunk() {
        invariants::public(u128::from_be_bytes(*bits));
    }
});
