//! `hermes plugins new`: creates a small working project with tests, the SDK and the contract.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};

use hermes_app::SCAFFOLD;

use crate::console::{Console, print};
use crate::failure::{Failure, Kind as Failed};

const TARGET: &str = "wasm32-wasip2";
/// The ending of template files, so that cargo and git ignore them in this repository.
const TEMPLATE: &str = ".template";

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The plugin's name: lower-case letters, digits, `-` and `_`
    name: String,
    /// The plugin's kind
    #[arg(long, value_enum)]
    kind: Kind,
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
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ContextEngine => "context-engine",
            Self::MemoryProvider => "memory-provider",
            Self::Tools => "tools",
            Self::Skills => "skills",
            Self::Hooks => "hooks",
        }
    }

    /// How to use a plugin of this kind.
    fn to_use(self, name: &str) -> String {
        match self {
            Self::ContextEngine => format!("hermes --engine {name}"),
            Self::MemoryProvider => format!("hermes # with `memory: {{provider: {name}}}` in config.yaml"),
            Self::Tools | Self::Skills | Self::Hooks => format!("hermes plugins enable {name}"),
        }
    }
}

pub(crate) fn run(arguments: &NewArguments, console: Console) -> Result<ExitCode, Failure> {
    let NewArguments { name, kind, path } = arguments;
    check_name(name)?;
    let folder = path.clone().unwrap_or_else(|| PathBuf::from(name));
    write(&folder, &files(name, *kind))?;
    let shown = folder.display();
    print(&format!(
        "created {shown}, a plugin of the kind {}\n\n  cd {shown}\n  cargo test\n  cargo build --release --target {TARGET}\n  \
         hermes plugins test .\n  hermes plugins install .\n  {}\n\nthe code is in {shown}/src/lib.rs, the instructions in \
         {shown}/README.md\n",
        kind.name(),
        kind.to_use(name)
    ))?;
    if let Some(missing) = missing_target() {
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

/// The files of the project, by path.
fn files(name: &str, kind: Kind) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (folder, path, text) in SCAFFOLD {
        match *folder {
            "common" => files.push((plain(path), filled(text, name, kind))),
            folder if folder == kind.name() => files.push((plain(path), filled(text, name, kind))),
            "vendor" => {
                let package = path.trim_end_matches(".toml");
                files.push((format!("vendor/{package}/Cargo.toml"), (*text).to_owned()));
            }
            "rust" => files.push((format!("vendor/hermes-plugin/src/{path}"), (*text).to_owned())),
            "abi" => files.push((format!("vendor/hermes-plugin-abi/src/{path}"), (*text).to_owned())),
            "rust-derive" => files.push((format!("vendor/hermes-plugin-derive/src/{path}"), (*text).to_owned())),
            "wit" => files.push((format!("wit/{path}"), (*text).to_owned())),
            _ => {}
        }
    }
    files
}

/// The path of a template's file in the project.
fn plain(path: &str) -> String {
    let path = path.strip_suffix(TEMPLATE).unwrap_or(path);
    if path == "gitignore" { ".gitignore".to_owned() } else { path.to_owned() }
}

fn filled(text: &str, name: &str, kind: Kind) -> String {
    text.replace("{{name}}", name).replace("{{kind}}", kind.name()).replace("{{use}}", &kind.to_use(name))
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

/// A warning if the Rust toolchain cannot build plugins, with the command that installs the missing part.
fn missing_target() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsStr::new("rustc").to_owned());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]).stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Err(_) => Some(
            "no Rust compiler was found; install Rust from https://rustup.rs, then run `rustup target add \
             wasm32-wasip2`"
                .to_owned(),
        ),
        Ok(output) => {
            let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            let exists = output.status.success() && fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
            (!exists).then(|| {
                format!("the Rust target {TARGET} is not installed; install it with `rustup target add {TARGET}`")
            })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use hermes_plugin_host::Manifest;

    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Every file below a folder by its path in it.
    fn below(folder: &Path) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    found.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }

    #[test]
    fn a_project_contains_the_sdk_and_the_contract_of_this_repository() {
        let files: BTreeMap<String, String> = files("mine", Kind::Tools).into_iter().collect();
        for (of, at) in [
            ("sdk/rust/src", "vendor/hermes-plugin/src/"),
            ("sdk/rust-derive/src", "vendor/hermes-plugin-derive/src/"),
            ("sdk/abi/src", "vendor/hermes-plugin-abi/src/"),
            ("wit", "wit/"),
        ] {
            let written: BTreeMap<String, String> = files
                .iter()
                .filter_map(|(path, text)| Some((path.strip_prefix(at)?.to_owned(), text.clone())))
                .collect();
            assert!(!written.is_empty() && written == below(&repository().join(of)), "{of}");
        }
    }

    /// The requirements in a section of a Cargo.toml, by name, without spaces.
    fn requirements(manifest: &str, section: &str) -> BTreeMap<String, String> {
        let lines = manifest.lines().skip_while(|line| line.trim() != section).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
        lines.map(|(name, value)| (name.trim().to_owned(), value.replace(' ', ""))).collect()
    }

    #[test]
    fn the_vendored_sdk_has_the_dependencies_of_the_sdk() {
        let files: BTreeMap<String, String> = files("mine", Kind::Tools).into_iter().collect();
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
        let abi = requirements(&files["vendor/hermes-plugin-abi/Cargo.toml"], "[dependencies]");
        let host = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        let host = requirements(&host, "[workspace.dependencies]");
        assert_eq!(abi.keys().collect::<Vec<_>>(), ["abi_stable"]);
        assert_eq!(abi.get("abi_stable"), host.get("abi_stable"));
    }

    #[test]
    fn the_templates_of_every_kind_are_filled_in_completely() {
        for kind in Kind::value_variants() {
            let files: BTreeMap<String, String> = files("my-plugin", *kind).into_iter().collect();
            let manifest = Manifest::parse(&files["plugin.yaml"]).unwrap();
            assert_eq!(manifest.name, "my-plugin");
            assert!(files["Cargo.toml"].contains("name = \"my-plugin\"") && files.contains_key(".gitignore"));
            assert!(files["README.md"].contains(&kind.to_use("my-plugin")));
            for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("vendor/")) {
                for left in ["{{name}}", "{{kind}}", "{{use}}"] {
                    assert!(!text.contains(left), "{path} has {left}");
                }
            }
        }
    }

    #[test]
    fn an_existing_folder_is_not_changed() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let files = files("taken", Kind::Hooks);
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
