//! The rights of a plugin in a test session.

/// How many of the requested rights the plugin gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// All that its manifest requests.
    Granted,
    /// All that its manifest requests, but no model answers.
    NoModel,
    /// All that its manifest requests, but the user has not set its secrets.
    NoSecret,
    /// All that its manifest requests, but the addresses are not granted, as after a change of the configuration.
    NoAddress,
    /// None: every import that can be denied is denied.
    Denied,
}
