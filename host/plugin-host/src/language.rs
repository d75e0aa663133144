//! The language that a plugin is written in, and how hints for its author are worded in it.
//!
//! The files of a project tell the language, else the `producers` section that toolchains write into components.

use std::fs;
use std::path::Path;

use wasmparser::{KnownCustom, Parser, Payload};

/// The start of names in components that `jco` links with QuickJS. Their `producers` sections name only the runtime's
/// language, which is Rust.
const QUICKJS: &str = "componentize_qjs";

/// A language with hints of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
    C,
    /// Any other, or an unknown one.
    Other,
}

/// The words of hints in one language.
#[derive(Debug)]
pub struct Words {
    /// The command that builds a project.
    pub build: &'static str,
    /// How a component is built, for a plugin that does not load.
    pub toolchain: &'static str,
    /// What ends an instance, with its article.
    pub crash: &'static str,
    /// How to treat the error of an import.
    pub imports: &'static str,
    /// What instances do not share.
    pub globals: &'static str,
    /// How to answer the name of an unknown tool.
    pub unknown_tool: &'static str,
    /// How to read the arguments of a tool.
    pub arguments: &'static str,
    /// The function that counts tokens.
    pub count_tokens: &'static str,
    /// How to subtract numbers that may be zero.
    pub subtract: &'static str,
}

const UNKNOWN_TOOL: &str = "answer an error of the kind `invalid-input`";
const ARGUMENTS: &str =
    "parse the arguments as JSON, and answer an error of the kind `invalid-input` for what does not fit";

static RUST: Words = Words {
    build: "run `cargo build --release --target wasm32-wasip2` in the folder of the project",
    toolchain: "build it for wasm32-wasip2 with the SDK, and export the plugin with `hermes_plugin::export!(TYPE: KIND);`",
    crash: "a panic",
    imports: "pass on the error of an import with `?`, or do without; `unwrap` on it is a crash",
    globals: "statics",
    unknown_tool: "answer `invocation.unknown()`",
    arguments: "take arguments apart with `invocation.parse()?`: an error of it goes to the model",
    count_tokens: "llm::count_tokens",
    subtract: "subtract with `saturating_sub`",
};

static PYTHON: Words = Words {
    build: "run `python3 build.py`, or the project's own build script, in the folder of the project",
    toolchain: "build it with `componentize-py` against the files of wit/",
    crash: "an exception that is not an error of the contract",
    imports: "catch the `hermes_plugin.Err` that an import raises, and raise an error of the contract, such as `unavailable(…)`; any other \
              exception is a crash",
    globals: "variables of modules",
    unknown_tool: "raise `hermes_plugin.invalid(…)`",
    arguments: "parse the arguments with `json.loads`, and raise `hermes_plugin.invalid(…)` for what does not fit",
    count_tokens: "llm.count_tokens",
    subtract: "numbers of the contract are not negative: use `max(0, a - b)`",
};

static JAVASCRIPT: Words = Words {
    build: "run `npm install` and `npm run build` in the folder of the project",
    toolchain: "build it with `componentize-qjs` or `jco componentize` against the files of wit/",
    crash: "an exception that is not an error of the contract",
    imports: "catch what an import throws (its `payload` is the error), and throw an error of the contract; anything else is a crash",
    globals: "variables of modules",
    unknown_tool: "throw an error of the contract with the kind `invalid-input`",
    arguments: "parse the arguments with `JSON.parse`, and throw an error of the contract with the kind `invalid-input` for what does \
                not fit",
    count_tokens: "countTokens",
    subtract: "numbers of the contract are not negative: use `Math.max(0, a - b)`",
};

static GO: Words = Words {
    build: "run `go run build.go`, or the project's build script, in the folder of the project",
    toolchain: "build it with `hermes plugins bindings go` and `hermes plugins component`, against the files of wit/",
    crash: "a panic",
    imports: "check the error of an import and pass it on, or do without",
    globals: "variables of packages",
    unknown_tool: UNKNOWN_TOOL,
    arguments: "parse the arguments with `json.Unmarshal`, and answer an error of the kind `invalid-input` for what does not fit",
    count_tokens: "CountTokens",
    subtract: "unsigned numbers wrap around: compare before you subtract",
};

