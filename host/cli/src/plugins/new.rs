//! `hermes plugins new`: creates a small working project with tests, the SDK and the contract.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hermes_authoring::{PluginKind, ProjectLanguage};

use super::words::{aliased, named};
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The plugin's name: lower-case letters, digits, `-` and `_`
    name: String,
    /// The plugin's kind
    #[arg(long, value_parser = named(PluginKind::ALL, PluginKind::name))]
    kind: PluginKind,
    /// The language to write it in
    #[arg(
        long = "lang",
        value_name = "LANGUAGE",
        default_value = "rust",
        value_parser = aliased(ProjectLanguage::ALL, ProjectLanguage::name, alias)
    )]
    language: ProjectLanguage,
    /// The folder to create [default: ./NAME]
    #[arg(long)]
    path: Option<PathBuf>,
}

fn alias(language: ProjectLanguage) -> Option<&'static str> {
    (language == ProjectLanguage::JavaScript).then_some("js")
}

pub(crate) fn run(arguments: &NewArguments, console: Console) -> Result<ExitCode, Failure> {
    let NewArguments { name, kind, language, path } = arguments;
    if let Some(why) = hermes_authoring::flaw_of_name(name) {
        let fix = "use lower-case letters, digits, `-` and `_`, beginning with a letter, as in `my-engine`";
        let what = format!("`{}` is not a valid plugin name", name.escape_debug());
        return Err(Failure::new(Kind::Usage, what, why, fix));
    }
    let folder = path.clone().unwrap_or_else(|| PathBuf::from(name));
    let shown = folder.display();
    let files = hermes_authoring::files(name, *kind, *language).map_err(|error| {
        let fix = "report it; `--lang rust` needs no bindings";
        Failure::new(Kind::General, "the bindings cannot be generated", format!("{error:#}"), fix)
    })?;
    hermes_authoring::create(&folder, &files).map_err(|error| {
        let fix = match error.kind() {
            ErrorKind::AlreadyExists => {
                "choose another name, choose another folder with --path, or remove the existing one"
            }
            _ => "choose another folder with --path",
        };
        Failure::new(Kind::General, format!("{shown} cannot be created"), error.to_string(), fix)
    })?;
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
    if let Some(missing) = hermes_authoring::missing(*language) {
        console.warning(&missing);
    }
    Ok(ExitCode::SUCCESS)
}
