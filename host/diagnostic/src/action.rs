//! Remedies that a front end can carry out or name in its own terms.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A remedy. A terminal words it as a command, another front end may offer a button.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Action {
    /// Check the whole installation.
    Diagnose,
    /// Show the configuration in force.
    ShowConfiguration,
    /// Correct a value of the configuration.
    CorrectSetting,
    /// Correct a key of the configuration, or remove it.
    CorrectKey,
    /// List all plugins.
    ListPlugins,
    /// Compare the installed plugins with `plugins.lock`.
    VerifyPlugins,
    /// Show what is known about a plugin.
    ShowPlugin {
        /// Its name.
        plugin: String,
    },
    /// Read the log of a plugin.
    ReadPluginLog {
        /// Its name.
        plugin: String,
    },
    /// Install a plugin from a source.
    InstallPlugin,
    /// Install again what `plugins.lock` pins.
    RestorePinned,
    /// Update a plugin from its source.
    UpdatePlugin {
        /// Its name.
        plugin: String,
    },
    /// Remove an installed plugin.
    RemovePlugin {
        /// Its name.
        plugin: String,
    },
    /// Grant a plugin its permissions.
    GrantPlugin {
        /// Its name.
        plugin: String,
    },
    /// Allow a plugin to run as native code.
    GrantNative {
        /// Its name.
        plugin: String,
    },
    /// Use a plugin in new sessions.
    EnablePlugin {
        /// Its name.
        plugin: String,
    },
    /// Stop using a plugin in new sessions.
    DisablePlugin {
        /// Its name.
        plugin: String,
    },
    /// Allow this transfer without encryption.
    AllowUnencrypted,
    /// State the publisher's key.
    StatePublisherKey,
    /// Accept the publisher's new key.
    AcceptPublisherKey,
    /// Replace the installed plugin with the one from the new source.
    ReplaceInstalled,
    /// Install the native library instead of the component.
    ChooseNative,
    /// Allow draft interfaces of the contract.
    AllowDrafts,
    /// Install the component instead of the native library.
    ChooseComponent,
    /// List the sessions.
    ListSessions,
    /// Resume one of the stored sessions.
    ResumeListed,
    /// Show a session with the numbers of its messages.
    ShowSession {
        /// Its id.
        session: String,
    },
    /// Continue on a copy of the session.
    BranchSession,
    /// Delete a session together with the sessions that came from it.
    DeleteWithChildren,
    /// Check the database of conversations.
    CheckStore,
    /// Repair the database of conversations; a copy is made first.
    RepairStore,
    /// Set up a model: its provider, its key, and its name.
    SetUpModel,
    /// Choose a provider for the session.
    ChooseProvider,
    /// Choose a model for the session.
    ChooseModel,
    /// Choose another provider for the session than the present one.
    ChooseAnotherProvider,
    /// Choose another model for the session than the present one.
    ChooseAnotherModel,
    /// Choose the address of the model's API.
    ChooseAddress,
    /// Log in to a provider, for the first time or again.
    LogIn {
        /// The name of the login.
        login: String,
    },
    /// List the logins.
    ListLogins,
    /// Remove a login from this machine, without revoking its tokens.
    RemoveLogin {
        /// The name of the login.
        login: String,
    },
    /// Choose another context engine.
    ChooseEngine,
    /// Ask the context engine again to compress the conversation.
    Compress,
    /// Build the system prompt of a session anew.
    RebuildPrompt {
        /// Its id.
        session: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagnose => f.write_str("check the installation"),
            Self::ShowConfiguration => f.write_str("show the configuration in force"),
            Self::CorrectSetting => f.write_str("correct the value"),
            Self::CorrectKey => f.write_str("correct or remove it"),
            Self::ListPlugins => f.write_str("list the plugins"),
            Self::VerifyPlugins => f.write_str("verify the installed plugins"),
            Self::ShowPlugin { plugin } => write!(f, "show the details of the plugin `{plugin}`"),
            Self::ReadPluginLog { plugin } => write!(f, "read the log of the plugin `{plugin}`"),
            Self::InstallPlugin => f.write_str("install a plugin"),
            Self::RestorePinned => f.write_str("install again what plugins.lock pins"),
            Self::UpdatePlugin { plugin } => write!(f, "update the plugin `{plugin}`"),
            Self::RemovePlugin { plugin } => write!(f, "remove the plugin `{plugin}`"),
            Self::GrantPlugin { plugin } => write!(f, "grant the plugin `{plugin}` its permissions"),
            Self::GrantNative { plugin } => write!(f, "allow the plugin `{plugin}` to run as native code"),
            Self::EnablePlugin { plugin } => write!(f, "enable the plugin `{plugin}`"),
            Self::DisablePlugin { plugin } => write!(f, "disable the plugin `{plugin}`"),
            Self::AllowUnencrypted => f.write_str("allow an unencrypted transfer from a server that you trust"),
            Self::StatePublisherKey => f.write_str("give the publisher's key"),
            Self::AcceptPublisherKey => f.write_str("accept the new key if you know why it changed"),
            Self::ReplaceInstalled => f.write_str("replace the installed plugin"),
            Self::ChooseNative => f.write_str("allow native code if you trust its author"),
            Self::AllowDrafts => f.write_str("allow draft interfaces if you accept that the plugin may stop working"),
            Self::ChooseComponent => f.write_str("use the component"),
            Self::ListSessions => f.write_str("list the sessions"),
            Self::ResumeListed => f.write_str("resume another session"),
            Self::ShowSession { session } => write!(f, "look at the messages of session {session}"),
            Self::BranchSession => f.write_str("continue on a copy of the session"),
            Self::DeleteWithChildren => f.write_str("delete the sessions that came from it too"),
            Self::CheckStore => f.write_str("check the database"),
            Self::RepairStore => f.write_str("repair the database, which makes a copy first"),
            Self::SetUpModel => f.write_str("set up a model"),
            Self::ChooseProvider => f.write_str("choose a provider"),
            Self::ChooseModel => f.write_str("choose a model"),
            Self::ChooseAnotherProvider => f.write_str("choose another provider"),
            Self::ChooseAnotherModel => f.write_str("choose another model"),
            Self::ChooseAddress => f.write_str("set the address of the API"),
            Self::LogIn { login } => write!(f, "log in to `{login}`"),
            Self::ListLogins => f.write_str("list the logins"),
            Self::RemoveLogin { login } => write!(f, "remove the login `{login}` from this machine only"),
            Self::ChooseEngine => f.write_str("choose another context engine"),
            Self::Compress => f.write_str("compress the conversation"),
            Self::RebuildPrompt { .. } => f.write_str("rebuild the system prompt"),
        }
    }
}
