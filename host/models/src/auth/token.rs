//! Access tokens that expire, and the rule that each expiry costs one refresh.
//!
//! Within a process, the sessions of a login share one [`Token`], and one of them refreshes while the others wait.
//! Between processes, the lock of `auth.json` does the same: the process that obtains it reads the file again and refreshes
//! only if no other process has done so.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use hermes_diagnostic::{Action, Fix};
use hermes_private_files::Documents;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use url::Url;

use super::{
    Authentication, Authorized,
    file::{AuthFile, FileError, Login},
    fixed,
    refresh::{self, Refusal},
    resource,
};
use crate::{Cooldowns, ModelError, Secret};

/// A token is refreshed this many seconds before it expires, so that it does not expire on its way; at most a quarter of
/// its life.
const MARGIN: u64 = 60;
/// How long to wait for another process that refreshes: longer than a token server may take.
pub(super) const LONGEST_LOCK: Duration = Duration::from_secs(60);
/// How many former secrets are remembered to be scrubbed from texts.
const MOST_SEEN: usize = 64;

/// The logins of a home, by name, and the cooldowns of its keys. Clones share their tokens.
#[derive(Clone)]
pub struct Logins {
    shared: Arc<Shared>,
}

struct Shared {
    file: AuthFile,
    now: fn() -> SystemTime,
    tokens: Mutex<HashMap<String, Arc<Token>>>,
    cooldowns: Cooldowns,
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logins").field(&self.shared.file.path()).finish()
    }
}

impl Logins {
    /// The logins in a file, which is read when a request first needs one of them, and the cooldowns in the home's documents.
    pub fn new(file: PathBuf, documents: Arc<dyn Documents>) -> Self {
        let cooldowns = Cooldowns::new(documents);
        let shared = Shared { file: AuthFile::new(file), now: SystemTime::now, tokens: Mutex::default(), cooldowns };
        Self { shared: Arc::new(shared) }
    }

    /// The keys and models of the home that are left alone after they failed.
    pub fn cooldowns(&self) -> &Cooldowns {
        &self.shared.cooldowns
    }

    /// The state of each login in the file, as far as it is known without the login's server. The file is only read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, with the cause; no token is part of it.
    pub fn examine(&self) -> Result<Vec<(String, LoginState)>, String> {
        let now = self.seconds();
        let logins = match self.shared.file.all() {
            Err(FileError::NoFile(_)) => Vec::new(),
            all => all.map_err(|error| error.to_string())?,
        };
        Ok(logins.into_iter().map(|(name, login)| (name, LoginState::of(login.as_ref(), now))).collect())
    }

    /// The access token of a login for a server on the web: refreshed if it has expired, and another one than the one that the
    /// server refused. `None` if there is no login, or if it is for another address.
    ///
    /// # Errors
    ///
    /// When the login cannot be read or refreshed.
    pub async fn token_for(&self, name: &str, url: &Url, refused: Option<&str>) -> Result<Option<String>, ModelError> {
        let token = self.token(name);
        let login = match self.shared.file.read(name) {
            Err(FileError::NoFile(_) | FileError::NoLogin(_)) => return Ok(None),
            read => read.map_err(|error| token.inner.unreadable(&error))?,
        };
        if !is_for(&login, url) {
            return Ok(None);
        }
        let refused = refused.and_then(Secret::new);
        let usable = token.inner.usable(None).filter(|_| refused.is_none());
        let access = match usable {
            Some(access) => access,
            None => token.renew(refused).await?,
        };
        Ok(Some(access.expose().to_owned()))
    }

    /// The scope of the login for this server on the web; `None` if there is no such login, or its scope is unknown.
    pub fn scope_for(&self, name: &str, url: &Url) -> Option<String> {
        self.shared.file.read(name).ok().filter(|login| is_for(login, url))?.scope
    }

    pub(super) fn file(&self) -> &AuthFile {
        &self.shared.file
    }

    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> u64 {
        seconds((self.shared.now)())
    }

    /// The token of a login: the same one for every session.
    pub(super) fn token(&self, name: &str) -> Arc<Token> {
        let mut tokens = self.shared.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(Token {
                inner: Arc::new(Inner {
                    name: name.to_owned(),
                    file: self.shared.file.clone(),
                    now: self.shared.now,
                    state: Mutex::default(),
                    refreshing: tokio::sync::Mutex::new(()),
                }),
            })
        };
        Arc::clone(tokens.entry(name.to_owned()).or_insert_with(new))
    }
}

/// Whether the tokens of a login are for this address.
fn is_for(login: &Login, url: &Url) -> bool {
    let resource = login.resource.as_deref().and_then(|text| Url::parse(text).ok());
    resource.is_some_and(|resource| resource::covers(&resource, url))
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether a login can give a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// Its access token is valid.
    Valid,
    /// Its access token, or its key, does not expire by itself.
    Unlimited,
    /// The next request refreshes its access token.
    Refreshable,
    /// Its access token has expired and cannot be refreshed.
    Expired,
    /// It lacks a field.
    Incomplete,
}

