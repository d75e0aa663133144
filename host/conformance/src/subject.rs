//! The plugin under test: a component, a native library, a plugin's folder, or a built Rust project.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_plugin_host::artifact::{self, ArtifactError, Place};
use hermes_plugin_host::{Bundled, Code, Language, Manifest, ManifestError, SKILLS, skills_in};
use serde::Deserialize;
use serde_json::Value;

use crate::error::ConformanceError;

const MANIFEST: &str = "plugin.yaml";

/// A plugin under test. None of its code has run yet.
#[derive(Debug)]
pub struct Subject {
    /// Its manifest; a bare component gets one that requests nothing.
    pub manifest: Manifest,
    /// The JSON Schema of its configuration, if the manifest has one.
    pub(crate) schema: Option<Value>,
    /// Its code.
    pub code: Code,
    /// The path of the code.
    pub path: PathBuf,
    /// The language that it is written in, for hints.
    pub(crate) language: Language,
    /// The plugin's folder, if it consists of skills alone and the code only reads them.
    pub(crate) skills: Option<PathBuf>,
}

/// The part of a manifest about the configuration.
#[derive(Deserialize)]
struct Configured {
    #[serde(default)]
    config: Option<Value>,
}

impl Subject {
    /// Finds the native library of a plugin: the file itself, or the file in a folder that the manifest names for this
    /// machine, beside the manifest or in cargo's target folder. It runs without a sandbox.
    ///
    /// # Errors
    ///
    /// Returns an error if no library is found, or if the manifest is invalid.
    pub fn find_native(path: &Path) -> Result<Self, ConformanceError> {
        let path = std::path::absolute(path).map_err(|source| read_error(path, source))?;
        let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
        let manifest = manifest_in(folder)?;
        let file = match (&manifest, path.is_dir()) {
            (_, false) => path.clone(),
            (Some((manifest, _)), true) => library_in(&path, manifest)?,
            (None, true) => return Err(ConformanceError::NoLibrary { folder: path.clone() }),
        };
        let bytes = fs::read(&file).map_err(|source| read_error(&file, source))?;
        let (manifest, text) = match manifest {
            Some(found) => found,
            None => bare(&file)?,
        };
        Self::new(manifest, &text, Code::Native(bytes), file, Some(folder))
    }

    /// Finds a plugin: what [`Subject::find_component`] finds, or a folder with a manifest and skills, which `reader` reads.
    ///
    /// # Errors
    ///
    /// Returns an error if neither is found, if there are several components, or if the manifest is invalid.
    pub fn find(path: &Path, reader: Option<Bundled>) -> Result<Self, ConformanceError> {
        match (Self::find_component(path), reader) {
            (Err(ConformanceError::NoBuild { folder, error: ArtifactError::NoComponent }), Some(reader))
                if !skills_in(&folder).is_empty() =>
            {
                let (manifest, text) = manifest_in(&folder)?
                    .ok_or(ConformanceError::NoBuild { folder: folder.clone(), error: ArtifactError::NoComponent })?;
                let path = folder.join(SKILLS);
                let reader = reader.component.unpack().map_err(|source| read_error(&path, source))?;
                let subject = Self::new(manifest, &text, Code::Component(reader), path, Some(&folder))?;
                Ok(Self { skills: Some(folder), ..subject })
            }
            (found, _) => found,
        }
    }

    /// Finds a component: a `.wasm` file with or without a `plugin.yaml` beside it, a folder with both, or a Rust project.
    ///
    /// # Errors
    ///
    /// Returns an error if no component or several are found, or if the manifest is invalid.
    pub fn find_component(path: &Path) -> Result<Self, ConformanceError> {
        if !path.exists() {
            return Err(ConformanceError::Missing(path.to_owned()));
        }
        let path = std::path::absolute(path).map_err(|source| read_error(path, source))?;
        if path.is_dir() {
            let manifest = manifest_in(&path)?;
            let named = manifest.as_ref().map(|(manifest, _)| manifest);
            let component =
                artifact::find_component(&path, named, Place::Local).map_err(|error| no_build(&path, error))?;
            return Self::of(component, manifest, &path);
        }
        let folder = path.parent().unwrap_or(&path).to_owned();
        let manifest = manifest_in(&folder)?;
        Self::of(path, manifest, &folder)
    }

    /// The bytes of the component; none for a native library.
    pub fn component(&self) -> Option<&[u8]> {
        match &self.code {
            Code::Component(bytes) => Some(bytes),
            Code::Native(_) => None,
        }
    }

    fn of(path: PathBuf, manifest: Option<(Manifest, String)>, folder: &Path) -> Result<Self, ConformanceError> {
        let component = fs::read(&path).map_err(|source| read_error(&path, source))?;
        let (manifest, text) = match manifest {
            Some(found) => found,
            None => bare(&path)?,
        };
        Self::new(manifest, &text, Code::Component(component.into()), path, Some(folder))
    }

    /// Takes the text of a manifest and the bytes of a component, such as those inside the binary.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest is invalid.
    pub fn of_parts(manifest: &str, component: &[u8]) -> Result<Self, ConformanceError> {
        let path = PathBuf::from(MANIFEST);
        let parsed = Manifest::parse(manifest).map_err(|error| invalid(&path, &error))?;
        Self::new(parsed, manifest, Code::Component(component.to_vec().into()), path, None)
    }

