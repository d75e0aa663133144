//! Why an installed plugin may not run.

/// Why an installed plugin may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ungranted {
    /// `plugins.lock` has no entry for it: its folder was created by hand.
    #[error("you have not allowed it to run yet")]
    Unknown(String),
    /// The user revoked the grant.
    #[error("you revoked its permission to run")]
    Revoked(String),
    /// It is only a native library, and native code was not granted.
    #[error("it is a native library, which runs outside the sandbox and can do everything that you can do")]
    Native(String),
    /// `plugins.lock` grants a plugin of this name in another folder.
    #[error("it is in the folder `{found}`, but it was allowed to run in the folder `{granted}`")]
    Elsewhere {
        /// Its folder, relative to the folder of plugins.
        found: String,
        /// The folder in `plugins.lock`, relative to the folder of plugins.
        granted: String,
    },
    /// Hermes did not write its entry of `plugins.lock` in this home.
    #[error(
        "its entry in plugins.lock comes from elsewhere or was changed outside of Hermes, and you have not agreed to it"
    )]
    Foreign(String),
    /// The bytes in its folder are not those that were granted.
    #[error("its files have changed since you allowed it to run")]
    Altered {
        /// Its name.
        name: String,
        /// Whether it has a source other than its folder, from which an update brings the files back.
        has_source: bool,
    },
    /// While this process runs, the plugin was replaced by one from another source.
    #[error(
        "it was replaced by a plugin from another source ({now}), and this process has the configuration and approvals \
         of the earlier one"
    )]
    Replaced {
        /// The source of the new plugin.
        now: String,
    },
}
