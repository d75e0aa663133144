//! `hermes plugins bindings` and `hermes plugins component`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use hermes_authoring::contract::{BindingsLanguage, Contract};

use super::words::named;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};

/// Where the contract lies, and what a project uses of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ContractArguments {
    /// The folder of the contract's version
    #[arg(long, value_name = "FOLDER", default_value = "wit/1.1.0")]
    wit: PathBuf,
    /// A world of the contract, such as `tools-plugin`; repeat it for a plugin of several kinds
    #[arg(long = "world", value_name = "WORLD", required = true)]
    worlds: Vec<String>,
}

impl ContractArguments {
    fn read(&self) -> Result<Contract> {
        Contract::read(&self.wit, &self.worlds)
    }
}

/// What to generate.
#[derive(Debug, Clone, Args)]
pub(crate) struct BindingsArguments {
    /// The language
    #[arg(value_parser = named(BindingsLanguage::ALL, BindingsLanguage::name))]
    language: BindingsLanguage,
    /// The folder for the files; it is created if necessary, and existing files are replaced
    folder: PathBuf,
    #[command(flatten)]
    contract: ContractArguments,
}

/// What to turn into a component.
#[derive(Debug, Clone, Args)]
pub(crate) struct ComponentArguments {
    /// The core module that a compiler wrote
    module: PathBuf,
    /// The component to write; an existing file is replaced
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    contract: ContractArguments,
}

pub(super) fn generate(arguments: &BindingsArguments, console: Console) -> Result<ExitCode, Failure> {
    let BindingsArguments { language, folder, contract } = arguments;
    let write = || -> Result<usize> {
        let files = contract.read()?.bindings(*language)?;
        for (path, text) in &files {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).with_context(|| format!("{} cannot be created", parent.display()))?;
            crate::output::renew(&path, text.as_bytes(), console)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(files.len())
    };
    let written = write().map_err(|error| failed("the bindings cannot be generated", &error, CONTRACT_FIX))?;
    print(&format!("wrote {} to {}\n", crate::text::counted(written as u64, "file"), folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn component(arguments: &ComponentArguments, console: Console) -> Result<ExitCode, Failure> {
    let ComponentArguments { module, output, contract } = arguments;
    let contract = contract.read().map_err(|error| failed("the contract cannot be read", &error, CONTRACT_FIX))?;
    let write = || -> Result<usize> {
        let bytes = fs::read(module).with_context(|| format!("{} cannot be read", module.display()))?;
        let component = contract.component(bytes)?;
        crate::output::renew(output, &component, console)
            .with_context(|| format!("{} cannot be written", output.display()))?;
        Ok(component.len())
    };
    let fix = "build the module again with the bindings of this contract, and export every function of the world";
    let size = write().map_err(|error| failed("the component cannot be made", &error, fix))?;
    print(&format!("wrote {} ({} KiB)\n", output.display(), crate::text::grouped((size as u64) >> 10)))?;
    Ok(ExitCode::SUCCESS)
}

const CONTRACT_FIX: &str = "give the folder of the contract's version with --wit, and worlds of its worlds.wit with --world; `hermes plugins wit DIR` writes the contract";

fn failed(what: &str, error: &anyhow::Error, fix: &str) -> Failure {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    Failure::new(Kind::Plugin, what, causes.join(": "), fix)
}
