//! `hermes plugins new`: creates a small working project with tests, the SDK and the contract.

mod scaffold;
mod tools;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::console::{Console, print};
use crate::failure::{Failure, Kind as Failed};

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The plugin's name: lower-case letters, digits, `-` and `_`
    name: String,
    /// The plugin's kind
    #[arg(long, value_enum)]
    kind: Kind,
    /// The language to write it in
    #[arg(long = "lang", value_enum, value_name = "LANGUAGE", default_value_t = Lang::Rust)]
    language: Lang,
    /// The folder to create [default: ./NAME]
    #[arg(long)]
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    ContextEngine,
    MemoryProvider,
    Tools,
    Skills,
    Hooks,
    Embedder,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ContextEngine => "context-engine",
            Self::MemoryProvider => "memory-provider",
            Self::Tools => "tools",
            Self::Skills => "skills",
            Self::Hooks => "hooks",
            Self::Embedder => "embedder",
        }
    }

    /// How to use a plugin of this kind.
    fn to_use(self, name: &str) -> String {
        match self {
            Self::ContextEngine => format!("hermes --engine {name}"),
            Self::MemoryProvider => format!("hermes # with `memory: {{provider: {name}}}` in config.yaml"),
            Self::Embedder => format!("hermes # with `auxiliary: {{embeddings: {{plugin: {name}}}}}` in config.yaml"),
            Self::Tools | Self::Skills | Self::Hooks => format!("hermes plugins enable {name}"),
        }
    }
}

/// A language with templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    Rust,
    Python,
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    C,
    Go,
}

impl Lang {
    /// Its folder of templates.
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::C => "c",
            Self::Go => "go",
        }
    }

    /// The commands that test and build a new project, and its main file.
    fn steps(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Rust => (&["cargo test", "cargo build --release --target wasm32-wasip2"], "src/lib.rs"),
            Self::Python => (&["python3 build.py test", "python3 build.py"], "src/plugin.py"),
            Self::JavaScript => (&["npm install", "npm test", "npm run build"], "src/plugin.js"),
            Self::C => (&["make test", "make"], "src/plugin.c"),
            Self::Go => (&["go test ./...", "go run build.go"], "plugin/plugin.go"),
        }
    }
}

pub(crate) fn run(arguments: &NewArguments, console: Console) -> Result<ExitCode, Failure> {
    let NewArguments { name, kind, language, path } = arguments;
    check_name(name)?;
    let folder = path.clone().unwrap_or_else(|| PathBuf::from(name));
    write(&folder, &scaffold::files(name, *kind, *language)?)?;
    let shown = folder.display();
    let (steps, main) = language.steps();
    let mut lines = vec![format!("cd {shown}")];
    lines.extend(steps.iter().copied().map(str::to_owned));
    lines.extend(["hermes plugins test .", "hermes plugins install ."].map(str::to_owned));
    lines.push(kind.to_use(name));
    print(&format!(
        "created {shown}, a plugin of the kind {}\n\n  {}\n\nthe code is in {shown}/{main}, the instructions in \
         {shown}/README.md\n`hermes plugins dev` in {shown} builds it and lets sessions use it while you write, without installing it\n",
        kind.name(),
        lines.join("\n  ")
    ))?;
    if let Some(missing) = tools::missing(*language) {
        console.warning(&missing);
    }
    Ok(ExitCode::SUCCESS)
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

fn check_name(name: &str) -> Result<(), Failure> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let why = if name.is_empty() || name.len() > 64 {
        format!("it has {} characters; a name must have 1 to 64", name.chars().count())
    } else if let Some(other) = name.chars().find(|character| !u8::try_from(*character).is_ok_and(allowed)) {
        format!("the character `{}` is not allowed", other.escape_default())
    } else if !name.as_bytes()[0].is_ascii_lowercase() {
        "a name must begin with a letter".to_owned()
    } else if RESERVED.contains(&name) || KEYWORDS.contains(&name) {
        "the name is reserved in Rust or in the project".to_owned()
    } else {
        return Ok(());
    };
    let fix = "use lower-case letters, digits, `-` and `_`, beginning with a letter, as in `my-engine`";
    Err(Failure::new(Failed::Usage, format!("`{}` is not a valid plugin name", name.escape_debug()), why, fix))
}

/// Writes the files to a temporary folder beside the project's, and moves them into place in one step.
fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let what = format!("{} cannot be created", folder.display());
    if folder.symlink_metadata().is_ok() {
        let fix = "choose another name, choose another folder with --path, or remove the existing one";
        return Err(Failure::new(Failed::General, what, "it exists already, and nothing is overwritten", fix));
    }
    let create = || -> std::io::Result<()> {
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
    };
    create()
        .map_err(|error| Failure::new(Failed::General, what, error.to_string(), "choose another folder with --path"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::scaffold::below;
    use super::*;

    #[test]
    fn an_existing_folder_is_not_changed() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let files = scaffold::files("taken", Kind::Hooks, Lang::Python).unwrap();
        assert!(write(&taken, &files).unwrap_err().why.contains("nothing is overwritten"));
        assert_eq!(fs::read_dir(&taken).unwrap().count(), 0);
        write(&place.path().join("deep/new"), &files).unwrap();
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
            let failure = check_name(name).unwrap_err();
            assert!(failure.why.contains(part), "{name}: {}", failure.why);
        }
        for name in ["my-engine", "a", "tea_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }
}