static C: Words = Words {
    build: "run `make`, or the project's build script, in the folder of the project",
    toolchain: "build it with `hermes plugins bindings c` and `hermes plugins component`, against the files of wit/",
    crash: "a trap, such as a read outside of memory,",
    imports: "check what an import returns: with `false` there is an error in place of a value",
    globals: "static variables",
    unknown_tool: UNKNOWN_TOOL,
    arguments: ARGUMENTS,
    count_tokens: "hermes_llm_llm_count_tokens",
    subtract: "unsigned numbers wrap around: compare before you subtract",
};

static OTHER: Words = Words {
    build: "build the project",
    toolchain: "build it as a component against the files of wit/",
    crash: "a trap",
    imports: "pass on the error of an import, or do without",
    globals: "global variables",
    unknown_tool: UNKNOWN_TOOL,
    arguments: ARGUMENTS,
    count_tokens: "llm.count-tokens",
    subtract: "compare before you subtract: the numbers may be zero",
};

impl Language {
    /// Detects the language of a plugin: from the files of its folder, else from its component.
    pub fn detect(folder: Option<&Path>, component: &[u8]) -> Self {
        folder.and_then(Self::of_project).or_else(|| Self::of_component(component)).unwrap_or(Self::Other)
    }

    /// The language of a project, from the files of its build tools and its sources.
    pub fn of_project(folder: &Path) -> Option<Self> {
        let entries = fs::read_dir(folder).ok()?.flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        let has = |name: &str| names.iter().any(|found| found == name);
        let ends = |ending: &str| names.iter().any(|found| found.ends_with(ending));
        Some(match () {
            () if has("Cargo.toml") => Self::Rust,
            () if has("go.mod") => Self::Go,
            () if has("pyproject.toml") => Self::Python,
            () if has("package.json") => Self::JavaScript,
            () if ends(".py") => Self::Python,
            () if ends(".js") || ends(".mjs") || ends(".ts") => Self::JavaScript,
            () if ends(".go") => Self::Go,
            () if ends(".c") || has("Makefile") => Self::C,
            () => return None,
        })
    }

    /// The language in the `producers` sections of a component and its modules. A runtime counts less than the program on it:
    /// Python and JavaScript run on one in C or Rust.
    pub fn of_component(bytes: &[u8]) -> Option<Self> {
        let mut found: Option<Self> = None;
        for payload in Parser::new(0).parse_all(bytes) {
            let section = match payload {
                Ok(Payload::CustomSection(section)) => section,
                Ok(Payload::ExportSection(exports)) => {
                    if exports.into_iter().flatten().any(|export| export.name.starts_with(QUICKJS)) {
                        return Some(Self::JavaScript);
                    }
                    continue;
                }
                Ok(_) => continue,
                // The bytes after an error cannot be read.
                Err(_) => break,
            };
            let KnownCustom::Producers(fields) = section.as_known() else { continue };
            for field in fields.into_iter().flatten() {
                for value in field.values.into_iter().flatten() {
                    let language = Self::named(field.name, value.name);
                    found = language.into_iter().chain(found).max_by_key(|language| language.height());
                }
            }
        }
        found
    }

    /// The language of a value in a `producers` section.
    fn named(field: &str, value: &str) -> Option<Self> {
        let value = value.to_lowercase();
        let is = |name: &str| value.contains(name);
        Some(match field {
            _ if is("componentize-py") || is("python") => Self::Python,
            _ if is("componentizejs") || is("componentize-js") || is("javascript") || is("jco") => Self::JavaScript,
            "language" if is("rust") => Self::Rust,
            "language" if value == "go" || is("tinygo") => Self::Go,
            "language" if value.starts_with('c') => Self::C,
            "processed-by" if is("tinygo") || is("go cmd/compile") || is("bindgen-go") => Self::Go,
            "processed-by" if is("rustc") || is("bindgen-rust") => Self::Rust,
            "processed-by" if is("clang") || is("bindgen-c") => Self::C,
            _ => return None,
        })
    }

    /// How high the level of a language is. Of several languages in a component, the highest is the author's.
    fn height(self) -> u8 {
        match self {
            Self::Other => 0,
            Self::C => 1,
            Self::Rust => 2,
            Self::Go => 3,
            Self::Python | Self::JavaScript => 4,
        }
    }

