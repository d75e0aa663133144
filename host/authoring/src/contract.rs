//! The contract of a project: its bindings for C and Go, and the component of a core module. These are the two steps that compilers to
//! core WebAssembly need before and after them.
//!
//! Languages with a generator of their own (Rust, Python, JavaScript) do not use them.

mod arena;
mod frees;
mod refusal;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use hermes_app::{ScaffoldFile, scaffold};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::{Resolve, UnresolvedPackageGroup, WorldId};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// The world that includes the worlds of a project. It names the files and types of the bindings.
const WORLD: &str = "project";
/// The version of the contract for new plugins: the name of its folder.
pub const CURRENT: &str = "1.1.0";
/// The file of the contract with its worlds.
const WORLDS: &str = "worlds.wit";
/// The module of a project in Go, and the packages of `wit-bindgen` that are part of the SDK there.
const GO_BINDINGS: &str = "hermes/bindings";
const GO_EXPORTS: &str = "hermes/bindings/exports/export_";
const GO_RUNTIME: &str = "go.bytecodealliance.org/pkg/wit/";
/// The first line of every exported function, before which the SDK may collect garbage.
const GO_EXPORT_BEGINS: &str = "pinner := &syncExportPinner";
/// How every string that goes to the host is lowered: `utf8 := unsafe.Pointer(unsafe.StringData(text))`.
const GO_LOWERS: &str = " := unsafe.Pointer(unsafe.StringData(";

/// A language whose bindings Hermes generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingsLanguage {
    /// For clang and the compiler of Zig.
    C,
    /// For the compiler of Go.
    Go,
}

impl BindingsLanguage {
    /// All of them.
    pub const ALL: &[Self] = &[Self::C, Self::Go];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Go => "go",
        }
    }
}

/// The contract with the world of a project.
pub struct Contract {
    resolve: Resolve,
    world: WorldId,
}

impl Contract {
    /// Reads the files of a version of the contract, as path and text.
    ///
    /// # Errors
    ///
    /// When they are no contract, or have no such worlds.
    pub fn parse(texts: &[(String, String)], worlds: &[String]) -> Result<Self> {
        let mut main = None;
        let mut dependencies = Vec::new();
        for (path, text) in texts {
            let is_main = path.ends_with(WORLDS);
            let text = if is_main { with_project(text, worlds) } else { text.clone() };
            let group =
                UnresolvedPackageGroup::parse(path, &text).map_err(|(map, error)| anyhow!(error.render(&map)))?;
            if is_main { main = Some(group) } else { dependencies.push(group) }
        }
        let main = main.with_context(|| format!("there is no {WORLDS}"))?;
        let mut resolve = Resolve::default();
        let package = resolve.push_groups(main, dependencies).map_err(|error| anyhow!(error.to_string()))?;
        let world = resolve.select_world(&[package], Some(WORLD))?;
        Ok(Self { resolve, world })
    }

    /// Reads the files of a version of the contract in its folder.
    ///
    /// # Errors
    ///
    /// When they cannot be read, or have no such worlds.
    pub fn read(wit: &Path, worlds: &[String]) -> Result<Self> {
        let read = |path: &Path| -> Result<(String, String)> {
            let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
            Ok((path.display().to_string(), text))
        };
        let mut texts = vec![read(&wit.join(WORLDS))?];
        let dependencies = wit.join("deps");
        let entries =
            fs::read_dir(&dependencies).with_context(|| format!("{} cannot be read", dependencies.display()))?;
        for entry in entries {
            texts.push(read(&entry?.path())?);
        }
        Self::parse(&texts, worlds)
    }

    /// The files of the bindings, by path.
    ///
    /// # Errors
    ///
    /// When the contract has what the host refuses or the generator does not know.
    pub fn bindings(&self, language: BindingsLanguage) -> Result<Vec<(String, String)>> {
        refusal::check(&self.resolve, self.world)?;
        let files = refusal::generate(&self.resolve, self.world, |resolve, world| {
            let mut files = Files::default();
            match language {
                BindingsLanguage::C => {
                    // `component` adds the type of the world, so no object file needs to carry it.
                    let options = wit_bindgen_c::Opts { no_object_file: true, ..Default::default() };
                    options.build().generate(resolve, world, &mut files)?;
                }
                BindingsLanguage::Go => {
                    // `gofmt` may be missing, and two machines should get the same text.
                    let format = wit_bindgen_go::Format::False;
                    let pkg_name = Some(GO_BINDINGS.to_owned());
                    let options = wit_bindgen_go::Opts { format, pkg_name, quiet: true, ..Default::default() };
                    options.build().generate(resolve, world, &mut files)?;
                }
            }
            Ok(files)
        })?;
        let texts: Result<Vec<(String, String)>> = files
            .iter()
            .map(|(path, bytes)| {
                let text =
                    String::from_utf8(bytes.to_vec()).context("the generator wrote something other than text")?;
                Ok((path.to_owned(), text))
            })
            .collect();
        Ok(match language {
            BindingsLanguage::Go => texts?.into_iter().map(|(path, text)| (path, as_one_package(&text))).collect(),
            BindingsLanguage::C => completed_c(texts?),
        })
    }

