//! `hermes plugins pack`: packs a built project into an archive that `hermes plugins install` accepts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hermes_app::files::Readers;
use hermes_authoring::{Package, pack};
use serde_json::json;

use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::{output, text};

/// The project to pack, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct PackArguments {
    /// The folder of the project, which has been built
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The archive to write; an existing one is replaced [default: ./NAME-VERSION.tar.gz]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &PackArguments, console: Console) -> Result<ExitCode, Failure> {
    let package = pack(&arguments.folder)?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(&package.file_name));
    // An archive is made to be published.
    output::write(&out, &package.archive, Readers::Everybody, console).map_err(|error| {
        let what = format!("{} cannot be written", out.display());
        Failure::new(Kind::General, what, error.to_string(), "choose another file with --out")
    })?;
    if arguments.json {
        let files: Vec<_> = package.files.iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        let value = json!({
            "file": out, "bytes": package.archive.len(), "sha256": package.sha256, "signer": package.signer,
            "files": files,
        });
        print(&text::json(&value))?;
    } else {
        print(&shown(&out, &package))?;
        if !has_licence(&package) {
            console.note("there is no LICENSE file beside plugin.yaml; without one, others may not use the plugin");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(out: &Path, package: &Package) -> String {
    let Package { archive, sha256, files, .. } = package;
    let mut shown =
        format!("packed {}: {} bytes, sha256 {sha256}\n", out.display(), text::grouped(archive.len() as u64));
    for (name, bytes) in files {
        shown.push_str(&format!("  {} ({} bytes)\n", text::line(name), text::grouped(*bytes)));
    }
    match &package.signer {
        Some(key) => shown.push_str(&format!("  signed with key {key}\n")),
        None => shown.push_str("  not signed; `hermes plugins sign` signs it before you pack\n"),
    }
    shown
}

fn has_licence(package: &Package) -> bool {
    let is_licence =
        |name: &str| ["license", "licence", "copying"].iter().any(|start| name.to_lowercase().starts_with(start));
    package.files.iter().any(|(name, _)| is_licence(name))
}
