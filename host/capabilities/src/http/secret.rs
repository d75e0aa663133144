//! Secrets that the host puts into requests, each restricted to one audience.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::site::Site;
use super::store::{Stored, Writable};

/// The text in place of a secret.
pub(crate) const REDACTED: &str = "[REDACTED]";
/// A shorter value cannot be recognised in an answer, and so not redacted.
const SHORTEST: usize = 8;
/// A longer value does not fit into the headers of servers.
const LONGEST: usize = 4 << 10;

/// Reads the value of a variable again.
pub type ReadAgain = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// A secret for one audience. Clones share its value.
#[derive(Clone)]
pub struct Secret {
    /// The plugin's name for it.
    pub name: String,
    /// The variable with its value, for messages.
    pub variable: String,
    /// Its audience.
    pub audience: Site,
    /// The value of the variable.
    value: Arc<Mutex<Value>>,
    /// Reads it again, so that a session uses the value that the user sets while it runs.
    again: Option<ReadAgain>,
    /// What replaces that value, if the plugin may replace it.
    writable: Option<Writable>,
}

/// A value that can be sent, or what is wrong with it.
type Value = Result<String, &'static str>;

/// The value of a variable.
fn value_of(variable: Option<String>) -> Value {
    let value = variable.unwrap_or_default().trim().to_owned();
    fault(&value).map_or(Ok(value), Err)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} for {}, {:?})", self.name, self.audience, self.given().map(|_| REDACTED))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let place = |secret: &Self| secret.writable.as_ref().map(|writable| writable.store().clone());
        self.name == other.name
            && self.variable == other.variable
            && self.audience == other.audience
            && self.variable_value() == other.variable_value()
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
        Self { name, variable, audience, value: Arc::new(Mutex::new(value_of(value))), again: None, writable: None }
    }

    /// The same secret, whose variable is read again before each request.
    #[must_use]
    pub fn reading(self, again: Option<ReadAgain>) -> Self {
        Self { again, ..self }
    }

    /// The same secret, whose value the plugin may replace. The store has the new values.
    #[must_use]
    pub fn writable(self, store: super::SecretStore) -> Self {
        let given = self.given().unwrap_or_default();
        let writable = Writable::new(store, &self.name, &self.audience, &given);
        Self { writable: Some(writable), ..self }
    }

    /// Whether its value may change while a session runs.
    pub fn may_change(&self) -> bool {
        self.writable.is_some() || self.again.is_some()
    }

    /// The value, or why it cannot be sent. A replaced value is the one of the last [`Secret::refresh`].
    pub(super) fn value(&self) -> Result<String, &'static str> {
        match self.writable.as_ref().and_then(Writable::value) {
            Some(replaced) => Ok(replaced),
            None => self.variable_value(),
        }
    }

    fn variable_value(&self) -> Value {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The value of the variable.
    pub(super) fn given(&self) -> Option<String> {
        self.variable_value().ok()
    }

    /// Reads the variable and the replaced value again. Reads files.
    pub(super) fn refresh(&self) {
        if let Some(again) = &self.again {
            *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value_of(again());
        }
        if let Some(writable) = &self.writable {
            writable.refresh(&self.given().unwrap_or_default(), |value| fault(value).is_none());
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