    /// Turns a core module into a component. WASI preview 1 is translated by the standard adapter.
    ///
    /// # Errors
    ///
    /// When the module does not export what the world asks for.
    pub fn component(&self, module: Vec<u8>) -> Result<Vec<u8>> {
        let mut module = arena::with_adapter_memory(module)?;
        embed_component_metadata(&mut module, &self.resolve, self.world, StringEncoding::UTF8, false)?;
        let mut encoder = ComponentEncoder::default();
        encoder.validate(true).module(&module)?;
        encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
        encoder.encode()
    }
}

/// The worlds of the contract, and one that includes those of the project.
fn with_project(text: &str, worlds: &[String]) -> String {
    let includes: String = worlds.iter().map(|world| format!("    include {world};\n")).collect();
    format!("{text}\nworld {WORLD} {{\n{includes}}}\n")
}

/// The bindings for C, whose functions free whole values, and whose imports a unit test can define.
fn completed_c(mut files: Vec<(String, String)>) -> Vec<(String, String)> {
    files.sort();
    if let [(_, source), (_, header)] = files.as_mut_slice() {
        (*source, *header) = frees::completed(source, header);
        *source = with_replaceable_imports(source);
    }
    files
}

/// C code whose calls of the host only a component has. Elsewhere, a unit test defines them.
fn with_replaceable_imports(text: &str) -> String {
    const HOST: &str = "__wasm_import_";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // A function begins at the margin, and ends with a brace there.
    while let Some(at) = rest.find(" {\n").map(|at| rest[..at].rfind('\n').map_or(0, |line| line + 1)) {
        let Some(end) = rest[at..].find("\n}\n").map(|end| at + end + 3) else { break };
        let (before, function) = (&rest[..at], &rest[at..end]);
        out.push_str(before);
        if function.contains(HOST) {
            out.push_str(&format!("#ifdef __wasm__\n{function}#endif\n"));
        } else {
            out.push_str(function);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Go code whose exports are all in the package `hermes/plugin`, and whose runtime is the one of the SDK.
fn as_one_package(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in with_well_formed_texts(text).lines() {
        match line.trim().strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
            Some(path) if path.starts_with(GO_EXPORTS) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                out.push_str(&format!("\t{name} \"hermes/plugin\"\n"));
            }
            _ => {
                if line.trim() == GO_EXPORT_BEGINS {
                    out.push_str("\twitRuntime.Enter()\n");
                }
                out.push_str(&line.replace(GO_RUNTIME, "hermes/sdk/wit/"));
                out.push('\n');
                if line.contains(":= export_") || line.trim().starts_with("export_") {
                    out.push_str("witRuntime.Leave()\n");
                }
            }
        }
    }
    out
}

/// Go code that makes every string well-formed before the host gets it. Go's strings may have other bytes than UTF-8.
fn with_well_formed_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The lengths of strings whose address was taken, in the order in which they follow.
    let mut lengths: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let lowered = line.split_once(GO_LOWERS).and_then(|(name, rest)| Some((name.trim(), rest.strip_suffix("))")?)));
        if let Some((name, value)) = lowered {
            out.push_str(&format!("{name}_text := witRuntime.Text({value})\n{name}{GO_LOWERS}{name}_text))\n"));
            lengths.push((format!("len({value})"), format!("len({name}_text)")));
            continue;
        }
        let mut line = line.to_owned();
        lengths.retain(|(before, after)| {
            let is_here = line.contains(before);
            if is_here {
                line = line.replacen(before, after, 1);
            }
            !is_here
        });
        out.push_str(&line);
        out.push('\n');
    }
    if out.contains("witRuntime.") && !out.contains("witRuntime \"") {
        out = out.replacen("import (\n", &format!("import (\nwitRuntime \"{GO_RUNTIME}runtime\"\n"), 1);
    }
    out
}

/// The text of the contract for new plugins, by path below its version's folder.
pub fn texts() -> Vec<(String, String)> {
    let of_current = |path: &'static str| path.strip_prefix(CURRENT)?.strip_prefix('/');
    files().filter_map(|(path, text)| Some((of_current(path)?.to_owned(), text.to_owned()))).collect()
}

