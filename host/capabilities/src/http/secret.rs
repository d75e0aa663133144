//! Secrets that the host puts into requests, each restricted to one audience.

use std::fmt;

use super::redaction::REDACTED;
use super::site::Site;
use super::store::{Stored, Writable};

/// A shorter value cannot be recognised in an answer, and so not redacted.
const SHORTEST: usize = 8;
/// A longer value does not fit into the headers of servers.
const LONGEST: usize = 4 << 10;

/// A secret for one audience.
#[derive(Clone)]
pub struct Secret {
    /// The plugin's name for it.
    pub name: String,
    /// The variable with its value, for messages.
    pub variable: String,
    /// Its audience.
    pub audience: Site,
    /// The value of the variable.
    value: Result<String, &'static str>,
    /// What replaces that value, if the plugin may replace it.
    writable: Option<Writable>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} for {}, {:?})", self.name, self.audience, self.value.as_ref().map(|_| REDACTED))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let place = |secret: &Self| secret.writable.as_ref().map(|writable| writable.store().clone());
        self.name == other.name
            && self.variable == other.variable
            && self.audience == other.audience
            && self.value == other.value
            && place(self) == place(other)
    }
}

impl Eq for Secret {}

/// What is wrong with a value.
fn fault(value: &str) -> Option<&'static str> {
    match value {
        "" => Some("is not set"),
        value if value.len() < SHORTEST => Some("has fewer than 8 characters, too few to keep it out of answers"),
        value if value.len() > LONGEST => Some("has more than 4096 characters"),
        value if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
            Some("has characters that no header can carry")
        }
        _ => None,
    }
}

impl Secret {
    /// A secret with the value of its variable.
    pub fn new(name: String, variable: String, audience: Site, value: Option<String>) -> Self {
        let value = value.unwrap_or_default().trim().to_owned();
        let value = fault(&value).map_or(Ok(value), Err);
        Self { name, variable, audience, value, writable: None }
    }

    /// The same secret, whose value the plugin may replace. The store has the new values.
    #[must_use]
    pub fn writable(self, store: super::SecretStore) -> Self {
        let given = self.value.as_deref().unwrap_or_default();
        let writable = Writable::new(store, &self.name, &self.audience, given);
        Self { writable: Some(writable), ..self }
    }

    /// Whether the plugin may replace its value.
    pub fn is_writable(&self) -> bool {
        self.writable.is_some()
    }

    /// The value, or why it cannot be sent. A replaced value is the one of the last [`Secret::refresh`].
    pub(super) fn value(&self) -> Result<String, &'static str> {
        match self.writable.as_ref().and_then(Writable::value) {
            Some(replaced) => Ok(replaced),
            None => self.value.clone(),
        }
    }

    /// The value of the variable.
    pub(super) fn given(&self) -> Option<&str> {
        self.value.as_deref().ok()
    }

    /// Reads the replaced value. Reads a file.
    pub(super) fn refresh(&self) {
        if let Some(writable) = &self.writable {
            writable.refresh(|value| fault(value).is_none());
        }
    }

    /// Replaces the value. Writes a file.
    pub(super) fn replace(&self, value: &str) -> Result<(), Stored> {
        let Some(writable) = &self.writable else { return Err(Stored::Fixed) };
        let value = value.trim();
        match fault(value) {
            Some(why) => Err(Stored::Unfit(why)),
            None => writable.replace(value).map_err(Stored::Failed),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_redaction_could_not_find_is_not_sent() {
        let audience: Site = "https://api.example.org/".parse().unwrap();
        let of = |value: Option<&str>| Secret::new("k".into(), "K".into(), audience.clone(), value.map(str::to_owned));
        let long = "x".repeat(4097);
        for value in ["", "  \n", "short12", "two\nlines of it", "kön1gskey", &long] {
            assert!(of(Some(value)).value().is_err(), "{value:?}");
        }
        assert!(of(None).value().is_err());
        let key = of(Some(" a key with a newline\n"));
        assert_eq!(key.value().as_deref(), Ok("a key with a newline"));
        assert!(!format!("{key:?}").contains("newline"), "{key:?}");
    }
}
