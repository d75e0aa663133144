//! A file in the place of compiled code, and what is done to it: two bytes tell where, one how.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [high, low, altered, code @ ..] = bytes {
        hermes_runtime::invariants::compiled_code(code, usize::from(u16::from_be_bytes([*high, *low])), *altered);
    }
});