/// The files of all versions of the contract: path below `wit/`, and text.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_contract = |file: &&ScaffoldFile| file.folder == "wit";
    scaffold().iter().filter(of_contract).map(|file| (file.path.as_str(), file.text.as_str()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn contract(worlds: &[&str]) -> Result<Contract> {
        Contract::parse(&texts(), &worlds.iter().map(|world| (*world).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn bindings_contain_the_exports_of_every_named_world() {
        let worlds = ["tools-plugin", "memory-provider-plugin"];
        let files = contract(&worlds).unwrap().bindings(BindingsLanguage::C).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["project.c", "project.h"]);
        for export in ["exports_hermes_tools_tools_call(", "exports_hermes_memory_memory_provider_recall("] {
            assert!(files[1].1.contains(export), "{export}");
        }
        let function = "#ifdef __wasm__\nbool hermes_storage_documents_read(";
        assert!(files[0].1.contains(function) && !files[0].1.contains("#ifdef __wasm__\nvoid project_string_free"));
        let everything = contract(&["everything"]).unwrap().bindings(BindingsLanguage::C).unwrap();
        assert_eq!(frees::tests::forgotten(&everything[0].1, &everything[1].1), Vec::<String>::new());
        let go = contract(&worlds).unwrap().bindings(BindingsLanguage::Go).unwrap();
        let exports = &go.iter().find(|(path, _)| path.ends_with("wit_exports.go")).unwrap().1;
        assert!(exports.contains("export_hermes_tools_tools \"hermes/plugin\""), "{exports}");
        let calls = exports.matches("//go:wasmexport hermes:").count();
        for once in ["witRuntime.Enter()", "witRuntime.Leave()"] {
            assert!(calls > 5 && exports.matches(once).count() == calls, "{once}: {exports}");
        }
        assert!(go.iter().all(|(_, text)| !text.contains("bytecodealliance.org")));
    }

    #[test]
    fn every_string_that_goes_to_the_host_is_made_well_formed_in_go() {
        for (path, text) in contract(&["everything"]).unwrap().bindings(BindingsLanguage::Go).unwrap() {
            let lowered = text.matches("unsafe.StringData(").count();
            for part in ["_text := witRuntime.Text(", "unsafe.StringData(utf8", "uint32(len(utf8"] {
                assert_eq!(text.matches(part).count(), lowered, "{part} in {path}\n{text}");
            }
            assert_eq!(text.contains("witRuntime."), text.contains("witRuntime \"hermes/sdk/wit/runtime\""), "{path}");
        }
    }

    /// The contract with one more interface, which a world exports.
    fn with_interface(body: &str, language: BindingsLanguage) -> Result<Vec<(String, String)>> {
        let mut files = texts();
        let main = files.iter_mut().find(|(path, _)| path.ends_with(WORLDS)).unwrap();
        main.1.push_str(&format!(
            "interface mine {{ {body} }}\nworld extended {{ include tools-plugin; export mine; }}\n"
        ));
        Contract::parse(&files, &["extended".to_owned()])?.bindings(language)
    }

    #[test]
    fn what_the_host_refuses_is_refused_before_anybody_writes_code_for_it() {
        for (body, names) in [
            ("f: async func();", ["function `f`", "synchronous"]),
            ("f: func() -> stream<u8>;", ["function `f`", "synchronous"]),
            ("f: func(x: list<option<future<string>>>);", ["function `f`", "synchronous"]),
            ("record r { deep: tuple<u8, stream> }", ["type `r`", "synchronous"]),
            ("resource r { m: async func(); }", ["r.m`", "synchronous"]),
            ("type m = map<string, u8>;", ["type `m`", "map"]),
            ("f: func(x: list<u8, 4>);", ["function `f`", "fixed-length list"]),
        ] {
            for language in [BindingsLanguage::C, BindingsLanguage::Go] {
                let error = format!("{:#}", with_interface(body, language).unwrap_err());
                assert!(
                    error.contains(&format!("`hermes:plugin/mine@{CURRENT}`")) && !error.contains('\n'),
                    "{body}: {error}"
                );
                assert!(names.iter().all(|name| error.contains(name)), "{body}: {error}");
            }
        }
        assert!(with_interface("record r { deep: tuple<u8, list<u8>> }", BindingsLanguage::C).is_ok());
    }

    #[test]
    fn what_a_generator_does_not_know_is_named_and_nothing_panics() {
        let tuple = vec!["u8"; 17].join(", ");
        for (body, name, languages) in [
            (
                format!("record fine {{ a: u8 }} record wide {{ a: tuple<{tuple}> }} g: func(x: wide);"),
                "`wide`",
                &[BindingsLanguage::Go][..],
            ),
            ("f: func(); g: func(x: error-context);".to_owned(), "`g`", &[BindingsLanguage::C, BindingsLanguage::Go]),
        ] {
            for language in languages {
                let error = format!("{:#}", with_interface(&body, *language).unwrap_err());
                assert!(
                    error.contains(name) && error.contains(&format!("hermes:plugin/mine@{CURRENT}")),
                    "{body}: {error}"
                );
                assert!(!error.contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn an_unknown_world_and_a_module_without_exports_are_refused() {
        let error = contract(&["kitchen-plugin"]).err().unwrap();
        assert!(format!("{error:#}").contains("kitchen-plugin"), "{error:#}");
        let empty = b"\0asm\x01\0\0\0".to_vec();
        let error = contract(&["tools-plugin"]).unwrap().component(empty).unwrap_err();
        assert!(format!("{error:#}").contains("hermes:"), "{error:#}");
    }
}
