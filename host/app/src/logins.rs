//! The logins of a home: what can be logged into, and what exists in `auth.json`.

use std::collections::BTreeSet;

use hermes_models::{Flow, LoginError, LoginSettings, OnStep};

use crate::{AppError, Setup};

pub use hermes_models::{LoggedIn, LoggedOut, LoginClient, LoginState, LoginStep};

/// A login that can be made or that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLogin {
    /// Its name.
    pub name: String,
    /// How to log in, by the flow's name in the configuration; none for a login that only `auth.json` has.
    pub flow: Option<&'static str>,
    /// What `auth.json` says of it; none for a login that was not made yet.
    pub state: Option<LoginState>,
}

/// The names of the logins that need no section in the configuration. Each is that of a provider.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    LoginSettings::built_in_names()
}

impl Setup {
    /// The client of a login: from its section, or from the built-in login of that name.
    ///
    /// # Errors
    ///
    /// [`LoginError::Unknown`], or what is wrong with the section.
    pub fn login_client(&self, name: &str) -> Result<LoginClient, AppError> {
        let sections = &self.config.settings().logins;
        let settings = match sections.get(name) {
            Some(section) => section.clone().unwrap_or_default().settings().completed(name),
            None => LoginSettings::built_in(name).ok_or_else(|| LoginError::Unknown {
                login: name.to_owned(),
                known: {
                    let known = sections.keys().cloned().chain(built_in().map(str::to_owned));
                    known.collect::<BTreeSet<_>>().into_iter().collect()
                },
            })?,
        };
        Ok(LoginClient::new(name, &settings)?)
    }

    /// All logins by name.
    ///
    /// # Errors
    ///
    /// When `auth.json` cannot be read, with the cause.
    pub fn known_logins(&self) -> Result<Vec<KnownLogin>, AppError> {
        let sections = &self.config.settings().logins;
        let path = self.home.auth();
        let fix = format!("correct {}, or move the file away", path.display());
        let existing = self.logins.examine().map_err(|why| LoginError::File { why, fix })?;
        let existing_names = existing.iter().map(|(name, _)| name.clone());
        let names: BTreeSet<String> =
            sections.keys().cloned().chain(existing_names).chain(built_in().map(str::to_owned)).collect();
        let flow = |name: &str| match sections.get(name) {
            Some(section) => section.clone().unwrap_or_default().settings().completed(name).flow,
            None => LoginSettings::built_in(name)?.flow,
        };
        let known = names.into_iter().map(|name| KnownLogin {
            flow: flow(&name).map(Flow::name),
            state: existing.iter().find(|(other, _)| *other == name).map(|(_, state)| *state),
            name,
        });
        Ok(known.collect())
    }

    /// Whether requests can use a login, as far as this machine knows.
    pub fn has_login(&self, name: &str) -> bool {
        let is_it = |(other, state): &(String, LoginState)| {
            other == name && !matches!(state, LoginState::Expired | LoginState::Incomplete)
        };
        self.logins.examine().is_ok_and(|logins| logins.iter().any(is_it))
    }

    /// Logs in and stores the tokens. `on_step` shows what the user has to do.
    ///
    /// # Errors
    ///
    /// [`AppError::Login`], when the login fails or its tokens cannot be stored.
    pub async fn log_in(&self, client: &LoginClient, on_step: OnStep<'_>) -> Result<LoggedIn, AppError> {
        let logged_in = self.logins.log_in(client, on_step).await?;
        self.logins.cooldowns().end_of_login(client.name());
        Ok(logged_in)
    }

    /// Removes a login. With `is_local`, its tokens stay valid.
    ///
    /// # Errors
    ///
    /// [`AppError::Login`], when there is no such login, or its server does not revoke it.
    pub async fn log_out(&self, name: &str, is_local: bool) -> Result<LoggedOut, AppError> {
        Ok(self.logins.log_out(name, is_local).await?)
    }
}
