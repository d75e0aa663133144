//! What a front end wants of a session.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hermes_agent::{AcceptedParts, FeedLimits, SessionRules};
use hermes_mcp::ServerDefinition;
use hermes_protocol::{Author, Mode};

use crate::ModelChoice;

/// A session that a front end asks for, with everything that is its own. Sessions of one process may differ in all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// Which session.
    pub begin: Beginning,
    /// The folder that a new session works in, an absolute path. A stored session keeps its own.
    pub workspace: PathBuf,
    /// The name of the front end in prompts and in `platform_hints`, such as `cli`.
    pub platform: String,
    /// Model and engine, which take precedence over the configuration.
    pub model: ModelChoice,
    /// What the user is asked about; `None` for the mode of the configuration.
    pub mode: Option<Mode>,
    /// Whether a front end is there to answer questions.
    pub can_ask: bool,
    /// Tool servers beside those of the configuration. One with a configured name replaces it in this session.
    pub servers: Vec<ServerDefinition>,
    /// Who writes the messages that name no author; `None` for the owner of the home.
    pub author: Option<Author>,
    /// Whose sessions, memories and files of the home these are; `None` for the owner of the home.
    pub tenant: Option<Tenant>,
    /// How long the session lasts.
    pub lifetime: Lifetime,
    /// What the user accepts of a session that was imported from a file.
    pub accepted: AcceptedParts,
}

impl SessionRequest {
    /// A new session in a folder, for a front end with this name: the configured model and mode, nobody to answer questions, and one
    /// turn.
    pub fn new(platform: impl Into<String>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            begin: Beginning::New,
            workspace: workspace.into(),
            platform: platform.into(),
            model: ModelChoice::default(),
            mode: None,
            can_ask: false,
            servers: Vec::new(),
            author: None,
            tenant: None,
            lifetime: Lifetime::OneTurn,
            accepted: AcceptedParts::default(),
        }
    }

    /// The same request for another session.
    #[must_use]
    pub fn beginning(&self, begin: Beginning) -> Self {
        Self { begin, ..self.clone() }
    }
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// A new one, stored with its first message.
    New,
    /// A stored session, or a copy of it.
    Resume {
        /// An id, the beginning of one, or a title.
        id: String,
        /// Work on a copy.
        branch: bool,
    },
    /// The newest session of the folder, or a copy of it.
    Newest {
        /// Work on a copy.
        branch: bool,
    },
}

/// How long a session lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One turn: plugins are not watched for changes, and requests are tried again for as long as unattended work allows.
    OneTurn,
    /// Until it is closed. It stays ready for the next message.
    UntilClosed,
    /// Until it is closed. Without messages for a while it drops its plugins and keeps the log: for many sessions in one process.
    Idling,
}

impl Lifetime {
    pub(crate) fn rules(self) -> SessionRules {
        match self {
            Self::OneTurn | Self::UntilClosed => SessionRules::SINGLE,
            Self::Idling => SessionRules { feed: FeedLimits::SHARED, ..SessionRules::SHARED },
        }
    }

    pub(crate) fn is_one_turn(self) -> bool {
        self == Self::OneTurn
    }
}

/// One of the people or groups for whom an owner runs Hermes. Their sessions, memories, plugin data, results and approvals are in a
/// folder of their own, `$HERMES_HOME/tenants/NAME`; they share the configuration, the plugins and the logins of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

impl Tenant {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot be the name of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a tenant: use 1 to 64 lower-case letters, digits, `-` and `_`, and begin with a letter or a digit"
)]
pub struct NoTenant(String);

impl FromStr for Tenant {
    type Err = NoTenant;

    fn from_str(name: &str) -> Result<Self, NoTenant> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        let begins = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        match begins && name.len() <= 64 && name.bytes().all(fits) {
            true => Ok(Self(name.to_owned())),
            false => Err(NoTenant(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tenant_is_one_plain_folder_name() {
        for (name, fits) in [
            ("anna", true),
            ("team-7_b", true),
            ("7", true),
            ("", false),
            ("..", false),
            ("-a", false),
            ("Anna", false),
            ("a/b", false),
            ("a\0", false),
            ("ä", false),
        ] {
            assert_eq!(name.parse::<Tenant>().is_ok(), fits, "{name:?}");
        }
        assert!("a".repeat(65).parse::<Tenant>().is_err());
    }
}
