//! `hermes-precompile FOLDER`: compiles every component below a folder for the baseline processor of the target.
//!
//! `cargo xtask` runs it between staging the bundled plugins and building the binary, which then includes the results. It
//! is built in the same profile as the binary, and so shares its build of wasmtime.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hermes_runtime::precompiled;

/// The extension of compiled code beside its component.
const COMPILED: &str = "cwasm";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let result = match arguments.as_slice() {
        [folder] => compile_all(Path::new(folder)),
        _ => Err(anyhow::anyhow!("usage: hermes-precompile FOLDER")),
    };
    match result {
        Ok(Compiled { written, bytes }) => {
            println!("precompiled {written} plugins; all together have {} KiB of code", bytes >> 10);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("hermes-precompile: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was done.
#[derive(Debug, PartialEq, Eq)]
struct Compiled {
    /// Files that were written; up-to-date files are kept.
    written: usize,
    /// The size of all compiled files.
    bytes: u64,
}

fn compile_all(folder: &Path) -> Result<Compiled> {
    let mut done = Compiled { written: 0, bytes: 0 };
    for path in components(folder)? {
        let component = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let compiled = path.with_extension(COMPILED);
        if let Ok(existing) = fs::read(&compiled)
            && precompiled::is_current(&existing, &component)
        {
            done.bytes += existing.len() as u64;
            continue;
        }
        let code = precompiled::compile(&component).with_context(|| format!("cannot compile {}", path.display()))?;
        fs::write(&compiled, &code).with_context(|| format!("cannot write {}", compiled.display()))?;
        done.written += 1;
        done.bytes += code.len() as u64;
    }
    Ok(done)
}

/// All `.wasm` files below a folder, sorted by path.
fn components(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        bail!("{} is not a folder: run `cargo xtask plugins` first", folder.display());
    }
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("wasm")) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The smallest component: it exports nothing.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn every_component_is_compiled_once_and_again_when_it_or_its_code_changed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tools/empty");
        fs::create_dir_all(&folder).unwrap();
        let (component, compiled) = (folder.join("empty.wasm"), folder.join("empty.cwasm"));
        fs::write(&component, EMPTY).unwrap();
        let run = || compile_all(root.path()).unwrap().written;
        assert_eq!((run(), run()), (1, 0));

        let mut code = fs::read(&compiled).unwrap();
        assert!(precompiled::is_current(&code, EMPTY));
        *code.last_mut().unwrap() ^= 1;
        fs::write(&compiled, code).unwrap();
        assert_eq!((run(), run()), (1, 0));

        // The same component with an empty custom section named `a`.
        fs::write(&component, [EMPTY, &[0, 2, 1, b'a']].concat()).unwrap();
        assert_eq!((run(), run()), (1, 0));
    }

    #[test]
    fn a_missing_folder_and_a_file_without_a_component_are_named() {
        let root = tempfile::tempdir().unwrap();
        let error = compile_all(&root.path().join("nowhere")).unwrap_err().to_string();
        assert!(error.contains("nowhere") && error.contains("xtask plugins"), "{error}");
        fs::write(root.path().join("text.wasm"), "text").unwrap();
        let error = compile_all(root.path()).unwrap_err().to_string();
        assert!(error.contains("text.wasm"), "{error}");
    }
}
