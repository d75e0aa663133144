//! What the terminal shows of a plugin before it may do anything, and the questions that follow.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use hermes_app::operations::{self, Granted, Offer, Purpose};
use hermes_install::InstallError;
use hermes_plugin_host::{LimitSet, Manifest, Permissions, Pin, RequiredVariable};
use rustix::termios::{QueueSelector, tcflush};

use super::variables;
use crate::console::{Console, Tone};
use crate::failure::{Failure, Kind};
use crate::text;

/// Consent given on the command line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Args)]
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
fn show(manifest: &Manifest, pin: &Pin, console: Console) {
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
fn show_rights(asked: &Permissions, limits: &LimitSet, is_update: bool, console: Console) {
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

/// Asks at the terminal, and answers from options without a question.
pub(super) struct Terminal {
    pub(super) console: Console,
    pub(super) options: Consent,
    /// Whether a changed publisher's key is accepted without a question.
    pub(super) accept_key: bool,
    /// Whether data is removed with its plugin; none to ask.
    pub(super) purge: Option<bool>,
}

impl Terminal {
    pub(super) fn new(console: Console, options: Consent) -> Self {
        Self { console, options, accept_key: false, purge: None }
    }
}

impl operations::Consent for Terminal {
    type Error = Failure;

    fn present(&self, manifest: &Manifest, pin: &Pin, leaves_native: bool) {
        show(manifest, pin, self.console);
        if leaves_native {
            self.console.warning(
                "the version before runs as a native library, this one as a component; with --native it does not change",
            );
        }
    }

    fn accept_key(&self, changed: InstallError) -> Result<(), Failure> {
        if self.accept_key {
            return Ok(());
        }
        let fix = "if you know why its publisher's key is another one, add --accept-key";
        let why = changed.to_string();
        match ask(&format!("{why}. Trust the new one from now on?"), "nothing was changed", fix) {
            Ok(true) => Ok(()),
            Ok(false) => Err(changed.into()),
            Err(_) => Err(Failure::new(Kind::Plugin, "nothing was changed", why, fix)),
        }
    }

    fn rights(&self, offer: &Offer<'_>) -> Result<Option<Granted>, Failure> {
        let Consent { yes, grant } = self.options;
        let is_update = offer.purpose == Purpose::Update;
        show_rights(offer.rights, offer.limits, is_update, self.console);
        let on_yes = || offer.on_yes.clone();
        let (question, what, fix) = match offer.purpose {
            Purpose::Grant => ("let it do this?", "nothing was granted", "add --yes to grant what is shown"),
            Purpose::Pinned => {
                ("install it as it is pinned?", "nothing was changed", "add --yes to agree to what plugins.lock grants")
            }
            Purpose::Install | Purpose::Update => (
                if is_update { "update it and grant this too?" } else { "install it and let it do this?" },
                "nothing was changed",
                "add --yes to agree to what is shown, or --grant none to install it without any right",
            ),
        };
        match grant {
            Some(Grant::All) => return Ok(Some((offer.manifest.permissions.clone(), offer.manifest.limits.clone()))),
            Some(Grant::None) => return Ok(Some(Granted::default())),
            None if yes || offer.is_covered => return Ok(Some(on_yes())),
            None => {}
        }
        Ok(ask(question, what, fix)?.then(on_yes))
    }

    fn purge(&self, data: &Path) -> Result<bool, Failure> {
        match self.purge {
            Some(purge) => Ok(purge),
            None if self.options.yes || !io::stdin().is_terminal() => Ok(false),
            None => {
                let question = format!("it has kept data in {}; remove that for good too?", data.display());
                ask(&question, "nothing was changed", "add --keep-data or --purge")
            }
        }
    }

    fn variables(&self, unset: &[&RequiredVariable]) -> Result<Vec<(String, String)>, Failure> {
        variables::ask_for(unset, self.console)
    }
}

/// A question that only a yes answers with yes.
fn ask(question: &str, what: &str, fix: &str) -> Result<bool, Failure> {
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
