//! The consent screen: what a plugin is and which permissions it requests, and the questions about it.

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
    /// Grant no permission; the plugin can run all the same
    None,
    /// Grant all requested permissions
    All,
}

/// Shows on standard error what the plugin is, where it comes from and who signed it.
fn show(manifest: &Manifest, pin: &Pin, console: Console) {
    let line = |label: &str, text: &str| {
        if !text.is_empty() {
            console.line(&format!("{} {}", console.faint(&format!("{label:>11}")), text::line(text)));
        }
    };
    console.line(&format!("{:>11} {}", text::line(&manifest.name), pin.version));
    line("description", &manifest.description);
    line("source", &pin.source);
    line("resolved", pin.resolved.as_deref().unwrap_or_default());
    line("author", &manifest.author);
    line("license", &manifest.license);
    line("repository", &manifest.repository);
    line("digest", &pin.digest.to_string());
    line("signed by", &signer(pin.signer.as_deref()));
    if pin.native {
        line("native", super::NATIVE);
    }
    for draft in &pin.drafts {
        line("draft", &format!("{draft}: a later version of Hermes may change or remove it"));
    }
    for unknown in &manifest.unknown {
        console.warning(&format!("plugin.yaml has an unknown field, which is ignored: {unknown}"));
    }
}

/// The key that signed a plugin, in words.
pub(super) fn signer(key: Option<&str>) -> String {
    key.map_or_else(
        || "nobody: the plugin is not signed, so its publisher cannot be verified".to_owned(),
        |key| format!("key {key}"),
    )
}

/// Shows what the plugin adds to sessions; for an update, only what is new.
fn show_exports(offer: &Offer<'_>, console: Console) {
    if !offer.exports.is_empty() {
        let title = if offer.purpose == Purpose::Update { "new in this version:" } else { "what the plugin adds:" };
        console.line(&format!("{} {title}", console.faint(&format!("{:>11}", "exports"))));
        for export in offer.exports {
            console.line(&format!("{:>11} {}", "-", text::line(&meaning(export))));
        }
    }
    if offer.exports.iter().any(|export| export == "hooks") && !offer.manifest.permissions.hooks {
        console.warning("the plugin does not request the permission `hooks`, so its hooks will not run");
    }
}

/// An export for people.
fn meaning(export: &str) -> String {
    let what = match export {
        "tools" => "functions that the model can call",
        "skills" => "instructions that the model can read",
        "hooks" => "it watches the agent and can stop tool calls, with the permission `hooks`",
        "context-engine" => "if you select it, it reads the conversation and decides what the model sees of it",
        "context-assist" => "as the selected engine, it adds passages of earlier messages to requests",
        "memory-provider" => "if you select it, it stores every turn and adds memories to requests",
        "memory-events" => "as the selected memory provider, it takes part in compactions",
        "memory-prefetch" => "as the selected memory provider, it recalls ahead of your next message",
        "memory-mirror" => "as the selected memory provider, it receives what other memories write",
        "memory-rewind" => "as the selected memory provider, it learns which messages you take back",
        "memory-upkeep" => "as the selected memory provider, it works on its store while you are away",
        "embedder" => "if you select it, it computes vectors of the texts that other plugins send",
        other => return other.to_owned(),
    };
    format!("{export}: {what}")
}

/// Shows the permissions and limits to grant; for an update, only the new ones.
fn show_permissions(requested: &Permissions, limits: &LimitSet, purpose: Purpose, console: Console) {
    let limits = limits.iter().map(|(limit, value)| {
        let (name, meaning) = (limit.name(), limit.definition().meaning);
        format!("raise the limit `{name}` to {} ({meaning})", limit.show(value))
    });
    let lines: Vec<String> = requested.lines().into_iter().chain(limits).collect();
    let title = match (purpose, lines.is_empty()) {
        (Purpose::Update, true) => "no new ones",
        (Purpose::Update, false) => "new in this version:",
        (Purpose::Install | Purpose::Pinned | Purpose::Grant, true) => "none",
        (Purpose::Install | Purpose::Pinned | Purpose::Grant, false) => "requested by the plugin:",
    };
    console.line(&format!("{} {title}", console.faint(&format!("{:>11}", "permissions"))));
    for line in lines {
        console.line(&format!("{:>11} {}", "-", console.warned(&text::line(&line))));
    }
}

