//! The files of a new project: templates of its language and kind, the language's SDK, and the contract.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Result;
use hermes_app::{ScaffoldFile, scaffold};

use crate::contract::{BindingsLanguage, CURRENT, Contract, texts};
use crate::{PluginKind, ProjectLanguage};

/// The ending of template files, so that build tools and git ignore them in this repository.
const TEMPLATE: &str = ".template";

/// The files of a new project, by path.
///
/// # Errors
///
/// When its bindings cannot be generated.
pub fn files(name: &str, kind: PluginKind, language: ProjectLanguage) -> Result<Vec<(String, String)>> {
    let (common, of_kind) = (format!("{}/common", language.name()), format!("{}/{}", language.name(), kind.name()));
    let mut files = Vec::new();
    for ScaffoldFile { folder, path, text } in scaffold() {
        if *folder == common || *folder == of_kind {
            files.push((plain(path), filled(text, name, kind)));
        } else if *folder == "wit" && is_current(path) {
            files.push((format!("wit/{path}"), text.clone()));
        } else if let Some(place) = vendored(language, folder, path) {
            files.push((place, text.clone()));
        }
    }
    if let Some(target) = generated(language) {
        files.extend(bindings(kind, target)?.into_iter().map(|(path, text)| (format!("bindings/{path}"), text)));
    }
    Ok(files)
}

/// Whether a file below `wit/` is about the present version of the contract. A project has one version, so that its build has no choice.
fn is_current(path: &str) -> bool {
    path == "README.md" || path.split('/').next() == Some(CURRENT)
}

/// The bindings that are part of a project, because its language has no generator of its own.
fn generated(language: ProjectLanguage) -> Option<BindingsLanguage> {
    match language {
        ProjectLanguage::Rust | ProjectLanguage::Python | ProjectLanguage::JavaScript => None,
        ProjectLanguage::C => Some(BindingsLanguage::C),
        ProjectLanguage::Go => Some(BindingsLanguage::Go),
    }
}

/// The contract of a kind in a language.
fn bindings(kind: PluginKind, language: BindingsLanguage) -> Result<Vec<(String, String)>> {
    Contract::parse(&texts(), &[format!("{}-plugin", kind.name())])?.bindings(language)
}

/// The path of a file of the SDK in the project; none if it belongs to another language.
fn vendored(language: ProjectLanguage, folder: &str, path: &str) -> Option<String> {
    Some(match (language, folder) {
        (ProjectLanguage::Rust, "rust/vendor") => format!("vendor/{}/Cargo.toml", path.trim_end_matches(".toml")),
        (ProjectLanguage::Rust, "sdk/rust") => format!("vendor/hermes-plugin/src/{path}"),
        (ProjectLanguage::Rust, "sdk/abi") => format!("vendor/hermes-plugin-abi/src/{path}"),
        (ProjectLanguage::Rust, "sdk/rust-derive") => format!("vendor/hermes-plugin-derive/src/{path}"),
        (ProjectLanguage::Python, "sdk/python") => format!("vendor/{path}"),
        (ProjectLanguage::Go, "sdk/go") => format!("sdk/{path}"),
        (ProjectLanguage::C, "sdk/c") => format!("vendor/{path}"),
        (ProjectLanguage::JavaScript, "sdk/javascript") => format!("vendor/hermes-plugin/{path}"),
        _ => return None,
    })
}

/// The path of a template's file in the project.
fn plain(path: &str) -> String {
    let path = path.strip_suffix(TEMPLATE).unwrap_or(path);
    if path == "gitignore" { ".gitignore".to_owned() } else { path.to_owned() }
}

fn filled(text: &str, name: &str, kind: PluginKind) -> String {
    text.replace("{{name}}", name).replace("{{kind}}", kind.name()).replace("{{use}}", &kind.to_use(name))
}

