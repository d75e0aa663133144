//! The application below every front end: the home folder, sessions, and operations on plugins.
//!
//! A front end (a terminal, an editor, a server) calls these functions and shows what they return. Nothing here prints,
//! asks, or reads the current folder: the workspace is a parameter, and progress goes to a [`Reporter`].

#![forbid(unsafe_code)]

pub mod approvals;
mod bundled;
pub mod cache;
mod chain;
pub mod context;
mod cooldowns;
mod desk;
mod diagnosis;
pub mod doctor;
mod embedding;
mod ephemeral;
mod error;
pub mod files;
mod home;
mod learned;
pub mod logins;
pub mod memory;
pub mod models;
mod offer;
pub mod operations;
pub mod plugins;
pub mod prices;
mod probe;
pub mod process;
pub mod prompt;
mod providers;
mod reporter;
pub mod servers;
pub mod sessions;
mod setup;
pub mod skills;
pub mod spending;
mod store;
mod undelivered;
pub mod undo;
pub mod workspace;

pub use bundled::{BUNDLED, PRECOMPILED, ScaffoldFile, runtime, scaffold, skill_reader};
pub use desk::{
    Beginning, Carried, Desk, ImportedFolder, ImportedSession, Lifetime, NoTenant, Opened, SessionRequest, Tenant,
    recovered_undos,
};
pub use embedding::{ChosenEmbeddings, EmbeddingChoice};
pub use error::{AppError, PrefillFlaw};
pub use hermes_agent::{
    AcceptedParts, Attendance, Consent, InapplicableSkill, Offer, OfferedSkill, SessionHandle, Subscription,
};
pub use hermes_conversation::SessionId;
use hermes_diagnostic::Code;
pub use hermes_diagnostic::{counted, grouped};
pub use home::{Home, PluginLog};
pub use offer::HermesOffer;
pub use plugins::{CodeStorage, MissingPlugin, Role, mishap, missing_plugins, unset_variables};
pub use probe::{Probe, probe_memory};
pub use process::Compiler;
pub use providers::Listing;
pub use reporter::{Quiet, Reporter};
pub use servers::{Endpoint, Program, ServerDefinition, ToolChoice, WebAddress};
pub use setup::{ModelChoice, Setup};
pub use store::is_own_database;
pub use undelivered::{Turns, Undelivered};

/// The codes of the application and of the crates below it. `docs/use/errors.md` has a row for each.
pub const CODES: &[&[Code]] = &[
    codes::ALL,
    doctor::codes::ALL,
    hermes_agent::codes::ALL,
    hermes_checkpoints::codes::ALL,
    hermes_config::codes::ALL,
    hermes_install::codes::ALL,
    hermes_mcp::codes::ALL,
    hermes_models::codes::ALL,
    hermes_plugin_host::codes::ALL,
    hermes_protocol::codes::ALL,
    hermes_session_store::codes::ALL,
    store::codes::ALL,
];

hermes_diagnostic::codes! {
    /// The codes of the application.
    pub mod codes {
        HOME = "app.home", Category::Configuration, "the home folder cannot be used";
        SETTING = "app.setting", Category::Configuration, "a value in `config.yaml` cannot be used";
        TEMPORARY = "app.temporary", Category::General, "no temporary folder can be created";
        DOTENV = "app.dotenv", Category::Configuration, "`.env` cannot be written";
        NO_SOURCE = "install.no-source", Category::Plugin, "the plugin was copied by hand, so no source is recorded for it";
        NOTHING_TO_ADOPT = "install.nothing-to-adopt", Category::General, "no data was set aside for the plugin";
        RENAMED = "install.renamed", Category::Plugin, "the source contains a plugin of another name";
        SKILL_BLOCKED = "skills.blocked", Category::Plugin, "the scan for injected instructions blocks the skill";
        SKILL_DIGEST = "skills.digest", Category::Plugin, "the skill has another digest than the one that you accepted";
        CLOCK = "app.clock", Category::Configuration, "`HERMES_CLOCK` is not a moment";
        PREFILL = "app.prefill", Category::Configuration, "the file of prefilled messages cannot be used";
        RELATIVE_WORKSPACE = "app.relative-workspace", Category::Usage, "a session was asked for in a relative folder";
        NO_SESSION_HERE = "app.no-session-here", Category::General, "no session of this folder can be continued";
    }
}
