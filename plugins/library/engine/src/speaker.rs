//! Who wrote a message, in the little space that an index of a long conversation allows.

use hermes_plugin::Role;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Model,
    /// A tool.
    Tool,
    /// The host, or a role of a later version of the contract.
    Other,
}

impl From<&Role> for Speaker {
    fn from(role: &Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Model,
            Role::Tool => Self::Tool,
            Role::System | Role::Other(_) => Self::Other,
        }
    }
}
