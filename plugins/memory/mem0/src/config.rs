//! The configuration, with the keys of other mem0 clients.

use hermes_plugin::{Error, Session, config};

/// What clients write if nobody chose a user: it counts as unset.
const UNSET_USER: &str = "hermes-user";
/// The most bytes of an id.
const ID: usize = 256;

/// Settings in `plugins.entries.mem0`.
#[config]
#[derive(Debug)]
pub(crate) struct Config {
    /// Where the memories are: `platform`, `selfhosted` (a server, `host`), or `local` (no server; `oss` means the same). Without a
    /// value, `host` decides.
    pub(crate) mode: Option<Mode>,
    /// Address of a self-hosted mem0 server, such as http://localhost:8888.
    pub(crate) host: Option<String>,
    /// Address of the mem0 platform.
    #[serde(default = "platform_url")]
    pub(crate) platform_url: String,
    /// Name of the user whose memories these are. Without a value, the user of the session.
    pub(crate) user_id: Option<String>,
    /// Name of this agent, for what it writes.
    #[serde(default = "agent_id")]
    pub(crate) agent_id: String,
    /// Whether the platform reranks what mem0_search finds.
    #[serde(default)]
    pub(crate) rerank: bool,
    /// Most memories that are recalled for a message.
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "top_k")]
    pub(crate) top_k: u32,
}

/// Where the memories are.
#[config]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Platform,
    Selfhosted,
    Oss,
    Local,
}

fn platform_url() -> String {
    "https://api.mem0.ai".to_owned()
}

fn agent_id() -> String {
    "hermes".to_owned()
}

fn top_k() -> u32 {
    10
}

/// The place of the memories, after all defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The platform, at this address without a `/` at its end.
    Platform(String),
    /// A server of the user, at this address without a `/` at its end.
    Server(String),
    /// The plugin's own database.
    Local,
}

impl Config {
    /// Where the memories are. A host means a server also in the mode `platform`, as other clients read it.
    pub(crate) fn place(&self) -> Result<Place, Error> {
        let host = self.host.as_deref().map(str::trim).filter(|host| !host.is_empty());
        match (self.mode, host) {
            (Some(Mode::Local | Mode::Oss), _) => Ok(Place::Local),
            (Some(Mode::Selfhosted), None) => Err(wrong("`mode` is selfhosted, but `host` has no address: set it")),
            (_, Some(host)) => address("host", host).map(Place::Server),
            (None | Some(Mode::Platform), None) => address("platform_url", &self.platform_url).map(Place::Platform),
        }
    }

    /// Checks what the schema cannot say.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.place()?;
        for (key, id) in [("user_id", self.user_id.as_deref()), ("agent_id", Some(self.agent_id.as_str()))] {
            if id.is_some_and(|id| id.len() > ID || id.contains(char::is_control)) {
                return Err(wrong(format!("`{key}` has control characters or more than {ID} bytes")));
            }
        }
        if self.agent_id.trim().is_empty() {
            return Err(wrong("`agent_id` is empty: leave it out or name the agent"));
        }
        if !(1..=50).contains(&self.top_k) {
            return Err(wrong("`top_k` must lie between 1 and 50"));
        }
        Ok(())
    }

    /// The user whose memories a session reads and writes.
    pub(crate) fn user(&self, session: &Session) -> String {
        let configured = self.user_id.as_deref().map(str::trim).filter(|id| !id.is_empty() && *id != UNSET_USER);
        let of_session = || session.user.as_ref().map(|user| user.id.as_str()).filter(|id| !id.is_empty());
        configured.or_else(of_session).unwrap_or(UNSET_USER).to_owned()
    }
}

fn wrong(why: impl Into<String>) -> Error {
    Error::invalid(why).with_code("config")
}

fn address(key: &str, url: &str) -> Result<String, Error> {
    let url = url.trim().trim_end_matches('/');
    let is_web =
        url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).is_some_and(|rest| !rest.is_empty());
    if is_web && !url.contains(['?', '#', '@']) {
        return Ok(url.to_owned());
    }
    Err(wrong(format!("`{key}` must be an address such as https://mem0.example.org, without user, query and fragment")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::{lifecycle, testing};
    use serde_json::{Value, json};

    use super::*;

    fn config(section: Value) -> Result<Config, Error> {
        let config: Config = lifecycle::parse(&section.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn mode_and_host_choose_the_place() {
        let place = |section| config(section).and_then(|config| config.place());
        let server = || Ok(Place::Server("http://nas.lan:8888".to_owned()));
        let platform = || Ok(Place::Platform("https://api.mem0.ai".to_owned()));
        assert_eq!(place(json!({})), platform());
        assert_eq!(place(json!({ "mode": "platform", "host": "" })), platform());
        assert_eq!(place(json!({ "host": "http://nas.lan:8888/" })), server());
        assert_eq!(place(json!({ "mode": "platform", "host": "http://nas.lan:8888" })), server());
        assert_eq!(place(json!({ "mode": "oss", "host": "http://nas.lan:8888" })), Ok(Place::Local));
        assert_eq!(place(json!({ "mode": "local" })), Ok(Place::Local));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (section, key) in [
            (json!({ "mode": "selfhosted" }), "`host`"),
            (json!({ "host": "nas.lan:8888" }), "`host`"),
            (json!({ "host": "http://me:secret@nas.lan" }), "`host`"),
            (json!({ "mode": "cloud" }), "`mode`"),
            (json!({ "top_k": 51 }), "`top_k`"),
            (json!({ "user_id": "a\nb" }), "`user_id`"),
            (json!({ "agent_id": " " }), "`agent_id`"),
        ] {
            let error = config(section).unwrap_err();
            assert!(error.message.contains(key), "{key}: {error}");
        }
    }

    #[test]
    fn the_placeholder_user_counts_as_unset() {
        let mut session = testing::session();
        let user = |section, session: &Session| config(section).unwrap().user(session);
        assert_eq!(user(json!({ "user_id": "hermes-user" }), &session), "hermes-user");
        session.user = Some(hermes_plugin::Peer { id: "tg-7".to_owned(), name: None, extra: Vec::new() });
        assert_eq!(user(json!({ "user_id": "hermes-user" }), &session), "tg-7");
        assert_eq!(user(json!({ "user_id": "ada" }), &session), "ada");
    }
}
