//! The consent screen: what a plugin is and which permissions it requests, and the questions about it.

pub(crate) mod screen;

use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use hermes_app::operations::{self, Adoption, Granted, InstallError, Leftovers, Offer, OfferedTools, Purpose};
use hermes_app::plugins::{Effect, Manifest, Pin, RequiredVariable, Tool};
use hermes_diagnostic::Diagnose as _;
use screen::{ConsentScreen, Titles};

use super::{handover, variables};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::question;
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
    let mut sheet = ConsentScreen::on_stderr(console);
    sheet.row("plugin", &format!("{} {}", manifest.name, text::exact_within(&pin.version.to_string(), 60)));
    sheet.row("description", &manifest.description);
    sheet.whole("source", &pin.source);
    sheet.whole("resolved", pin.resolved.as_deref().unwrap_or_default());
    sheet.row("author", &manifest.author);
    sheet.row("license", &manifest.license);
    sheet.row("repository", &manifest.repository);
    sheet.row("digest", &pin.digest.to_string());
    sheet.row("signed by", &signer(pin));
    if pin.edited {
        sheet.row("changed", &edited(&manifest.name));
    }
    if pin.native {
        sheet.row("native", super::NATIVE);
    }
    let draft = |draft: &String| format!("{draft}: a later version of Hermes may change or remove it");
    sheet.list("draft", &pin.drafts.iter().map(draft).collect::<Vec<_>>());
    let unknown = |field: &String| format!("{field}: an unknown field of plugin.yaml");
    sheet.list("ignored", &manifest.unknown.iter().map(unknown).collect::<Vec<_>>());
    sheet.print();
}

/// The warning about files that were changed by hand after they came from the source.
fn edited(name: &str) -> String {
    format!(
        "its files were changed by hand since they came from this source. If that was not you, `hermes plugins update {name}` \
         brings back the files of the source. A grant lets the changed files have what the plugin has: its data, its lines of \
         config.yaml and its source, from which the next update replaces the change"
    )
}

/// The key that signed a plugin, in words.
pub(super) fn signer(pin: &Pin) -> String {
    pin.signed_by().map_or_else(
        || "nobody: the plugin is not signed, so its publisher cannot be verified".to_owned(),
        |key| format!("key {key}"),
    )
}

/// Shows what the plugin adds to sessions; for an update, only what is new.
fn show_exports(offer: &Offer<'_>, console: Console) {
    if !offer.exports.is_empty() {
        let title = if offer.purpose == Purpose::Update { "new in this version" } else { "what the plugin adds" };
        let rows: Vec<String> = offer.exports.iter().map(|export| meaning(export)).collect();
        let mut sheet = ConsentScreen::on_stderr(console);
        sheet.numbered("exports", &format!("{title}: {}", rows.len()), &rows, 1);
        sheet.print();
    }
    if offer.exports.iter().any(|export| export == "hooks") && !offer.manifest.permissions.hooks {
        console.warning("the plugin does not request the permission `hooks`, so its hooks will not run");
    }
}

/// Names the tools, and those that the plugin calls dangerous.
fn show_tools(offer: &Offer<'_>, console: Console) {
    let mut sheet = ConsentScreen::on_stderr(console);
    match offer.tools {
        OfferedTools::Named([]) => return,
        OfferedTools::Named(tools) => {
            let dangerous = tools.iter().filter(|tool| tool.effect == Effect::Dangerous).count();
            let title = match dangerous {
                0 => format!("the model can call: {}", tools.len()),
                dangerous => format!("the model can call: {}, {dangerous} of them dangerous", tools.len()),
            };
            let rows: Vec<String> = tools.iter().map(tool).collect();
            sheet.numbered("tools", &title, &rows, 1);
        }
        OfferedTools::Unknown(why) => sheet.row("tools", &format!("not known yet: {why}")),
    }
    sheet.print();
}

/// A tool for people: its name, what a call may do by its own word, and the beginning of its description.
fn tool(tool: &Tool) -> String {
    let effect = match tool.effect {
        Effect::Reads => "reads",
        Effect::Writes => "changes things",
        Effect::Dangerous => "DANGEROUS",
    };
    let about = tool.schema.description.lines().next().unwrap_or_default();
    format!("{} ({effect}): {}", tool.schema.name, text::exact_within(about, 120))
}

