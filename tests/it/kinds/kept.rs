//! Components that were built from JavaScript. A checkout has no compiler for them, so they are kept, each with the digest of its sources.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::{KINDS, pages, read};

fn component_file(kind: &str) -> PathBuf {
    pages().join(kind).join("javascript/plugin.wasm.gz")
}

fn digest_file(kind: &str) -> PathBuf {
    pages().join(kind).join("javascript/plugin.wasm.sources")
}

/// Everything that the component of a kind is built from, except the contract, which is frozen: the plugin, the SDK and the build.
fn sources(kind: &str) -> Vec<PathBuf> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk");
    let mut files: Vec<PathBuf> =
        fs::read_dir(sdk.join("javascript")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The types and the parts for Node.js do not become part of a component.
    files.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".js") && !matches!(name.as_str(), "types.js" | "testing.js")
    });
    files.sort();
    let common = sdk.join("templates/javascript/common");
    files.extend([common.join("build.mjs"), common.join("package.json.template")]);
    files.push(pages().join(kind).join("javascript/plugin.js"));
    files
}

fn digest(kind: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in sources(kind) {
        let text = read(&path).replace("\r\n", "\n");
        hasher.update(path.file_name().unwrap().as_encoded_bytes());
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    format!("{}\n", hasher.finalize())
}

/// The kept component of a kind.
pub(crate) fn component(kind: &str) -> Vec<u8> {
    let path = component_file(kind);
    let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Keeps a component that was just built.
pub(crate) fn keep(kind: &str, component: &[u8]) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(component).unwrap();
    fs::write(component_file(kind), packed.finish().unwrap()).unwrap();
    fs::write(digest_file(kind), digest(kind)).unwrap();
}

#[test]
fn the_kept_components_were_built_from_the_present_sources() {
    for kind in KINDS {
        assert_eq!(
            fs::read_to_string(digest_file(kind)).unwrap_or_default(),
            digest(kind),
            "docs/plugins/kinds/{kind}/javascript/plugin.wasm.gz was built from other sources; run `cargo xtask languages kept`"
        );
    }
}
