//! The errors of the application.

use std::io;
use std::path::PathBuf;

use hermes_agent::approval::{KeptError, PatternError, RuleError, UnknownRule};
use hermes_agent::{AgentError, HookError};
use hermes_checkpoints::UndoError;
use hermes_diagnostic::Diagnostic;
use hermes_install::InstallError;
use hermes_models::{LoginError, ModelError, ResolveError, UnknownTtl};
use hermes_plugin_host::PluginsError;
use hermes_session_store::StoreError;

/// What is wrong with a file of prefilled messages. `Display` continues a sentence that begins with the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefillFlaw {
    /// There is no such file.
    #[error("does not exist")]
    Missing,
    /// The system refuses to read it.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The messages do not keep the conversation valid.
    #[error("is not valid: {0}")]
    Content(String),
    /// No reply of the assistant ends the list.
    #[error("is not valid: the last message is from the user; it must be from the assistant")]
    NoReply,
}

/// An error of the application.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// `config.yaml` cannot be used or changed.
    // The diagnostic's own text would repeat what failed and what to do.
    #[error("{}", .0.why)]
    Config(#[from] Diagnostic),
    /// No data was set aside for a plugin.
    #[error("no data of another plugin named `{name}` was set aside")]
    NothingToAdopt {
        /// The plugin.
        name: String,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No model can be chosen.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The model's provider.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The list of permanent approvals.
    #[error(transparent)]
    Approvals(#[from] KeptError),
    /// A plugin.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// An installation.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// An undo of changed files.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// A session.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No variable names the home folder.
    #[error("neither HERMES_HOME nor HOME is set")]
    NoHome,
    /// The home folder's path is not usable.
    #[error("{}: {source}", path.display())]
    HomePath {
        /// As it is set.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An entry below `approvals.protect` is not a pattern.
    #[error("approvals.protect: {source}")]
    Protected {
        /// `config.yaml`.
        file: PathBuf,
        /// Why.
        source: PatternError,
    },
    /// An entry below `approvals` is about nothing.
    #[error("{source}")]
    UnknownRule {
        /// `config.yaml`.
        file: PathBuf,
        /// Why.
        source: UnknownRule,
    },
    /// An entry below `approvals` is not a rule.
    #[error("{source}")]
    Rule {
        /// `config.yaml`.
        file: PathBuf,
        /// Why.
        source: RuleError,
    },
    /// An entry below `hooks` cannot be used.
    #[error("{source}")]
    Hook {
        /// `config.yaml`.
        file: PathBuf,
        /// Why.
        source: HookError,
    },
    /// `prompt_caching.cache_ttl` is not a duration that providers offer.
    #[error("`prompt_caching.cache_ttl`: {source}")]
    CacheTtl {
        /// `config.yaml`.
        file: PathBuf,
        /// Why.
        source: UnknownTtl,
    },
    /// `HERMES_CLOCK` is not a moment.
    #[error("`{value}` is not a time")]
    Clock {
        /// As it is set.
        value: String,
        /// Why.
        why: String,
    },
    /// The file of prefilled messages cannot be used.
    #[error("{} {flaw}", file.display())]
    Prefill {
        /// The file.
        file: PathBuf,
        /// The key or variable that names it.
        setting: &'static str,
        /// What is wrong with the file.
        flaw: PrefillFlaw,
    },
    /// `.env` cannot be written.
    #[error("{}: {source}", file.display())]
    Dotenv {
        /// The file.
        file: PathBuf,
        /// The variables whose values were not stored.
        names: Vec<String>,
        /// Why.
        source: io::Error,
    },
    /// A plugin was put in place by hand.
    #[error("`{name}` was copied to {} by hand, so no source is recorded for it", folder.display())]
    NoSource {
        /// The plugin.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// The source of a plugin holds another one now.
    #[error("the source of `{name}` now contains the plugin `{now}`")]
    Renamed {
        /// The installed plugin.
        name: String,
        /// The name in the source.
        now: String,
    },
    /// The scan found instructions in a skill that look injected.
    #[error("the scan for injected instructions blocks {}", found.join("; "))]
    SkillBlocked {
        /// The skill.
        name: String,
        /// The command that accepts it as it is now.
        command: String,
        /// The first passages: the file, the lines, the rules, and what they are about.
        found: Vec<String>,
    },
    /// The user accepted another digest than that of the skill.
    #[error("its digest is {digest}, you accepted {}, and the scan finds {}", accepted.join(", "), found.join("; "))]
    SkillDigest {
        /// The skill.
        name: String,
        /// Its digest.
        digest: String,
        /// The digests that the user accepted.
        accepted: Vec<String>,
        /// The first passages that the scan found.
        found: Vec<String>,
        /// The command that accepts it as it is now.
        command: String,
    },
    /// No temporary folder can be created.
    #[error("no temporary folder can be created: {source}")]
    Temporary {
        /// Why.
        source: io::Error,
    },
    /// No session of this folder can be continued.
    #[error("no session was started in {}", workspace.display())]
    NoSessionHere {
        /// The folder.
        workspace: PathBuf,
    },
    /// A front end asks for a session in a relative folder, which is another one in each process.
    #[error("`{}` is a relative path", workspace.display())]
    RelativeWorkspace {
        /// The folder.
        workspace: PathBuf,
    },
}
