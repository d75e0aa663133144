//! The files of a new project: templates of its language and kind, the language's SDK, and the contract.

use hermes_app::SCAFFOLD;

use super::{Kind, Lang};
use crate::failure::{Failure, Kind as Failed};
use crate::plugins::bindings::{CURRENT, Contract, Target, texts};

/// The ending of template files, so that build tools and git ignore them in this repository.
const TEMPLATE: &str = ".template";

/// The files of the project, by path.
pub(super) fn files(name: &str, kind: Kind, language: Lang) -> Result<Vec<(String, String)>, Failure> {
    let (common, of_kind) = (format!("{}/common", language.folder()), format!("{}/{}", language.folder(), kind.name()));
    let mut files = Vec::new();
    for (folder, path, text) in SCAFFOLD {
        if *folder == common || *folder == of_kind {
            files.push((plain(path), filled(text, name, kind)));
        } else if *folder == "wit" && is_current(path) {
            files.push((format!("wit/{path}"), (*text).to_owned()));
        } else if let Some(place) = vendored(language, folder, path) {
            files.push((place, (*text).to_owned()));
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
fn generated(language: Lang) -> Option<Target> {
    match language {
        Lang::Rust | Lang::Python | Lang::JavaScript => None,
        Lang::C => Some(Target::C),
        Lang::Go => Some(Target::Go),
    }
}

/// The contract of a kind in a language.
fn bindings(kind: Kind, target: Target) -> Result<Vec<(String, String)>, Failure> {
    let generated = Contract::parse(&texts(), &[format!("{}-plugin", kind.name())]).and_then(|it| it.bindings(target));
    generated.map_err(|error| {
        let fix = "report it; `--lang rust` needs no bindings";
        Failure::new(Failed::General, "the bindings cannot be generated", format!("{error:#}"), fix)
    })
}

/// The path of a file of the SDK in the project; none if it belongs to another language.
fn vendored(language: Lang, folder: &str, path: &str) -> Option<String> {
    Some(match (language, folder) {
        (Lang::Rust, "rust/vendor") => format!("vendor/{}/Cargo.toml", path.trim_end_matches(".toml")),
        (Lang::Rust, "sdk/rust") => format!("vendor/hermes-plugin/src/{path}"),
        (Lang::Rust, "sdk/abi") => format!("vendor/hermes-plugin-abi/src/{path}"),
        (Lang::Rust, "sdk/rust-derive") => format!("vendor/hermes-plugin-derive/src/{path}"),
        (Lang::Python, "sdk/python") => format!("vendor/{path}"),
        (Lang::Go, "sdk/go") => format!("sdk/{path}"),
        (Lang::C, "sdk/c") => format!("vendor/{path}"),
        (Lang::JavaScript, "sdk/javascript") => format!("vendor/hermes-plugin/{path}"),
        _ => return None,
    })
}

/// The path of a template's file in the project.
fn plain(path: &str) -> String {
    let path = path.strip_suffix(TEMPLATE).unwrap_or(path);
    if path == "gitignore" { ".gitignore".to_owned() } else { path.to_owned() }
}

fn filled(text: &str, name: &str, kind: Kind) -> String {
    text.replace("{{name}}", name).replace("{{kind}}", kind.name()).replace("{{use}}", &kind.to_use(name))
}

/// Every file below a folder by its path in it.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn below(folder: &std::path::Path) -> std::collections::BTreeMap<String, String> {
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
    use std::fs;
    use std::path::{Path, PathBuf};

    use clap::ValueEnum as _;
    use hermes_plugin_host::Manifest;

    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn a_project_contains_the_sdk_and_the_contract_of_this_repository() {
        let files: BTreeMap<String, String> = files("mine", Kind::Tools, Lang::Rust).unwrap().into_iter().collect();
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
        let files: BTreeMap<String, String> = files("mine", Kind::Tools, Lang::Rust).unwrap().into_iter().collect();
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
            (Lang::Rust, "Cargo.toml", "name = \"my-plugin\""),
            (Lang::Python, "pyproject.toml", "name = \"my-plugin\""),
            (Lang::JavaScript, "package.json", "\"name\": \"my-plugin\""),
            (Lang::C, "Makefile", "NAME := my-plugin"),
            (Lang::Go, "build.go", "const name = \"my-plugin\""),
        ] {
            for kind in Kind::value_variants() {
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
            (Lang::Python, "pyproject.toml", "sdk/python", "vendor/"),
            (Lang::JavaScript, "package.json", "sdk/javascript", "vendor/hermes-plugin/"),
            (Lang::C, "Makefile", "sdk/c", "vendor/"),
            (Lang::Go, "build.go", "sdk/go", "sdk/"),
        ] {
            for kind in Kind::value_variants() {
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
}
