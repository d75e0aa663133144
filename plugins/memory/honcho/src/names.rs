//! Names of workspaces, peers and sessions. A server takes letters, digits, `_` and `-`.

use hermes_plugin::{Peer, Session};

use crate::config::{Config, SessionStrategy};

/// Characters of a name that is not only a hash.
const LENGTH: usize = 100;

/// Where the conversation belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The user.
    pub(crate) user: String,
    /// The agent.
    pub(crate) ai: String,
    /// The session on the server.
    pub(crate) session: String,
}

impl Place {
    pub(crate) fn of(config: &Config, session: &Session) -> Self {
        let ai = config.ai_peer.as_deref().map_or_else(|| of_profile(session), identity);
        let user = user(config, session.user.as_ref());
        let name = name_of_session(config, session);
        let session = if config.session_peer_prefix { short(&format!("{user}-{name}")) } else { name };
        Self { user, ai, session }
    }
}

pub(crate) fn workspace(config: &Config, session: &Session) -> String {
    config.workspace.as_deref().map_or_else(|| of_profile(session), identity)
}

/// The peer for a person of the front end.
pub(crate) fn user(config: &Config, person: Option<&Peer>) -> String {
    let own = config.peer_name.as_deref().map_or_else(|| "user".to_owned(), identity);
    let Some(person) = person.filter(|_| !(config.pin_user_peer && config.peer_name.is_some())) else { return own };
    match config.user_peer_aliases.get(&person.id) {
        Some(alias) => identity(alias),
        None => identity(&format!("{}{}", config.runtime_peer_prefix, person.id)),
    }
}

fn of_profile(session: &Session) -> String {
    match session.profile.as_str() {
        "" | "default" => "hermes".to_owned(),
        profile => identity(&format!("hermes_{profile}")),
    }
}

fn name_of_session(config: &Config, session: &Session) -> String {
    let folder = session.workspace.as_deref().map(|folder| folder.trim_end_matches('/')).unwrap_or_default();
    if let Some(named) =
        config.sessions.iter().find(|(key, _)| !folder.is_empty() && key.trim_end_matches('/') == folder)
    {
        return identity(named.1);
    }
    if let Some(channel) = &session.channel {
        return identity(&format!("{}-{channel}", session.platform));
    }
    let of = |folder: &str| {
        let name = folder.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        name.map_or_else(|| identity(&session.id), folder_name)
    };
    let repository = session.extra.iter().find_map(|(key, value)| (key == "repository").then_some(value.as_str()));
    match config.session_strategy {
        SessionStrategy::PerDirectory => of(folder),
        SessionStrategy::PerRepo => of(repository.unwrap_or(folder)),
        SessionStrategy::PerSession => identity(&session.id),
        SessionStrategy::Global => workspace(config, session),
    }
}

/// A name for something whose id must not be mistaken for another: if a character is lost, a hash of the whole follows.
pub(crate) fn identity(text: &str) -> String {
    let name = allowed(text);
    if name == text { short(&name) } else { hashed(&name, text) }
}

/// The name for a folder. Blanks and dots become `-`, as users of Honcho know it; where letters are lost, a hash tells folders apart.
fn folder_name(folder: &str) -> String {
    let name = allowed(folder);
    let has_letter = name.chars().any(|letter| letter.is_ascii_alphanumeric());
    if folder.is_ascii() && has_letter { short(&name) } else { hashed(&name, folder) }
}

fn allowed(text: &str) -> String {
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '-' };
    text.chars().map(allowed).collect()
}

fn short(name: &str) -> String {
    match name.len() {
        0 => "-".to_owned(),
        1..=LENGTH => name.to_owned(),
        _ => hashed(name, name),
    }
}

fn hashed(name: &str, whole: &str) -> String {
    let kept: String = name.chars().take(LENGTH - 17).collect();
    format!("{kept}-{:016x}", hash(whole))
}

/// FNV-1a: the same in every build, because servers keep these names.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