impl LoginState {
    /// A word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid | Self::Unlimited => "valid",
            Self::Refreshable => "refreshable",
            Self::Expired => "expired",
            Self::Incomplete => "incomplete",
        }
    }

    fn of(login: Option<&Login>, now: u64) -> Self {
        let Some(login) = login else { return Self::Incomplete };
        let is_empty = login.refresh_token.trim().is_empty();
        if is_empty && login.access_token.is_none() {
            return Self::Incomplete;
        }
        let is_valid = login.access_token.is_some() && login.expires_at.is_none_or(|expires| expires > now);
        match (is_valid, is_empty) {
            (true, true) if login.expires_at.is_none() => Self::Unlimited,
            (true, _) => Self::Valid,
            (false, false) => Self::Refreshable,
            (false, true) => Self::Expired,
        }
    }
}

impl fmt::Display for LoginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "its access token is valid",
            Self::Unlimited => "it does not expire by itself",
            Self::Refreshable => "the next request refreshes its access token",
            Self::Expired => "its access token has expired, and it has no refresh token",
            Self::Incomplete => "it lacks token_url, client_id or refresh_token",
        })
    }
}

/// The access token of one login.
pub(super) struct Token {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    file: AuthFile,
    now: fn() -> SystemTime,
    state: Mutex<State>,
    /// Held by the session that refreshes.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    access: Option<Secret>,
    expires_at: Option<u64>,
    /// How many seconds before its end it is refreshed.
    margin: u64,
    /// Current and former secrets, the newest last.
    seen: Vec<Secret>,
    /// How many refreshes have failed, and how the last one did.
    failures: u64,
    failure: Option<ModelError>,
    /// A login that the server will not accept later either.
    dead: Option<(Login, ModelError)>,
    /// Tokens that could not be written, and the refresh token that they replace.
    unwritten: Option<(String, Login)>,
}

impl State {
    fn remember(&mut self, login: &Login) {
        let texts = [Some(&login.refresh_token), login.access_token.as_ref(), login.client_secret.as_ref()];
        for secret in texts.into_iter().flatten().filter_map(|text| Secret::new(text)) {
            if !self.seen.contains(&secret) {
                self.seen.push(secret);
            }
        }
        let excess = self.seen.len().saturating_sub(MOST_SEEN);
        self.seen.drain(..excess);
    }

    /// Takes over what the file says.
    fn adopt(&mut self, login: &Login) {
        self.remember(login);
        self.access = login.access_token.as_deref().and_then(Secret::new);
        self.expires_at = login.expires_at;
        let life = login.expires_at.zip(login.obtained_at).map(|(end, begin)| end.saturating_sub(begin));
        self.margin = life.map_or(MARGIN, |life| MARGIN.min(life / 4));
    }

    /// The token, if it does not expire within `margin` seconds and is not the one that was refused.
    fn usable(&self, now: u64, margin: u64, refused: Option<&Secret>) -> Option<Secret> {
        let expired = self.expires_at.is_some_and(|at| at <= now.saturating_add(margin));
        self.access.clone().filter(|access| !expired && Some(access) != refused)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self, refused: Option<&Secret>) -> Option<Secret> {
        let state = self.state();
        state.usable(self.seconds(), state.margin, refused)
    }

    fn seconds(&self) -> u64 {
        seconds((self.now)())
    }

    fn scrub(&self, text: &str) -> String {
        self.state().seen.iter().rev().fold(text.to_owned(), |text, secret| secret.scrub(&text))
    }

    /// A token other than the refused one. Refreshes unless another session or process has done so meanwhile. `failures`
    /// is their number when the caller found its token unusable.
    async fn renew(&self, failures: u64, refused: Option<Secret>) -> Result<Secret, ModelError> {
        let _alone = self.refreshing.lock().await;
        if let Some(access) = self.usable(refused.as_ref()) {
            return Ok(access);
        }
        {
            let state = self.state();
            if state.failures > failures
                && let Some(failure) = &state.failure
            {
                // The session that it waited for has just tried.
                return Err(failure.clone());
            }
        }
        let renewed = self.renew_alone(refused.as_ref()).await;
        if let Err(error) = &renewed {
            let mut state = self.state();
            state.failures += 1;
            state.failure = Some(error.clone());
        }
        renewed
    }