    fn new(
        manifest: Manifest,
        text: &str,
        code: Code,
        path: PathBuf,
        folder: Option<&Path>,
    ) -> Result<Self, ConformanceError> {
        let configured: Configured = serde_saphyr::from_str(text).map_err(|error| ConformanceError::Manifest {
            path: path.clone(),
            why: error.to_string(),
            fix: None,
        })?;
        let language = Language::detect(folder, code.bytes());
        Ok(Self { manifest, schema: configured.config, code, path, language, skills: None })
    }

    /// The configuration with all defaults of the schema; `None` without a schema.
    pub(crate) fn defaults(&self) -> Option<Value> {
        let schema = self.schema.as_ref()?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let given = properties.into_iter().flatten().filter_map(|(name, property)| {
            let default = property.get("default")?;
            Some((name.clone(), default.clone()))
        });
        Some(Value::Object(given.collect()))
    }
}

fn read_error(path: &Path, source: std::io::Error) -> ConformanceError {
    ConformanceError::Read { path: path.to_owned(), source }
}

fn invalid(path: &Path, error: &ManifestError) -> ConformanceError {
    ConformanceError::Manifest { path: path.to_owned(), why: error.to_string(), fix: error.why.fix() }
}

fn manifest_in(folder: &Path) -> Result<Option<(Manifest, String)>, ConformanceError> {
    let path = folder.join(MANIFEST);
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(|source| read_error(&path, source))?;
    let manifest = Manifest::parse(&text).map_err(|error| invalid(&path, &error))?;
    Ok(Some((manifest, text)))
}

/// A manifest for a bare component; it requests nothing.
fn bare(component: &Path) -> Result<(Manifest, String), ConformanceError> {
    let stem = component.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let kept = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let name: String = stem.chars().map(kept).take(64).collect();
    let name = name.trim_matches('-');
    let text = format!("name: {}\nversion: 0.0.0\n", if name.is_empty() { "unnamed" } else { name });
    let manifest = Manifest::parse(&text).map_err(|error| invalid(component, &error))?;
    Ok((manifest, text))
}

fn library_in(folder: &Path, manifest: &Manifest) -> Result<PathBuf, ConformanceError> {
    let missing = || ConformanceError::NoLibrary { folder: folder.to_owned() };
    let name = manifest.library().ok_or_else(missing)?;
    artifact::find_library(folder, name, Place::Local).map_err(|error| no_build(folder, error))?.ok_or_else(missing)
}

fn no_build(folder: &Path, error: ArtifactError) -> ConformanceError {
    ConformanceError::NoBuild { folder: folder.to_owned(), error }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hermes_diagnostic::Diagnose as _;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn a_component_is_found_in_every_supported_place() {
        let yaml = "name: mine\nversion: 1.2.3\n";
        for (files, path, expected) in [
            (vec![("plugin.yaml", yaml), ("mine.wasm", "x")], "", "mine.wasm"),
            (vec![("plugin.yaml", yaml), ("mine.wasm", "x")], "mine.wasm", "mine.wasm"),
            (
                vec![("plugin.yaml", yaml), ("Cargo.toml", ""), ("target/wasm32-wasip2/release/mine.wasm", "x")],
                "",
                "target/wasm32-wasip2/release/mine.wasm",
            ),
            (
                vec![
                    ("plugin.yaml", yaml),
                    ("Cargo.toml", "[package]\nname = \"my-own\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n"),
                    ("src/lib.rs", ""),
                    ("target/wasm32-wasip2/release/my_own.wasm", "x"),
                    ("target/wasm32-wasip2/release/other.wasm", "y"),
                ],
                "",
                "target/wasm32-wasip2/release/my_own.wasm",
            ),
            (vec![("plugin.yaml", "name: mine\ncomponent: b.wasm\n"), ("a.wasm", "x"), ("b.wasm", "x")], "", "b.wasm"),
        ] {
            let folder = folder(&files);
            let subject = Subject::find_component(&folder.path().join(path)).unwrap();
            assert_eq!((subject.manifest.name.as_str(), subject.code.bytes()), ("mine", &b"x"[..]));
            assert!(subject.path.ends_with(expected), "{}", subject.path.display());
        }
    }

    #[test]
    fn a_bare_component_is_named_after_its_file_and_requests_nothing() {
        let folder = folder(&[("My Plugin.wasm", "x")]);
        let subject = Subject::find_component(&folder.path().join("My Plugin.wasm")).unwrap();
        assert_eq!(subject.manifest.name, "my-plugin");
        assert!(subject.schema.is_none());
    }

    #[test]
    fn an_unusable_path_gives_an_error_with_a_remedy() {
        let empty = folder(&[("plugin.yaml", "name: mine\n"), ("Cargo.toml", "")]);
        let two = folder(&[("plugin.yaml", "name: mine\n"), ("a.wasm", ""), ("b.wasm", "")]);
        let wrong = folder(&[("plugin.yaml", "name: No Name\n"), ("a.wasm", "")]);
        for (path, part) in [
            (empty.path().join("nowhere"), "does not exist"),
            (empty.path().to_owned(), "cargo build --release --target wasm32-wasip2"),
            (two.path().to_owned(), "a.wasm, b.wasm"),
            (wrong.path().to_owned(), "No Name"),
        ] {
            let error = Subject::find_component(&path).unwrap_err().sentence();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn defaults_are_read_from_the_schema() {
        let yaml = "name: mine\nconfig:\n  type: object\n  properties:\n    keep: {type: integer, default: 3}\n    key: {type: string}\n";
        let subject = Subject::of_parts(yaml, b"").unwrap();
        assert_eq!(subject.defaults().unwrap(), serde_json::json!({ "keep": 3 }));
        assert!(Subject::of_parts("name: mine\n", b"").unwrap().defaults().is_none());
    }
}
