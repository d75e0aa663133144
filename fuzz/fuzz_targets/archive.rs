//! A stranger's archive: the first byte tells whether what follows is a file of any form or a tar stream.
#![no_main]

use hermes_install::invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match bytes {
    [b't', rest @ ..] => invariants::tarball(rest),
    [_, rest @ ..] => invariants::archive(rest),
    [] => {}
});
