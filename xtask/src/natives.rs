//! Guests as native libraries: the same sources, staged under other names for tests and measurements.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cargo::{Profile, Repository, artifacts, rustc};
use crate::guests::{MANIFEST, replace};

/// The folder, the package and the library of each guest.
const NATIVES: [(&str, &str, &str); 2] = [
    ("plugins/context_engine/compressor", "hermes-guest-compressor", "compressor"),
    ("tests/guests/hostile", "hermes-guest-hostile", "hostile"),
];
const STAGE: &str = "target/test-natives";

/// Builds and stages them: in the development profile for tests, which share the compiled macros and crates with the guests' own
/// tests, and in the release profile for measurements. Returns their number.
pub(crate) fn build(repository: &Repository, profile: Profile) -> Result<usize> {
    let target = target()?;
    let mut command = repository.guests_cargo();
    command.args(["build", "--manifest-path"]).arg(repository.guests_manifest()?);
    if profile == Profile::Release {
        command.arg("--release");
    }
    for (_, package, _) in NATIVES {
        command.args(["--package", package, "--features", &format!("{package}/native")]);
    }
    let built = artifacts(command)?;
    for (folder, _, library) in NATIVES {
        let folder = repository.root().join(folder);
        let file = format!("{}{library}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let made: Option<&PathBuf> = built
            .iter()
            .filter(|artifact| artifact.manifest == folder.join("Cargo.toml"))
            .flat_map(|artifact| &artifact.files)
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy() == file));
        let made = made.with_context(|| format!("no {file} was built from {}", folder.display()))?;
        let place = repository.root().join(STAGE).join(format!("{library}-native"));
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        replace(made, &place.join(&file))?;
        let text = manifest(&fs::read_to_string(folder.join(MANIFEST))?, &target, &file);
        fs::write(place.join(MANIFEST), text).with_context(|| format!("cannot write into {}", place.display()))?;
    }
    Ok(NATIVES.len())
}

/// The manifest of the same plugin, with only a library.
fn manifest(component: &str, target: &str, file: &str) -> String {
    let mut text = String::new();
    for line in component.lines() {
        match line.split_once(": ") {
            Some(("name", name)) => text.push_str(&format!("name: {name}-native\n")),
            Some(("component", _)) => {}
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text + &format!("native:\n  {target}: {file}\n")
}

/// The default target of the compiler.
fn target() -> Result<String> {
    let output = rustc().arg("-vV").output().context("cannot run rustc: is it on the PATH?")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it runs on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_a_library_names_no_component() {
        let text = manifest("name: a\ncomponent: a.wasm\nlimits: {memory: 1GiB}\n", "x-y-z", "liba.so");
        assert_eq!(text, "name: a-native\nlimits: {memory: 1GiB}\nnative:\n  x-y-z: liba.so\n");
    }
}
