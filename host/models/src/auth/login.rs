//! What is known of a login before it exists: its settings, its steps for the user, and its errors.

use std::{collections::BTreeMap, fmt, time::Duration};

use url::Url;

use super::{
    file::{AuthFile, FileError, Login},
    redirect::Issuer,
    server::{self, Tokens},
};
use crate::{Secret, providers};

/// How the user proves to a server who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The user enters a code on a page of the server, in any browser (RFC 8628).
    Device,
    /// The user logs in with a browser on this machine, which the server sends back to a port (RFC 7636, RFC 8252).
    Pkce,
    /// As with [`Pkce`](Self::Pkce), but the server registers no programs and issues an API key instead of tokens, as
    /// OpenRouter does.
    Key,
}

impl Flow {
    /// The flows by their names in the configuration.
    pub const NAMES: &[(&str, Self)] = &[("device", Self::Device), ("pkce", Self::Pkce), ("key", Self::Key)];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, flow)| *flow == self).map_or("", |(name, _)| name)
    }
}

/// What one section below `logins` says. Blank texts say nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// How to log in.
    pub flow: Option<Flow>,
    /// The name of this program at the server.
    pub client_id: Option<String>,
    /// The password of this program at the server, where it has one.
    pub client_secret: Option<String>,
    /// Where a device asks for a code.
    pub device_url: Option<String>,
    /// The page on which the user logs in with a browser.
    pub authorize_url: Option<String>,
    /// Where the server sends the browser back to: an `http` address of this machine.
    pub redirect_url: Option<String>,
    /// Where tokens are issued and refreshed.
    pub token_url: Option<String>,
    /// Where tokens are revoked.
    pub revoke_url: Option<String>,
    /// What the tokens shall allow.
    pub scope: Option<String>,
    /// What else the first request says.
    pub parameters: BTreeMap<String, String>,
    /// The server on the web that the tokens are for, where they are not for models.
    pub resource: Option<String>,
    /// Whether the password goes to the server in a header (HTTP Basic) and not in the form.
    pub is_basic: bool,
    /// The login server, as it calls itself.
    pub issuer: Option<String>,
    /// Whether it says that the browser brings back its name (RFC 9207).
    pub names_issuer: bool,
}

impl fmt::Debug for LoginSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSettings")
            .field("flow", &self.flow)
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.as_deref().map(crate::redact))
            .field("token_url", &self.token_url)
            .finish_non_exhaustive()
    }
}

/// A section below `logins`, checked: everything that its flow needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginClient {
    pub(super) name: String,
    pub(super) start: Start,
    pub(super) client_id: String,
    pub(super) client_secret: Option<Secret>,
    pub(super) token_url: Url,
    revoke_url: Option<Url>,
    pub(super) scope: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) resource: Option<String>,
    pub(super) is_basic: bool,
    pub(super) issuer: Option<Issuer>,
}

/// Where a login begins and where the browser is sent back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Browser {
    pub(super) authorize_url: Url,
    /// On this machine. Without a port, any free one is taken.
    pub(super) redirect_url: Url,
}

/// Where a login begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// At the address that issues codes.
    Device(Url),
    /// In a browser.
    Browser(Browser),
    /// In a browser, for a key.
    BrowserForKey(Browser),
}

impl LoginClient {
    /// Checks what the configuration says of a login.
    ///
    /// # Errors
    ///
    /// [`LoginError::Incomplete`] and [`LoginError::Setting`].
    pub fn new(name: &str, settings: &LoginSettings) -> Result<Self, LoginError> {
        let lacks = |key| LoginError::Incomplete { login: name.to_owned(), key };
        let said = |text: &Option<String>| crate::route::said(text);
        let address = |key: &'static str, text: &str| {
            let wrong = |flaw: &str| LoginError::Setting { login: name.to_owned(), key, flaw: flaw.to_owned() };
            server::address(text).map_err(wrong)
        };
        let required = |key, text: &Option<String>| address(key, &said(text).ok_or_else(|| lacks(key))?);
        let browser = || {
            let back = redirect(said(&settings.redirect_url).as_deref().unwrap_or(REDIRECT));
            let unusable = || {
                let flaw = "is not an http:// address of this machine without a query".to_owned();
                LoginError::Setting { login: name.to_owned(), key: "redirect_url", flaw }
            };
            let authorize_url = required("authorize_url", &settings.authorize_url)?;
            Ok::<_, LoginError>(Browser { authorize_url, redirect_url: back.ok_or_else(unusable)? })
        };
        let flow = settings.flow.ok_or_else(|| lacks("flow"))?;
        let start = match flow {
            Flow::Device => Start::Device(required("device_url", &settings.device_url)?),
            Flow::Pkce => Start::Browser(browser()?),
            Flow::Key => Start::BrowserForKey(browser()?),
        };
        // The file needs a `client_id`; a server that registers no programs never receives it.
        let client_id = said(&settings.client_id).or_else(|| (flow == Flow::Key).then(|| UNREGISTERED.to_owned()));
        Ok(Self {
            start,
            client_id: client_id.ok_or_else(|| lacks("client_id"))?,
            client_secret: settings.client_secret.as_deref().and_then(Secret::new),
            token_url: required("token_url", &settings.token_url)?,
            revoke_url: said(&settings.revoke_url).map(|text| address("revoke_url", &text)).transpose()?,
            scope: said(&settings.scope),
            parameters: settings.parameters.clone(),
            resource: settings.resource.clone(),
            is_basic: settings.is_basic,
            issuer: settings.issuer.clone().map(|name| Issuer { name, is_always_named: settings.names_issuer }),
            name: name.to_owned(),
        })
    }

    /// The name of the login.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it gets an API key instead of tokens.
    pub fn is_for_key(&self) -> bool {
        matches!(self.start, Start::BrowserForKey(_))
    }

    /// The failure of a server. `why` must not quote secrets.
    pub(super) fn failed(&self, why: String) -> LoginError {
        LoginError::Server { login: self.name.clone(), why }
    }

    /// The fields of the first request, before the user acts.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let own = self.parameters.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        [("client_id", Some(self.client_id.as_str())), ("scope", self.scope.as_deref())].into_iter().chain(own)
    }

    /// The login that goes into the file.
    pub(super) fn login(&self, tokens: Tokens, now: u64) -> Login {
        Login {
            token_url: self.token_url.to_string(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
            scope: tokens.scope.or_else(|| self.scope.clone()),
            revoke_url: self.revoke_url.as_ref().map(Url::to_string),
            refresh_token: tokens.refresh.unwrap_or_default(),
            access_token: Some(tokens.access),
            expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
            obtained_at: Some(now),
            resource: self.resource.clone(),
            is_basic: self.is_basic,
            other: serde_json::Map::new(),
        }
    }
}

