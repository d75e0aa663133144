//! The findings about a plugin, as data.

use hermes_diagnostic::{Diagnose as _, Diagnostic, Fix};
use hermes_plugin_host::{LoadError, PluginsError, Ungranted, Wrong};
use serde::Serialize;

/// An examined plugin, or a selected name that no plugin has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedPlugin {
    /// None for findings about all plugins.
    pub name: Option<String>,
    /// `bundled`, or its folder; none for a plugin that does not exist.
    pub source: Option<String>,
    /// Whether the configuration selects it.
    pub is_on: bool,
    /// The tools that sessions get from it.
    pub tools: Vec<String>,
    /// Problems first.
    pub findings: Vec<Finding>,
}

/// Something unexpected about a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, for programs.
    pub case: Case,
    /// The tool, if it concerns one.
    pub tool: Option<String>,
    /// What was found, as a clause.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub fix: Fix,
}

/// Whether something is wrong, or as the user configured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is wrong.
    Problem,
    /// It is as the user configured it.
    Note,
}

/// What was found, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// A folder without a manifest.
    NoManifest,
    /// An invalid manifest.
    Manifest,
    /// No component, or several of which none is named.
    NoComponent,
    /// Another plugin has the name.
    Twice,
    /// No plugin comes from the source that the configuration names.
    Source,
    /// A file or folder that cannot be read.
    Unreadable,
    /// `plugins.lock` cannot be used.
    Lock,
    /// It was not granted.
    Ungranted,
    /// Its grant was revoked.
    Revoked,
    /// It was changed since it was granted.
    Altered,
    /// It is in `plugins.lock` and not on disk.
    NotInstalled,
    /// The version that is kept to go back to was changed.
    Rollback,
    /// A command was interrupted.
    Unfinished,
    /// It needs another version of the contract.
    Contract,
    /// Its component cannot be used.
    Component,
    /// Its manifest lists a kind that it does not export.
    Claims,
    /// Its section of the configuration is invalid.
    Configuration,
    /// It does not start.
    Start,
    /// The configuration names it, and it does not exist.
    Unknown,
    /// It is disabled and selected.
    Contradiction,
    /// It is selected as another kind.
    OtherKind,
    /// A variable that it needs is not set.
    Variable,
    /// A secret has no value.
    Secret,
    /// It is suspended.
    Suspended,
    /// It failed when it was last used.
    Failing,
    /// Turns wait for it, or were set aside after it rejected them.
    Undelivered,
    /// It requests permissions that are not granted.
    Permission,
    /// It is not selected.
    Off,
    /// `approvals.deny` forbids it, or a tool.
    Denied,
    /// A skill cannot be used, or only guessed.
    Skill,
    /// An entry below `approvals` is no rule, or one that forbids nothing. No session starts.
    UselessRule,
    /// The matcher of a shell hook matches no tool.
    UselessMatcher,
    /// A session leaves a tool out.
    Tool,
    /// Its manifest has an unknown field.
    Field,
}

impl Finding {
    pub(super) fn problem(case: Case, what: impl Into<String>, why: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { severity: Severity::Problem, case, tool: None, what: what.into(), why: why.into(), fix: fix.into() }
    }

    pub(super) fn note(case: Case, what: impl Into<String>, why: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { severity: Severity::Note, ..Self::problem(case, what, why, fix) }
    }

    /// Whether something is wrong.
    pub fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }

    pub(super) fn of_tool(self, tool: &str) -> Self {
        Self { tool: Some(tool.to_owned()), ..self }
    }

    /// The same, as a note if it has no effect at the moment.
    pub(super) fn unless(self, has_no_effect: bool) -> Self {
        if has_no_effect { Self { severity: Severity::Note, ..self } } else { self }
    }
}

impl From<&PluginsError> for Finding {
    fn from(error: &PluginsError) -> Self {
        use PluginsError as E;
        let (case, what) = match error {
            E::NoManifest { .. } => (Case::NoManifest, "the folder contains no plugin"),
            E::Manifest { source, .. } if matches!(source.why, Wrong::Contract { .. }) => {
                (Case::Contract, "it is for another version of Hermes")
            }
            E::Manifest { .. } => (Case::Manifest, "its plugin.yaml is invalid"),
            E::Unbuilt { .. } | E::Component { .. } | E::OtherMachine { .. } => {
                (Case::NoComponent, "it has no usable component")
            }
            E::Twice { .. } => (Case::Twice, "two plugins have this name"),
            E::Source { .. } => (Case::Source, "no plugin comes from the configured source"),
            E::Lock(_) => (Case::Lock, "no installed plugin can run"),
            E::Ungranted { why: Ungranted::Altered { .. }, .. } => (Case::Altered, "it cannot run"),
            E::Ungranted { why: Ungranted::Revoked(_), .. } => (Case::Revoked, "it cannot run"),
            E::Ungranted { .. } => (Case::Ungranted, "it cannot run"),
            E::Load { source: LoadError::Version { .. }, .. } => {
                (Case::Contract, "it is for another version of Hermes")
            }
            E::Load { .. } => (Case::Component, "it does not load"),
            E::Claims { .. } => (Case::Claims, "its manifest does not match its component"),
            E::Configuration { .. } => (Case::Configuration, "its section of config.yaml is invalid"),
            E::Missing { .. } | E::Unusable { .. } => (Case::Unknown, "it does not exist"),
            E::OtherKind { .. } | E::NoLonger { .. } => (Case::OtherKind, "it is selected as another kind"),
            E::Read { .. } | E::Watch { .. } | E::Folder { .. } => (Case::Unreadable, "it cannot be read"),
        };
        let Diagnostic { why, fix, .. } = error.diagnose();
        Self::problem(case, what, why, fix)
    }
}
