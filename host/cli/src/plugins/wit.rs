//! `hermes plugins wit`: writes the contract, for authors who work without the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hermes_app::files;
use hermes_authoring::contract;

use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::{output, text};

/// Where to write the contract.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct WitArguments {
    /// The folder for the files; it is created if necessary
    folder: PathBuf,
    /// Overwrite files that differ
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &WitArguments, console: Console) -> Result<ExitCode, Failure> {
    let WitArguments { folder, force } = arguments;
    let what = || format!("the contract cannot be written to {}", folder.display());
    let differing: Vec<&str> =
        contract::files().filter(|(path, text)| differs(&folder.join(path), text)).map(|(path, _)| path).collect();
    if !differing.is_empty() && !force {
        let why = format!("these files differ from the contract: {}", differing.join(", "));
        let fix = "choose another folder, or overwrite them with --force";
        return Err(Failure::new(Kind::General, what(), why, fix));
    }
    let mut written = 0u64;
    for (path, content) in contract::files() {
        let file = folder.join(path);
        if !differs(&file, content) && file.exists() {
            continue;
        }
        let parent = file.parent().unwrap_or(folder);
        let made = fs::create_dir_all(parent).and_then(|()| output::renew(&file, content.as_bytes(), console));
        made.map_err(|error| {
            let why = format!("{}: {error}", file.display());
            Failure::new(Kind::General, what(), why, "choose another folder, or check its permissions")
        })?;
        written += 1;
    }
    let all = contract::files().count() as u64;
    print(&match written {
        0 => format!("{}: all {} of the contract are up to date\n", folder.display(), text::counted(all, "file")),
        _ => format!("wrote {} of the contract to {}\n", text::counted(written, "file"), folder.display()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether something other than this text is at the path.
fn differs(path: &Path, text: &str) -> bool {
    match files::read_regular(path, 1 << 20) {
        Ok(found) => found != text.as_bytes(),
        // A folder is in the way, or a pipe.
        Err(_) => path.symlink_metadata().is_ok(),
    }
}
