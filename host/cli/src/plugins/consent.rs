//! What is shown of a plugin before it may do anything, and the question that follows.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};
use hermes_install::Prepared;
use hermes_plugin_host::{LimitSet, Manifest, Permissions, Pin};
use rustix::termios::{QueueSelector, tcflush};

use crate::console::{Console, Tone};
use crate::failure::{Failure, Kind};
use crate::text;

/// Consent given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation, and agree to everything that is shown
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Do not ask, and grant all requested permissions or none
    #[arg(long, value_name = "WHAT")]
    pub(super) grant: Option<Grant>,
}

/// Permissions granted on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Grant {
    /// Grant no permission; the plugin may run
    None,
    /// Grant all requested permissions
    All,
}

/// Says on standard error what it is, where it comes from and whose it is.
pub(super) fn show(manifest: &Manifest, pin: &Pin, console: Console) {
    let line = |label: &str, text: &str| {
        if !text.is_empty() {
            console.line(&format!("{} {}", console.faint(&format!("{label:>11}")), text::line(text)));
        }
    };
    console.line(&format!("{:>11} {}", text::line(&manifest.name), pin.version));
    line("what", &manifest.description);
    line("from", &pin.source);
    line("resolved", pin.resolved.as_deref().unwrap_or_default());
    line("author", &manifest.author);
    line("licence", &manifest.license);
    line("repository", &manifest.repository);
    line("digest", &pin.digest.to_string());
    line(
        "signed",
        &pin.signer.as_ref().map_or_else(
            || "not signed: nothing tells whose work this is".to_owned(),
            |key| format!("with the key {key}"),
        ),
    );
    if pin.native {
        line("native", "it runs outside of the sandbox: whatever is listed below, it can do all that you can");
    }
    for unknown in &manifest.unknown {
        console
            .warning(&format!("plugin.yaml has a field that this version does not know and leaves alone: {unknown}"));
    }
}

/// Says what it wants to do, beyond what was granted before where there was such a thing.
pub(super) fn show_rights(asked: &Permissions, limits: &LimitSet, is_update: bool, console: Console) {
    let (lines, more) = (asked.lines(), if is_update { "it now also wants to" } else { "it wants to" });
    if lines.is_empty() && limits.is_empty() {
        let told = if is_update { "asks for nothing that is not granted" } else { "asks for no rights" };
        console.line(&format!("{} {told}", console.faint(&format!("{:>11}", "rights"))));
        return;
    }
    console.line(&format!("{} {more}", console.faint(&format!("{:>11}", "rights"))));
    let limits = limits.iter().map(|(limit, value)| {
        let (name, meaning) = (limit.name(), limit.definition().meaning);
        format!("have the limit `{name}` at {} ({meaning})", limit.show(value))
    });
    for right in lines.into_iter().chain(limits) {
        console.line(&format!("{:>11} {}", "-", console.warned(&text::line(&right))));
    }
}

/// What was agreed to: rights and limits; none where the answer is no.
pub(super) fn agreed(
    consent: Consent,
    prepared: &Prepared,
    question: &str,
) -> Result<Option<(Permissions, LimitSet)>, Failure> {
    match consent.grant {
        Some(Grant::All) => return Ok(Some((prepared.manifest.permissions.clone(), prepared.manifest.limits.clone()))),
        Some(Grant::None) => return Ok(Some((Permissions::default(), LimitSet::default()))),
        None if consent.yes => return Ok(Some(prepared.granted(true))),
        None => {}
    }
    let fix = "add --yes to agree to what is shown, or --grant none to install it without any right";
    Ok(ask(question, "nothing was changed", fix)?.then(|| prepared.granted(true)))
}

/// A question that only a yes answers with yes.
pub(super) fn ask(question: &str, what: &str, fix: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let why = "standard input is no terminal, so nobody can be asked";
        return Err(Failure::new(Kind::Usage, what, why, fix));
    }
    // What was typed before the question was seen is no answer to it.
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    let mut err = io::stderr();
    // Where nobody sees the question, nobody answers it.
    write!(err, "{} [y/N] ", text::line(question)).and_then(|()| err.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

impl Console {
    /// A line on standard error without a label.
    fn line(self, text: &str) {
        // Nobody is left to be told when standard error is closed.
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn faint(self, text: &str) -> String {
        self.tinted(Tone::Faint, text)
    }

    fn warned(self, text: &str) -> String {
        self.tinted(Tone::Warning, text)
    }
}
