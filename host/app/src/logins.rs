//! The logins of a home: what can be logged into, and what exists in `auth.json`.

use std::collections::BTreeSet;

use hermes_models::{Flow, LoginClient, LoginError, LoginSettings, LoginState};

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

fn built_in() -> impl Iterator<Item = String> {
    LoginSettings::built_in_names().map(str::to_owned)
}

impl Setup {
    /// The client of a login: from its section, or from the built-in login of that name.
    ///
    /// # Errors
    ///
    /// [`LoginError::Unknown`], or what is wrong with the section.
    pub fn login_client(&self, name: &str) -> Result<LoginClient, LoginError> {
        let sections = &self.config.settings().logins;
        let settings = match sections.get(name) {
            Some(section) => section.clone().unwrap_or_default().settings().completed(name),
            None => LoginSettings::built_in(name).ok_or_else(|| LoginError::Unknown {
                login: name.to_owned(),
                known: sections.keys().cloned().chain(built_in()).collect::<BTreeSet<_>>().into_iter().collect(),
            })?,
        };
        LoginClient::new(name, &settings)
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
        let names: BTreeSet<String> =
            sections.keys().cloned().chain(existing.iter().map(|(name, _)| name.clone())).chain(built_in()).collect();
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
}