/// Package names that cargo or the compiler reserves, or that the project itself uses.
const RESERVED: [&str; 9] =
    ["hermes-plugin", "hermes_plugin", "hermes-plugin-derive", "test", "core", "std", "alloc", "build", "deps"];
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Why this cannot be the name of a plugin; none if it can.
pub fn flaw_of_name(name: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    Some(if name.is_empty() || name.len() > 64 {
        format!("it has {} characters; a name must have 1 to 64", name.chars().count())
    } else if let Some(other) = name.chars().find(|character| !u8::try_from(*character).is_ok_and(allowed)) {
        format!("the character `{}` is not allowed", other.escape_default())
    } else if !name.as_bytes()[0].is_ascii_lowercase() {
        "a name must begin with a letter".to_owned()
    } else if RESERVED.contains(&name) || KEYWORDS.contains(&name) {
        "the name is reserved in Rust or in the project".to_owned()
    } else {
        return None;
    })
}

/// Writes the files to a temporary folder beside the project's, and moves them into place in one step.
///
/// # Errors
///
/// When the folder exists, or cannot be created.
pub fn create(folder: &Path, files: &[(String, String)]) -> io::Result<()> {
    if folder.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists already, and nothing is overwritten"));
    }
    let parent = folder.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let stage = tempfile::Builder::new().prefix(".hermes-new-").tempdir_in(parent)?;
    let project = stage.path().join("project");
    for (path, text) in files {
        let file = project.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&project))?;
        fs::File::create_new(&file)?.write_all(text.as_bytes())?;
    }
    fs::rename(&project, folder)
}

