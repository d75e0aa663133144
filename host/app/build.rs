//! Puts the staged plugins, their precompiled code and the files for new plugins into the binary: tables of `include_str!`
//! and `include_bytes!`, and nothing else. All but the manifests are deflated: a home needs them once, or never. `cargo xtask` stages and precompiles; without it the tables are empty.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate lies"));
    need_bindings(&crate_folder.join("../.."));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where output goes"));
    let stage = crate_folder.join("../../target/bundled");
    // A folder that is not there makes cargo look again at the next build.
    println!("cargo::rerun-if-changed={}", stage.display());
    println!("cargo::rerun-if-changed=build.rs");

    let mut table = String::from("&[\n");
    let mut precompiled = String::from("&[\n");
    let mut count = 0;
    for folder in folders(&stage).iter().flat_map(|kind| folders(kind)) {
        let manifest = folder.join("plugin.yaml");
        let Some(component) = component(&folder).filter(|_| manifest.is_file()) else { continue };
        for file in [&manifest, &component] {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let digest = blake3::hash(&fs::read(&component).expect("a staged file can be read"));
        writeln!(
            table,
            "    hermes_plugin_host::Bundled {{ manifest: include_str!({:?}), component: {}, digest: {:?} }},",
            absolute(&manifest),
            packed(&component, &out),
            digest.as_bytes()
        )
        .expect("a string takes what is written to it");
        // The runtime checks that this code belongs to the component and to this compiler.
        let code = component.with_extension("cwasm");
        println!("cargo::rerun-if-changed={}", code.display());
        if code.is_file() {
            writeln!(precompiled, "    ({:?}, {}),", digest.as_bytes(), packed(&code, &out))
                .expect("a string takes what is written to it");
        }
        count += 1;
    }
    table.push(']');
    precompiled.push(']');
    if count == 0 {
        println!("cargo::warning=no plugins are staged, so none are bundled: run `cargo xtask plugins`");
    }
    fs::write(out.join("bundled.rs"), table).expect("the output folder can be written");
    fs::write(out.join("precompiled.rs"), precompiled).expect("the output folder can be written");
    let files = out.join("scaffold.json");
    fs::write(&files, scaffold(&crate_folder.join("../.."))).expect("the output folder can be written");
    fs::write(out.join("scaffold.rs"), packed(&files, &out)).expect("the output folder can be written");
}

/// Deflates a file into the output folder. Returns the expression that includes it.
fn packed(file: &Path, out: &Path) -> String {
    let whole = fs::read(file).expect("a staged file can be read");
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&whole).expect("memory takes every byte");
    let deflated = encoder.finish().expect("memory takes every byte");
    let target = out.join(format!("{}.z", name(file)));
    fs::write(&target, deflated).expect("the output folder can be written");
    format!("Packed::Deflated {{ bytes: include_bytes!({:?}), length: {} }}", absolute(&target), whole.len())
}

/// Ends the build if the Rust SDK's bindings are not generated yet: `plugins new` would write projects that cannot be built.
fn need_bindings(repository: &Path) {
    if !repository.join("sdk/rust/src/bindings/contract.rs").is_file() {
        println!(
            "cargo::error=the bindings of the Rust SDK are not generated, and new plugins need them: run `cargo xtask plugins`, or only \
             `cargo xtask bindings`"
        );
        std::process::exit(0);
    }
}

/// The templates of new plugins, the SDK's sources and the contract: folder, path in it, text, as JSON.
fn scaffold(repository: &Path) -> String {
    let mut sources = Vec::new();
    for language in folders(&repository.join("sdk/templates")) {
        sources.extend(
            folders(&language).into_iter().map(|folder| (format!("{}/{}", name(&language), name(&folder)), folder)),
        );
    }
    for (sdk, folder) in [
        ("rust", "rust/src"),
        ("rust-derive", "rust-derive/src"),
        ("abi", "abi/src"),
        ("python", "python"),
        ("javascript", "javascript"),
        ("c", "c"),
        ("go", "go"),
    ] {
        sources.push((format!("sdk/{sdk}"), repository.join("sdk").join(folder)));
    }
    sources.push(("wit".to_owned(), repository.join("wit")));
    let mut found = Vec::new();
    for (name, folder) in sources {
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in files(&folder) {
            let path = file.strip_prefix(&folder).expect("it was found there").to_str().expect("a name in Unicode");
            println!("cargo::rerun-if-changed={}", file.display());
            let text = fs::read_to_string(&file).expect("the files of new plugins are text");
            found.push(serde_json::json!({ "folder": name, "path": path, "text": text }));
        }
    }
    serde_json::Value::from(found).to_string()
}

/// The name of a folder.
fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("the names in the repository are Unicode")
}

/// The files below a folder, by path.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    found.extend(folders(folder).iter().flat_map(|inner| files(inner)));
    found.sort();
    found
}

/// The folders in a folder, by name; none where it is not there.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    // Python writes compiled modules beside the sources.
    folders.retain(|folder| name(folder) != "__pycache__");
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