/// Asks on the terminal, or answers from options without a question.
pub(super) struct Terminal {
    pub(super) console: Console,
    pub(super) options: Consent,
    /// Whether a changed publisher's key is accepted without a question.
    pub(super) accept_key: bool,
    /// Whether draft interfaces of the contract are allowed.
    pub(super) allow_draft: bool,
    /// Whether to delete the data of a removed plugin. None asks the user.
    pub(super) purge: Option<bool>,
}

impl Terminal {
    pub(super) fn new(console: Console, options: Consent) -> Self {
        Self { console, options, accept_key: false, allow_draft: false, purge: None }
    }
}

impl operations::Consent for Terminal {
    type Error = Failure;

    fn present(&self, manifest: &Manifest, pin: &Pin, leaves_native: bool) {
        show(manifest, pin, self.console);
        if leaves_native {
            self.console.warning(
                "the installed version runs as a native library, and this version would run as a component in the \
                 sandbox; add --native to run the native library again",
            );
        }
    }

    fn accept_key(&self, changed: InstallError) -> Result<(), Failure> {
        if self.accept_key {
            return Ok(());
        }
        let fix = "add --accept-key if you know why the key changed";
        let why = changed.to_string();
        match ask(&format!("{why}. Accept this change?"), "nothing was changed", fix) {
            Ok(true) => Ok(()),
            Ok(false) => Err(changed.into()),
            Err(_) => Err(Failure::new(Kind::Plugin, "nothing was changed", why, fix)),
        }
    }

    fn allows_drafts(&self) -> bool {
        self.allow_draft
    }

    fn permissions(&self, offer: &Offer<'_>) -> Result<Option<Granted>, Failure> {
        let Consent { yes, grant } = self.options;
        show_exports(offer, self.console);
        show_permissions(offer.permissions, offer.limits, offer.purpose, self.console);
        let on_yes = || offer.on_yes.clone();
        let grants_nothing = offer.permissions.is_empty() && offer.limits.is_empty();
        let question = match (offer.purpose, grants_nothing) {
            (Purpose::Grant, false) => "allow the plugin to run with these permissions?",
            (Purpose::Grant, true) => "allow the plugin to run without permissions?",
            (Purpose::Pinned, _) => "install the plugin as pinned in plugins.lock?",
            (Purpose::Install, false) => "install the plugin and grant these permissions?",
            (Purpose::Install, true) => "install the plugin?",
            (Purpose::Update, false) => "update the plugin and grant these permissions?",
            (Purpose::Update, true) if !offer.exports.is_empty() => "update the plugin with these exports?",
            (Purpose::Update, true) => "update the plugin?",
        };
        let (what, fix) = match offer.purpose {
            Purpose::Grant => ("nothing was granted", "add --yes to agree to what is shown"),
            Purpose::Pinned => ("nothing was changed", "add --yes to grant the permissions in plugins.lock"),
            Purpose::Install | Purpose::Update => {
                ("nothing was changed", "add --yes to agree to what is shown, or --grant none to grant no permissions")
            }
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
                let question = format!("the plugin has stored data in {}; delete the data too?", data.display());
                ask(&question, "nothing was changed", "add --keep-data or --purge")
            }
        }
    }

    fn variables(&self, unset: &[&RequiredVariable]) -> Result<Vec<(String, String)>, Failure> {
        variables::ask_for(unset, self.console)
    }
}

/// Asks a question. Every answer but `y` or `yes` is a no. `what` and `fix` describe the failure without a terminal.
fn ask(question: &str, what: &str, fix: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let why = "cannot ask for consent: standard input is not a terminal";
        return Err(Failure::new(Kind::Usage, what, why, fix));
    }
    // Keys typed before the question was shown must not answer it.
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    let mut err = io::stderr();
    // If the question cannot be shown, the operation fails instead of waiting for an answer.
    write!(err, "{} [y/N] ", text::line(question)).and_then(|()| err.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

impl Console {
    /// A line on standard error without a label.
    fn line(self, text: &str) {
        // A closed standard error cannot be reported anywhere.
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn faint(self, text: &str) -> String {
        self.tinted(Tone::Faint, text)
    }

    fn warned(self, text: &str) -> String {
        self.tinted(Tone::Warning, text)
    }
}
