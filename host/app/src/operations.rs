//! Changes of the installed plugins: install, update, roll back, remove, grant, revoke, adopt; and of the model.
//!
//! Each operation is a function that returns a report. It asks the user through [`Consent`], and prints nothing.

mod adoption;
mod grants;
mod handover;
mod installation;
mod model;
mod publication;
mod removal;
mod skills;
mod update;
mod variables;

use std::path::Path;

use hermes_plugin_host::{LimitSet, Manifest, Permissions, Pin, PluginOrigin, RequiredVariable};
use hermes_runtime::Tool;

pub use hermes_install::{
    Finding as InstalledFinding, InstallError, Prepared, Source, State as InstalledState, Wanted,
};

pub use adoption::{Adoption, adopt};
pub use grants::{GrantReport, GrantRequest, PermissionsRequest, RevokeReport, check_drafts, grant, granted, revoke};
pub use handover::{ConfigLine, Handover, Leftovers};
pub(crate) use installation::Downloads;
pub use installation::{
    InstallReport, InstallRequest, PinnedPlugins, finish_interrupted, install, install_pinned, pinned_plugins,
    source_of,
};
pub use model::{ChosenModel, ModelPlace, set_model};
pub use publication::push_image;
pub use removal::{RemovalReport, remove};
pub use skills::{
    SkillConsent, SkillOffer, SkillReport, fetch_skills, install_skill, installed_skills, remove_skill, skills,
    update_skill,
};
pub use update::{RolledBack, compare_installed, installed_names, prepare_update, roll_back, update};
pub use variables::{forget_variable, keep_variables};

/// Permissions and limits of a plugin.
pub type Granted = (Permissions, LimitSet);

/// Answers the questions of an operation. A front end asks its user, or answers from options.
///
/// Consent covers only what was presented before the answer. A method fails if it cannot ask; the operation then changes
/// nothing.
pub trait Consent {
    /// The error of the front end.
    type Error: From<crate::AppError>;

    /// Presents a plugin before the questions about it. `leaves_native` if its earlier version runs as a native library and
    /// this one would not.
    fn present(&self, manifest: &Manifest, pin: &Pin, leaves_native: bool);

    /// Decides whether a changed publisher's key is accepted. The error describes the change, and an implementation that
    /// refuses returns it.
    fn accept_key(&self, changed: InstallError) -> Result<(), Self::Error>;

    /// Whether the user allows draft interfaces of the contract.
    fn allows_drafts(&self) -> bool;

    /// Decides whether lines of the configuration, which were not written for this plugin or perhaps not, apply to it.
    fn hand_over(&self, left: &Leftovers<'_>) -> Result<bool, Self::Error>;

    /// Decides whether a plugin continues another origin.
    fn adopt(&self, adoption: &Adoption) -> Result<bool, Self::Error>;

    /// Decides what a plugin is granted; none if the user declines.
    fn permissions(&self, offer: &Offer<'_>) -> Result<Option<Granted>, Self::Error>;

    /// Decides whether the data of a plugin is removed with it.
    fn purge(&self, data: &Path) -> Result<bool, Self::Error>;

    /// Asks for the values of unset variables. Variables without a value are left out.
    fn variables(&self, unset: &[&RequiredVariable]) -> Result<Vec<(String, String)>, Self::Error>;
}

/// The operation that needs consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A first installation.
    Install,
    /// Another version of an installed plugin.
    Update,
    /// An installation of what `plugins.lock` pins.
    Pinned,
    /// A grant to an installed plugin.
    Grant,
    /// A project that `hermes plugins dev` offers to sessions while it runs.
    Develop,
}

/// Permissions and limits that need consent.
#[derive(Debug)]
pub struct Offer<'a> {
    /// The operation.
    pub purpose: Purpose,
    /// The permissions to consent to: for an update, those beyond the granted ones.
    pub permissions: &'a Permissions,
    /// The limits to consent to.
    pub limits: &'a LimitSet,
    /// What the plugin adds to sessions, by the names of the contract: for an update, what the earlier version did not add.
    pub exports: &'a [String],
    /// The tools that the model could call.
    pub tools: OfferedTools<'a>,
    /// The manifest, with everything that the plugin requests.
    pub manifest: &'a Manifest,
    /// The grant if the user agrees.
    pub on_yes: Granted,
    /// Whether the user consented to everything before, so that no question is needed.
    pub is_covered: bool,
    /// The origin of the installed plugin that would be replaced, if it is another one. General consent, given before anything
    /// was shown, does not cover that.
    pub replaces: Option<&'a PluginOrigin>,
}

/// The tools of a plugin before the user agrees to it.
#[derive(Debug, Clone, Copy)]
pub enum OfferedTools<'a> {
    /// All tools, as the plugin describes them after its first start.
    Named(&'a [Tool]),
    /// Why they are not known yet.
    Unknown(&'a str),
}

#[cfg(test)]
mod tests;