    /// The words of hints.
    pub fn words(self) -> &'static Words {
        match self {
            Self::Rust => &RUST,
            Self::Python => &PYTHON,
            Self::JavaScript => &JAVASCRIPT,
            Self::Go => &GO,
            Self::C => &C,
            Self::Other => &OTHER,
        }
    }

    /// The endings of its sources; none for Rust, whose sources cargo lists.
    pub fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Rust | Self::Other => &[],
            Self::Python => &["py"],
            Self::JavaScript => &["js", "mjs", "cjs", "ts", "mts"],
            Self::Go => &["go"],
            Self::C => &["c", "h"],
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> Option<Language> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "").unwrap();
        }
        Language::of_project(folder.path())
    }

    #[test]
    fn the_files_of_a_project_tell_its_language() {
        for (files, expected) in [
            (&["Cargo.toml", "build.py"][..], Some(Language::Rust)),
            (&["pyproject.toml", "package.json"], Some(Language::Python)),
            (&["engine.py", "build.sh"], Some(Language::Python)),
            (&["package.json", "tool.js"], Some(Language::JavaScript)),
            (&["tool.mjs"], Some(Language::JavaScript)),
            (&["go.mod", "main.go"], Some(Language::Go)),
            (&["engine.c", "Makefile"], Some(Language::C)),
            (&["Makefile", "src"], Some(Language::C)),
            (&["plugin.yaml", "mine.wasm"], None),
        ] {
            assert_eq!(project(files), expected, "{files:?}");
        }
        assert_eq!(Language::of_project(Path::new("/nowhere")), None);
    }

    /// A module with a `producers` section.
    fn module(fields: &[(&str, &str)]) -> Vec<u8> {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        let mut section = text("producers");
        section.push(fields.len() as u8);
        for (field, value) in fields {
            section.extend([text(field), vec![1], text(value), text("1.0")].concat());
        }
        [b"\0asm\x01\0\0\0\0".as_slice(), &[section.len() as u8], &section].concat()
    }

    #[test]
    fn the_producers_of_a_component_tell_its_language() {
        for (fields, expected) in [
            (&[("language", "Rust"), ("processed-by", "rustc")][..], Some(Language::Rust)),
            (&[("language", "C11")], Some(Language::C)),
            (&[("language", "C_plus_plus_14"), ("processed-by", "clang")], Some(Language::C)),
            (&[("language", "Go"), ("processed-by", "Go cmd/compile")], Some(Language::Go)),
            (&[("language", "C11"), ("processed-by", "componentize-py")], Some(Language::Python)),
            (
                &[("language", "JavaScript"), ("processed-by", "ComponentizeJS"), ("language", "Rust")],
                Some(Language::JavaScript),
            ),
            (&[("processed-by", "wit-component"), ("processed-by", "wit-bindgen-rust")], Some(Language::Rust)),
            (&[("processed-by", "wit-component")], None),
        ] {
            assert_eq!(Language::of_component(&module(fields)), expected, "{fields:?}");
        }
        let export = b"\x18componentize_qjs_runtime";
        let export = [b"\x07\x1c\x01".as_slice(), export, &[3, 0]].concat();
        let linked = [module(&[("language", "Rust")]), export].concat();
        assert_eq!(Language::of_component(&linked), Some(Language::JavaScript));
        assert_eq!(Language::of_component(b"no wasm"), None);
        let rust = module(&[("language", "Rust")]);
        for cut in 0..rust.len() {
            // Damaged bytes are not worth an error here.
            let _ = Language::of_component(&rust[..cut]);
        }
        assert_eq!(Language::detect(None, &rust), Language::Rust);
        assert_eq!(Language::detect(None, b""), Language::Other);
    }

    #[test]
    fn hints_for_one_language_do_not_use_the_words_of_another() {
        for language in [Language::Python, Language::JavaScript, Language::Go, Language::C, Language::Other] {
            let words = format!("{:?}", language.words());
            for of_rust in ["cargo", "unwrap", "saturating", "`?`", "wasip2", "invocation"] {
                assert!(!words.contains(of_rust), "{language:?}: {of_rust}");
            }
        }
    }
}
