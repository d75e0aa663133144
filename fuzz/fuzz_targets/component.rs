//! An untrusted component: the raw bytes, or a valid component with some bytes replaced.
#![no_main]

use std::sync::LazyLock;

use hermes_runtime::{LoadError, Runtime};
use hermes_zoo::Shell;

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| Shell::with_tool("nop").build());
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(std::env::temp_dir().join(format!("hermes-fuzz-{}", std::process::id()))));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match bytes {
    [b'\0', _, ..] => load(bytes),
    [_, changes @ ..] => {
        let mut component = GOOD.clone();
        // Two bytes for the position, one for the length to remove, one to insert.
        for change in changes.chunks_exact(4) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % component.len();
            let end = (at + usize::from(change[2] % 3)).min(component.len());
            component.splice(at..end, [change[3]]);
        }
        load(&component);
    }
    [] => {}
});

/// Either the bytes are a plugin, or the error is readable.
fn load(bytes: &[u8]) {
    match RUNTIME.load(bytes) {
        Ok(loaded) => assert!(!loaded.exports().names().is_empty()),
        Err(LoadError::Cache { path, source }) => panic!("{}: {source}", path.display()),
        Err(error) => assert!(error.to_string().len() < 100_000, "{error}"),
    }
}