    async fn renew_alone(&self, refused: Option<&Secret>) -> Result<Secret, ModelError> {
        self.reread()?;
        if let Some(access) = self.usable(refused) {
            return Ok(access);
        }
        let lock = self.file.lock(LONGEST_LOCK).await.map_err(|error| self.unreadable(&error))?;
        let login = self.reread()?;
        if let Some(access) = self.usable(refused) {
            return Ok(access);
        }
        let dead = self.state().dead.clone();
        if let Some((refused, error)) = dead
            && refused == login
        {
            return Err(error);
        }
        if login.refresh_token.trim().is_empty() {
            return Err(self.ended("its access token is no longer valid, and it has no refresh token"));
        }
        match refresh::ask(&login).await {
            Ok(tokens) => {
                let replaced = login.refresh_token.clone();
                let now = self.seconds();
                let login = Login {
                    obtained_at: Some(now),
                    access_token: Some(tokens.access),
                    expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
                    refresh_token: tokens.refresh.unwrap_or_else(|| replaced.clone()),
                    ..login
                };
                let written = self.file.write(&lock, &self.name, &login);
                let mut state = self.state();
                state.adopt(&login);
                if let Err(error) = written {
                    // The server may have revoked the old refresh token already: this process goes on with the new one.
                    tracing::warn!(login = %self.name, %error, "the new tokens of a login are not saved");
                    state.unwritten = Some((replaced, login));
                }
                let access = state.access.clone();
                drop(state);
                access.ok_or_else(|| self.unavailable("the new access token is blank"))
            }
            Err(Refusal::Passing(why)) => self.current(refused).ok_or_else(|| self.unavailable(&why)),
            Err(Refusal::Network(why)) => self.current(refused).ok_or_else(|| self.unreachable(&why)),
            Err(Refusal::Address(why)) => {
                let fix = Fix::words(format!("correct token_url of `{}` in {}", self.name, self.file.path().display()));
                Err(ModelError::Login { login: self.name.clone(), why: self.scrub(&why), fix })
            }
            Err(Refusal::Final(why)) => {
                let error = self.ended(&why);
                self.state().dead = Some((login, error.clone()));
                Err(error)
            }
        }
    }

    fn reread(&self) -> Result<Login, ModelError> {
        let mut login = self.file.read(&self.name).map_err(|error| self.unreadable(&error))?;
        let mut state = self.state();
        match &state.unwritten {
            Some((replaced, unwritten)) if *replaced == login.refresh_token => login = unwritten.clone(),
            _ => state.unwritten = None,
        }
        state.adopt(&login);
        Ok(login)
    }

    /// The old token, which is still valid within the margin before its end.
    fn current(&self, refused: Option<&Secret>) -> Option<Secret> {
        self.state().usable(self.seconds(), 0, refused)
    }

    /// Only a new login helps.
    fn ended(&self, why: &str) -> ModelError {
        let login = self.name.clone();
        ModelError::Login { login: login.clone(), why: self.scrub(why), fix: Action::LogIn { login }.into() }
    }

    fn unreachable(&self, why: &str) -> ModelError {
        let path = self.file.path().display();
        ModelError::LoginUnavailable {
            login: self.name.clone(),
            why: self.scrub(why),
            fix: Fix::words(format!("check token_url of `{}` in {path}, or try again later", self.name)),
        }
    }

    fn unavailable(&self, why: &str) -> ModelError {
        ModelError::LoginUnavailable {
            login: self.name.clone(),
            why: self.scrub(why),
            fix: Fix::words("try again later"),
        }
    }

    fn unreadable(&self, error: &FileError) -> ModelError {
        let path = self.file.path().display();
        let again = || Fix::from(Action::LogIn { login: self.name.clone() });
        let fix = match error {
            FileError::NoFile(_) | FileError::NoLogin(_) => again(),
            FileError::Malformed(_) => again().or(format!("correct the login `{}` in {path}", self.name)),
            FileError::Incomplete { .. } => again().or(format!("add what is missing to the login `{}`", self.name)),
            FileError::Invalid { .. } => Fix::words(format!("correct the JSON of {path}")),
            FileError::Io { .. } => Fix::words(format!("make sure that {path} can be read and written")),
            FileError::Locked { .. } => return self.unavailable(&error.to_string()),
        };
        ModelError::Login { login: self.name.clone(), why: error.to_string(), fix }
    }
}

impl Token {
    async fn renew(&self, refused: Option<Secret>) -> Result<Secret, ModelError> {
        let inner = Arc::clone(&self.inner);
        let failures = inner.state().failures;
        // A task of its own: a turn that is stopped must not lose the refresh token that the server has just replaced.
        let task = tokio::spawn(async move { inner.renew(failures, refused).await });
        task.await.unwrap_or_else(|_| Err(self.inner.unavailable("the refresh was stopped")))
    }
}

#[async_trait]
impl Authentication for Token {
    async fn authorize(&self) -> Result<Authorized, ModelError> {
        let access = match self.inner.usable(None) {
            Some(access) => access,
            None => self.renew(None).await?,
        };
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, fixed::bearer(&access)?);
        Ok(Authorized { headers, token: Some(access) })
    }

    async fn refused(&self, authorized: &Authorized) -> Result<bool, ModelError> {
        self.renew(authorized.token.clone()).await.map(|_| true)
    }

    fn scrub(&self, text: &str) -> String {
        self.inner.scrub(text)
    }

    fn remedy(&self) -> String {
        let (name, path) = (&self.inner.name, self.inner.file.path().display());
        format!("check that the login `{name}` in {path} may use this model")
    }
}