/// Every file below a folder by its path in it.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
fn below(folder: &std::path::Path) -> std::collections::BTreeMap<String, String> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use hermes_plugin_host::Manifest;

    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn a_project_contains_the_sdk_and_the_contract_of_this_repository() {
        let files: BTreeMap<String, String> =
            files("mine", PluginKind::Tools, ProjectLanguage::Rust).unwrap().into_iter().collect();
        for (of, at) in [
            ("sdk/rust/src", "vendor/hermes-plugin/src/"),
            ("sdk/rust-derive/src", "vendor/hermes-plugin-derive/src/"),
            ("sdk/abi/src", "vendor/hermes-plugin-abi/src/"),
            ("wit/1.1.0", "wit/1.1.0/"),
        ] {
            let written: BTreeMap<String, String> = files
                .iter()
                .filter_map(|(path, text)| Some((path.strip_prefix(at)?.to_owned(), text.clone())))
                .collect();
            assert!(!written.is_empty() && written == below(&repository().join(of)), "{of}");
        }
        assert!(files.keys().all(|path| !path.contains("-rc.")), "a project has one version of the contract");
    }

    /// The requirements in a section of a Cargo.toml, by name, without spaces.
    fn requirements(manifest: &str, section: &str) -> BTreeMap<String, String> {
        let lines = manifest.lines().skip_while(|line| line.trim() != section).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
        lines.map(|(name, value)| (name.trim().to_owned(), value.replace(' ', ""))).collect()
    }

    #[test]
    fn the_vendored_sdk_has_the_dependencies_of_the_sdk() {
        let files: BTreeMap<String, String> =
            files("mine", PluginKind::Tools, ProjectLanguage::Rust).unwrap().into_iter().collect();
        let written = requirements(&files["vendor/hermes-plugin/Cargo.toml"], "[dependencies]");
        let workspace = fs::read_to_string(repository().join("plugins/Cargo.toml")).unwrap();
        let workspace = requirements(&workspace, "[workspace.dependencies]");
        let own = fs::read_to_string(repository().join("sdk/rust/Cargo.toml")).unwrap();
        let own = requirements(&own, "[dependencies]");
        assert_eq!(written.keys().collect::<Vec<_>>(), own.keys().collect::<Vec<_>>());
        for (name, requirement) in written.iter().filter(|(name, _)| !name.starts_with("hermes-plugin")) {
            let requirement = requirement.replace(",optional=true", "");
            assert_eq!(Some(&requirement), workspace.get(name), "{name}");
        }
        let native = "[target.'cfg(not(target_family = \"wasm\"))'.dependencies]";
        let written = requirements(&files["vendor/hermes-plugin/Cargo.toml"], native);
        assert_eq!(written.keys().collect::<Vec<_>>(), ["rusqlite"]);
        let rusqlite = written["rusqlite"].replace(",optional=true", "");
        assert_eq!(Some(&rusqlite), workspace.get("rusqlite"));
        let abi = requirements(&files["vendor/hermes-plugin-abi/Cargo.toml"], "[dependencies]");
        let host = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        let host = requirements(&host, "[workspace.dependencies]");
        assert_eq!(abi.keys().collect::<Vec<_>>(), ["abi_stable", "rmp-serde", "serde"]);
        for (name, requirement) in &abi {
            assert_eq!(Some(requirement), host.get(name), "{name}");
        }
    }

    #[test]
    fn the_templates_of_every_kind_are_filled_in_completely() {
        for (language, build, name) in [
            (ProjectLanguage::Rust, "Cargo.toml", "name = \"my-plugin\""),
            (ProjectLanguage::Python, "pyproject.toml", "name = \"my-plugin\""),
            (ProjectLanguage::JavaScript, "package.json", "\"name\": \"my-plugin\""),
            (ProjectLanguage::C, "Makefile", "NAME := my-plugin"),
            (ProjectLanguage::Go, "build.go", "const name = \"my-plugin\""),
        ] {
            for kind in PluginKind::ALL {
                let files: BTreeMap<String, String> =
                    files("my-plugin", *kind, language).unwrap().into_iter().collect();
                let manifest = Manifest::parse(&files["plugin.yaml"]).unwrap();
                assert_eq!(manifest.name, "my-plugin");
                assert!(files[build].contains(name) && files.contains_key(".gitignore"));
                assert!(files["README.md"].contains(&kind.to_use("my-plugin")));
                assert!(files.contains_key(language.steps().1), "{language:?} {kind:?}");
                for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("vendor/")) {
                    for left in ["{{name}}", "{{kind}}", "{{use}}"] {
                        assert!(!text.contains(left), "{path} has {left}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_project_names_the_world_of_its_kind_and_contains_the_sdk() {
        for (language, build, sdk, at) in [
            (ProjectLanguage::Python, "pyproject.toml", "sdk/python", "vendor/"),
            (ProjectLanguage::JavaScript, "package.json", "sdk/javascript", "vendor/hermes-plugin/"),
            (ProjectLanguage::C, "Makefile", "sdk/c", "vendor/"),
            (ProjectLanguage::Go, "build.go", "sdk/go", "sdk/"),
        ] {
            for kind in PluginKind::ALL {
                let files: BTreeMap<String, String> = files("mine", *kind, language).unwrap().into_iter().collect();
                let world = format!("{}-plugin", kind.name());
                assert!(files[build].contains(&world), "{build}");
                let contract = files.iter().find(|(path, _)| path.ends_with("worlds.wit")).unwrap().1;
                assert!(contract.contains(&format!("world {world} {{")), "{world}");
                let written: BTreeMap<String, String> = files
                    .iter()
                    .filter_map(|(path, text)| Some((path.strip_prefix(at)?.to_owned(), text.clone())))
                    .collect();
                assert!(!written.is_empty());
                assert_eq!(written, below(&repository().join(sdk)));
            }
        }
    }

    #[test]
    fn an_existing_folder_is_not_changed() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let files = files("taken", PluginKind::Hooks, ProjectLanguage::Python).unwrap();
        assert!(create(&taken, &files).unwrap_err().to_string().contains("nothing is overwritten"));
        assert_eq!(fs::read_dir(&taken).unwrap().count(), 0);
        create(&place.path().join("deep/new"), &files).unwrap();
        assert_eq!(below(&place.path().join("deep")).len(), files.len());
    }

    #[test]
    fn an_invalid_name_is_refused_with_the_reason() {
        for (name, part) in [
            ("", "1 to 64"),
            ("My", "`M`"),
            ("a b", "` `"),
            ("../up", "`.`"),
            ("9lives", "begin with a letter"),
            ("-x", "begin with a letter"),
            ("fn", "reserved"),
            ("hermes-plugin", "reserved"),
            ("naïve", "u{ef}"),
        ] {
            assert!(flaw_of_name(name).unwrap().contains(part), "{name}");
        }
        for name in ["my-engine", "a", "tea_2"] {
            assert_eq!(flaw_of_name(name), None, "{name}");
        }
    }
}
