//! An untrusted archive. The first byte selects whether the rest is a file of any format or a tar stream.
#![no_main]

use hermes_install::invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match bytes {
    [b't', rest @ ..] => invariants::tarball(rest),
    [_, rest @ ..] => invariants::archive(rest),
    [] => {}
});
