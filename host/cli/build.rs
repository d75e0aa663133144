//! Puts the staged plugins into the binary: a table of `include_str!` and `include_bytes!`, and nothing else.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate lies"));
    let stage = crate_folder.join("../../target/bundled");
    // A folder that is not there makes cargo look again at the next build.
    println!("cargo::rerun-if-changed={}", stage.display());
    println!("cargo::rerun-if-changed=build.rs");

    let mut table = String::from("&[\n");
    let mut count = 0;
    for folder in folders(&stage).iter().flat_map(|kind| folders(kind)) {
        let manifest = folder.join("plugin.yaml");
        let Some(component) = component(&folder).filter(|_| manifest.is_file()) else { continue };
        for file in [&manifest, &component] {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        writeln!(
            table,
            "    hermes_plugins::Bundled {{ manifest: include_str!({:?}), component: include_bytes!({:?}) }},",
            absolute(&manifest),
            absolute(&component)
        )
        .expect("a string takes what is written to it");
        count += 1;
    }
    table.push(']');
    if count == 0 {
        println!("cargo::warning=no plugins are staged, so none are bundled: run `cargo xtask plugins`");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where output goes"));
    fs::write(out.join("bundled.rs"), table).expect("the output folder can be written");
}

/// The folders in a folder, by name; none where it is not there.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn component(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "wasm"))
}

fn absolute(path: &Path) -> String {
    let path = path.canonicalize().expect("a staged file can be found again");
    path.to_str().expect("the repository lies at a path that is valid Unicode").to_owned()
}
