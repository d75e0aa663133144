//! A file in place of compiled code, with a change: two bytes select the position, one the change.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [high, low, altered, code @ ..] = bytes {
        hermes_runtime::invariants::compiled_code(code, usize::from(u16::from_be_bytes([*high, *low])), *altered);
    }
});
