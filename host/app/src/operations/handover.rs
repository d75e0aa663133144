//! What the configuration and earlier approvals say about the name of a plugin. They were written for one origin, and a
//! plugin from elsewhere that gets the name does not inherit them.

use std::fmt;

use hermes_config::{Config, Edit, codes, settings::Settings};
use hermes_diagnostic::Diagnostic;
use hermes_install::{DataHandover, Rewrite};
use hermes_plugin_host::{Digest, PluginOrigin, Selection};
use hermes_session_store::{Delivery, QueueState, QueuedTurn};

use super::Consent;
use crate::{AppError, Setup};

const ALLOW: &str = "approvals.allow";
const DENY: &str = "approvals.deny";
const ENABLED: &str = "plugins.enabled";
const DISABLED: &str = "plugins.disabled";

/// A line of `config.yaml` about the name of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLine {
    key: String,
    value: Value,
    is_right: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// An item of a list.
    Item(String),
    /// The value of a key.
    Name(String),
    /// A section of its own.
    Section,
}

impl fmt::Display for ConfigLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Item(value) | Value::Name(value) => write!(f, "{}: {value}", self.key),
            Value::Section => f.write_str(&self.key),
        }
    }
}

impl ConfigLine {
    /// Whether it lets the plugin act without a question, or takes a tool from another plugin.
    pub fn is_right(&self) -> bool {
        self.is_right
    }

    fn item(key: &str, item: &str) -> Self {
        Self { key: key.to_owned(), value: Value::Item(item.to_owned()), is_right: key == ALLOW }
    }

    fn section(key: String) -> Self {
        Self { key, value: Value::Section, is_right: false }
    }

    fn take_out(&self, edit: &mut Edit) -> Result<(), Diagnostic> {
        match &self.value {
            Value::Item(item) => edit.take(&self.key, item),
            Value::Name(_) | Value::Section => edit.remove(&self.key),
        }
    }
}

/// The lines of a configuration that give a plugin of this name something. Lines that only restrict it are left out.
fn lines_about(name: &str, settings: &Settings) -> Vec<ConfigLine> {
    let mut lines: Vec<ConfigLine> = entries_about(name, &settings.approvals.allow)
        .map(|entry| ConfigLine::item(ALLOW, entry))
        .chain(
            settings.plugins.enabled.iter().filter(|enabled| *enabled == name).map(|_| ConfigLine::item(ENABLED, name)),
        )
        .collect();
    let owned = settings.plugins.tools.iter().filter(|(_, owner)| *owner == name);
    lines.extend(owned.map(|(tool, _)| ConfigLine {
        key: format!("plugins.tools.{tool}"),
        value: Value::Name(name.to_owned()),
        is_right: true,
    }));
    let engine = Some(settings.context.engine.as_str()).filter(|engine| *engine != Selection::ENGINE);
    let embedder = settings.auxiliary.embeddings.plugin.as_deref();
    for (key, value) in [
        ("context.engine", engine),
        ("memory.provider", settings.memory.provider.as_deref()),
        ("auxiliary.embeddings.plugin", embedder),
    ] {
        if value == Some(name) {
            let value = Value::Name(name.to_owned());
            lines.push(ConfigLine { key: key.to_owned(), value, is_right: false });
        }
    }
    if settings.plugins.entries.0.contains_key(name) {
        lines.push(ConfigLine::section(format!("plugins.entries.{name}")));
    }
    match settings.plugins.settings.get(name) {
        // The key `source` decides between plugins, and gives none of them anything.
        Some(Some(section)) if section.settings().source.is_some() => {
            let own = section.settings();
            let keys = [("limits", !own.limits.is_empty()), ("on_failure", own.on_failure != Default::default())];
            let keys = keys.into_iter().filter(|(_, is_set)| *is_set);
            lines.extend(keys.map(|(key, _)| ConfigLine::section(format!("plugins.settings.{name}.{key}"))));
        }
        Some(_) => lines.push(ConfigLine::section(format!("plugins.settings.{name}"))),
        None => {}
    }
    lines
}

/// The entries of a list of approvals that are about a plugin.
fn entries_about<'a>(name: &'a str, entries: &'a [String]) -> impl Iterator<Item = &'a String> {
    entries.iter().filter(move |entry| entry.trim().split('/').next().is_some_and(|plugin| plugin.trim() == name))
}

/// Who has owned a name so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The same origin.
    Same,
    /// Another origin.
    Other(PluginOrigin),
    /// Nobody knows: the name was never installed, or an older version of Hermes removed the plugin.
    Unknown,
}

impl Ownership {
    pub(super) fn of(owner: Option<PluginOrigin>, new: &PluginOrigin) -> Self {
        match owner {
            Some(owner) if owner.is_continued_by(new) => Self::Same,
            Some(owner) => Self::Other(owner),
            None => Self::Unknown,
        }
    }
}

/// Lines of `config.yaml` that were not written for a plugin, or perhaps not.
#[derive(Debug)]
pub struct Leftovers<'a> {
    /// The name that the lines contain.
    pub name: &'a str,
    /// The origin for which they were written, if it is known.
    pub owner: Option<&'a PluginOrigin>,
    /// The lines that apply only if the user says so.
    pub asked: &'a [ConfigLine],
    /// Lines without rights of their own, which apply with the consent to the plugin.
    pub applied: &'a [ConfigLine],
}

