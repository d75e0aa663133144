//! Builds the guests for wasm, and stages them where the host's build and the tests look for them.
//!
//! Components are built only in the release profile. Unoptimised guests are ten times as large, and every test that loads one
//! would lose in the runtime's compiler the time that the build saved. Also, one staged set then serves all purposes.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::bindings;
use crate::cargo::{Artifact, BUNDLED, Profile, Repository, artifacts, must, rustc};
use crate::natives;

/// The target of guests.
pub(crate) const TARGET: &str = "wasm32-wasip2";
/// The folders of `plugins/` that contain plugins.
const KINDS: [&str; 5] = ["context_engine", "memory", "tools", "skills", "hooks"];
pub(crate) const MANIFEST: &str = "plugin.yaml";

/// The counts of staged files.
#[derive(Debug)]
pub(crate) struct Staged {
    bundled: usize,
    test_guests: usize,
    kinds: usize,
    natives: usize,
    written: usize,
}

impl fmt::Display for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "staged {} bundled plugins, {} test guests, {} plugins of docs/plugins/kinds ({} files changed) and {} native libraries",
            self.bundled, self.test_guests, self.kinds, self.written, self.natives
        )
    }
}

/// Builds the guests' workspace and stages all of its plugins, native libraries as tests use them.
pub(crate) fn build(repository: &Repository) -> Result<Staged> {
    build_with(repository, Profile::Dev)
}

/// The same with optimised native libraries, for measurements.
pub(crate) fn build_measured(repository: &Repository) -> Result<Staged> {
    build_with(repository, Profile::Release)
}

fn build_with(repository: &Repository, natives: Profile) -> Result<Staged> {
    need_target()?;
    bindings::ensure(repository)?;
    let plugins = plugins(repository)?;
    let test_guests = test_guests(repository)?;
    let kinds = kinds(repository)?;
    let mut command = repository.wasm_cargo();
    command.args(["build", "--release", "--workspace", "--target", TARGET, "--manifest-path"]);
    command.arg(repository.guests_manifest()?);
    let built = artifacts(command)?;

    let mut written = 0;
    for (sources, stage) in [(&plugins, BUNDLED), (&test_guests, "target/test-guests"), (&kinds, "target/kinds")] {
        let stage = repository.root().join(stage);
        for source in sources {
            written += source.stage(&stage, &built)?;
        }
        remove_others(&stage, sources)?;
    }
    let natives = natives::build(repository, natives)?;
    Ok(Staged { bundled: plugins.len(), test_guests: test_guests.len(), kinds: kinds.len(), natives, written })
}

/// Makes sure that the toolchain has the standard library for guests.
fn need_target() -> Result<()> {
    if target_is_installed()? {
        return Ok(());
    }
    let mut command = std::process::Command::new("rustup");
    command.args(["target", "add", TARGET]);
    eprintln!("the {TARGET} target is not installed: adding it");
    must(command).with_context(|| {
        format!(
            "plugins are built for {TARGET}, and the toolchain in use has no standard library for it. Install rustup \
             (https://rustup.rs), or add the target by the means of your distribution"
        )
    })?;
    if !target_is_installed()? {
        bail!(
            "rustup added {TARGET}, but the compiler in use does not have it: `rustc` on the PATH is not rustup's. Put \
             rustup's folder of programs first, or add the target to that compiler"
        );
    }
    Ok(())
}

fn target_is_installed() -> Result<bool> {
    let output = rustc()
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("cannot run rustc: is it on the PATH?")?;
    if !output.status.success() {
        bail!("this compiler does not know the target {TARGET}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()))
}

/// A plugin's source folder.
#[derive(Debug)]
struct Source {
    folder: PathBuf,
    /// The folder with its manifest.
    manifest_folder: PathBuf,
    /// The path below the stage: `tools/files`, or `hostile` for a test guest.
    place: PathBuf,
    name: String,
}

impl Source {
    /// Copies manifest and component. Returns how many files changed.
    fn stage(&self, stage: &Path, built: &[Artifact]) -> Result<usize> {
        let place = stage.join(&self.place);
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        let manifest = replace(&self.manifest_folder.join(MANIFEST), &place.join(MANIFEST))?;
        let staged = place.join(format!("{}.wasm", self.name));
        let component = replace(self.component(built)?, &staged)?;
        if component {
            // The compiled code of the previous component.
            remove_file(&staged.with_extension("cwasm"))?;
        }
        Ok(usize::from(manifest) + usize::from(component))
    }

    fn component<'a>(&self, built: &'a [Artifact]) -> Result<&'a Path> {
        let manifest = self.folder.join("Cargo.toml");
        built
            .iter()
            .filter(|artifact| artifact.manifest == manifest)
            .flat_map(|artifact| &artifact.files)
            .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
            .map(PathBuf::as_path)
            .with_context(|| {
                format!(
                    "no component was built from {}: it must be a member of the workspace in plugins/Cargo.toml and its \
                     library a `cdylib`",
                    self.folder.display()
                )
            })
    }
}

fn plugins(repository: &Repository) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for kind in KINDS {
        sources.extend(sources_in(&repository.root().join("plugins").join(kind), Path::new(kind))?);
    }
    Ok(sources)
}

fn test_guests(repository: &Repository) -> Result<Vec<Source>> {
    sources_in(&repository.root().join("tests/guests"), Path::new(""))
}

