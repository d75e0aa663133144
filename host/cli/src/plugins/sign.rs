//! `hermes plugins sign`: signs a built plugin with the publisher's minisign key.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hermes_authoring::{Signed, SigningKey, read_key as key_of, sign};
use serde_json::json;

use super::variables::EchoOff;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::{output, text};

/// The project to sign, and the key.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SignArguments {
    /// The folder of the plugin, which has been built
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The secret key file of `minisign -G`
    #[arg(long, value_name = "FILE", required_unless_present = "statement_only")]
    key: Option<PathBuf>,
    /// Write plugin.statement without a signature, to sign it elsewhere with `minisign -S -m plugin.statement`
    #[arg(long, conflicts_with = "key")]
    statement_only: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &SignArguments, console: Console) -> Result<ExitCode, Failure> {
    let key = arguments.key.as_deref().map(read_key).transpose()?;
    let signed = sign(&arguments.folder, key.as_ref())?;
    for (name, bytes) in &signed.files {
        let file = arguments.folder.join(name);
        output::renew(&file, bytes, console).map_err(|error| {
            let what = format!("{} cannot be written", file.display());
            Failure::new(Kind::General, what, error.to_string(), "check the folder's permissions and sign again")
        })?;
    }
    if arguments.json {
        let written: Vec<&str> = signed.files.iter().map(|(name, _)| *name).collect();
        let Signed { name, version, key, covered, .. } = &signed;
        let value = json!({ "name": name, "version": version, "key": key, "covers": covered, "written": written });
        print(&text::json(&value))?;
    } else {
        print(&shown(&signed))?;
        if signed.key.is_none() {
            console.note("the plugin is not signed yet: sign plugin.statement with `minisign -S -m plugin.statement`");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(signed: &Signed) -> String {
    let Signed { name, version, key, covered, files } = signed;
    let by = key.as_ref().map_or_else(String::new, |key| format!(" with key {key}"));
    let did = if key.is_some() { "signed" } else { "described" };
    let mut shown = format!("{did} {} {version}{by}\n", text::exact(name));
    let names: Vec<String> = covered.iter().map(|name| text::exact(name)).collect();
    shown.push_str(&format!("  covers {}: {}\n", text::counted(names.len() as u64, "file"), names.join(", ")));
    let written: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    shown.push_str(&format!("  wrote {}\n", written.join(", ")));
    shown
}

fn read_key(file: &Path) -> Result<SigningKey, Failure> {
    /// Most bytes of a key file.
    const MOST: u64 = 64 << 10;
    let failed = |why: String| {
        let what = format!("the key {} cannot be read", file.display());
        Failure::new(Kind::General, what, why, "give the secret key file that `minisign -G` wrote")
    };
    let mut text = String::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(MOST).read_to_string(&mut text));
    opened.map_err(|error| failed(error.to_string()))?;
    key_of(&text, || password(file))
}

/// The password of a key.
fn password(file: &Path) -> Result<String, Failure> {
    hidden(&Secret {
        whose: &file.display().to_string(),
        nothing: "nothing was signed",
        empty: "the key has a password, and standard input is empty",
    })
}

/// A password to ask for.
pub(super) struct Secret<'a> {
    /// What it belongs to.
    pub(super) whose: &'a str,
    /// What did not happen without it.
    pub(super) nothing: &'a str,
    /// Why it is needed, if standard input has none.
    pub(super) empty: &'a str,
}

/// Reads a password from the terminal without echo, else the first line of standard input.
pub(super) fn hidden(secret: &Secret<'_>) -> Result<String, Failure> {
    let interactive = io::stdin().is_terminal();
    let mut line = String::new();
    if interactive {
        let mut err = io::stderr();
        // Before the question, as in `variables::read_value`.
        let echo_off = EchoOff::new()?;
        write!(err, "password of {} (hidden): ", text::exact(secret.whose)).and_then(|()| err.flush())?;
        io::stdin().lock().read_line(&mut line)?;
        writeln!(err)?;
        drop(echo_off);
        if line.contains('\u{3}') {
            return Err(Failure::new(Kind::Interrupted, secret.nothing, "you pressed ctrl-c", "try again"));
        }
    } else {
        io::stdin().lock().take(4 << 10).read_line(&mut line)?;
        if line.is_empty() {
            let fix = "run the command in a terminal, or pass the password on standard input";
            return Err(Failure::new(Kind::Usage, secret.nothing, secret.empty, fix));
        }
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
