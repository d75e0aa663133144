//! What can be found of a plugin, as data.

use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_plugin_host::{LoadError, PluginsError, Ungranted, Wrong};
use serde::Serialize;

use crate::wording;

/// A plugin that was looked at, or a name that stands for none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Examined {
    /// None for what is about all of them.
    pub(crate) name: Option<String>,
    /// `bundled`, or its folder; none where there is none.
    pub(crate) source: Option<String>,
    /// Whether sessions are to have it.
    #[serde(rename = "on")]
    pub(crate) is_on: bool,
    /// Tools that sessions have of it.
    pub(crate) tools: Vec<String>,
    /// Problems first.
    pub(crate) findings: Vec<Finding>,
}

/// Something that is not as one may expect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) case: Case,
    /// The tool that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) fix: String,
}

/// Whether something is wrong, or as the user wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Problem,
    Note,
}

/// What was found, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// A folder without a manifest.
    NoManifest,
    /// A manifest that cannot be used.
    Manifest,
    /// No component, or several of which none is named.
    NoComponent,
    /// Another plugin has the name.
    Twice,
    /// There is none where the configuration takes it from.
    Source,
    /// A file or folder that cannot be read.
    Unreadable,
    /// `plugins.lock` cannot be used.
    Lock,
    /// Nobody granted it.
    Ungranted,
    /// Its grant was taken back.
    Revoked,
    /// It is not as it was granted.
    Altered,
    /// It is in `plugins.lock` and not on disk.
    NotInstalled,
    /// The version that is kept to go back to was changed.
    Rollback,
    /// A command was interrupted.
    Unfinished,
    /// It wants another version of the contract.
    Contract,
    /// Its component cannot be used.
    Component,
    /// It claims to be what it is not.
    Claims,
    /// Its section does not fit.
    Configuration,
    /// It does not start.
    Start,
    /// The configuration names it, and it is not there.
    Unknown,
    /// It is selected for what it is not.
    OtherKind,
    /// A variable that it needs is not set.
    Variable,
    /// A secret has no value.
    Secret,
    /// It is suspended.
    Suspended,
    /// It failed when it was last used.
    Failing,
    /// It asks for more than it was granted.
    Permission,
    /// It is not selected.
    Off,
    /// `approvals.deny` forbids it, or a tool.
    Denied,
    /// A session leaves a tool out.
    Tool,
    /// Its manifest has a field that nobody knows.
    Field,
}

impl Finding {
    pub(super) fn problem(case: Case, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, case, tool: None, what: what.into(), why: why.into(), fix: fix.into() }
    }

    pub(super) fn note(case: Case, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::problem(case, what, why, fix) }
    }

    pub(crate) fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }

    pub(super) fn of_tool(self, tool: &str) -> Self {
        Self { tool: Some(tool.to_owned()), ..self }
    }

    /// The same, as a note where nothing hangs on it.
    pub(super) fn unless(self, nothing_hangs_on_it: bool) -> Self {
        if nothing_hangs_on_it { Self { severity: Severity::Note, ..self } } else { self }
    }
}

impl From<&PluginsError> for Finding {
    fn from(error: &PluginsError) -> Self {
        use PluginsError as E;
        let (case, what) = match error {
            E::NoManifest { .. } => (Case::NoManifest, "a folder holds no plugin"),
            E::Manifest { source, .. } if matches!(source.why, Wrong::Contract { .. }) => {
                (Case::Contract, "it is for another version of Hermes")
            }
            E::Manifest { .. } => (Case::Manifest, "its plugin.yaml cannot be used"),
            E::Unbuilt { .. } | E::Component { .. } | E::OtherMachine { .. } => {
                (Case::NoComponent, "it has no component that could run")
            }
            E::Twice { .. } => (Case::Twice, "there are two of this name"),
            E::Source { .. } => (Case::Source, "there is none where the configuration takes it from"),
            E::Lock(_) => (Case::Lock, "no installed plugin may run"),
            E::Ungranted { why: Ungranted::Altered(_), .. } => (Case::Altered, "it may not run"),
            E::Ungranted { why: Ungranted::Revoked(_), .. } => (Case::Revoked, "it may not run"),
            E::Ungranted { .. } => (Case::Ungranted, "it may not run"),
            E::Load { source: LoadError::Version { .. }, .. } => {
                (Case::Contract, "it is for another version of Hermes")
            }
            E::Load { .. } => (Case::Component, "it does not load"),
            E::Claims { .. } => (Case::Claims, "it is not what it says"),
            E::Configuration { .. } => (Case::Configuration, "its section of config.yaml does not fit"),
            E::Missing { .. } | E::Unusable { .. } => (Case::Unknown, "it is not to be had"),
            E::OtherKind { .. } | E::NoLonger { .. } => (Case::OtherKind, "it is not what it is selected for"),
            E::Read { .. } | E::Watch { .. } | E::Folder { .. } => (Case::Unreadable, "it cannot be read"),
        };
        let Diagnostic { why, fix, .. } = error.diagnose();
        Self::problem(case, what, why, wording::fix(&fix))
    }
}
