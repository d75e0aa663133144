//! The rules for messages that every provider enforces.

use std::collections::HashSet;

use crate::{Role, Shown};

/// Why a provider would refuse a list of messages; `at` is the position of the first violation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The first message is not the user's.
    #[error("the first message is not the user's")]
    Start,
    /// Two consecutive messages have roles that must not follow each other.
    #[error("message {at}: {role:?} may not follow {before:?}")]
    Order {
        /// Where.
        at: usize,
        /// The role before it.
        before: Role,
        /// Its role.
        role: Role,
    },
    /// A result answers no call of the message before.
    #[error("message {at}: result for the unknown call `{call}`")]
    UnknownCall {
        /// Where.
        at: usize,
        /// The call's id.
        call: String,
    },
    /// A call has no result.
    #[error("message {at}: the call `{call}` has no result")]
    Unanswered {
        /// Where the calls end without it.
        at: usize,
        /// The call's id.
        call: String,
    },
    /// Two calls of one message share an id.
    #[error("message {at}: the call id `{call}` stands twice")]
    SameCall {
        /// Where.
        at: usize,
        /// The call's id.
        call: String,
    },
}

/// Checks order of roles and pairing of calls and results.
pub fn check(messages: &[Shown]) -> Result<(), Invalid> {
    let mut open: Vec<&str> = Vec::new();
    let mut before: Option<Role> = None;
    // Pictures of results belong to the results.
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| !message.repeats_pictures) {
        if message.role != Role::Tool
            && let Some(call) = open.first()
        {
            return Err(Invalid::Unanswered { at, call: (*call).to_owned() });
        }
        match (before, message.role) {
            (None, Role::User)
            | (Some(Role::User | Role::Tool), Role::Assistant)
            | (Some(Role::Assistant), Role::User)
            | (Some(Role::Assistant | Role::Tool), Role::Tool) => {}
            (None, _) => return Err(Invalid::Start),
            (Some(before), role) => return Err(Invalid::Order { at, before, role }),
        }
        if message.role == Role::Tool {
            let call = message.tool_call_id.as_deref().unwrap_or_default();
            match open.iter().position(|open| *open == call) {
                Some(position) => drop(open.remove(position)),
                None => return Err(Invalid::UnknownCall { at, call: call.to_owned() }),
            }
        }
        let mut seen = HashSet::new();
        for call in &message.tool_calls {
            if !seen.insert(call.id.as_str()) {
                return Err(Invalid::SameCall { at, call: call.id.clone() });
            }
            open.push(&call.id);
        }
        before = Some(message.role);
    }
    match open.first() {
        Some(call) => Err(Invalid::Unanswered { at: messages.len(), call: (*call).to_owned() }),
        None => Ok(()),
    }
}