/// The plugins in Rust that the pages of `docs/plugins/kinds` show. Their manifest is that of the plugin in the other language, too.
fn kinds(repository: &Repository) -> Result<Vec<Source>> {
    let pages = repository.root().join("docs/plugins/kinds");
    let entries = fs::read_dir(&pages).with_context(|| format!("cannot read {}", pages.display()))?;
    let mut sources = Vec::new();
    for entry in entries {
        let kind = entry.with_context(|| format!("cannot read {}", pages.display()))?;
        let (manifest_folder, folder) = (kind.path(), kind.path().join("rust"));
        if folder.join("Cargo.toml").is_file() {
            let name = kind.file_name().to_string_lossy().into_owned();
            sources.push(Source { place: PathBuf::from(&name), name, manifest_folder, folder });
        }
    }
    sources.sort_by(|left, right| left.place.cmp(&right.place));
    Ok(sources)
}

/// The folders that contain a plugin, sorted by name; empty if the parent folder does not exist.
fn sources_in(folder: &Path, place: &Path) -> Result<Vec<Source>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    let mut sources = Vec::new();
    for entry in entries {
        let folder = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if folder.join(MANIFEST).is_file()
            && folder.join("Cargo.toml").is_file()
            && let Some(name) = folder.file_name().and_then(|name| name.to_str())
        {
            let (place, name) = (place.join(name), name.to_owned());
            sources.push(Source { place, name, manifest_folder: folder.clone(), folder });
        }
    }
    sources.sort_by(|left, right| left.place.cmp(&right.place));
    Ok(sources)
}

/// Copies a file if its content differs: a newer staged file would cause a rebuild of the host.
pub(crate) fn replace(from: &Path, to: &Path) -> Result<bool> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(false);
    }
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    fs::write(&unfinished, content)
        .and_then(|()| fs::rename(&unfinished, to))
        .with_context(|| format!("cannot write {}", to.display()))?;
    Ok(true)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes staged plugins without a source, so that they are not bundled any more.
fn remove_others(stage: &Path, sources: &[Source]) -> Result<()> {
    let kept: BTreeSet<PathBuf> =
        sources.iter().flat_map(|source| source.place.ancestors().map(|p| stage.join(p))).collect();
    let mut folders = vec![stage.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if !kept.contains(&path) {
                fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            } else if !sources.iter().any(|source| stage.join(&source.place) == path) {
                folders.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn source(root: &Path, place: &str) -> Source {
        let folder = root.join("source").join(place);
        fs::create_dir_all(&folder).unwrap();
        for file in [MANIFEST, "Cargo.toml", "built.wasm"] {
            fs::write(folder.join(file), place).unwrap();
        }
        let name = place.rsplit('/').next().unwrap().to_owned();
        Source { manifest_folder: folder.clone(), folder, place: place.into(), name }
    }

    fn built(source: &Source) -> Artifact {
        Artifact {
            name: source.name.clone(),
            manifest: source.folder.join("Cargo.toml"),
            files: vec![source.folder.join("built.wasm")],
            executable: None,
        }
    }

    #[test]
    fn unchanged_files_are_not_written_again() {
        let root = tempfile::tempdir().unwrap();
        let stage = root.path().join("stage");
        let files = source(root.path(), "tools/files");
        let built = [built(&files)];
        assert_eq!(files.stage(&stage, &built).unwrap(), 2);
        assert_eq!(files.stage(&stage, &built).unwrap(), 0);
        fs::write(files.folder.join("built.wasm"), "newer").unwrap();
        fs::write(stage.join("tools/files/files.cwasm"), "code of the older one").unwrap();
        assert_eq!(files.stage(&stage, &built).unwrap(), 1);
        assert_eq!(fs::read(stage.join("tools/files/files.wasm")).unwrap(), b"newer");
        assert_eq!(fs::read_dir(stage.join("tools/files")).unwrap().count(), 2);
    }

    #[test]
    fn a_staged_plugin_is_removed_when_its_source_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let stage = root.path().join("stage");
        let sources =
            [source(root.path(), "tools/files"), source(root.path(), "tools/gone"), source(root.path(), "hooks/gone")];
        for source in &sources {
            source.stage(&stage, &[built(source)]).unwrap();
        }
        remove_others(&stage, &sources[..1]).unwrap();
        assert!(stage.join("tools/files/files.wasm").is_file());
        assert!(!stage.join("tools/gone").exists());
        assert!(!stage.join("hooks").exists());
    }

    #[test]
    fn a_folder_is_a_plugin_when_it_has_both_manifests() {
        let root = tempfile::tempdir().unwrap();
        source(root.path(), "tools/files");
        fs::create_dir_all(root.path().join("source/tools/notes")).unwrap();
        fs::write(root.path().join("source/tools/notes/plugin.yaml"), "").unwrap();
        let found = sources_in(&root.path().join("source/tools"), Path::new("tools")).unwrap();
        assert_eq!(found.iter().map(|source| source.place.to_str().unwrap()).collect::<Vec<_>>(), ["tools/files"]);
        assert!(sources_in(&root.path().join("nowhere"), Path::new("")).unwrap().is_empty());
    }

    #[test]
    fn a_plugin_without_a_component_is_named() {
        let root = tempfile::tempdir().unwrap();
        let files = source(root.path(), "tools/files");
        let error = files.stage(&root.path().join("stage"), &[]).unwrap_err().to_string();
        assert!(error.contains("tools/files") && error.contains("cdylib"), "{error}");
    }
}