/// An export for people.
fn meaning(export: &str) -> String {
    let what = match export {
        "tools" => "functions that the model can call",
        "tool-preview" => {
            "it says in the question about a call what the call would do, and which calls only read, so that nobody is asked about them"
        }
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
fn show_permissions(offer: &Offer<'_>, native: bool, console: Console) {
    let titles = match offer.purpose {
        Purpose::Update => Titles { none: "no new ones", some: "new in this version" },
        Purpose::Install | Purpose::Pinned | Purpose::Grant | Purpose::Develop => {
            Titles { none: "none", some: "requested by the plugin" }
        }
    };
    let mut sheet = ConsentScreen::on_stderr(console);
    sheet.agreement(offer.permissions, offer.limits, native.then_some(super::NATIVE), titles);
    sheet.print();
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
    /// Whether the presented plugin would run as a native library, which the question repeats.
    pub(super) native: Cell<bool>,
    /// Whether lines of config.yaml apply that were perhaps not written for the plugin.
    pub(super) keep_config: bool,
}

impl Terminal {
    pub(super) fn new(console: Console, options: Consent) -> Self {
        let native = Cell::new(false);
        Self { console, options, accept_key: false, allow_draft: false, purge: None, native, keep_config: false }
    }
}

impl operations::Consent for Terminal {
    type Error = Failure;

    fn present(&self, manifest: &Manifest, pin: &Pin, leaves_native: bool) {
        show(manifest, pin, self.console);
        self.native.set(pin.native);
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
        match question::consented(&format!("{why}. Accept this change?"), "nothing was changed", fix) {
            Ok(true) => Ok(()),
            Ok(false) => Err(changed.diagnose().into()),
            Err(_) => Err(Failure::new(Kind::Plugin, "nothing was changed", why, fix)),
        }
    }

    fn allows_drafts(&self) -> bool {
        self.allow_draft
    }

    fn hand_over(&self, left: &Leftovers<'_>) -> Result<bool, Failure> {
        handover::ask(left, self.keep_config, self.console)
    }

    fn adopt(&self, adoption: &Adoption) -> Result<bool, Failure> {
        handover::ask_to_adopt(adoption, self.options.yes, self.console)
    }

    fn permissions(&self, offer: &Offer<'_>) -> Result<Option<Granted>, Failure> {
        let Consent { yes, grant } = self.options;
        if let Some(other) = offer.replaces {
            let other = text::exact(&other.to_string());
            self.console.warning(&format!(
                "the installed plugin of this name comes from {other}; this one inherits no permissions, configuration or data"
            ));
        }
        show_exports(offer, self.console);
        show_tools(offer, self.console);
        show_permissions(offer, self.native.get(), self.console);
        let on_yes = || offer.on_yes.clone();
        let grants_nothing = offer.permissions.is_empty() && offer.limits.is_empty();
        let question = match (offer.purpose, grants_nothing) {
            (Purpose::Grant, false) => "allow the plugin to run with these permissions?",
            (Purpose::Grant, true) => "allow the plugin to run without permissions?",
            (Purpose::Develop, false) => {
                "let sessions of this home use the project with these permissions while this command runs?"
            }
            (Purpose::Develop, true) => "let sessions of this home use the project while this command runs?",
            (Purpose::Pinned, _) => "install the plugin as pinned in plugins.lock?",
            (Purpose::Install, false) => "install the plugin and grant these permissions?",
            (Purpose::Install, true) => "install the plugin?",
            (Purpose::Update, false) => "update the plugin and grant these permissions?",
            (Purpose::Update, true) if !offer.exports.is_empty() => "update the plugin with these exports?",
            (Purpose::Update, true) => "update the plugin?",
        };
        let (what, fix) = match offer.purpose {
            Purpose::Grant => ("nothing was granted", "add --yes to agree to what is shown"),
            Purpose::Develop => ("no session uses the project", "add --yes to agree to what is shown"),
            Purpose::Pinned => ("nothing was changed", "add --yes to grant the permissions in plugins.lock"),
            Purpose::Install | Purpose::Update => {
                ("nothing was changed", "add --yes to agree to what is shown, or --grant none to grant no permissions")
            }
        };
        match grant {
            Some(Grant::All) => return Ok(Some((offer.manifest.permissions.clone(), offer.manifest.limits.clone()))),
            Some(Grant::None) => return Ok(Some(Granted::default())),
            // `--yes` was written for the plugin that the user knows.
            None if offer.replaces.is_none() && (yes || offer.is_covered) => return Ok(Some(on_yes())),
            None => {}
        }
        let fix = match offer.replaces {
            Some(_) => "name what the new plugin gets: --grant all for what is shown, or --grant none",
            None => fix,
        };
        Ok(question::consented(question, what, fix)?.then(on_yes))
    }

    fn purge(&self, data: &Path) -> Result<bool, Failure> {
        match self.purge {
            Some(purge) => Ok(purge),
            None if self.options.yes || !io::stdin().is_terminal() => Ok(false),
            None => {
                let question = format!("the plugin has stored data in {}; delete the data too?", data.display());
                question::consented(&question, "nothing was changed", "add --keep-data or --purge")
            }
        }
    }

    fn variables(&self, unset: &[&RequiredVariable]) -> Result<Vec<(String, String)>, Failure> {
        variables::ask_for(unset, self.console)
    }
}