/// The `client_id` in the file for a server that registers no programs.
const UNREGISTERED: &str = "hermes";

/// Where a browser is sent back to, unless the configuration says otherwise: a free port, as RFC 8252 recommends.
const REDIRECT: &str = "http://127.0.0.1/callback";

/// An address to which a browser can be sent back.
fn redirect(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (url.scheme() == "http" && providers::is_loopback(&url) && is_plain).then_some(url)
}

/// What the user has to do or should know while a login goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep<'a> {
    /// Open the page and enter the code.
    EnterCode {
        /// The page.
        page: &'a Url,
        /// The page with the code in it already, if the server offers it.
        page_with_code: Option<&'a Url>,
        /// The code, on one line without control characters.
        code: &'a str,
        /// How long the code is valid.
        valid: Duration,
    },
    /// Open the page in a browser on this machine.
    Open {
        /// The page.
        page: &'a Url,
        /// Where the browser is sent back to.
        redirect: &'a Url,
        /// How long Hermes waits for that.
        valid: Duration,
    },
    /// The server does not answer at the moment; the login goes on.
    Waiting {
        /// Why.
        why: &'a str,
    },
}

/// Receives the steps of a login.
pub type OnStep<'a> = &'a mut (dyn FnMut(LoginStep<'_>) + Send);

/// What is known of a login that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// Seconds until its access token expires, if the server says so.
    pub expires_in: Option<u64>,
    /// Whether the access token can be refreshed.
    pub is_refreshable: bool,
}

/// Why a login failed. Its texts contain no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nothing says how to log in.
    #[error("nothing says how to log in to `{login}`")]
    Unknown {
        /// What was asked for.
        login: String,
        /// The logins that can be asked for.
        known: Vec<String>,
    },
    /// A key of the configuration is missing.
    #[error("`logins.{login}.{key}` is not set")]
    Incomplete {
        /// The login.
        login: String,
        /// The key.
        key: &'static str,
    },
    /// A key of the configuration cannot be used.
    #[error("`logins.{login}.{key}` {flaw}")]
    Setting {
        /// The login.
        login: String,
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        flaw: String,
    },
    /// The user, or a policy, declined.
    #[error("the login was denied at {host}")]
    Denied {
        /// The login.
        login: String,
        /// Who says so.
        host: String,
    },
    /// The user did not act in time.
    #[error("nobody approved the login within {}", in_words(*after))]
    Late {
        /// The login.
        login: String,
        /// How long it was valid.
        after: Duration,
    },
    /// The server does not accept the login as it is configured.
    #[error("{host} does not accept the login: {message}")]
    Refused {
        /// The login.
        login: String,
        /// Who refused.
        host: String,
        /// What it says, and its status if it has one.
        message: String,
    },
    /// The server does not answer, or not as it should.
    #[error("{why}")]
    Server {
        /// The login.
        login: String,
        /// What is wrong.
        why: String,
    },
    /// There is no such login to log out of.
    #[error("there is no login `{login}` in auth.json")]
    Absent {
        /// What was asked for.
        login: String,
    },
    /// The server did not revoke the tokens; the login stays.
    #[error("the login `{login}` stays, because its tokens are still valid: {why}")]
    NotRevoked {
        /// The login.
        login: String,
        /// What failed.
        why: String,
    },
    /// `auth.json` cannot be used.
    #[error("{why}")]
    File {
        /// What is wrong with it.
        why: String,
        /// What to do.
        fix: String,
    },
}

/// A time limit in words.
fn in_words(limit: Duration) -> String {
    match limit.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

impl LoginError {
    pub(super) fn of_file(file: &AuthFile, error: &FileError) -> Self {
        let path = file.path().display();
        let fix = match error {
            FileError::Invalid { .. } => format!("correct the JSON of {path}, or move the file away"),
            FileError::Locked { .. } => "end the other process, or try again later".to_owned(),
            _ => format!("make sure that {path} can be read and written"),
        };
        Self::File { why: error.to_string(), fix }
    }
}

/// Secrets of a login that goes on, which must not appear in messages.
#[derive(Default)]
pub(super) struct Unsaid(Vec<Secret>);

impl Unsaid {
    pub(super) fn of(client: &LoginClient) -> Self {
        Self(client.client_secret.iter().cloned().collect())
    }

    pub(super) fn add(&mut self, text: &str) {
        self.0.extend(Secret::new(text));
    }

    pub(super) fn scrub(&self, text: &str) -> String {
        self.0.iter().rev().fold(text.to_owned(), |text, secret| secret.scrub(&text))
    }
}
