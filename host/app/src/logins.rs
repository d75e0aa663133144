//! The logins of a home: what can be logged into, and what exists in `auth.json`.

use std::collections::BTreeSet;

use hermes_models::{LoginClient, LoginError, LoginState};

use crate::Setup;

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

impl Setup {
    /// What the configuration says of a login.
    ///
    /// # Errors
    ///
    /// [`LoginError::Unknown`], or what is wrong with the section.
    pub fn login_client(&self, name: &str) -> Result<LoginClient, LoginError> {
        let sections = &self.config.settings().logins;
        let Some(section) = sections.get(name) else {
            return Err(LoginError::Unknown { login: name.to_owned(), known: sections.keys().cloned().collect() });
        };
        LoginClient::new(name, &section.clone().unwrap_or_default().settings())
    }

    /// All logins by name.
    ///
    /// # Errors
    ///
    /// When `auth.json` cannot be read, with the cause.
    pub fn known_logins(&self) -> Result<Vec<KnownLogin>, LoginError> {
        let sections = &self.config.settings().logins;
        let path = self.home.auth();
        let fix = format!("correct {}, or move the file away", path.display());
        let existing = self.logins.examine().map_err(|why| LoginError::File { why, fix })?;
        let names: BTreeSet<&String> = sections.keys().chain(existing.iter().map(|(name, _)| name)).collect();
        let known = names.into_iter().map(|name| KnownLogin {
            name: name.clone(),
            flow: sections.get(name).and_then(|section| Some(section.as_ref()?.flow?.0.name())),
            state: existing.iter().find(|(other, _)| other == name).map(|(_, state)| *state),
        });
        Ok(known.collect())
    }
}