/// What became of the configuration, the approvals and the data of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// Lines that were taken out of `config.yaml`.
    pub taken_out: Vec<ConfigLine>,
    /// The number of permanent approvals that were forgotten.
    pub forgotten: usize,
    /// The number of turns that another memory provider of this name had not stored. They are not sent to this one.
    pub undelivered: usize,
    /// Data of other origins.
    pub data: DataHandover,
}

/// The decision about the lines of a name.
pub(super) struct Decided {
    name: String,
    taken_out: Vec<ConfigLine>,
    forgets: bool,
}

impl Decided {
    /// Asks which lines of the configuration apply to a plugin that gets a name.
    pub(super) fn ask<C: Consent>(
        name: &str,
        ownership: &Ownership,
        setup: &Setup,
        consent: &C,
    ) -> Result<Self, C::Error> {
        let lines = || lines_about(name, setup.config.settings());
        let (asked, applied): (Vec<_>, Vec<_>) = match ownership {
            Ownership::Same => (Vec::new(), Vec::new()),
            Ownership::Other(_) => (lines(), Vec::new()),
            Ownership::Unknown => lines().into_iter().partition(ConfigLine::is_right),
        };
        let owner = match ownership {
            Ownership::Other(owner) => Some(owner),
            Ownership::Same | Ownership::Unknown => None,
        };
        let left = Leftovers { name, owner, asked: &asked, applied: &applied };
        let keeps = (asked.is_empty() && applied.is_empty()) || consent.hand_over(&left)?;
        let taken_out = if keeps { Vec::new() } else { asked };
        Ok(Self { name: name.to_owned(), taken_out, forgets: *ownership != Ownership::Same })
    }

    /// For a removal: everything that gives the name something, and that it was disabled.
    pub(super) fn everything(name: &str, setup: &Setup) -> Self {
        let settings = setup.config.settings();
        let mut taken_out = lines_about(name, settings);
        taken_out.retain(|line| !line.key.starts_with(&format!("plugins.settings.{name}")));
        taken_out.extend(
            settings.plugins.settings.get(name).map(|_| ConfigLine::section(format!("plugins.settings.{name}"))),
        );
        let disabled = settings.plugins.disabled.iter().any(|disabled| disabled == name);
        taken_out.extend(disabled.then(|| ConfigLine::item(DISABLED, name)));
        Self { name: name.to_owned(), taken_out, forgets: true }
    }

    /// The change of `config.yaml`, from the file as it is now.
    pub(super) fn rewrite(&self, setup: &Setup) -> Result<Option<Rewrite>, AppError> {
        if self.taken_out.is_empty() {
            return Ok(None);
        }
        let mut edit = Edit::of(&setup.home.config())?;
        for line in &self.taken_out {
            line.take_out(&mut edit)?;
        }
        let (file, before, after) = edit.parts();
        let left = Config::parse(after, file, &|name| setup.environment.var(name))?;
        if let Some(line) = self.left_in(&left).first() {
            let what = format!("{} was not changed", file.display());
            let why = format!("the line `{line}` was not written for this plugin, and it cannot be taken out safely");
            return Err(Diagnostic::new(codes::NOT_EDITABLE, what, why, "remove the line from the file by hand").into());
        }
        let rewrite = Rewrite { file: file.to_owned(), before: Digest::of(before.as_bytes()), after: after.to_owned() };
        Ok(edit.is_changed().then_some(rewrite))
    }

    fn left_in(&self, config: &Config) -> Vec<ConfigLine> {
        let lines = lines_about(&self.name, config.settings());
        lines.into_iter().filter(|line| self.taken_out.contains(line)).collect()
    }

    /// Forgets the permanent approvals of the name. Done before the change: the user is asked once more at the worst.
    pub(super) fn forget(&self, setup: &Setup) -> Result<usize, AppError> {
        if !self.forgets {
            return Ok(0);
        }
        setup.home.forget_approvals(&self.name)
    }

    /// Sets the turns aside that another memory provider of this name has not stored.
    pub(super) async fn keep_turns(&self, setup: &Setup) -> Result<usize, AppError> {
        let waits = |turn: &QueuedTurn| turn.provider == self.name && turn.state != QueueState::SetAside;
        let Some(store) = setup.store_to_read()?.filter(|_| self.forgets) else { return Ok(0) };
        let waiting: Vec<QueuedTurn> = store.outbox().await?.into_iter().filter(waits).collect();
        drop(store);
        if !waiting.is_empty() {
            let store = setup.store()?;
            let error = "a plugin from another source has the name of the memory provider now".to_owned();
            let aside = Delivery::SetAside { error };
            for turn in &waiting {
                store.record_delivery(turn, &aside).await?;
            }
        }
        Ok(waiting.len())
    }

    /// After the change: takes out what an editor wrote back meanwhile.
    pub(super) fn settle(self, setup: &Setup) -> Result<Vec<ConfigLine>, AppError> {
        if !self.taken_out.is_empty() {
            let now = Config::read(&setup.home.config(), &setup.environment)?;
            if !self.left_in(&now).is_empty() {
                let mut edit = Edit::of(&setup.home.config())?;
                self.taken_out.iter().try_for_each(|line| line.take_out(&mut edit))?;
                edit.save()?;
            }
        }
        Ok(self.taken_out)
    }
}

/// The lines that still deny a plugin something after its removal.
pub(super) fn denials(name: &str, setup: &Setup) -> Vec<ConfigLine> {
    let denied = &setup.config.settings().approvals.deny;
    entries_about(name, denied).map(|entry| ConfigLine::item(DENY, entry)).collect()
}
